"""Spark's own way, as a peer: a column `xpath_boolean(xml, …)` for each subscription, over all documents at once.

That is what someone with a DataFrame of documents writes today. Spark parses the document anew for every expression.
It runs in a Java process of its own. A query goes over all documents, for Spark takes a while to start one, and each
document gets an equal share of what it took. The CPU time is that of the whole Java process.
"""

from __future__ import annotations

import os
from time import perf_counter
from typing import Any

import numpy as np

from xsift.experiments import machine, programs
from xsift.experiments.subjects import Clock, Refused, Subject
from xsift.experiments.workloads import Indices, Prepared

__all__ = ["SparkXPath"]

WARM_UP = 2  # queries


class SparkXPath(Subject):
    """`xpath_boolean` in a local Spark, one thread."""

    def __init__(self, prepared: Prepared) -> None:
        super().__init__(prepared)
        reason = programs.why_missing(programs.SPARK)
        if reason:
            raise Refused(reason)
        if prepared.ordered:
            raise Refused("XPath knows no ordered matching")
        self.number = len(prepared.documents)
        self._clock: Clock | None = None
        self._answers: list[Indices] = []

    def ask_first(self, number: int) -> None:
        self.number = min(self.number, number)

    def build(self) -> None:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        from pyspark.sql import SparkSession

        builder = (
            SparkSession.builder.master("local[1]")
            .appName("xpath_boolean")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "2g")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "1")
        )
        started = perf_counter()
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)  # what Java warns of while it starts; this process is the worker's own
        _forget_parents_spark()
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("OFF")
        self.process = self.session.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        rows = [(at, self.prepared.texts.documents[at].decode()) for at in range(self.number)]
        documents = self.session.createDataFrame(rows, "number int, xml string").coalesce(1).cache()
        documents.count()
        tests = ", ".join(f"xpath_boolean(xml, {_literal(text)})" for text in self.prepared.examples)
        self.query = documents.selectExpr("number", f"array({tests}) as matched")
        for _ in range(WARM_UP):
            self._run()
        self._clock = Clock(perf_counter() - started, self._cpu_seconds())

    def _run(self) -> None:
        """Asks for all documents."""
        cpu, started = self._cpu_seconds(), perf_counter()
        rows = self.query.collect()
        seconds, cpu = perf_counter() - started, self._cpu_seconds() - cpu
        self._share = Clock(seconds / self.number, cpu / self.number)
        found = {row["number"]: np.flatnonzero(row["matched"]).astype(np.int32) for row in rows}
        self._answers = [found[at] for at in range(self.number)]

    def match(self, document: int) -> Indices:
        if document == 0:
            self._run()
        self._clock = self._share
        return self._answers[document]

    def parse(self, document: int) -> None:
        """Nothing: Spark parses as part of every expression."""
        self._clock = Clock(0.0, 0.0)

    def answer(self, result: Any) -> Indices:
        return np.asarray(result, dtype=np.int32)

    def take_clock(self) -> Clock | None:
        clock, self._clock = self._clock, None
        return clock

    def _cpu_seconds(self) -> float:
        """What the Java process has used so far."""
        return machine.cpu_seconds(self.process) or 0.0


def _forget_parents_spark() -> None:
    """This process was forked. A Java that its parent has is the parent's: a session made there would stay."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
