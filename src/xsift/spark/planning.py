"""Which part an expression belongs to, when a set is more than a machine can hold: routing.

Each expression has a key: of the names, edges (a name below a name) and attribute values that it requires
(xsift.matching.required) the one that the fewest documents of a sample have. Keys are packed into parts so that those
that occur in the same documents, or hardly ever, lie together. A document then visits the parts of which it has a key
(routing.py). Expressions that require nothing that can be told form parts that every document visits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as sql

import xsift
from xsift.matching import MatcherOptions
from xsift.matching.required import key_expression, required_keys
from xsift.spark.building import distinct_expressions, expression_table
from xsift.spark.indexes import IndexFolder
from xsift.spark.routing import Router

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from xsift.matching import Matcher, Subscriptions

__all__ = ["ShardRoutes", "plan_routes"]

MOST_KEYS = 200_000  # that the driver and every worker hold; with more, attribute values are none, then rare ones
SAMPLE_EXPRESSIONS = 50_000
COMMON = 0.9  # the share of documents from which on a name tells nothing apart
SLACK = 0.1  # by which a part may be larger or smaller than the others
SLOTS = 64  # into which the expressions of one key are divided, if they go to several parts

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ShardRoutes:
    """The rows with their key, the part of each key, and the router."""

    rows: DataFrame
    part: Column
    parts: int
    router: Router
    keys: Mapping[int, Sequence[str]]
    """The keys of each part; one that is not there must be visited by every document."""
    keyed: DataFrame
    """The rows as executors keep them, until they are built."""


def plan_routes(
    rows: DataFrame,
    shards: int,
    sample: pa.Array,
    folder: IndexFolder,
    *,
    namespaces: Mapping[str, str],
    options: MatcherOptions,
    tasks: int,
) -> ShardRoutes:
    """Decides the parts of a set, in about `shards` of them. `sample` are some documents."""
    some = options.subscriptions(namespaces)
    first = rows.limit(SAMPLE_EXPRESSIONS).toArrow()["expression"]
    some.add_many(expression_table(distinct_expressions(first)[0]), errors="collect")
    for values in (False,) if names_tell(some, sample) else (True, False):
        expected = _frequencies(required_keys(some, values=values).keys, sample)
        keyed = rows.repartition(tasks, "expression").mapInArrow(
            _KeyOf(tuple(namespaces.items()), options, values, expected),
            "id string, expression string, key string, fresh boolean",
        )
        keyed = keyed.persist()
        counted = _weights(keyed)
        if len(counted) <= MOST_KEYS or not values:
            break
        keyed.unpersist()
    total = sum(count for _, count in counted) if len(counted) <= MOST_KEYS else keyed.where("fresh").count()
    weights = dict([(key, count) for key, count in counted if key is not None][:MOST_KEYS])
    loose = total - sum(weights.values())
    keys = sorted(weights)
    has = _occurrences(keys, sample)
    always = max(1 if loose else 0, round(shards * loose / max(1, total)))
    routed = max(1, shards - always)
    parts_of = packed(has, np.array([weights[key] for key in keys], dtype=np.float64), routed)
    slots = dict(zip(keys, parts_of, strict=True))
    router = Router(folder.save(_router(slots)), tuple(range(routed, routed + always)))
    part = _part_column(keyed, slots, routed, always)
    of_part: dict[int, list[str]] = {}
    for key, parts in slots.items():
        for number in set(parts):
            of_part.setdefault(number, []).append(key)
    return ShardRoutes(part[0], part[1], routed + always, router, of_part, keyed)


def names_tell(some: Subscriptions, sample: pa.Array) -> bool:
    """Whether names alone keep documents away from most expressions. If they do, they are the better keys: values
    are many, each rare and together not, and a part that is full of them is visited by most documents."""
    required = required_keys(some, values=False)
    shares = _frequencies(required.keys, sample)
    rarity = np.array([shares[key] for key in required.keys])
    rarest = np.ones(len(some))
    np.minimum.at(rarest, required.rows, rarity[required.places])
    return bool(np.mean(rarest < COMMON) > 0.5) if len(rarest) else True


def _frequencies(keys: Sequence[str], sample: pa.Array) -> dict[str, float]:
    """The share of the sample that has each key."""
    shares = _occurrences(keys, sample).mean(axis=0) if len(sample) else np.zeros(len(keys))
    return dict(zip(keys, shares.tolist(), strict=True))


def _key_matcher(rows: Sequence[tuple[str, str]]) -> Matcher:
    """A matcher of (id, key)."""
    prefixes: dict[str, str] = {}
    texts = [(id, key_expression(key, prefixes)) for id, key in rows]
    made = xsift.Subscriptions(namespaces=prefixes)
    made.add_many(texts)
    return made.matcher()


def _occurrences(keys: Sequence[str], sample: pa.Array) -> Flags:
    """Which of the documents has which key."""
    has = np.zeros((len(sample), len(keys)), dtype=bool)
    if len(keys) and len(sample):
        matcher = _key_matcher([(str(place), key) for place, key in enumerate(keys)])
        rows, ends, _, _ = matcher.match_array_rows(sample)
        has[np.repeat(np.arange(len(sample)), np.diff(ends, prepend=0)), rows] = True
    return has


def packed(has: Flags, weights: npt.NDArray[np.float64], parts: int) -> list[list[int]]:
    """The parts of each key. One part after the other is filled, each time with the key that brings the fewest new
    documents into it for its weight; so keys that nobody has come first, then those that are found together, and in
    the end those that every document has. A key that is too heavy for what is left goes to several parts."""
    left = weights.astype(np.float64).copy()
    capacity = left.sum() / parts
    shares: list[list[tuple[int, float]]] = [[] for _ in weights]
    waiting = np.flatnonzero(left > 0)
    slack = capacity * SLACK
    for number in range(parts):
        room = capacity if number < parts - 1 else np.inf
        covered = np.zeros(len(has), dtype=bool)
        new = has.sum(axis=0)  # the documents that each key would bring
        full = False
        while len(waiting) and not full:
            # All at once that bring none: keys are many, and those that bring a document no more than documents.
            keys = waiting[new[waiting] == 0]
            if not len(keys):
                keys = waiting[[np.argmin(new[waiting] / np.minimum(left[waiting], max(room, slack)))]]
            for key in keys.tolist():
                whole = left[key] <= room + slack
                if not whole and room <= slack:  # a sliver of a key would have documents visit one part more
                    full = True
                    break
                taken = left[key] if whole else room
                shares[key].append((number, float(taken)))
                left[key] -= taken
                room -= taken
                full = room <= 0
                if full:
                    break
            brought = has[:, keys[0]] & ~covered
            covered |= brought
            new -= has[brought].sum(axis=0)
            waiting = waiting[left[waiting] > 1e-9]
    return [_slots(them) for them in shares]


def _slots(shares: Sequence[tuple[int, float]]) -> list[int]:
    """The parts of a key, as many times each as its share of the expressions."""
    if len(shares) <= 1:
        return [number for number, _ in shares]
    total = sum(share for _, share in shares)
    return [number for number, share in shares for _ in range(max(1, round(SLOTS * share / total)))]


def _router(slots: Mapping[str, Sequence[int]]) -> Matcher:
    """The matcher whose ids are numbers of parts."""
    pairs = [(number, key) for key, parts in slots.items() for number in sorted(set(parts))]
    return _key_matcher([(f"{number}.{place}", key) for place, (number, key) in enumerate(pairs)])


def _weights(keyed: DataFrame) -> list[tuple[str | None, int]]:
    """How many expressions have each key, most first; of more than MOST_KEYS one too many."""
    counted = keyed.where("fresh").groupBy("key").count()
    most = counted.orderBy(sql.desc("count"), "key").limit(MOST_KEYS + 1)
    return [(row["key"], row["count"]) for row in most.collect()]


def _part_column(
    keyed: DataFrame, slots: Mapping[str, Sequence[int]], routed: int, always: int
) -> tuple[DataFrame, Column]:
    spark = keyed.sparkSession
    table = spark.createDataFrame(
        [(key, list(parts)) for key, parts in slots.items()], "key string, slots array<int>"
    )
    joined = keyed.join(sql.broadcast(table), "key", "left")
    number = sql.xxhash64("expression")
    chosen = sql.element_at("slots", (sql.pmod(number, sql.size("slots").cast("bigint")) + 1).cast("int"))
    loose = sql.lit(routed) + sql.pmod(number, sql.lit(max(1, always))).cast("int")
    return joined, sql.when(sql.col("slots").isNull(), loose).otherwise(chosen)


@dataclass(frozen=True)
class _KeyOf:
    """Mapped over rows, those with equal expressions in one task: the same with the key of each, and whether it is
    the first row of its expression."""

    namespaces: tuple[tuple[str, str], ...]
    options: MatcherOptions
    values: bool
    expected: Mapping[str, float]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [batch for batch in batches if batch.num_rows]
        if not held:
            return
        table = pa.Table.from_batches(held)
        expressions, of_row = distinct_expressions(table["expression"])
        made = self.options.subscriptions(dict(self.namespaces))
        refused = made.add_many(expression_table(expressions), errors="collect")
        good = np.ones(len(expressions), dtype=bool)
        good[[error.row or 0 for _, error in refused]] = False
        of_expression = np.full(len(expressions), -1, dtype=np.int64)
        keys, of_expression[good] = self._chosen(made)
        places = of_expression[of_row]
        known = pa.array(keys, pa.string())
        fresh = np.zeros(len(of_row), dtype=bool)
        fresh[np.unique(of_row, return_index=True)[1]] = True
        chosen = known.take(pa.array(places, mask=places < 0))
        wider = table.append_column("key", chosen).append_column("fresh", pa.array(fresh))
        yield from wider.to_batches(max_chunksize=100_000)

    def _chosen(self, made: Any) -> tuple[list[str], npt.NDArray[np.int64]]:
        """The keys, and the place of the rarest of each expression; -1 for none."""
        required = required_keys(made, values=self.values)
        chosen = np.full(len(made), -1, dtype=np.int64)
        rarity = np.array([self.expected.get(key, 0.0) for key in required.keys])
        order = np.lexsort((required.places, rarity[required.places], required.rows))
        rows = required.rows[order]
        first = np.concatenate([[True], rows[1:] != rows[:-1]])[: len(rows)]
        chosen[rows[first]] = required.places[order][first]
        return required.keys, chosen
