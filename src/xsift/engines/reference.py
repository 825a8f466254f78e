"""`reference`: the naive matcher, in plain Python. Slow, short, and the oracle for ordered matching.

The document becomes a tree. A pattern is evaluated bottom-up, by sets: the elements that satisfy a step are those
whose name fits, that hold the step's conditions, and below which each child step is satisfied somewhere on its
axis. It costs time in proportion to patterns × elements, which is what every other engine exists to avoid; what it
says is what they all must say.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from xsift.document.events import EventSource, RecordedEvents
from xsift.engines.base import Engine
from xsift.xpath.pattern import Pattern

END = -1
CHILD = 0


class Tree:
    """A document's elements as parallel lists. Element 0 is the document itself; the root element is 1."""

    def __init__(self, codes: Sequence[int]) -> None:
        self.symbols = [-1]
        self.parents = [-1]
        self.postorder = [0]
        self.conditions: list[set[int]] = [set()]
        innermost = closed = 0
        for code in codes:
            if code >= 0:
                self.symbols.append(code)
                self.parents.append(innermost)
                self.postorder.append(0)
                self.conditions.append(set())
                innermost = len(self.symbols) - 1
            elif code == END:
                closed += 1
                self.postorder[innermost] = closed
                innermost = self.parents[innermost]
            else:
                self.conditions[innermost].add(-code - 1)
        self.postorder[0] = closed + 1

    def ancestors(self, element: int) -> Iterator[int]:
        """The element's parent, its parent, and so on up to the document."""
        while (element := self.parents[element]) >= 0:
            yield element


class Evaluation:
    """One pattern on one tree: `satisfied[step]` is the set of elements that can stand for the step."""

    def __init__(self, pattern: Pattern, tree: Tree) -> None:
        self.tree = tree
        self.ordered = pattern.ordered
        self.steps = pattern.steps
        self.children: list[list[int]] = [[] for _ in self.steps]
        for step, (parent, _, _, is_condition) in enumerate(self.steps):
            if parent >= 0 and not is_condition:
                self.children[parent].append(step)
        self.satisfied: list[set[int]] = [set() for _ in self.steps]
        for step in reversed(range(len(self.steps))):
            if not self.steps[step][3]:
                self.satisfied[step] = self._satisfying(step)

    def matches(self) -> bool:
        return bool(self.anchored())

    def anchored(self) -> set[int]:
        """The elements that satisfy the first step where the document allows it: at the root, or anywhere."""
        if self.steps[0][1] == CHILD:
            return self.satisfied[0] & {1}
        return self.satisfied[0]

    def _satisfying(self, step: int) -> set[int]:
        symbol = self.steps[step][2]
        conditions = {s for parent, _, s, is_condition in self.steps if is_condition and parent == step}
        found = {
            element
            for element in range(1, len(self.tree.symbols))
            if symbol in (0, self.tree.symbols[element]) and conditions <= self.tree.conditions[element]
        }
        for child in self.children[step]:
            found &= self._above(child)
        if self.ordered and len(self.children[step]) > 1:
            found = {element for element in found if self._fits_in_order(step, element)}
        return found

    def _above(self, child: int) -> set[int]:
        """The elements that have one satisfying `child` below them, on the child's axis."""
        if self.steps[child][1] == CHILD:
            return {self.tree.parents[element] for element in self.satisfied[child]}
        return {above for element in self.satisfied[child] for above in self.tree.ancestors(element)}

    def below(self, child: int, element: int) -> list[int]:
        """The elements that satisfy `child` below `element`, on the child's axis, in document order."""
        if self.steps[child][1] == CHILD:
            return sorted(other for other in self.satisfied[child] if self.tree.parents[other] == element)
        return sorted(other for other in self.satisfied[child] if element in self.tree.ancestors(other))

    def _fits_in_order(self, step: int, element: int, fixed: int = -1, at: int = -1) -> bool:
        """Whether the children of `step` map to elements below `element` in strictly increasing post-order.

        Taking the earliest possible one for each child in turn leaves the most room for the next. With `fixed`, that
        child must map to the element `at`.
        """
        last = 0
        for child in self.children[step]:
            below = [at] if child == fixed else self.below(child, element)
            ranks = sorted(self.tree.postorder[other] for other in below)
            position = bisect_left(ranks, last + 1)
            if position == len(ranks):
                return False
            last = ranks[position]
        return True

    def _spine(self, output: int) -> list[int]:
        spine = [output]
        while self.steps[spine[-1]][0] >= 0:
            spine.append(self.steps[spine[-1]][0])
        return spine[::-1]

    def continuations(self, step: int, element: int, child: int) -> list[int]:
        """The elements for `child`, given that `element` stands for its parent `step`."""
        below = self.below(child, element)
        if not self.ordered:
            return below
        return [other for other in below if self._fits_in_order(step, element, child, other)]

    def tuples(self, output: int) -> Iterator[tuple[int, ...]]:
        """Every instantiation of the path from the first step to `output`: the number of an element for each step."""
        spine = self._spine(output)
        pending: list[tuple[int, ...]] = [(element,) for element in sorted(self.anchored(), reverse=True)]
        while pending:
            prefix = pending.pop()
            if len(prefix) == len(spine):
                yield prefix
                continue
            following = self.continuations(spine[len(prefix) - 1], prefix[-1], spine[len(prefix)])
            pending.extend((*prefix, element) for element in reversed(following))

    def select(self, output: int) -> list[int]:
        """The numbers of the elements that `output` can stand for, in document order."""
        spine = self._spine(output)
        reached = self.anchored()
        for step, child in pairwise(spine):
            reached = {other for element in reached for other in self.continuations(step, element, child)}
        return sorted(reached)


class Reference(Engine):
    """The naive matcher over patterns."""

    name = "reference"
    paper = "none: the definition, executed"
    takes = "every pattern, ordered or not"
    wins = "never in time; it is what other engines are checked against"
    caveat = "plain Python: milliseconds for each pair of a pattern and a document"
    counter_names = ("evaluations",)
    native = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._patterns: dict[int, Pattern] = {}
        self._next = 0
        self._evaluations = 0

    def add(self, pattern: Pattern) -> int:
        key = self._next
        self._next += 1
        self._patterns[key] = pattern
        return key

    def remove(self, key: int) -> None:
        del self._patterns[key]

    def __len__(self) -> int:
        return len(self._patterns)

    def match(self, document: EventSource) -> npt.NDArray[np.int32]:
        if not isinstance(document, RecordedEvents):
            raise TypeError("the reference engine wants the whole document: a RecordedEvents, not a stream of events")
        tree = Tree(document.events)
        self._evaluations += len(self._patterns)
        matched = [key for key, pattern in self._patterns.items() if Evaluation(pattern, tree).matches()]
        return np.array(sorted(matched), dtype=np.int32)

    def memory(self) -> dict[str, int]:
        return {"patterns": sum(64 + 24 * len(pattern) for pattern in self._patterns.values())}

    def counters(self) -> dict[str, int]:
        return {"evaluations": self._evaluations}
