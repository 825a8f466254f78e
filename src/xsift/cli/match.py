"""`xsift match`: which subscriptions do these documents satisfy?"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeGuard

from tqdm import tqdm

import xsift
from xsift.cli import EXIT_BROKEN, EXIT_CODES, EXIT_NOTHING, EXIT_OK
from xsift.cli.common import (
    SAVED,
    Loaded,
    add_subscription_options,
    encoding_of,
    load_matcher,
    plural,
    positive,
    say,
    told,
)
from xsift.cli.output import FORMATS, Result, ResultWriter, file_of, open_writer, output_format
from xsift.errors import DocumentError, XsiftError
from xsift.matching import Document
from xsift.sources.documents import DocumentSources, Found

EPILOG = f"""\
documents: files, .gz .bz2 .xz .zst files, folders, globs, .zip and .tar archives, .jsonl and .parquet with a column
  xml, or - for standard input: one document, JSON Lines, or documents with NULs between them (-0)

kind:
  matches   which subscriptions each document satisfies (the default)
  rows      the same, a row for each match
  nodes     a row for each matched node: path, element number, bytes, and the fragment, which stands alone

format:
  text      one line per match: document, tab, subscription; with --kind nodes also path and bytes, start-end
  csv       the same with a header, and with the fragments
  jsonl     an object for each row, errors included
  parquet   the same in columns; needs --output

{EXIT_CODES}
docs/command-line.md says it all."""

BATCH = 64  # documents that a thread is given at a time
HINTED_SUBSCRIPTIONS = 50  # of which it is looked for why none matched
HINTED_BYTES = 16 << 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this subcommand's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    add_subscription_options(parser)
    parser.add_argument("documents", nargs="+", metavar="DOCUMENT", help="what to match; see below")
    parser.add_argument("--record", metavar="NAME", help="cut files into elements of this name, a document each")
    parser.add_argument("--encoding", help="of the documents, whatever they declare")
    parser.add_argument(
        "-0", "--null", action="store_true", help="standard input has documents with NULs between them"
    )
    parser.add_argument(
        "--kind", choices=["matches", "rows", "nodes"], default="matches", help="what is told; see below"
    )
    parser.add_argument("--nodes", dest="kind", action="store_const", const="nodes", help=argparse.SUPPRESS)
    parser.add_argument("--format", choices=FORMATS, help="default: by --output's name, or text")
    parser.add_argument("--output", metavar="FILE", help="where to write; default: standard output")
    parser.add_argument("--threads", type=positive, default=1, metavar="N", help="match on N threads; default: 1")
    parser.add_argument("--save", metavar="FILE", help="also save the compiled matcher (.xsift), for the next time")
    parser.add_argument("--quiet", action="store_true", help="no progress, no summary")


def run(arguments: argparse.Namespace) -> int:
    """Matches; returns the exit code."""
    started = time.perf_counter()
    format = output_format(arguments.format, arguments.output)
    if arguments.save and not arguments.save.endswith(SAVED):
        raise XsiftError("bad-option", f"--save {arguments.save}", hint=f"its name should end in {SAVED}, as -s asks")
    for name in (*arguments.documents, arguments.subscriptions):
        if arguments.output is not None and _is_same_file(arguments.output, name):
            raise XsiftError("bad-option", f"--output {arguments.output} is read as well", hint="it would be lost")
    encoding = encoding_of(arguments)
    loaded = load_matcher(arguments)
    if arguments.save:
        _save(loaded.matcher, arguments.save)
    ready = time.perf_counter()
    sources = DocumentSources(
        arguments.documents,
        encoding=encoding,
        record=arguments.record,
        null_separated=arguments.null,
        limits=loaded.matcher.limits,
    )
    outcome = _Outcome(loaded, sources)
    writer = open_writer(arguments.kind, format, arguments.output)
    sources.output = file_of(arguments.output)
    try:
        _match_all(loaded.matcher, sources, writer, outcome, arguments)
    finally:
        writer.close()
    if not arguments.quiet:
        outcome.summarise(ready - started, time.perf_counter() - ready)
    return outcome.exit_code()


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.isfile(one) and os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _save(matcher: xsift.Matcher, path: str) -> None:
    try:
        matcher.save(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise XsiftError("unwritable-file", f"{path} cannot be written: {reason}") from error


def _match_all(
    matcher: xsift.Matcher,
    sources: DocumentSources,
    writer: ResultWriter,
    outcome: _Outcome,
    arguments: argparse.Namespace,
) -> None:
    """Matches batch by batch; after each, those who read the output can see it."""
    threads = arguments.threads
    shown = sys.stderr.isatty() and not arguments.quiet
    total = sources.total_bytes() if shown else None
    with (
        ThreadPoolExecutor(threads) as pool,
        tqdm(total=total, unit="B", unit_scale=True, delay=1, leave=False, disable=not shown) as bar,
    ):
        for batch in sources.batches(BATCH * threads):
            outcome.remember(batch)
            results = (
                _with_nodes(matcher, batch, pool, threads)
                if arguments.kind == "nodes"
                else _with_ids(matcher, batch, threads)
            )
            for result in results:
                outcome.note(result)
                writer.write(result)
            writer.flush()
            bar.set_postfix_str(plural(outcome.documents, "document"), refresh=False)
            bar.update(min(sources.meter.done, total or sources.meter.done) - bar.n)


def _with_ids(matcher: xsift.Matcher, batch: list[Found], threads: int) -> Iterator[Result]:
    for match in matcher.match_many(batch, threads=threads):
        label = match.label or ""
        if match.error is not None:
            yield Result(label, error=match.error, failures=match.failures)
        else:
            yield Result(label, match.ids, failures=match.failures)


def _with_nodes(
    matcher: xsift.Matcher, batch: list[Found], pool: ThreadPoolExecutor, threads: int
) -> Iterator[Result]:
    def select(document: Found) -> Result:
        failures: dict[str, XsiftError] = {}
        try:
            if isinstance(document, DocumentError):
                raise document
            nodes = matcher.select(document, fragments=True, failures=failures)
        except DocumentError as error:
            return Result(document.label or "", error=error)
        return Result(document.label or "", list(nodes), nodes, failures=failures)

    # No further ahead of the output than there are threads: what a small document selects can be large.
    begun: deque[Future[Result]] = deque()
    for document in batch:
        begun.append(pool.submit(select, document))
        if len(begun) > threads:
            yield begun.popleft().result()
    for result in begun:
        yield result.result()


def _can_be_read_again(found: Found) -> TypeGuard[Document]:
    """Whether a document is in memory, or in a file that is no pipe."""
    if isinstance(found, DocumentError):
        return False
    return found.in_memory or (isinstance(found.source, Path) and found.source.is_file())


class _Outcome:
    """What is counted on the way, and said in the end."""

    def __init__(self, loaded: Loaded, sources: DocumentSources) -> None:
        self.documents = self.matches = self.broken = self.undecided = 0
        self._loaded = loaded
        self._sources = sources
        self._sample: Document | None = None

    def remember(self, batch: list[Found]) -> None:
        """Keeps the first document that can be read again, to look at if nothing matches."""
        if self._sample is None and not self.matches:
            self._sample = next((found for found in batch if _can_be_read_again(found)), None)

    def note(self, result: Result) -> None:
        """Counts a result, and reports what went wrong."""
        self.documents += 1
        self.matches += len(result.matches)
        if self.matches:
            self._sample = None
        if result.error is not None:
            self.broken += 1
            say(told(result.document, result.error))
        for id, failure in result.failures.items():
            self.undecided += 1
            say(f"{result.document}: subscription {id}: {failure.message} [{failure.code}]")

    def exit_code(self) -> int:
        """What the process is to exit with."""
        if self.broken or self.undecided or self._loaded.failed:
            return EXIT_BROKEN
        return EXIT_OK if self.matches else EXIT_NOTHING

    def summarise(self, build_seconds: float, match_seconds: float) -> None:
        """Says what was done, what was not, and, if nothing matched, perhaps why."""
        matcher, sources = self._loaded.matcher, self._sources
        parts = [plural(self.documents, "document")]
        parts += [f"{self.broken:,} broken"] if self.broken else []
        parts += [f"{self.undecided:,} not decided"] if self.undecided else []
        parts += [plural(self.matches, "match")]
        left_out = f" ({self._loaded.failed:,} cannot be used)" if self._loaded.failed else ""
        say(
            f"{', '.join(parts)}, {plural(len(matcher), 'subscription')}{left_out} on engine {matcher.engine}: "
            f"{build_seconds:.2f} s to build, {match_seconds:.2f} s to match"
        )
        if sources.passed_over:
            names = ", ".join(sources.passed_over_names)
            more = ", …" if sources.passed_over > len(sources.passed_over_names) else ""
            say(f"{plural(sources.passed_over, 'file')} passed over, no XML: {names}{more}")
        for hint in self._hints():
            say(f"nothing matched: {hint}")

    def _hints(self) -> list[str]:
        """Why nothing matched, if a subscription asks for names that are there in another namespace."""
        if self.matches or self._sample is None:
            return []
        hints: dict[str, None] = {}
        matcher = self._loaded.matcher
        try:
            document = self._sample.loaded(HINTED_BYTES)
            for id in matcher.ids[:HINTED_SUBSCRIPTIONS].to_pylist():
                for hint in matcher.explain(document, id).hints:
                    hints.setdefault(f"subscription {id}: {hint}")
                if hints:
                    break  # one says it all
        except XsiftError:
            return []
        return list(hints)
