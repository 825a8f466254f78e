"""Random walks through the element graph, thousands at a time: the columns behind the subscription generator.

A batch is a set of arrays with one row per walk. A walk's nodes are numbered path × depth + step; path 0 is the main
path, the others are the nested paths. A node has a step code (0 if there is no such step), the element that the walk
was at, and the position of the child through which it came from the step before. Random numbers are drawn for a whole
batch at once, from the raw bits of PCG64, whose stream numpy promises not to change.

Printing is what costs time: row by row, from the ends of the paths to the root, each sub-tree a string. Beside
its text each sub-tree gets a key, in which the continuation of a path is one branch among the others and all are
sorted: equal patterns have equal keys.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from xsift.workload.dtd import Dtd, Element
from xsift.workload.values import cumulative

if TYPE_CHECKING:
    from xsift.workload.subscriptions import SubscriptionParameters

__all__ = ["BATCH", "Batch", "Walks"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

BATCH = 8192
"""Walks made at a time. Part of what a seed means: another number gives other subscriptions."""

_OPERATORS = ("=", "<", "<=", ">", ">=")


def _scaled(units: Floats, sizes: Integers | int) -> Integers:
    """Integers from 0 up to, but not including, the sizes; 0 where the size is 0."""
    most = np.asarray(sizes, dtype=np.int64) - 1
    return np.asarray(np.maximum(np.minimum((units * sizes).astype(np.int64), most), 0))


class _Graph:
    """Which elements may be children of which, by number, and how likely each is."""

    def __init__(self, dtd: Dtd, skew: float) -> None:
        numbers = {name: number for number, name in enumerate(dtd.elements)}
        self.root = numbers[dtd.root]
        self.sizes = np.array([len(element.children) for element in dtd.elements.values()], dtype=np.int64)
        self.first = np.cumsum(self.sizes) - self.sizes
        children = [numbers[child] for element in dtd.elements.values() for child in element.children]
        self.children = np.array([*children, 0], dtype=np.int64)  # one more, for a last element without any
        # With a skew, the cumulative probabilities of element k's children are kept as k to k + 1: one sorted array.
        self.ladder = np.zeros(0)
        if skew and children:
            sizes = enumerate(self.sizes.tolist())
            self.ladder = np.concatenate([number + cumulative(size, skew) for number, size in sizes if size])
        # Code 0 is no step; `*` comes first, then the names, each with `/` and with `//`.
        self.tests = ["", "/*", "//*", *(axis + name for name in dtd.elements for axis in ("/", "//"))]

    def positions(self, elements: Integers, units: Floats) -> Integers:
        """The position of a random child of each element; 0 if it has none."""
        if not len(self.ladder):
            return _scaled(units, self.sizes[elements])
        found = np.searchsorted(self.ladder, elements + units, side="right") - self.first[elements]
        return np.maximum(np.minimum(found, self.sizes[elements] - 1), 0)

    def children_at(self, elements: Integers, positions: Integers) -> Integers:
        """The children at these positions; without meaning where there are none."""
        return np.asarray(self.children[self.first[elements] + positions])


class _Targets:
    """What conditions can be on: for each element its attributes with a domain, and its text."""

    def __init__(self, dtd: Dtd, parameters: SubscriptionParameters) -> None:
        self.parameters = parameters
        self.names: list[str] = []
        self.values: list[tuple[str, ...]] = []  # of an enumeration; empty for numbers
        sizes: list[int] = []
        counts = []
        for element in dtd.elements.values():
            sizes.extend(self._add(element))
            counts.append(len(sizes))
        self.sizes = np.array(sizes, dtype=np.int64)
        self.first: Integers = np.array([0, *counts[:-1]], dtype=np.int64)
        self.counts: Integers = np.array(counts, dtype=np.int64) - self.first
        self.is_number = np.array([not values for values in self.values], dtype=np.bool_)

    def _add(self, element: Element) -> Iterator[int]:
        """Appends an element's targets, and gives the sizes of their domains."""
        wanted = self.parameters.condition_targets
        for attribute in element.attributes:
            if wanted != "texts" and attribute.kind in ("number", "enumeration") and not attribute.fixed:
                self.names.append(f"@{attribute.name}")
                self.values.append(attribute.values)
                yield len(attribute.values) or self.parameters.attribute_values
        if wanted != "attributes" and element.kind == "mixed":
            self.names.append("text()")
            self.values.append(())
            yield self.parameters.text_values

    def draw_values(self, targets: Integers, units: Floats) -> Integers:
        """A value of each target's domain, counted from 0."""
        sizes = self.sizes[targets]
        if self.parameters.value_skew == 0:
            return _scaled(units, sizes)
        drawn = np.zeros(len(targets), dtype=np.int64)
        for size in np.unique(sizes).tolist():
            here = sizes == size
            ladder = cumulative(size, self.parameters.value_skew)
            drawn[here] = np.minimum(np.searchsorted(ladder, units[here], side="right"), size - 1)
        return drawn

    def text(self, target: int, operator: int, value: int) -> str:
        if self.values[target]:
            return f'[{self.names[target]}="{self.values[target][value]}"]'
        return f"[{self.names[target]}{_OPERATORS[operator]}{value + 1}]"


class _Paths:
    """Paths, a row each: the step codes, elements and orders of their steps."""

    def __init__(self, size: int, depth: int) -> None:
        self.codes: Integers = np.zeros((size, depth), dtype=np.int64)
        self.elements: Integers = np.zeros((size, depth), dtype=np.int64)
        self.orders: Integers = np.zeros((size, depth), dtype=np.int64)
        self.lengths: Integers = np.zeros(size, dtype=np.int64)


class Walks:
    """Batches of walks, one after the other from one seed."""

    def __init__(self, dtd: Dtd, parameters: SubscriptionParameters) -> None:
        self.parameters = parameters
        self.depth = parameters.maximum_depth
        self.graph = _Graph(dtd, parameters.name_skew)
        self.targets = _Targets(dtd, parameters)
        self._bits = np.random.PCG64(parameters.seed % 2**64)

    def batch(self) -> Batch:
        depth = self.depth
        batch = Batch(self, np.zeros((BATCH, (1 + self.parameters.nested_paths) * depth), dtype=np.int64))
        levels = np.zeros(BATCH, dtype=np.int64)
        main = self._walk(np.full(BATCH, self.graph.root), levels, self._limits(), is_nested=False)
        batch.put(0, main, levels)
        batch.fine &= main.lengths >= self.parameters.minimum_depth
        for path in range(1, 1 + self.parameters.nested_paths):
            self._branch(batch, path)
        for _ in range(self.parameters.conditions):
            self._condition(batch)
        return batch

    def _limits(self) -> Integers:
        """How deep each walk of a batch may go."""
        odds, least = self.parameters.stop_odds, self.parameters.minimum_depth
        if not odds:
            return np.full(BATCH, self.depth)
        steps = 1 + np.floor(np.log1p(-self._units(BATCH)) / np.log1p(-odds))
        limits: Integers = np.clip(steps, least, self.depth).astype(np.int64)
        return limits

    def _units(self, size: int) -> Floats:
        """Random numbers from 0 up to, but not including, 1."""
        raw = np.asarray(self._bits.random_raw(size))
        return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def _walk(self, elements: Integers, levels: Integers, limits: Integers, is_nested: bool) -> _Paths:
        """Walks down, from elements that have this many levels above them, to the limits or a childless element.

        The first step of a nested path is a name reached by `/`.
        """
        size, graph, parameters = len(elements), self.graph, self.parameters
        found = _Paths(size, self.depth)
        rows = np.arange(size)  # of the walks still under way; the arrays below are theirs
        slash = np.zeros(size, dtype=np.bool_)  # the next name is reached by `//`
        skip = np.zeros(size, dtype=np.int64)  # elements still to pass by
        order = np.zeros(size, dtype=np.int64)
        is_first = True
        while len(rows):
            units = self._units(4 * len(rows)).reshape(4, -1)
            has_children = graph.sizes[elements] > 0
            if not (is_nested and is_first):
                begins = ~slash & (units[0] < parameters.descendant_odds)
                skip = np.where(begins, _scaled(units[1], limits - levels), skip) * has_children
                slash = slash | begins
            stays = skip == 0
            star = units[2] < parameters.wildcard_odds
            if is_nested and is_first:
                star[:] = False
            here = rows[stays]
            at = found.lengths[here]
            found.codes[here, at] = np.where(star, 1, 3 + 2 * elements + slash)[stays]
            found.elements[here, at] = elements[stays]
            found.orders[here, at] = order[stays]
            found.lengths[here] += 1

            slash &= star | ~stays  # a `//` before a `*` moves behind it
            skip = np.maximum(skip - 1, 0)
            positions = graph.positions(elements, units[3])
            order = np.where(stays, positions, order)
            elements = graph.children_at(elements, positions)
            levels = levels + 1
            on = has_children & (levels < limits)
            rows, elements, levels, limits = rows[on], elements[on], levels[on], limits[on]
            slash, skip, order = slash[on], skip[on], order[on]
            is_first = False
        return found

    def _branch(self, batch: Batch, path: int) -> None:
        """Adds a nested path to a random node that has a next step, into another child of its element."""
        parameters, graph, depth = self.parameters, self.graph, self.depth
        next_elements = np.full(batch.elements.shape, -1)
        next_elements[:, :-1] = np.where(batch.codes[:, 1:] > 0, batch.elements[:, 1:], -1)
        next_elements[:, depth - 1 :: depth] = -1
        possible = (
            (next_elements >= 0)
            & (graph.sizes[batch.elements] > 1)
            & (batch.levels < depth)
            & (batch.nesting < parameters.nesting)
        )
        nodes = batch.choose(possible, self._units(BATCH))
        rows = np.arange(BATCH)
        parents, taken, levels = batch.elements[rows, nodes], next_elements[rows, nodes], batch.levels[rows, nodes]
        positions = np.zeros(BATCH, dtype=np.int64)
        again = np.ones(BATCH, dtype=np.bool_)
        for _ in range(8):
            positions = np.where(again, graph.positions(parents, self._units(BATCH)), positions)
            again = graph.children_at(parents, positions) == taken
        batch.fine &= ~again
        limits = np.minimum(depth, levels + (parameters.nested_depth or depth))
        found = self._walk(graph.children_at(parents, positions), levels, limits, is_nested=True)
        found.orders[:, 0] = positions
        batch.attached.append(nodes)
        batch.put(path, found, levels, batch.nesting[rows, nodes] + 1)

    def _condition(self, batch: Batch) -> None:
        """Adds a condition to a random node whose element has something to compare."""
        targets = self.targets
        if not targets.names:
            batch.fine[:] = False
            return
        possible = (batch.codes > 0) & (targets.counts[batch.elements] > 0)
        nodes = batch.choose(possible, self._units(BATCH))
        elements = batch.elements[np.arange(BATCH), nodes]
        chosen = targets.first[elements] + _scaled(self._units(BATCH), targets.counts[elements])
        chosen = np.minimum(chosen, len(targets.names) - 1)
        ranged = (self._units(BATCH) < self.parameters.range_odds) & targets.is_number[chosen]
        operators = np.where(ranged, 1 + _scaled(self._units(BATCH), len(_OPERATORS) - 1), 0)
        batch.conditions.append((nodes, chosen, operators, targets.draw_values(chosen, self._units(BATCH))))


@dataclass(slots=True)
class Batch:
    """Walks as columns, and how they are printed."""

    walks: Walks
    codes: Integers
    elements: Integers = field(init=False)
    orders: Integers = field(init=False)
    levels: Integers = field(init=False)
    """The number of steps from the root to a node, the node included."""
    nesting: Integers = field(init=False)
    """How many brackets a node is in."""
    fine: Booleans = field(init=False)
    """Which walks have all that was asked for."""
    attached: list[Integers] = field(default_factory=list)
    """For each nested path the node that it branches off."""
    conditions: list[tuple[Integers, Integers, Integers, Integers]] = field(default_factory=list)
    """For each condition its node, target, operator and value."""

    def __post_init__(self) -> None:
        self.elements, self.orders, self.levels, self.nesting = (np.zeros_like(self.codes) for _ in range(4))
        self.fine = np.ones(len(self.codes), dtype=np.bool_)

    def put(self, path: int, paths: _Paths, levels: Integers, nesting: Integers | int = 0) -> None:
        depth = self.walks.depth
        here = slice(path * depth, (path + 1) * depth)
        self.codes[:, here] = paths.codes
        self.elements[:, here] = paths.elements
        self.orders[:, here] = paths.orders
        self.levels[:, here] = levels[:, None] + np.arange(1, depth + 1)
        self.nesting[:, here] = np.reshape(nesting, (-1, 1))

    def choose(self, possible: Booleans, units: Floats) -> Integers:
        """One of the possible nodes of each walk. A walk that has none is not fine."""
        counts = possible.sum(axis=1)
        self.fine &= counts > 0
        return np.asarray((np.cumsum(possible, axis=1) > _scaled(units, counts)[:, None]).argmax(axis=1))

    def texts(self, seen: set[bytes | str] | None) -> Iterator[str]:
        """The walks printed, without those whose pattern was seen before if a set to remember them is given."""
        if self.attached or self.conditions:
            for key, text in self._trees():
                if seen is not None:
                    if key in seen:
                        continue
                    seen.add(key)
                yield text
            return
        # Plain paths are told apart by their codes: most are seen before and need not be printed.
        tests = self.walks.graph.tests
        rows = np.ascontiguousarray(self.codes, dtype=np.int32)
        data, width = rows.tobytes(), rows.shape[1] * rows.itemsize
        for row in np.flatnonzero(self.fine).tolist():
            plain_key = data[row * width : (row + 1) * width]
            if seen is not None:
                if plain_key in seen:
                    continue
                seen.add(plain_key)
            yield "".join([tests[code] for code in array("i", plain_key)])

    def _trees(self) -> Iterator[tuple[str, str]]:
        """The key and the text of each walk that is fine."""
        fine = self.fine
        codes, orders = self.codes[fine].tolist(), self.orders[fine].tolist()
        attached = np.array(self.attached, dtype=np.int64).reshape(-1, len(fine)).T[fine].tolist()
        conditions: list[dict[int, list[str]]] = [{} for _ in codes]
        for columns in self.conditions:
            rows = zip(conditions, *(column[fine].tolist() for column in columns), strict=True)
            for place, node, target, operator, value in rows:
                place.setdefault(node, []).append(self.walks.targets.text(target, operator, value))
        for row in zip(codes, orders, attached, conditions, strict=True):
            found = self._tree(*row)
            if found is not None:
                yield found

    def _tree(
        self, codes: list[int], orders: list[int], attached: list[int], conditions: dict[int, list[str]]
    ) -> tuple[str, str] | None:
        """A walk's key and text; None if a condition or a branch is in it twice."""
        depth, tests, join = self.walks.depth, self.walks.graph.tests, self._join
        branches: dict[int, list[tuple[int, str, str]]] = {}
        for path in range(len(attached), -1, -1):
            key = text = ""
            for node in range(path * depth + depth - 1, path * depth - 1, -1):
                if not codes[node]:
                    continue
                own = tests[codes[node]]
                if node in conditions:
                    texts = sorted(conditions[node])
                    if len(set(texts)) < len(texts):
                        return None
                    own += "".join(texts)
                if node in branches:
                    joined = join([*branches[node], (orders[node + 1], key, text)])
                    if joined is None:
                        return None
                    key, text = joined
                key, text = own + key, own + text
            if path:
                branches.setdefault(attached[path - 1], []).append((orders[path * depth], key, text))
        return key, text

    def _join(self, branches: list[tuple[int, str, str]]) -> tuple[str, str] | None:
        """The key and text of what follows a step with branches, the last of which continues the path.

        Ordered ones are put in the order of the DTD, and whichever is last then continues the path.
        """
        keys = sorted([key for _, key, _ in branches])
        if len(set(keys)) < len(keys):
            return None
        if self.walks.parameters.ordered:
            branches.sort()
        brackets = [f"[.{text}]" if text.startswith("//") else f"[{text[1:]}]" for _, _, text in branches[:-1]]
        text = "".join(brackets) + branches[-1][2]
        return (text if self.walks.parameters.ordered else "".join([f"[{key}]" for key in keys])), text
