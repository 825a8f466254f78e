"""`xsift spark match` and `xsift spark stream`: the same question as `xsift match`, on Spark."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from xsift.cli import EXIT_BROKEN, EXIT_CODES, EXIT_NOTHING, EXIT_OK
from xsift.cli.common import (
    SAVED,
    add_subscription_options,
    load_saved,
    matcher_options,
    namespaces_of,
    open_subscriptions,
    plural,
    positive,
    report_failed,
    table_named,
)
from xsift.errors import XsiftError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession

    from xsift.spark import Compiled
    from xsift.tables import SubscriptionTable

DOCUMENTS = """\
documents: files, folders with all that is below them, globs; a document each, .zip and .tar archives unpacked, .gz
  .bz2 .xz .zst decompressed; with --record NAME large files, cut into a document for each element of that name;
  .parquet and .jsonl with a column `xml`

"""
STREAM_CODES = """\
exit code: 0 it ended as it was asked to; 2 wrong use; 3 so it did, but without the subscriptions that cannot be used
  (each is reported on standard error); 4 could not run, or broke off
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the subcommands and their options."""
    subparsers = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    match = subparsers.add_parser("match", help="match documents once", epilog=DOCUMENTS + EXIT_CODES)
    stream = subparsers.add_parser("stream", help="match files as they arrive", epilog=DOCUMENTS + STREAM_CODES)
    for subparser in (match, stream):
        subparser.formatter_class = argparse.RawDescriptionHelpFormatter
        add_subscription_options(subparser)
        subparser.add_argument("documents", metavar="DOCUMENTS", help="what to match")
        subparser.add_argument("--output", required=True, metavar="FOLDER", help="where to write Parquet")
        subparser.add_argument(
            "--record", metavar="NAME", help="cut files into elements of this name, a document each"
        )
        subparser.add_argument("--kind", choices=["matches", "rows", "nodes"], default="matches", help=_KIND_HELP)
        subparser.add_argument("--keep-xml", action="store_true", help="write the documents beside their matches")
        subparser.add_argument("--master", default="local[*]", help="default: local[*]")
        subparser.add_argument("--remote", metavar="sc://HOST", help="a Spark Connect server, instead of --master")
        subparser.add_argument("--driver-memory", default="1g", help="default: 1g")
        subparser.add_argument("--quiet", action="store_true", help="no progress, no summary")
    match.add_argument(
        "--shards", type=positive, metavar="N", help="split the subscriptions; default: by their memory"
    )
    match.add_argument("--overwrite", action="store_true", help="replace the output if it is there")
    stream.add_argument("--checkpoint", required=True, metavar="FOLDER", help="where to note how far the stream got")
    stream.add_argument("--dead-letters", metavar="FOLDER", help="where to write broken documents")
    stream.add_argument("--delta", action="store_true", help="append to a Delta Lake table, not folders of Parquet")
    stream.add_argument("--once", action="store_true", help="match what is there now, then end")


_KIND_HELP = "a row for each document (the default), for each match, or for each matched node with its fragment"


def run(arguments: argparse.Namespace) -> int:
    """Matches on Spark; returns the exit code."""
    from xsift.spark.requirements import require_pyspark

    require_pyspark()
    from pyspark.errors import PySparkException

    from xsift.spark import make_session, register_sources

    if arguments.action == "match":
        _check_output(arguments)
    shown = sys.stderr.isatty() and not arguments.quiet
    spark = make_session(
        arguments.master,
        remote=arguments.remote,
        driver_memory=arguments.driver_memory,
        progress=shown,
        settings={"spark.log.level": "FATAL"},  # errors are told below, in a line
    )
    register_sources(spark)
    try:
        with _on_signals(_interrupt):
            return _match(spark, arguments) if arguments.action == "match" else _stream(spark, arguments)
    except PySparkException as error:
        raise _explained(error, arguments) from error
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the JVM cannot be asked any more, after an interrupt
            spark.stop()


@contextmanager
def _on_signals(handler: Callable[..., None]) -> Iterator[None]:
    """Has control-C and `kill` call a handler, instead of Spark's own, which calls the JVM in the middle of another
    call to it."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _interrupt(*_: object) -> None:
    logging.disable()  # else py4j logs the call that is cut off here
    raise KeyboardInterrupt


def _check_output(arguments: argparse.Namespace) -> None:
    """Raises an error, before anything is done, if the output is there. A folder in which a job wrote nothing before
    it failed does not count."""
    output = arguments.output
    if arguments.overwrite or not os.path.exists(output):
        return
    if not os.path.isdir(output) or set(os.listdir(output)) - {"_temporary"}:
        raise _output_exists(output)
    arguments.overwrite = True


def _output_exists(output: str) -> XsiftError:
    return XsiftError("output-exists", f"{output} is there already", hint="--overwrite replaces it")


def _explained(error: PySparkException, arguments: argparse.Namespace) -> XsiftError:
    """What went wrong in one line: ours, if it was raised in a Python worker, or else the first line of Spark's."""
    condition = error.getCondition() or "spark"
    if condition == "PATH_ALREADY_EXISTS":
        return _output_exists(arguments.output)
    lines = str(error).strip().splitlines()
    ours = [line.partition(": ")[2] for line in lines if line.startswith("xsift.errors.")]
    return XsiftError(condition.lower().replace("_", "-"), ours[-1] if ours else lines[0])


def _match(spark: SparkSession, arguments: argparse.Namespace) -> int:
    from xsift.spark import match_documents

    started = time.perf_counter()
    documents = _documents(spark, arguments, streaming=False)
    compiled = _compiled(spark, arguments)
    ready = time.perf_counter()
    options = matcher_options(arguments)
    matched = match_documents(
        documents,
        subscriptions=compiled,
        kind=arguments.kind,
        keep_xml=arguments.keep_xml,
        id=_label(documents),
        limits=options.limits,
        validate=options.validate,
    )
    matched.write.mode("overwrite" if arguments.overwrite else "errorifexists").parquet(arguments.output)
    finished = time.perf_counter()
    rows, matches, broken, undecided = _counted(spark.read.parquet(arguments.output))
    if not arguments.quiet:
        not_decided = f", {undecided:,} not decided" if undecided else ""
        print(
            f"{plural(rows, 'row')}, {plural(matches, 'match')}, {broken:,} broken{not_decided}: "
            f"{ready - started:.2f} s to build, {finished - ready:.2f} s to match and write",
            file=sys.stderr,
        )
    if broken or undecided or arguments.failed:
        return EXIT_BROKEN
    return EXIT_OK if matches else EXIT_NOTHING


def _counted(written: DataFrame) -> tuple[int, int, int, int]:
    """Rows, matches, broken documents, and subscriptions that could not be decided, of an output."""
    if "matches" in written.columns:
        counts = ["array_size(matches)", "int(error is not null)", "array_size(failures)"]
    else:
        counts = [
            f"int(subscription is {subscription} and error is {error})"
            for subscription, error in (("not null", "null"), ("null", "not null"), ("not null", "not null"))
        ]
    row = written.selectExpr("count(*)", *(f"coalesce(sum({each}), 0)" for each in counts)).first()
    assert row is not None
    return int(row[0]), int(row[1]), int(row[2]), int(row[3])


def _stream(spark: SparkSession, arguments: argparse.Namespace) -> int:
    from xsift.spark import DeltaSink, match_stream

    options = matcher_options(arguments)
    documents = _documents(spark, arguments, streaming=True)
    query = match_stream(
        documents,
        subscriptions=_subscriptions(spark, arguments),
        namespaces=namespaces_of(arguments),
        sink=DeltaSink(arguments.output) if arguments.delta else arguments.output,
        checkpoint=arguments.checkpoint,
        dead_letters=arguments.dead_letters,
        kind=arguments.kind,
        keep_xml=arguments.keep_xml,
        **_matching(arguments),
        limits=options.limits,
        validate=options.validate,
        arrived="arrived" if dict(documents.dtypes).get("arrived") == "timestamp" else None,
        trigger={"availableNow": True} if arguments.once else None,
    )
    interrupts: list[int] = []
    with _on_signals(lambda number, _: interrupts.append(number)):
        _follow(query, arguments.quiet, interrupts)
        query.stop()
    if interrupts and not arguments.quiet:
        print("stopped; the same command goes on from here", file=sys.stderr)
    return EXIT_BROKEN if arguments.failed else EXIT_OK


def _follow(query: Any, quiet: bool, interrupts: list[int]) -> None:
    """Prints a line for each micro-batch, until the query ends or is to end."""
    from xsift.spark import progress_of

    shown = -1
    while True:
        ended = query.awaitTermination(1) or bool(interrupts)
        for progress in query.recentProgress:
            if progress.batchId > shown and progress.numInputRows:
                shown = progress.batchId
                if not quiet:
                    print(progress_of(progress) or _plain_line(progress), file=sys.stderr)
        if ended:
            return


def _plain_line(progress: Any) -> str:
    """What Spark says of a micro-batch of which nothing was counted: one that was done before, or has shards."""
    seconds = progress.durationMs.get("triggerExecution", 0) / 1000
    return f"batch {progress.batchId}: {plural(progress.numInputRows, 'document')} in {seconds:.2f} s"


def _subscriptions(spark: SparkSession, arguments: argparse.Namespace) -> Compiled | SubscriptionTable:
    """A table, which the stream follows; a version of one, or a file, is compiled once."""
    table, version = table_named(arguments.subscriptions) or (None, None)
    if table is not None and version is None:
        arguments.failed = 0  # what cannot be used is not in a table
        return table
    return _compiled(spark, arguments)


def _matching(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that decide how subscriptions are compiled."""
    options = matcher_options(arguments)
    return {"engine": options.engine, "engine_options": options.engine_options, "residuals": options.residuals}


def _compiled(spark: SparkSession, arguments: argparse.Namespace) -> Compiled:
    from xsift.spark import compile_subscriptions

    options: dict[str, Any] = {"errors": "collect", "shards": getattr(arguments, "shards", None)}
    failed: list[XsiftError] = []
    if arguments.subscriptions.endswith(SAVED):
        compiled = compile_subscriptions(spark, load_saved(arguments, matcher_options(arguments)), **options)
    else:
        found = open_subscriptions(arguments.subscriptions, namespaces_of(arguments))
        compiled = compile_subscriptions(
            spark, found.table, namespaces=found.namespaces, **_matching(arguments), **options
        )
        failed = found.located(compiled.failed)
        report_failed(failed, arguments.errors)
    if not arguments.quiet:
        print(compiled, file=sys.stderr)
    arguments.failed = len(failed)
    return compiled


def _documents(spark: SparkSession, arguments: argparse.Namespace, *, streaming: bool) -> DataFrame:
    """The documents, in a column `xml`."""
    from xsift.spark.files import read_files
    from xsift.spark.source import read_records

    source, reader = arguments.documents, spark.readStream if streaming else spark.read
    if arguments.record:
        records = (
            reader.format("xsift").option("record", arguments.record).load(source)
            if streaming
            else read_records(spark, source, arguments.record)
        )
        # Why something cannot be read stands for a document: that is no XML, so it is an error among the results.
        return records.selectExpr(
            "file", "position", "coalesce(xml, cast(read_error as binary)) as xml", "read_error"
        )
    for ending, kind in ((".parquet", "parquet"), (".jsonl", "json")):
        if source.endswith(ending):
            if streaming:
                reader = reader.schema(spark.read.format(kind).load(source).schema)
            return reader.format(kind).load(source)
    return read_files(spark, source, streaming=streaming, limits=matcher_options(arguments).limits)


def _label(documents: DataFrame) -> str | None:
    return next((column for column in ("document", "id", "file") if column in documents.columns), None)
