"""`xsift generate`: makes documents and subscriptions like those of the papers.

Every parameter of the generators is an option of the same name. `--like PAPER` takes a paper's parameters; options
given beside it replace them.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import islice
from typing import Any, TypeVar

from tqdm import tqdm

from xsift.errors import WorkloadError
from xsift.workload import (
    PRESETS,
    DocumentGenerator,
    DocumentParameters,
    SubscriptionGenerator,
    SubscriptionParameters,
    find_preset,
    shipped_dtds,
)
from xsift.workload.figures import compare, table
from xsift.workload.output import DOCUMENT_ENDINGS, SUBSCRIPTION_ENDINGS, write_documents, write_subscriptions

__all__ = ["configure", "run"]

Item = TypeVar("Item")

_SHARED = {
    "dtd": f"one of {', '.join(shipped_dtds())}, or the path of a DTD",
    "root": "the root element; otherwise the first declared one that is no other's child",
    "seed": "the same seed makes the same bytes",
    "attribute_values": "attributes that are no enumeration have the values 1 to N",
    "text_values": "texts have the values 1 to N",
    "value_skew": "Zipf's skew of values; 0 makes them equally likely",
}
_DOCUMENTS = _SHARED | {
    "number": "how many documents",
    "levels": "no document is deeper",
    "maximum_repeats": "what may occur often occurs at most N times",
    "optional_odds": "probability that what is optional is there",
    "attribute_odds": "probability that an optional attribute is there",
    "size_bytes": "about how large each document is; 0 leaves it to chance",
    "maximum_bytes": "a document is finished once it has grown to N bytes",
    "text_words": "half of the texts are 1 to N words instead of a value",
}
_SUBSCRIPTIONS = _SHARED | {
    "number": "how many subscriptions",
    "maximum_depth": "L: at most N steps",
    "minimum_depth": "at least N steps",
    "stop_odds": "the probability that a path ends with a step and goes no deeper",
    "wildcard_odds": "W: probability that a step is *",
    "descendant_odds": "DO: probability that a step is reached by //",
    "name_skew": "Zipf's skew of the choice of a child; 0 makes all equally likely",
    "conditions": "P: conditions a subscription",
    "condition_targets": "what conditions are on: attributes, texts or any",
    "range_odds": "probability that a condition is a range, not an equality",
    "nested_paths": "NP: branches a subscription",
    "nested_depth": "at most N steps in a branch; 0 for as many as the depth allows",
    "nesting": "branches within branches, at most N deep",
    "distinct": "no two are the same pattern",
    "duplicates": "each of number / N distinct subscriptions occurs N times",
    "ordered": "they are for ordered matching",
    "selectivity": "share of the subscriptions that a document matches on average",
}
_TYPES: dict[str, type] = {"int": int, "float": float, "float | None": float, "str": str, "str | None": str}


def configure(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    documents = kinds.add_parser("documents", help="documents that are valid against a DTD")
    _add_options(documents, DocumentParameters(), _DOCUMENTS)
    documents.add_argument(
        "--output", required=True, metavar="PATH", help=f"a folder, or a file in {', '.join(DOCUMENT_ENDINGS)}"
    )
    documents.add_argument("--force", action="store_true", help="write into a folder that is not empty")

    subscriptions = kinds.add_parser("subscriptions", help="subscriptions to documents of a DTD")
    _add_options(subscriptions, SubscriptionParameters(), _SUBSCRIPTIONS)
    subscriptions.add_argument(
        "--output",
        default="-",
        metavar="FILE",
        help=f"a file in {', '.join(SUBSCRIPTION_ENDINGS)}; otherwise TSV on standard output",
    )
    subscriptions.add_argument(
        "--sample", type=int, default=50, metavar="N", help="documents to measure a selectivity with (50)"
    )
    subscriptions.add_argument(
        "--sample-from", nargs="+", metavar="PATH", help="take these documents instead of generating some"
    )

    figures = kinds.add_parser("figures", help="the figures of the papers' workloads, beside those of ours")
    figures.add_argument("--like", nargs="+", default=list(PRESETS), metavar="PAPER", help="only these presets")
    figures.add_argument("--sample", type=int, default=200, metavar="N", help="documents to average over (200)")


def run(arguments: argparse.Namespace) -> int:
    if getattr(arguments, "sample", 1) < 1:
        raise WorkloadError("parameter-out-of-range", "The sample has no documents", hint="--sample 1 or more")
    {"documents": _documents, "subscriptions": _subscriptions, "figures": _figures}[arguments.kind](arguments)
    return 0


def _add_options(parser: argparse.ArgumentParser, defaults: Any, helps: dict[str, str]) -> None:
    parser.add_argument("--like", metavar="PAPER", help=f"the parameters of a paper: {', '.join(sorted(PRESETS))}")
    for parameter in fields(defaults):
        option = f"--{parameter.name.replace('_', '-')}"
        default = getattr(defaults, parameter.name)
        if parameter.type == "bool":
            parser.add_argument(
                option, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=helps[parameter.name]
            )
            continue
        kind = _TYPES[str(parameter.type)]
        told = helps[parameter.name] + (f" ({default})" if default is not None else "")
        metavar = {int: "N", float: "X", str: "NAME"}[kind]
        parser.add_argument(option, type=kind, default=argparse.SUPPRESS, metavar=metavar, help=told)


def _given(arguments: argparse.Namespace, preset: Any) -> Any:
    """The preset's parameters, with the options that were given in place of theirs."""
    names = [parameter.name for parameter in fields(preset)]
    return replace(preset, **{name: getattr(arguments, name) for name in names if hasattr(arguments, name)})


def _progress(items: Iterable[Item], total: int, unit: str) -> Iterator[Item]:
    return iter(tqdm(items, total=total, unit=f" {unit}", disable=not sys.stderr.isatty(), file=sys.stderr))


def _documents(arguments: argparse.Namespace) -> None:
    preset = find_preset(arguments.like).documents if arguments.like else DocumentParameters()
    parameters = _given(arguments, preset)
    documents = DocumentGenerator(parameters)
    write_documents(
        _progress(documents, parameters.number, "documents"),
        arguments.output,
        parameters.number,
        force=arguments.force,
    )


def _subscriptions(arguments: argparse.Namespace) -> None:
    preset = find_preset(arguments.like).subscriptions if arguments.like else SubscriptionParameters()
    parameters = _given(arguments, preset)
    selective = parameters.selectivity is not None
    generator = SubscriptionGenerator(
        parameters,
        sample=_sample(arguments, parameters) if selective else (),
        matcher=_Counting(parameters.ordered) if selective else None,
    )
    texts = _progress(generator, parameters.number, "subscriptions")
    write_subscriptions(texts, arguments.output, parameters.number, ordered=parameters.ordered)


def _sample(arguments: argparse.Namespace, parameters: SubscriptionParameters) -> list[bytes]:
    """The documents that a selectivity is measured with."""
    if arguments.sample_from:
        return list(_documents_of(arguments.sample_from))
    preset = find_preset(arguments.like).documents if arguments.like else DocumentParameters()
    shared = {name: getattr(parameters, name) for name in _SHARED}
    return list(islice(DocumentGenerator(replace(preset, number=arguments.sample, **shared)), arguments.sample))


def _documents_of(sources: Sequence[str]) -> Iterator[bytes]:
    """The documents of files, folders, archives and tables."""
    from xsift import Limits
    from xsift.errors import DocumentError
    from xsift.sources.documents import read_documents

    for found in read_documents(sources):
        if isinstance(found, DocumentError):
            raise found
        yield bytes(found.loaded(Limits().bytes).source)


class _Counting:
    """Counts matches with xsift itself."""

    def __init__(self, ordered: bool) -> None:
        self.ordered = ordered

    def __call__(self, texts: Sequence[str], documents: Sequence[bytes]) -> list[int]:
        from xsift import Subscriptions

        subscriptions = Subscriptions()
        for number, text in enumerate(texts):
            subscriptions.add(str(number), text, ordered=self.ordered)
        matcher = subscriptions.matcher()
        counts: Counter[str] = Counter()
        for document in documents:
            counts.update(matcher.match(document))
        return [counts[str(number)] for number in range(len(texts))]


def _figures(arguments: argparse.Namespace) -> None:
    presets = list(dict.fromkeys(find_preset(name).name for name in arguments.like))
    figures = sum(len(find_preset(name).figures) for name in presets)
    rows = (row for name in presets for row in compare(find_preset(name), sample=arguments.sample))
    print(table(_progress(rows, figures, "figures")))
