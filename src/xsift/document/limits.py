"""Limits: what a document may cost, so that one hostile document cannot take a process down.

Every limit has its own error code, and the error says where in the document it was passed. The defaults are far
above what honest documents need; set one higher for documents that are known to need it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Limits"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on one document.

    depth               open elements at a time (code "too-deep"); matching keeps a few bytes for each
    bytes               input bytes (code "too-large"); reading takes constant memory, so this limits time
    attributes          attributes of one element, or that a DTD declares for one (code "too-many-attributes")
    text_bytes          text held at a time for conditions on text (code "text-too-long"); without such conditions
                        text is not held at all
    name_bytes          an element's name with its namespace, or a namespace (code "name-too-long"); a namespace is
                        written once and copied for each element in it
    token_bytes         one tag, comment, processing instruction or declaration (code "token-too-long"); it is held
                        in memory until it is complete. The size is found in steps: a token of half this
                        size is always accepted, one of four times this size never.
    entities            entity declarations (code "too-many-entities")
    entity_elements     elements that come from entities (code "entity-amplification")
    amplification       how many times its own size a document may grow by expanding entities (code
                        "entity-amplification"), or by conditions that look at the same text again and again, as
                        those on the string-values of nested elements do (code "text-amplification"), or by start
                        tags of elements for which a DTD declares many attributes (code "attribute-amplification")
    amplification_bytes growth up to this size is allowed in any case
    entity_depth        entities that refer to entities that refer to … (code "entity-depth")
    conditions          what conditions that hold for many elements may cost (`!=`, `<`, `contains()`, `not()`): one
                        for each that holds (code "too-many-conditions"). Each element adds 64. An error of the
                        subscriptions that have such a condition and are not decided by then; all others go on.
    steps               what the evaluation of one subscription on one document may cost (code "too-many-steps"): a
                        step is a node that is looked at, or 16 bytes of text. The document's nodes add 50 each. It
                        is an error of the subscription, not of the document.
    result_bytes        what `select`, `tuples` or `explain` may give for one document, all subscriptions together
                        (code "result-too-large"): 256 for a node and the bytes of its path, 64 for a tuple and 40
                        for each of its numbers; for fragments their own length, counted apart. An error of the
                        subscriptions that find no room any more.
    """

    depth: int = 1000
    bytes: int = 1 << 30
    attributes: int = 10_000
    text_bytes: int = 64 << 20
    name_bytes: int = 1000
    token_bytes: int = 16 << 20
    entities: int = 5000
    entity_elements: int = 100_000
    amplification: float = 100.0
    amplification_bytes: int = 8 << 20
    entity_depth: int = 20
    conditions: int = 8_000_000
    steps: int = 1_000_000
    result_bytes: int = 128 << 20

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            kinds = (int, float) if field.name == "amplification" else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds):
                raise TypeError(f"limit {field.name} must be a number, not {value!r}")
            if not 1 <= value < 1 << 62:
                raise ValueError(f"limit {field.name} must be at least 1 and less than 2**62, not {value!r}")
