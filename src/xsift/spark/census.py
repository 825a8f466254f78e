"""What a set is like before it is compiled, found in one pass over its rows.

Rows fall into bins by a hash of their expression. Of each bin Spark counts the rows, and folds them into two digests
that do not depend on their order; a part is some of the bins, so its digest is known for any number of parts. The
least hash of each bin tells how many distinct expressions there are: the more, the smaller it is. Sums, minima and
exclusive ors are all that Spark compiles into one loop; asking it for a count of distinct values takes as long as all
of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["Census", "Digest", "expression_hash", "part_digests", "take_census"]

LEAST_BINS_BITS = 12
BINS_A_CORE = 64  # so that parts, one a core, differ little in how many bins they have
HASH_BITS = 64
COUNTED_SHARE = 0.9  # of bins that have rows; where fewer have, they are counted, and their hashes do not matter
REPEATED = 2  # subscriptions an expression, from which on many are equal
ROW = ("id", "xpath", "ordered", "spaces")

Digest = tuple[int, int, int]
"""How many rows, and two digests of them."""


@dataclass(frozen=True)
class Census:
    """How many rows there are, about how many distinct expressions, and the bytes of all ids."""

    bins_bits: int
    rows: int
    expressions: int
    id_bytes: int
    bins: Mapping[int, Digest]

    @property
    def repeated(self) -> bool:
        """Whether many subscriptions have the same expression."""
        return self.rows > REPEATED * self.expressions

    def part(self, parts: int) -> Column:
        """The part of a row, if there are so many of them: rows with equal expressions have the same."""
        return sql.pmod(_bin(self.bins_bits), sql.lit(parts))

    def digests(self, parts: int) -> dict[int, Digest]:
        """By part: a digest of its rows, whatever their order."""
        found: dict[int, Digest] = {}
        for number, (rows, one, two) in self.bins.items():
            before = found.get(number % parts, (0, 0, 0))
            found[number % parts] = (before[0] + rows, before[1] ^ one, before[2] ^ two)
        return found


def take_census(rows: DataFrame, cores: int) -> Census:
    """Looks at all rows (see building.expression_rows) once."""
    bits = max(LEAST_BINS_BITS, (BINS_A_CORE * cores - 1).bit_length())
    counted = (
        rows.groupBy(_bin(bits).alias("bin"))
        .agg(
            *_digest_columns(),
            sql.min(sql.shiftrightunsigned(expression_hash(), bits)).alias("least"),
            sql.sum(sql.octet_length("id")).alias("id_bytes"),
        )
        .collect()
    )
    total = sum(row.rows for row in counted)
    filled, bins = len(counted), 1 << bits
    if filled < COUNTED_SHARE * bins:
        expressions = -bins * math.log1p(-filled / bins)
    else:
        # The least of n numbers between 0 and 1 is about 1 / n; a bin without rows has 1.
        sizes = sum(row.least for row in counted) / 2 ** (HASH_BITS - bits) + bins - filled
        expressions = bins * bins / max(sizes, 1e-9)
    return Census(
        bits,
        total,
        min(total, math.ceil(expressions)),
        sum(row.id_bytes or 0 for row in counted),
        {row.bin: (row.rows, row.one, row.two) for row in counted},
    )


def part_digests(numbered: DataFrame) -> dict[int, Digest]:
    """By the column `part`: a digest of its rows."""
    folded = numbered.groupBy("part").agg(*_digest_columns()).collect()
    return {row.part: (row.rows, row.one, row.two) for row in folded}


def expression_hash() -> Column:
    """A hash of what makes expressions differ."""
    return sql.xxhash64("xpath", "ordered", "spaces")


def _bin(bits: int) -> Column:
    return expression_hash().bitwiseAND(sql.lit((1 << bits) - 1)).cast("int")


def _digest_columns() -> tuple[Column, ...]:
    """Equal rows would cancel each other out; an id that comes twice is refused anyway."""
    return (
        sql.count("*").alias("rows"),
        sql.bit_xor(sql.xxhash64(*ROW)).alias("one"),
        sql.bit_xor(sql.xxhash64(sql.lit("two"), *reversed(ROW))).alias("two"),
    )
