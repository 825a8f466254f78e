"""What a set is like before it is compiled, found in one pass over its rows.

Rows fall into bins by a hash of their expression. Of each bin the rows are counted, and folded into two digests that
do not depend on their order; a part is some of the bins, so its digest is known for any number of parts. The least
hash of each bin tells how many distinct expressions there are: the more, the smaller it is. Rows with equal ids meet
in one task, so that an id which comes twice is seen, too.

Spark only computes hashes and moves them, some 40 bytes a row. Counting and sorting numbers is left to NumPy, which
takes a fraction of the time in which Spark groups rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as sql

from xsift.errors import SubscriptionError, XsiftError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Census", "Digest", "part_digests", "refuse_repeated", "take_census", "without_repeated"]

LEAST_BITS, MOST_BITS = 12, 16  # of the number of a bin
BINS_A_CORE = 16  # so that parts, one a core, differ little in how many bins they have
HASH_BITS = 64
COUNTED_SHARE = 0.9  # of bins that have rows; where fewer have, they are counted, and their hashes do not matter
MOST_TASKS = 64  # as each tells of all bins
FOLDED_ROWS = 500_000  # at a time
TOLD_HASHES = 20
TOLD_IDS = 1000  # that come twice
REPEATED = 2  # subscriptions an expression, from which on many are equal

Digest = tuple[int, int, int]
"""How many rows, and two digests of them."""
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Census:
    """What was counted: arrays are by bin."""

    rows: Numbers
    one: Numbers
    two: Numbers
    least: npt.NDArray[np.uint64]
    """The least hash of an expression, without the bits that are its bin."""
    id_bytes: int
    again: tuple[int, ...]
    """Hashes of ids that come twice, or of different ids by chance: some of them."""

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.rows.sum())

    @property
    def expressions(self) -> int:
        """About how many distinct expressions there are."""
        bins = len(self.rows)
        filled = int((self.rows > 0).sum())
        if filled < COUNTED_SHARE * bins:
            about = -bins * math.log1p(-filled / bins)
        else:
            # The least of n numbers between 0 and 1 is about 1 / n; a bin without rows has 1.
            sizes = np.where(self.rows > 0, self.least / 2.0 ** (HASH_BITS - _bits(bins)), 1.0)
            about = bins * bins / max(float(sizes.sum()), 1e-9)
        return min(self.count, math.ceil(about))

    @property
    def repeated(self) -> bool:
        """Whether many subscriptions have the same expression."""
        return self.count > REPEATED * self.expressions

    def part(self, parts: int) -> Column:
        """The part of a row, if there are so many of them: rows with equal expressions have the same."""
        return sql.pmod(_expression_hash().bitwiseAND(sql.lit(len(self.rows) - 1)), sql.lit(parts)).cast("int")

    def digests(self, parts: int) -> dict[int, Digest]:
        """By part that has rows: a digest of them, whatever their order."""
        number = np.arange(len(self.rows)) % parts
        folded = np.zeros((3, parts), dtype=np.int64)
        np.add.at(folded[0], number, self.rows)
        np.bitwise_xor.at(folded[1], number, self.one)
        np.bitwise_xor.at(folded[2], number, self.two)
        return {part: _digest(*folded[:, part]) for part in np.flatnonzero(folded[0]).tolist()}


def take_census(rows: DataFrame, cores: int) -> Census:
    """Looks at all rows (see building.expression_rows) once."""
    bits = min(MOST_BITS, max(LEAST_BITS, _bits(BINS_A_CORE * cores)))
    tasks = min(cores, MOST_TASKS)
    hashed = rows.select(
        sql.when(sql.col("id").isNotNull(), sql.xxhash64("id")).alias("id"),
        _expression_hash().alias("expression"),
        *_row_hashes(),
        sql.coalesce(sql.octet_length("id"), sql.lit(0)).cast("bigint").alias("id_bytes"),
    )
    task = sql.pmod(sql.coalesce("id", sql.lit(0)), sql.lit(tasks)).cast("int")
    counted = hashed.repartitionById(tasks, task).mapInArrow(_Count(bits), COUNTED).collect()
    folded = _Folded(1 << bits)
    for row in counted:
        folded.add(*(np.frombuffer(row[name], dtype=np.int64) for name in ("rows", "one", "two", "least")))
    again = {number for row in counted for number in np.frombuffer(row["again"], dtype=np.int64).tolist()}
    return folded.census(sum(row["id_bytes"] for row in counted), sorted(again)[:TOLD_HASHES])


def refuse_repeated(rows: DataFrame, census: Census) -> None:
    """Raises an error if an id comes twice."""
    if not census.again:
        return
    suspects = rows.where(sql.xxhash64("id").isin(list(census.again)))
    twice = suspects.groupBy("id").count().where("count > 1 and id is not null").limit(1).collect()
    if twice:
        raise _repeated(twice[0]["id"], twice[0]["count"])


def without_repeated(rows: DataFrame) -> tuple[DataFrame, list[tuple[str, XsiftError]], int]:
    """The rows with each id once, errors of ids that came twice, of the first thousand, and how many more there are.

    Rows of a DataFrame have no order: of those with an id the one stays whose expression is first in the alphabet.
    """
    nameless = rows.where("id is null")  # each of them is an error of its own, later
    counted = (
        rows.where("id is not null")
        .groupBy("id")
        .agg(sql.min("expression").alias("expression"), sql.count("*").alias("rows"))
    )
    twice = counted.where("rows > 1")
    told = twice.orderBy("id").limit(TOLD_IDS).collect()
    untold = twice.count() - TOLD_IDS if len(told) == TOLD_IDS else 0
    failed: list[tuple[str, XsiftError]] = [(row["id"], _repeated(row["id"], row["rows"])) for row in told]
    return counted.select("id", "expression").unionByName(nameless), failed, untold


def _repeated(id: str, rows: int) -> SubscriptionError:
    return SubscriptionError(
        "duplicate-id", f"the id {id!r} is in {rows} rows", id=id, hint="each id can be there once"
    )


def part_digests(numbered: DataFrame) -> dict[int, Digest]:
    """By the column `part`: a digest of its rows."""
    one, two = (sql.bit_xor(name) for name in ("one", "two"))
    folded = numbered.select("part", *_row_hashes()).groupBy("part").agg(sql.count("*"), one, two).collect()
    return {row[0]: _digest(*row[1:]) for row in folded}


def _expression_hash() -> Column:
    return sql.xxhash64("expression")


def _row_hashes() -> tuple[Column, Column]:
    """Two hashes of a row. Those of equal rows cancel each other out; an id that comes twice is refused anyway."""
    return sql.xxhash64("id", "expression").alias("one"), sql.xxhash64("expression", "id").alias("two")


def _bits(bins: int) -> int:
    return (bins - 1).bit_length()


def _digest(rows: int, one: int, two: int) -> Digest:
    return int(rows), int(one), int(two)


COUNTED = "rows binary, one binary, two binary, least binary, id_bytes bigint, again binary"


class _Folded:
    """Rows folded by bin."""

    def __init__(self, bins: int) -> None:
        self.rows, self.one, self.two = (np.zeros(bins, dtype=np.int64) for _ in range(3))
        self.least = np.full(bins, 2**64 - 1, dtype=np.uint64)

    def add(self, rows: Numbers, one: Numbers, two: Numbers, least: Numbers) -> None:
        """Adds what was folded elsewhere."""
        self.rows += rows
        self.one ^= one
        self.two ^= two
        self.least = np.minimum(self.least, least.view(np.uint64))

    def fold(self, expressions: Numbers, one: Numbers, two: Numbers) -> None:
        """Adds rows, by their hashes."""
        bins = (expressions & (len(self.rows) - 1)).astype(np.uint16)
        order = np.argsort(bins, kind="stable")
        sorted_bins = bins[order]
        starts = np.flatnonzero(np.concatenate([[True], sorted_bins[1:] != sorted_bins[:-1]]))
        there = sorted_bins[starts]
        self.rows[there] += np.diff(starts, append=len(order))
        self.one[there] ^= np.bitwise_xor.reduceat(one[order], starts)
        self.two[there] ^= np.bitwise_xor.reduceat(two[order], starts)
        upper = expressions.view(np.uint64)[order] >> np.uint64(_bits(len(self.rows)))
        self.least[there] = np.minimum(self.least[there], np.minimum.reduceat(upper, starts))

    def census(self, id_bytes: int, again: list[int]) -> Census:
        return Census(self.rows, self.one, self.two, self.least, id_bytes, tuple(again))


@dataclass(frozen=True)
class _Count:
    """Mapped over hashes of rows, those of equal ids in one task: what there is of each bin, and ids that come
    twice."""

    bits: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        folded = _Folded(1 << self.bits)
        ids: list[Numbers] = []
        id_bytes = 0
        for some in _pieces(batches):
            folded.fold(*(some[name].to_numpy() for name in ("expression", "one", "two")))
            ids.append(some["id"].drop_null().to_numpy())
            id_bytes += int(some["id_bytes"].to_numpy().sum())
        if not ids:
            return
        hashes = np.sort(np.concatenate(ids))
        again = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])[:TOLD_HASHES]
        arrays = {"rows": folded.rows, "one": folded.one, "two": folded.two, "least": folded.least}
        yield pa.RecordBatch.from_pydict(
            {
                **{name: pa.array([array.tobytes()], pa.binary()) for name, array in arrays.items()},
                "id_bytes": pa.array([id_bytes], pa.int64()),
                "again": pa.array([again.tobytes()], pa.binary()),
            }
        )


def _pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches together, as many as are folded at a time."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= FOLDED_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)
