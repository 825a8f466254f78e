"""`xsift match`: which subscriptions do these documents satisfy?"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet

import xsift
from xsift.cli import EXIT_BROKEN, EXIT_NOTHING, EXIT_OK
from xsift.cli.common import add_subscription_options, load_matcher, plural, progress
from xsift.matching import Document, Node
from xsift.sources.files import read_documents

EPILOG = """\
output:
  text      a line for each match: document, tab, subscription; with --nodes also the path, and the bytes first-last
  jsonl     a line for each document: {"document", "matches"}, or {"document", "error"}; "failures" names
            subscriptions that could not be decided on it
  parquet   the same in columns; needs --output

exit code: 0 something matched; 1 nothing did; 2 wrong use, or subscriptions that cannot be used;
  3 some document was broken, or some subscription could not be decided on one (each is reported on standard error;
  all others are matched)
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds this subcommand's options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    add_subscription_options(parser)
    parser.add_argument(
        "documents",
        nargs="+",
        metavar="DOCUMENT",
        help="files, folders, globs, .zip and .tar archives, .gz files, .jsonl, .parquet, or - for standard input",
    )
    parser.add_argument("--nodes", action="store_true", help="also say which nodes each subscription selects")
    parser.add_argument("--format", choices=["text", "jsonl", "parquet"], help="default: by --output's name, or text")
    parser.add_argument("--output", metavar="FILE", help="where to write; default: standard output")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="match on N threads; default: 1")
    parser.add_argument("--save", metavar="FILE", help="also save the compiled matcher (.xsift), for the next time")
    parser.add_argument("--quiet", action="store_true", help="no progress, no summary")


def run(arguments: argparse.Namespace) -> int:
    """Matches; returns the exit code."""
    started = time.perf_counter()
    matcher = load_matcher(arguments)
    if arguments.save:
        matcher.save(arguments.save)
    ready = time.perf_counter()
    outcome = _Outcome()
    results = _results(matcher, arguments, outcome)
    _writer(arguments)(progress(results, "documents", quiet=arguments.quiet), arguments)
    if not arguments.quiet:
        _summarise(outcome, matcher, ready - started, time.perf_counter() - ready)
    if outcome.broken or outcome.undecided:
        return EXIT_BROKEN
    return EXIT_OK if outcome.matches else EXIT_NOTHING


class _Outcome:
    """What is counted on the way."""

    documents = matches = broken = undecided = 0

    def note(self, result: dict[str, Any]) -> dict[str, Any]:
        self.documents += 1
        self.matches += len(result.get("matches", ()))
        if "error" in result:
            self.broken += 1
            error = result["error"]
            where = f"{error['line']}:{error['column']}:" if error["line"] else ""
            print(f"{result['document']}:{where} {error['message']} [{error['code']}]", file=sys.stderr)
        for id, error in result.get("failures", {}).items():
            self.undecided += 1
            print(f"{result['document']}: subscription {id}: {error['message']} [{error['code']}]", file=sys.stderr)
        return result


def _results(matcher: xsift.Matcher, arguments: argparse.Namespace, outcome: _Outcome) -> Iterator[dict[str, Any]]:
    documents = read_documents(arguments.documents)
    make = _with_nodes if arguments.nodes else _with_ids
    for batch in iter(lambda: list(islice(documents, 64 * arguments.threads)), []):
        for result in make(matcher, batch, arguments.threads):
            yield outcome.note(result)


Documents = list[Document | xsift.DocumentError]


def _with_ids(matcher: xsift.Matcher, batch: Documents, threads: int) -> Iterator[dict[str, Any]]:
    for match in matcher.match_many(batch, threads=threads):
        if match.error is not None:
            yield _broken(match.label, match.error)
        else:
            yield {"document": match.label, "matches": match.ids, **_failures(match.failures)}


def _with_nodes(matcher: xsift.Matcher, batch: Documents, threads: int) -> Iterator[dict[str, Any]]:
    for document in batch:
        failures: dict[str, xsift.XsiftError] = {}
        try:
            if isinstance(document, xsift.DocumentError):
                raise document
            selected = matcher.select(document, failures=failures)
        except xsift.DocumentError as error:
            yield _broken(document.label, error)
            continue
        nodes = {id: [_node(node) for node in nodes] for id, nodes in selected.items()}
        yield {"document": document.label, "matches": list(selected), "nodes": nodes, **_failures(failures)}


def _failures(failures: Mapping[str, xsift.XsiftError]) -> dict[str, Any]:
    """Subscriptions that could not be decided; nothing if there are none."""
    told = {id: {"code": error.code, "message": error.message} for id, error in failures.items()}
    return {"failures": told} if told else {}


def _node(node: Node) -> dict[str, Any]:
    return {"path": node.path, "number": node.number, "start": node.start, "end": node.end}


def _broken(name: str | None, error: xsift.XsiftError) -> dict[str, Any]:
    position = {part: getattr(error, part, 0) for part in ("line", "column", "offset")}
    return {"document": name, "error": {"code": error.code, "message": error.message, **position}}


def _writer(arguments: argparse.Namespace) -> Callable[[Iterable[dict[str, Any]], argparse.Namespace], None]:
    kind = arguments.format
    if kind is None:
        endings = {".jsonl": "jsonl", ".parquet": "parquet"}
        kind = next((kind for ending, kind in endings.items() if (arguments.output or "").endswith(ending)), "text")
    if kind == "parquet" and not arguments.output:
        raise xsift.XsiftError(
            "no-output", "Parquet cannot be written to standard output", hint="name a file: --output"
        )
    return {"text": _write_text, "jsonl": _write_jsonl, "parquet": _write_parquet}[kind]


def _open(arguments: argparse.Namespace) -> IO[str]:
    return open(arguments.output, "w", encoding="utf-8") if arguments.output else sys.stdout


def _write_text(results: Iterable[dict[str, Any]], arguments: argparse.Namespace) -> None:
    file = _open(arguments)
    for result in results:
        for id in result.get("matches", ()):
            if not arguments.nodes:
                file.write(f"{result['document']}\t{id}\n")
            for node in result.get("nodes", {}).get(id, ()):
                file.write(f"{result['document']}\t{id}\t{node['path']}\t{node['start']}-{node['end']}\n")
    file.flush()


def _write_jsonl(results: Iterable[dict[str, Any]], arguments: argparse.Namespace) -> None:
    file = _open(arguments)
    for result in results:
        file.write(json.dumps(result, ensure_ascii=False) + "\n")
    file.flush()


def _write_parquet(results: Iterable[dict[str, Any]], arguments: argparse.Namespace) -> None:
    error = [(name, pa.string() if name in ("code", "message") else pa.int64()) for name in _ERROR_FIELDS]
    fields = [("document", pa.string()), ("matches", pa.list_(pa.string())), ("error", pa.struct(error))]
    if arguments.nodes:
        node = [("path", pa.string()), ("number", pa.int64()), ("start", pa.int64()), ("end", pa.int64())]
        fields.insert(2, ("nodes", pa.map_(pa.string(), pa.list_(pa.struct(node)))))
    fields.append(("failures", pa.map_(pa.string(), pa.struct([("code", pa.string()), ("message", pa.string())]))))
    schema = pa.schema(fields)
    remaining = iter(results)
    with pyarrow.parquet.ParquetWriter(arguments.output, schema) as writer:
        for batch in iter(lambda: list(islice(remaining, 4096)), []):
            writer.write_table(pa.Table.from_pylist([_with_maps(row) for row in batch], schema))


def _with_maps(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its maps as Arrow takes them."""
    return {name: list(value.items()) if name in ("nodes", "failures") else value for name, value in row.items()}


_ERROR_FIELDS = ("code", "message", "line", "column", "offset")


def _summarise(outcome: _Outcome, matcher: xsift.Matcher, build_seconds: float, match_seconds: float) -> None:
    broken = f", {outcome.broken:,} broken" if outcome.broken else ""
    broken += f", {outcome.undecided:,} not decided" if outcome.undecided else ""
    print(
        f"{plural(outcome.documents, 'document')}{broken}, {plural(outcome.matches, 'match')}, "
        f"{plural(len(matcher), 'subscription')} on engine {matcher.engine}: "
        f"{build_seconds:.2f} s to build, {match_seconds:.2f} s to match",
        file=sys.stderr,
    )
