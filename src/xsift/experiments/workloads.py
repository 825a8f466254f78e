"""Workloads: the documents and subscriptions of a point, from parameters to what engines take.

Two stages, because ordered and unordered series share the first: `texts` makes XML and XPath texts from a
definition's workload table, through the generators; `prepare` compiles the subscriptions into distinct patterns and
reads the documents into events, once, so that neither is part of any measured time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import cycle, islice, zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from xsift.document import ConditionIndex, DocumentIndex, Reader, RecordedEvents
from xsift.engines import Engine, create
from xsift.experiments.errors import ExperimentError
from xsift.experiments.programs import dtd_path
from xsift.experiments.second import overlaid
from xsift.experiments.tables import nearest
from xsift.workload.documents import DocumentGenerator, DocumentParameters
from xsift.workload.dtd import read_dtd
from xsift.workload.presets import find_preset
from xsift.workload.subscriptions import SubscriptionGenerator, SubscriptionParameters
from xsift.xpath import Compiler, Pattern, Symbols
from xsift.xpath.pattern import from_key

__all__ = ["Indices", "Prepared", "Texts", "check", "is_ordered", "prepare", "texts", "with_documents"]

FIXED = {"documents": {"texts", "matching_share"}, "subscriptions": {"selectivity"}}  # hang on all documents at once
MOST_DRAWS = 200  # documents drawn for each one wanted, when a share of them is to match

Indices = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Texts:
    """The documents' XML and the subscriptions' XPath; `further` ones are added once the index is built."""

    documents: Sequence[bytes]
    subscriptions: Sequence[str]
    further: Sequence[str] = ()

    def without(self, dropped: Collection[int]) -> Texts:
        """The same without some subscriptions, given by their numbers."""
        unwanted = set(dropped)
        return replace(self, subscriptions=[s for i, s in enumerate(self.subscriptions) if i not in unwanted])


@dataclass(frozen=True)
class Prepared:
    """What engines take: the distinct patterns, the documents' events, and which subscription has which pattern."""

    texts: Texts
    ordered: bool
    patterns: Sequence[Pattern]
    examples: Sequence[str]  # of each pattern: the text of a subscription that has it
    pattern_of: Indices  # of each subscription: its pattern
    further: Sequence[Pattern]  # distinct, and none of them among `patterns`
    symbols: Symbols  # of the patterns and of the documents' events
    documents: Sequence[RecordedEvents]
    read: Callable[[bytes], RecordedEvents]
    _first: Indices  # the subscriptions of pattern p are _subscribers[_first[p]:_first[p + 1]]
    _subscribers: Indices

    def delivered(self, matched: Indices) -> Indices:
        """The subscriptions that have one of the matched patterns."""
        starts = self._first[matched]
        lengths = self._first[matched + 1] - starts
        ends = np.cumsum(lengths, dtype=np.int32)
        total = int(ends[-1]) if len(ends) else 0
        delivered: Indices = self._subscribers[
            np.arange(total, dtype=np.int32) + np.repeat(starts - ends + lengths, lengths)
        ]
        return delivered

    def only(self, kept: Indices) -> Prepared:
        """The same with some of the subscriptions, given by their numbers in ascending order."""
        used, pattern_of = np.unique(self.pattern_of[kept], return_inverse=True)
        patterns, examples = [self.patterns[one] for one in used], [self.examples[one] for one in used]
        made = replace(self.texts, subscriptions=[self.texts.subscriptions[one] for one in kept])
        numbers = pattern_of.astype(np.int32)
        return _prepared(made, self.ordered, self.symbols, patterns, examples, numbers, self.further)


def prepare(made: Texts, ordered: bool) -> Prepared:
    """Compiles the subscriptions and reads the documents."""
    symbols = Symbols()
    compiler = Compiler(symbols)
    numbers: dict[bytes, int] = {}
    seen: dict[str, int] = {}  # equal texts are compiled once: of millions, most are duplicates
    patterns: list[Pattern] = []
    examples: list[str] = []
    pattern_of = np.empty(len(made.subscriptions), dtype=np.int32)
    for at, text in enumerate(made.subscriptions):
        if text not in seen:
            key = _key(compiler, text, ordered)
            seen[text] = numbers.setdefault(key, len(patterns))
            if seen[text] == len(patterns):
                patterns.append(from_key(key, symbols))
                examples.append(text)
        pattern_of[at] = seen[text]
    further = dict.fromkeys(_key(compiler, text, ordered) for text in made.further)
    more = [from_key(key, symbols) for key in further if key not in numbers]
    return _prepared(made, ordered, symbols, patterns, examples, pattern_of, more)


def _prepared(
    made: Texts,
    ordered: bool,
    symbols: Symbols,
    patterns: Sequence[Pattern],
    examples: Sequence[str],
    pattern_of: Indices,
    further: Sequence[Pattern],
) -> Prepared:
    """Reads the documents for these patterns, and notes who has which."""
    read = _reader(symbols, [*patterns, *further])
    documents = [read(document) for document in made.documents]
    subscribers = np.argsort(pattern_of, kind="stable").astype(np.int32)
    first = np.concatenate(([0], np.cumsum(np.bincount(pattern_of, minlength=len(patterns))))).astype(np.int32)
    return Prepared(
        made, ordered, patterns, examples, pattern_of, further, symbols, documents, read, first, subscribers
    )


def _key(compiler: Compiler, text: str, ordered: bool) -> bytes:
    """The key of a subscription's one pattern. What is more than one has no place in a comparison of engines."""
    compiled = compiler.compile(text, ordered=ordered)
    if not compiled.exact or len(set(compiled.keys)) != 1:
        hint = compiled.reason or "no `or`"
        raise ExperimentError("not-a-pattern", f"the subscription {text!r} is not one pattern", hint=hint)
    key: bytes = compiled.keys[0]
    return key


def _reader(symbols: Symbols, patterns: Iterable[Pattern]) -> Callable[[bytes], RecordedEvents]:
    """Reads a document into the events that the patterns ask for."""
    conditions = ConditionIndex(symbols)
    for pattern in patterns:
        steps = pattern.steps
        for parent, _, symbol, is_condition in steps:
            if is_condition:
                conditions.add(steps[parent][2], symbol)
    read: Callable[[bytes], RecordedEvents] = Reader(DocumentIndex(symbols, [conditions])).read
    return read


def texts(workload: Mapping[str, Any], additions: int) -> Texts:
    """The texts that a resolved workload table describes, with so many further subscriptions to add later."""
    if "mix" in workload:
        parts = [texts(part, more) for part, more in _shares(workload, additions)]
        # In turns: some series are asked about the first documents only, which must be of all parts too.
        return Texts(
            [document for turn in zip_longest(*(part.documents for part in parts)) for document in turn if document],
            [subscription for part in parts for subscription in part.subscriptions],
            [subscription for part in parts for subscription in part.further],
        )
    documents = _documents(workload)
    subscriptions = _subscriptions(workload, documents, additions)
    number = len(subscriptions) - additions
    made = Texts(documents, subscriptions[:number], subscriptions[number:])
    share = workload.get("documents", {}).get("matching_share")
    return made if share is None else replace(made, documents=_matching(workload, made, share))


def check(workload: Mapping[str, Any], new_documents: bool = False) -> None:
    """Raises if the workload names a preset, a parameter or a DTD that there is not, or a value out of range.

    Where each round has documents of its own, it also raises if more of them would be another workload.
    """
    for part, _ in _shares(workload, 0) if "mix" in workload else [(workload, 0)]:
        for kind in ("documents", "subscriptions"):
            table = part.get(kind, {})
            if new_documents and (fixed := FIXED[kind] & table.keys()):
                raise ExperimentError("bad-value", f"'new_documents' does not go with '{kind}.{min(fixed)}'")
            if "texts" in table:
                _repeated(table)
            else:
                read_dtd(_parameters(kind, part).dtd)


def with_documents(workload: Mapping[str, Any], times: int) -> dict[str, Any]:
    """The workload with so many times its documents."""
    more = dict(workload)
    if "number" in workload.get("documents", {}):
        more["documents"] = {**workload["documents"], "number": times * workload["documents"]["number"]}
    if "mix" in workload:
        more["mix"] = [with_documents(part, times) for part in workload["mix"]]
    return more


def is_ordered(workload: Mapping[str, Any]) -> bool:
    """Whether its subscriptions ask for ordered matching."""
    first = _shares(workload, 0)[0][0] if "mix" in workload else workload
    table = first.get("subscriptions", {})
    return bool(table.get("ordered", False) if "texts" in table else _parameters("subscriptions", first).ordered)


def _shares(workload: Mapping[str, Any], additions: int) -> list[tuple[dict[str, Any], int]]:
    """The parts of a mix, each laid over the whole, with its equal share of the numbers."""
    whole = {key: value for key, value in workload.items() if key != "mix"}
    parts = workload["mix"]
    found = []
    for at, part in enumerate(parts):
        made = overlaid(whole, part)
        for kind in ("documents", "subscriptions"):
            table = made.get(kind, {})
            if "number" in table and "number" not in part.get(kind, {}):
                made[kind] = {**table, "number": _share(table["number"], at, len(parts))}
        found.append((made, _share(additions, at, len(parts))))
    return found


def _share(number: int, at: int, parts: int) -> int:
    return number // parts + (at < number % parts)


def _documents(workload: Mapping[str, Any]) -> list[bytes]:
    table = workload.get("documents", {})
    if "texts" in table:
        return [text.encode() for text in _repeated(table)]
    return list(DocumentGenerator(_parameters("documents", workload)))


def _subscriptions(workload: Mapping[str, Any], documents: Sequence[bytes], additions: int) -> list[str]:
    table = workload.get("subscriptions", {})
    if "texts" in table:
        if additions:
            raise ExperimentError("bad-value", "'additions' needs generated subscriptions, not 'texts'")
        return _repeated(table)
    parameters = _parameters("subscriptions", workload)
    parameters = replace(parameters, number=parameters.number + additions)
    if parameters.selectivity is None:
        return list(_generated(parameters))
    return list(SubscriptionGenerator(parameters, sample=documents, matcher=_match_counts))


@lru_cache(maxsize=2)  # the series of a point differ in documents more often than in subscriptions
def _generated(parameters: SubscriptionParameters) -> tuple[str, ...]:
    return tuple(SubscriptionGenerator(parameters))


def _repeated(table: Mapping[str, Any]) -> list[str]:
    """Texts stated in the definition, over and over up to their number."""
    stated = table["texts"]
    if not isinstance(stated, list) or not stated or not all(isinstance(text, str) for text in stated):
        raise ExperimentError("bad-value", f"'texts' is {stated!r}", hint="a list of strings")
    unknown = set(table) - {"texts", "number", "ordered"}
    if unknown:
        raise ExperimentError("unknown-key", f"{min(unknown)!r} has no meaning beside 'texts'")
    return list(islice(cycle(stated), int(table.get("number", len(stated)))))


def _parameters(kind: str, workload: Mapping[str, Any]) -> Any:
    """The parameters of a generator: the preset's, with the table's over them."""
    table = {key: value for key, value in workload.get(kind, {}).items() if key != "matching_share"}
    preset: Any = DocumentParameters() if kind == "documents" else SubscriptionParameters()
    names = [field.name for field in fields(preset)]
    for name in table:
        if name not in names:
            hint = nearest(name, [*names, "texts", *(["matching_share"] if kind == "documents" else [])])
            raise ExperimentError("unknown-parameter", f"{kind} have no parameter {name!r}", hint=hint)
    if "dtd" in workload:
        table.setdefault("dtd", dtd_path(workload["dtd"]))
    if "like" in workload:
        preset = getattr(find_preset(workload["like"]), kind)
    try:
        return replace(preset, **table)
    except TypeError:
        raise ExperimentError("wrong-type", f"{kind} cannot have the parameters {table}") from None


def _engine_of(made: Texts) -> tuple[Prepared, Engine, dict[int, int]]:
    prepared = prepare(made, False)
    engine = create("yfilter")
    return prepared, engine, {engine.add(pattern): number for number, pattern in enumerate(prepared.patterns)}


def _match_counts(subscriptions: Sequence[str], documents: Sequence[bytes]) -> list[int]:
    """Of each subscription: how many of the documents it matches."""
    prepared, engine, pattern_of_key = _engine_of(Texts(documents, subscriptions))
    counts = np.zeros(len(prepared.patterns), dtype=np.int64)
    for document in prepared.documents:
        counts[[pattern_of_key[key] for key in engine.match(document).tolist()]] += 1
    return [int(count) for count in counts[prepared.pattern_of]]


def _matching(workload: Mapping[str, Any], made: Texts, share: float) -> list[bytes]:
    """Documents of which this share matches some subscription: drawn on and on until there are enough of both."""
    if not 0 <= share <= 1:
        raise ExperimentError("bad-value", f"'matching_share' is {share!r}", hint="between 0 and 1")
    prepared, engine, _ = _engine_of(Texts([], made.subscriptions))
    generator = DocumentGenerator(_parameters("documents", workload))
    wanted = {True: round(share * len(made.documents))}
    wanted[False] = len(made.documents) - wanted[True]
    found: list[bytes] = []
    for number in range(MOST_DRAWS * max(1, len(made.documents))):
        if len(found) == len(made.documents):
            return found
        document = generator.document(number)
        matches = len(engine.match(prepared.read(document))) > 0
        if wanted[matches]:
            wanted[matches] -= 1
            found.append(document)
    kind = "match" if wanted[True] else "do not match"
    raise ExperimentError(
        "matching-share-out-of-reach",
        f"too few documents {kind} a subscription for a 'matching_share' of {share:g}",
        hint="other subscriptions, fewer or more of them",
    )
