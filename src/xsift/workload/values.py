"""Values and their distribution: what both generators draw from, so that conditions can hold in documents.

An attribute or a text has a domain of numbered values, written 1, 2, 3 …: numbers can be compared for equality and
for order alike. An enumeration's domain is its own values. Value k has a probability in proportion to 1 / k^skew, by
Zipf's law, the same in documents and in conditions: skew 0 makes all values equally likely.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = ["cumulative", "words"]


def cumulative(size: int, skew: float) -> NDArray[np.float64]:
    """The cumulative probabilities of a Zipf distribution over `size` values. The last one is 1."""
    sums = np.cumsum(np.arange(1, size + 1, dtype=np.float64) ** -skew)
    # Powers may differ in their last bit between machines; rounded, they give the same draws everywhere.
    return np.asarray(np.round(sums / sums[-1], 12))


def words() -> list[str]:
    """A thousand pronounceable words, the filling of texts. They stand for no language."""
    syllables = ["bdfgklmnprstvz", "aeiou", ("l", "n", "r", "s", "ta", "mi", "no", "ru"), ("", "en")]
    return ["".join(letters) for letters in product(*syllables)][:1000]
