"""Parts of a set of subscriptions, and which of them a document must visit.

A router is itself a small matcher: its subscriptions are the keys of the parts, and a document that satisfies none of
the keys of a part cannot satisfy any subscription in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from xsift.errors import DocumentError

if TYPE_CHECKING:
    from xsift.matching import Matcher

__all__ = ["Part", "Router"]


@dataclass(frozen=True)
class Part:
    """A saved matcher, by the name of the file that was shipped, and the rows of it that do not count any more.
    `size_bytes` is what a worker holds of it, most of it shared with other workers of its machine."""

    name: str
    size_bytes: int
    removed: npt.NDArray[np.int32] | None = None
    subscribers: str | None = None
    """The file that says who subscribed to each row, if rows are expressions; without it rows have ids of their
    own."""


@dataclass(frozen=True)
class Router:
    """A saved matcher whose ids are numbers of parts, and the parts that every document visits."""

    part: Part
    always: tuple[int, ...]

    def visits(
        self, matcher: Matcher, documents: pa.Array, parts: int, encoding: str | None = None
    ) -> tuple[npt.NDArray[np.bool_], dict[int, DocumentError]]:
        """Which parts each document must visit, and the errors of broken ones, which visit none."""
        rows, ends, errors, undecided = matcher.match_array_rows(documents, encoding=encoding)
        visits = np.zeros((len(documents), parts), dtype=bool)
        numbers = np.repeat(np.arange(len(documents)), np.diff(ends, prepend=0))
        visits[numbers, _numbers_of(matcher)[rows]] = True
        visits[:, list(self.always)] = True
        visits[list(undecided)] = True
        visits[list(errors)] = False
        return visits, errors


def _numbers_of(matcher: Matcher) -> npt.NDArray[np.int64]:
    """The part that each row of a router stands for. Its ids are `PART` or `PART.KEY`."""
    return np.array([int(id.partition(".")[0]) for id in matcher.row_ids.to_pylist()], dtype=np.int64)
