"""Makes subscriptions: random walks down the element graph of a DTD, printed as XPath.

It stands in for YFilter's query generator, which most of the papers used, and works as that one does. A walk starts
at the root and goes from an element to one of its children, by Zipf's law, until the maximum depth or an element
without children. On the way a step becomes `*` with one probability, and with another one a step is reached by `//`,
which skips a random number of elements. A `//` before a `*` moves behind it (`//*/a` and `/*//a` mean the same).
Nested paths branch off at random steps, into a child that the path does not take; conditions go to random steps.

The naive way is to walk one subscription after the other, 4 µs for a plain path. But distinct subscriptions get rare:
167,000 of 5,000,000 in the predicate-based paper. So walks are made thousands at a time, as columns of numpy arrays
(`walks.py`), and only the new ones are printed.

Distinct means distinct as patterns: `/a[b]/c` and `/a[c]/b` are the same pattern, as are `/a[@x=1][@y=2]` and
`/a[@y=2][@x=1]`; not so for ordered subscriptions, where the order of branches matters. Branches of ordered ones are
printed in the order of the DTD, so that documents can match them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from xsift.errors import WorkloadError
from xsift.workload.dtd import Dtd, read_dtd
from xsift.workload.parameters import check_range, check_whole
from xsift.workload.walks import BATCH, Walks

__all__ = ["Matcher", "SubscriptionGenerator", "SubscriptionParameters"]

Matcher = Callable[[Sequence[str], Sequence[bytes]], Sequence[int]]
"""Says of each subscription how many of the documents it matches."""

_STRETCH = 1_000_000
"""After this many walks it is decided whether to go on."""
_FIRST_STRETCH = 100_000
"""And after this many if nothing was found at all."""
_PATIENCE = 50
"""Gives up when new ones are so rare that finding the missing ones would take this many stretches."""


@dataclass(frozen=True, kw_only=True)
class SubscriptionParameters:
    """How subscriptions are made. `docs/workloads.md` says which parameter comes from which paper."""

    dtd: str = "nitf"
    root: str | None = None
    number: int = 1000
    seed: int = 1
    maximum_depth: int = 6
    """L: no path has more steps, those of a nested path counted from the root."""
    minimum_depth: int = 1
    """No main path has fewer steps."""
    stop_odds: float = 0.0
    """The probability that a main path ends with a step, and goes no deeper: then some are prefixes of others."""
    wildcard_odds: float = 0.2
    """W: the probability that a step is `*`."""
    descendant_odds: float = 0.2
    """DO: the probability that a step is reached by `//`."""
    name_skew: float = 0.0
    """θ: Zipf's skew of the choice of a child; 0 makes all equally likely, 1 prefers those declared first."""
    conditions: int = 0
    """P: conditions on attributes or texts in each subscription."""
    condition_targets: str = "any"
    """What conditions are on: `attributes`, `texts` or `any`."""
    range_odds: float = 0.0
    """The probability that a condition on a number is a range (`<`, `<=`, `>`, `>=`), not an equality."""
    attribute_values: int = 100
    text_values: int = 100
    value_skew: float = 0.0
    nested_paths: int = 0
    """NP: branches in each subscription."""
    nested_depth: int = 0
    """No nested path has more steps of its own; 0 leaves that to the maximum depth."""
    nesting: int = 1
    """How deep branches may stand within branches."""
    distinct: bool = False
    """D: no two are the same pattern."""
    duplicates: int = 1
    """The degree of duplicates: each of number / duplicates distinct subscriptions occurs this often."""
    ordered: bool = False
    """Whether they are for ordered matching."""
    selectivity: float | None = None
    """The share of the subscriptions that a document of the sample matches, on average."""

    def __post_init__(self) -> None:
        check_whole("number", self.number, 0, 10**9)
        check_whole("maximum_depth", self.maximum_depth, 1, 100)
        check_whole("minimum_depth", self.minimum_depth, 1, self.maximum_depth)
        check_range("stop_odds", self.stop_odds, 0, 0.99)
        check_range("wildcard_odds", self.wildcard_odds, 0, 1)
        check_range("descendant_odds", self.descendant_odds, 0, 1)
        check_range("name_skew", self.name_skew, 0, 10)
        check_whole("conditions", self.conditions, 0, 100)
        check_range("range_odds", self.range_odds, 0, 1)
        check_whole("attribute_values", self.attribute_values, 1, 10**7)
        check_whole("text_values", self.text_values, 1, 10**7)
        check_range("value_skew", self.value_skew, 0, 10)
        check_whole("nested_paths", self.nested_paths, 0, 100)
        check_whole("nested_depth", self.nested_depth, 0, 100)
        check_whole("nesting", self.nesting, 1, 100)
        check_whole("duplicates", self.duplicates, 1, 10**9)
        if self.selectivity is not None:
            check_range("selectivity", self.selectivity, 0, 1)
        if self.condition_targets not in ("any", "attributes", "texts"):
            raise WorkloadError(
                "parameter-unknown",
                f"The parameter 'condition_targets' is {self.condition_targets!r}",
                hint="it must be any, attributes or texts",
            )


class SubscriptionGenerator:
    """Subscriptions as XPath texts, by iteration.

    A selectivity needs a sample of documents, and a matcher that says how many of them a subscription matches.
    """

    def __init__(
        self,
        parameters: SubscriptionParameters,
        dtd: Dtd | None = None,
        *,
        sample: Sequence[bytes] = (),
        matcher: Matcher | None = None,
    ) -> None:
        if parameters.selectivity is not None and (not sample or matcher is None):
            raise WorkloadError(
                "selectivity-needs-sample",
                "A selectivity was asked for, but there are no documents to measure it with, or no matcher",
                hint="give both `sample` and `matcher`",
            )
        self.parameters = parameters
        self.dtd = dtd or read_dtd(parameters.dtd, parameters.root)
        self.sample = sample
        self.matcher = matcher
        self.draws = 0
        """Walks made so far, for reports: a number much larger than that of the subscriptions means few distinct
        ones are left."""

    def __len__(self) -> int:
        return self.parameters.number

    def __iter__(self) -> Iterator[str]:
        parameters = self.parameters
        if parameters.duplicates == 1:
            yield from islice(self._selected(), parameters.number)
            return
        distinct = list(islice(self._selected(), -(-parameters.number // parameters.duplicates)))
        for start in range(0, parameters.number, len(distinct) or 1):
            yield from distinct[: parameters.number - start]

    def _selected(self) -> Iterator[str]:
        """The subscriptions, such that their average match rate is that asked for: while it is below, only those
        that match more are taken, and while it is above, only those that match less."""
        target, matcher = self.parameters.selectivity, self.matcher
        if target is None or matcher is None:
            yield from self._texts()
            return
        total = 0.0
        taken = 0
        passed = 0
        texts = self._texts()
        while batch := list(islice(texts, 1024)):
            for text, matches in zip(batch, matcher(batch, self.sample), strict=True):
                share = matches / len(self.sample)
                if (share >= target) if total <= target * taken else (share <= target):
                    total += share
                    taken += 1
                    passed = 0
                    yield text
                else:
                    passed += 1
            if passed > 50_000:
                raise WorkloadError(
                    "selectivity-out-of-reach",
                    f"Of 50,000 subscriptions none brought the match rate nearer to {target:g}; it is at "
                    f"{total / max(1, taken):.3g} after {taken:,} subscriptions",
                    hint="choose a selectivity nearer to what these parameters give by themselves",
                )

    def _texts(self) -> Iterator[str]:
        """All subscriptions that these parameters give, without end; distinct ones until they run out."""
        parameters = self.parameters
        wanted = -(-parameters.number // parameters.duplicates)
        distinct = parameters.distinct or parameters.duplicates > 1
        walks = Walks(self.dtd, parameters)
        seen: set[bytes | str] | None = set() if distinct else None
        self.draws = found = found_before = 0
        check_at = _STRETCH
        while True:
            for text in walks.batch().texts(seen):
                found += 1
                yield text
            self.draws += BATCH
            if self.draws >= check_at or (found == 0 and self.draws >= _FIRST_STRETCH):
                recent = found - found_before
                rare = distinct and recent < _STRETCH // 20
                if recent == 0 or (rare and recent * _PATIENCE < wanted - found):
                    self._give_up(found, wanted)
                found_before = found
                check_at += _STRETCH

    def _give_up(self, found: int, wanted: int) -> None:
        if found == 0:
            raise WorkloadError(
                "no-such-subscription",
                f"Of {self.draws:,} walks through {self.dtd.name!r} none had the depth, the conditions and the "
                "nested paths asked for",
                hint="ask for fewer conditions or nested paths, or another depth",
            )
        raise WorkloadError(
            "too-few-distinct",
            f"Only {found:,} distinct subscriptions of the {wanted:,} asked for were found in {self.draws:,} walks "
            f"through {self.dtd.name!r}",
            hint="ask for fewer, allow more depth, or add wildcards, conditions or nested paths",
        )
