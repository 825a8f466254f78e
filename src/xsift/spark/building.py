"""Subscriptions compiled on executors, into files on storage that all machines see.

    rows ─▶ parts by expression ─▶ one task each: distinct expressions ─▶ an index       ─▶ storage
                                                 └▶ who subscribed to each ─▶ subscribers ─▶ storage
    driver: the manifest: of each part its files, bytes, digests, and the keys of which a document must have one

An index holds each distinct expression once. Who subscribed lies beside it, as lists by the number of the expression,
in a file that is mapped too: a match becomes ids where it is found. Files are named by their content, so equal parts
are one file, and a manifest can be trusted. The driver sees counts and names, never the rows, so its memory does not
grow with the set. A part whose rows did not change since the last manifest is not built again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from xsift.errors import SubscriptionError, XPathError, XsiftError
from xsift.matching import MatcherOptions
from xsift.spark.census import Digest
from xsift.spark.indexes import IndexFolder
from xsift.spark.routing import Part
from xsift.tables.rows import MOST_ID_BYTES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "BuiltParts",
    "build_parts",
    "distinct_expressions",
    "expression_rows",
    "expression_table",
    "note_manifest",
]

logger = logging.getLogger("xsift.spark")

Places = npt.NDArray[np.int64]

TOLD_ERRORS = 1000  # of a part, of those that cannot be used
MANIFEST = "manifest.json"
SEPARATOR, ORDERED = "\x1f", "o"  # no good expression has the first
NO_ID = "a row without an id"
FORMAT = 2  # grows when files are laid out differently: parts of an older one are built again
BUILT = (
    "part int, name string, size_bytes bigint, subscribers string, subscribers_bytes bigint, expressions bigint, "
    "subscriptions bigint, failed bigint, told string"
)


@dataclass(frozen=True)
class BuiltParts:
    """The parts of a set, as they lie on storage."""

    parts: tuple[Part, ...]
    subscriptions: int
    expressions: int
    failed: tuple[tuple[str, XsiftError], ...]
    reused: int = 0
    """How many of the parts were there already."""
    untold: int = 0
    """How many more could not be used than `failed` tells of."""
    entries: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)


def expression_rows(subscriptions: DataFrame) -> DataFrame:
    """The rows with the columns id and expression: all that makes expressions differ, in one text. That is the
    `xpath`, or, if it is ordered or has namespaces, these in front of it (`expression_table` takes them apart)."""
    xpath = sql.col("xpath").cast("string")
    marked, order, spaces = sql.contains(xpath, sql.lit(SEPARATOR)), sql.lit(""), sql.lit("")
    if "ordered" in subscriptions.columns:
        is_ordered = sql.coalesce(sql.col("ordered").cast("boolean"), sql.lit(False))
        marked, order = marked | is_ordered, sql.when(is_ordered, ORDERED).otherwise("")
    if "namespaces" in subscriptions.columns:
        prefixes = sql.col("namespaces")
        if isinstance(subscriptions.schema["namespaces"].dataType, StructType):  # as JSON is read
            prefixes = sql.from_json(sql.to_json(prefixes), "map<string,string>")
        has_spaces = sql.coalesce(sql.size(prefixes) > 0, sql.lit(False))
        marked = marked | has_spaces
        spaces = sql.when(has_spaces, sql.to_json(sql.array_sort(sql.map_entries(prefixes)))).otherwise("")
    whole = sql.concat(order, sql.lit(SEPARATOR), spaces, sql.lit(SEPARATOR), xpath)
    return subscriptions.select(
        sql.col("id").cast("string"), sql.when(marked, whole).otherwise(xpath).alias("expression")
    )


def build_parts(
    rows: DataFrame,
    part: Column,
    parts: int,
    folder: IndexFolder,
    *,
    namespaces: Mapping[str, str],
    options: MatcherOptions,
    errors: str,
    digests: Mapping[int, Digest],
    repeated: bool,
) -> BuiltParts:
    """Compiles rows (see expression_rows) into so many parts. `part` gives the number of each row's part; rows with
    equal expressions must have the same. Raises the first error there is unless `errors` is "collect". Parts of which
    there is a digest, and which the manifest has with the same one, are taken from there, if their files are there
    still. `repeated`: many rows have the same expression."""
    numbered = rows.withColumn("part", part.cast("int"))
    before = _manifest(folder) if digests else []
    inputs = {number: _input_of(digest, namespaces, options) for number, digest in digests.items()}
    known = {entry["input"]: entry for entry in before if entry.get("input")}
    reused = {
        number: known[input]
        for number, input in inputs.items()
        if input in known and folder.holds(known[input]["name"], known[input]["subscribers"])
    }
    if reused:
        numbered = numbered.where(~sql.col("part").isin(list(reused)))
    task = _Build(folder, tuple(namespaces.items()), options, errors == "collect", repeated)
    placed = numbered.select("id", "expression", "part").repartitionById(parts, sql.col("part"))
    built = [row.asDict() for row in placed.mapInArrow(task, BUILT).collect()]
    for entry in built:
        entry["input"] = inputs.get(entry["part"]) or ""
    entries = sorted(built + [{**entry, "part": n} for n, entry in reused.items()], key=lambda entry: entry["part"])
    failed = [_error_of(told) for entry in entries for told in json.loads(entry["told"])]
    if failed and errors != "collect":
        raise failed[0][1]
    return BuiltParts(
        tuple(_part_of(entry) for entry in entries),
        sum(entry["subscriptions"] for entry in entries),
        sum(entry["expressions"] for entry in entries),
        tuple(failed),
        len(reused),
        sum(entry["failed"] for entry in entries) - len(failed),
        tuple(entries),
    )


def _part_of(entry: Mapping[str, Any]) -> Part:
    size_bytes = entry["size_bytes"] + entry["subscribers_bytes"]
    return Part(entry["name"], size_bytes, subscribers=entry["subscribers"])


def note_manifest(folder: IndexFolder, built: BuiltParts, keys: Mapping[int, Sequence[str]] | None = None) -> None:
    """Writes what was built: of each part its files, their bytes (their names are their digests), and the keys of
    which a document must have one to match anything in it; none if every document must visit it."""
    parts = [{**entry, "keys": list((keys or {}).get(entry["part"], ()))} for entry in built.entries]
    folder.write_note(MANIFEST, json.dumps({"parts": parts}).encode())


def _manifest(folder: IndexFolder) -> list[dict[str, Any]]:
    content = folder.read_note(MANIFEST)
    return list(json.loads(content)["parts"]) if content else []


def _input_of(digest: Digest, namespaces: Mapping[str, str], options: MatcherOptions) -> str:
    """What a part is made from, in a few letters: its rows, and how they are compiled."""
    about = json.dumps([FORMAT, sorted(namespaces.items()), repr(options)])
    rows, one, two = digest
    return hashlib.blake2b(f"{about} {rows} {one} {two}".encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class _Build:
    """The function that is mapped over the rows of one part, all of them in one task."""

    folder: IndexFolder
    namespaces: tuple[tuple[str, str], ...]
    options: MatcherOptions
    collect: bool
    repeated: bool = False
    """Whether many subscriptions have the same expression."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = list(batches)
        if not held or not sum(batch.num_rows for batch in held):
            return
        table = pa.Table.from_batches(held)
        del held
        numbers = table["part"].to_numpy()
        for number in np.unique(numbers).tolist():
            mine = table.filter(pa.array(numbers == number)) if (numbers != number).any() else table
            yield self._built(mine.drop_columns("part"), number)

    def _built(self, table: pa.Table, number: int) -> pa.RecordBatch:
        long = pc.fill_null(pc.greater(pc.binary_length(table["id"]), MOST_ID_BYTES), False)
        unusable = pc.or_(pc.or_(pc.is_null(table["id"]), pc.is_null(table["expression"])), long)
        without, table = table.filter(unusable), table.filter(pc.invert(unusable))
        told = [_unusable(id) for id in without["id"].slice(0, TOLD_ERRORS).to_pylist()]
        # Sorted: expressions that begin alike follow each other into the index, where they share what the processor
        # still has at hand.
        expressions, order, starts = sorted_expressions(table["expression"], self.repeated)
        made = self.options.subscriptions(dict(self.namespaces))
        refused = made.add_many(expression_table(expressions), errors="collect")
        good = np.ones(len(expressions), dtype=bool)
        for _, error in refused:
            assert error.row is not None
            good[error.row] = False
        ids = table["id"].combine_chunks().cast(pa.large_string())
        failed = without.num_rows
        for _, error in refused:
            assert error.row is not None
            who = order[starts[error.row] : starts[error.row + 1]]
            failed += len(who)
            for place in who[: max(0, TOLD_ERRORS - len(told))].tolist():
                told.append(_told(ids[place].as_py(), error))
        kept = np.repeat(good, np.diff(starts))
        counts = np.diff(starts)[good]
        lists = pa.LargeListArray.from_arrays(
            pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)), ids.take(pa.array(order[kept]))
        )
        index = self.folder.save(self.options.matcher(made))
        name, size_bytes = _save_subscribers(self.folder, expressions.filter(pa.array(good)), lists)
        row = {
            "part": number,
            "name": index.name,
            "size_bytes": index.size_bytes,
            "subscribers": name,
            "subscribers_bytes": size_bytes,
            "expressions": len(lists),
            "subscriptions": int(counts.sum()),
            "failed": failed,
            "told": json.dumps(told),
        }
        return pa.RecordBatch.from_pylist([row], schema=_BUILT_TYPE)


_BUILT_TYPE = pa.schema(
    [
        (name, {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string()}[kind])
        for name, kind in (column.split() for column in BUILT.split(", "))
    ]
)


def distinct_expressions(expressions: pa.ChunkedArray) -> tuple[pa.Array, Places]:
    """The distinct expressions, and which of them each row has. One that is missing is an empty one."""
    encoded = pc.fill_null(expressions, "").combine_chunks().cast(pa.large_string()).dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)


def sorted_expressions(expressions: pa.ChunkedArray, repeated: bool) -> tuple[pa.Array, Places, Places]:
    """The distinct expressions, sorted; the rows in that order; and where among them those of each expression begin.
    Most of the time goes into finding equal ones: where they are `repeated` often, by a table, else by the sort."""
    if not repeated:
        texts = expressions.combine_chunks().cast(pa.large_string())
        order = pc.sort_indices(texts)
        texts = texts.take(order)
        fresh = np.ones(len(texts), dtype=bool)
        fresh[1:] = pc.not_equal(texts[1:], texts[:-1]).to_numpy(zero_copy_only=False)
        starts = np.append(np.flatnonzero(fresh), len(texts))
        return texts.filter(pa.array(fresh)), order.to_numpy().astype(np.int64), starts
    distinct, of_row = distinct_expressions(expressions)
    by_text = pc.sort_indices(distinct)
    place = np.empty(len(by_text), dtype=np.int64)
    place[by_text.to_numpy()] = np.arange(len(by_text))
    of_row = place[of_row]
    starts = np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=len(place)))])
    return distinct.take(by_text), np.argsort(of_row, kind="stable"), starts


def expression_table(expressions: pa.Array) -> pa.Table:
    """Distinct expressions as rows that a set takes; their ids are their numbers."""
    numbers = pa.array(np.arange(len(expressions))).cast(pa.large_string())
    if not pc.any(pc.match_substring(expressions, SEPARATOR)).as_py():
        return pa.table({"id": numbers, "xpath": expressions})
    parts = [text.split(SEPARATOR, 2) if SEPARATOR in text else ["", "", text] for text in expressions.to_pylist()]
    # JSON leaves out what is null; that is an error of the row.
    spaces = [[(it["key"], it.get("value")) for it in json.loads(part[1])] if part[1] else None for part in parts]
    return pa.table(
        {
            "id": numbers,
            "xpath": pa.array([part[2] for part in parts], pa.large_string()),
            "ordered": pa.array([part[0] == ORDERED for part in parts]),
            "namespaces": pa.array(spaces, pa.map_(pa.string(), pa.string())),
        }
    )


def _save_subscribers(folder: IndexFolder, expressions: pa.Array, lists: pa.Array) -> tuple[str, int]:
    handle, name = tempfile.mkstemp(suffix=".part")
    os.close(handle)
    table = pa.table({"text": expressions, "ids": lists})
    with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    size_bytes = os.path.getsize(name)
    return folder.put(Path(name), ".arrow"), size_bytes


def _told(id: str | None, error: XsiftError) -> dict[str, Any]:
    column = getattr(error, "column", 0)
    return {"id": id, "code": error.code, "message": error.message, "column": column, "hint": error.hint}


def _unusable(id: str | None) -> dict[str, Any]:
    """What is wrong with a row that is not tried, by its id."""
    size = len((id or "").encode())
    if id is not None and size > MOST_ID_BYTES:
        said = f"the id that begins with {id[:40]!r} has {size:,} bytes"
        return {"id": id[:40], "code": "id-too-long", "message": said, "hint": f"an id has at most {MOST_ID_BYTES:,}"}
    return {"id": id, "code": "missing-value", "message": "a row has no id" if id is None else "it has no xpath"}


def _error_of(told: Mapping[str, Any]) -> tuple[str, XsiftError]:
    id, code, message, hint = told["id"], told["code"], told["message"], told.get("hint") or ""
    name = NO_ID if id is None else id
    if code in ("missing-value", "id-too-long"):
        return name, SubscriptionError(code, message, id=id, hint=hint)
    return name, XPathError(code, message, column=told.get("column") or 0, id=id, hint=hint)
