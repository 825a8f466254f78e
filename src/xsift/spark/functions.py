"""xsift in SQL: a function of a document, and a table function of a table of documents.

    register_functions(spark, subscriptions)
    spark.sql("SELECT uri, xsift_matches(xml) FROM news")
    spark.sql("SELECT * FROM xsift_match(TABLE(news), xml => 'xml', kind => 'rows')")

Both are for people who live in SQL. match_documents is faster: Spark hands it whole Arrow batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from xsift.matching import Limits
from xsift.spark.columns import Columns
from xsift.spark.compiled import SubscriptionSource, compile_subscriptions
from xsift.spark.worker import Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register_functions"]

ROWS_AT_ONCE = 200


def register_functions(
    spark: SparkSession,
    subscriptions: SubscriptionSource,
    *,
    function: str = "xsift_matches",
    table_function: str = "xsift_match",
    limits: Limits | None = None,
    **options: Any,
) -> None:
    """Compiles subscriptions and makes two functions known to a session. `function(xml)` gives the ids of a document,
    null if it is broken; why, and what could not be decided, it cannot say. `table_function(TABLE(documents),
    xml => 'xml', kind => 'matches')` gives what match_documents gives. Other options are those of
    compile_subscriptions. To change the set, register again."""
    from pyspark.sql.functions import udtf
    from pyspark.sql.pandas import functions as arrow_functions

    compiled = compile_subscriptions(spark, subscriptions, **options)
    task = compiled.task(xml="xml", output="matches", keep_xml=False, on_error="keep", limits=limits or Limits())

    def matches(xml: pa.Array) -> pa.Array:
        documents = xml.cast(pa.string()) if pa.types.is_null(xml.type) else xml
        batch = pa.RecordBatch.from_arrays([documents], names=["xml"])
        return pa.concat_arrays([found["matches"] for found in task(iter([batch]))])

    matches.__annotations__ = {"xml": pa.Array, "return": pa.Array}
    arrow_udf: Any = arrow_functions.arrow_udf
    made: Any = arrow_udf(matches, "array<string>")
    spark.udf.register(function, made)
    table: Any = udtf(_table_function(task))
    spark.udtf.register(table_function, table)


def _table_function(task: Task) -> type:
    """The class that Spark makes one of for each task of a query."""
    from pyspark.sql.types import Row
    from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

    class Match:
        """SELECT * FROM xsift_match(TABLE(documents), xml => 'xml', kind => 'matches')"""

        def __init__(self) -> None:
            self._held: list[Row] = []
            self._asked: tuple[str, str] = ("xml", "matches")

        @staticmethod
        def analyze(
            table: AnalyzeArgument, xml: AnalyzeArgument | None = None, kind: AnalyzeArgument | None = None
        ) -> AnalyzeResult:
            schema = table.dataType
            columns = Columns.of(
                schema,  # type: ignore[arg-type]
                str(xml.value) if xml else "xml",
                kind=str(kind.value) if kind else "matches",
            )
            return AnalyzeResult(columns.schema)

        def eval(self, table: Row, xml: str = "xml", kind: str = "matches") -> Iterator[Any]:
            self._asked = (xml, kind)
            self._held.append(table)
            if len(self._held) >= ROWS_AT_ONCE:
                yield from self._answered()

        def terminate(self) -> Iterator[Any]:
            yield from self._answered()

        def _answered(self) -> Iterator[Any]:
            rows, self._held = self._held, []
            if rows:
                yield from answered_rows(task, rows, *self._asked)

    return Match


def answered_rows(task: Task, rows: list[Any], xml: str, kind: str) -> Iterator[tuple[Any, ...]]:
    """What a task says of rows, as rows."""
    names: Mapping[str, str] = {name.lower(): name for name in rows[0].__fields__}
    column = xml if xml in rows[0].__fields__ else names[xml.lower()]
    documents = pa.array([row[column] for row in rows])
    if pa.types.is_null(documents.type):
        documents = documents.cast(pa.string())
    batch = pa.RecordBatch.from_arrays([pa.array(range(len(rows)), pa.int64()), documents], names=["row", "xml"])
    kept = [name for name in rows[0].__fields__ if name != column]
    for found in replace(task, output=kind)(iter([batch])):
        columns = [found[name].to_pylist() for name in found.schema.names if name != "row"]
        for place, *values in zip(found["row"].to_pylist(), *columns, strict=True):
            yield (*(rows[place][name] for name in kept), *values)
