"""What is sent and answered, as pydantic models; the OpenAPI description is made from them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator
from pydantic_core import from_json, to_json

__all__ = [
    "Acknowledgement",
    "Collection",
    "Deliveries",
    "ExplanationOut",
    "ExpressionIn",
    "ImportLine",
    "ImportReport",
    "Key",
    "KeyIn",
    "MatchAnswer",
    "Preview",
    "PreviewIn",
    "Proposals",
    "ProposeIn",
    "PublishedDocument",
    "Samples",
    "SelectAnswer",
    "Session",
    "SubscriberIn",
    "SubscriberOut",
    "SubscriptionIn",
    "SubscriptionOut",
    "Tried",
    "TryIn",
    "Validation",
]


def _fits_into_a_path(name: str) -> str:
    if "/" in name or not name.isprintable() or name in (".", ".."):
        raise ValueError("an id has 1 to 200 printable characters, and no /; and it is not . or ..")
    return name


def _has_no_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("it has a NUL character")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_fits_into_a_path)]
"""Ids of subscriptions, subscribers and owners."""
Text = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_has_no_nul)]
LARGEST_METADATA = 16 << 10
Deliver = Literal["ids", "document", "fragments"]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SubscriptionIn(_In):
    """A subscription: what it catches, what is delivered, and to whom."""

    xpath: str = Field(min_length=1, max_length=65_536, description="An XPath 1.0 expression.")
    ordered: bool = Field(
        default=False, description="Whether the branches of the expression must be found in their order."
    )
    namespaces: dict[Text, Text] = Field(
        default_factory=dict, max_length=100, description="Prefixes of the expression."
    )
    subscriber: Name | None = Field(
        default=None, description="Who is told; default: the owner. It is made if it is not there."
    )
    deliver: Deliver = Field(
        default="ids",
        description="ids: that it matched; document: the document too; fragments: the nodes that it selects.",
    )
    labels: dict[Text, Text] = Field(default_factory=dict, max_length=50, description="To find it by.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Comes back with every match; 16 KB of JSON.")

    @field_validator("metadata")
    @classmethod
    def _is_small(cls, metadata: dict[str, Any]) -> dict[str, Any]:
        if len(to_json(metadata)) > LARGEST_METADATA:
            raise ValueError(f"metadata has more than {LARGEST_METADATA:,} bytes as JSON")
        if metadata != from_json(to_json(metadata, inf_nan_mode="null")):  # then nobody could read what has it
            raise ValueError("metadata has a number that JSON cannot say: NaN, Infinity")
        return metadata


class ImportLine(SubscriptionIn):
    """A line of an import."""

    id: Name
    owner: Name | None = Field(default=None, description="Whose it is; only an admin's import may name others.")


class SubscriptionOut(BaseModel):
    id: str
    owner: str
    xpath: str
    ordered: bool
    namespaces: dict[str, str]
    subscriber: str
    deliver: Deliver
    labels: dict[str, str]
    metadata: dict[str, Any]
    version: int = Field(description="The version of the set from which on it is as it is.")
    changed: float = Field(description="When, in seconds since 1970.")
    changed_by: str
    removed: float | None = Field(default=None, description="When it was removed or replaced; in histories only.")
    removed_by: str | None = None
    matches: int | None = Field(
        default=None, description="Documents that it matched in the last minutes, on this server."
    )
    failures: int | None = Field(default=None, description="Documents on which it could not be decided, likewise.")
    last_failure: dict[str, Any] | None = Field(default=None, description="The last of them: document, at, message.")
    error: dict[str, Any] | None = Field(default=None, description="Why it is stored and cannot be used.")


class Collection(BaseModel):
    """A page. `next` goes into the query as `after`; it is null on the last page."""

    items: list[Any]
    next: str | None = None
    total: int | None = Field(default=None, description="Of all pages, where it was asked for.")


class ImportReport(BaseModel):
    added: int
    replaced: int
    unchanged: int
    refused: int
    version: int
    errors: list[dict[str, Any]] = Field(
        description="The first of those that were refused: line, id, code, detail, column, hint."
    )


class ExpressionIn(_In):
    xpath: str = Field(max_length=65_536)
    ordered: bool = False
    namespaces: dict[Text, Text] = Field(default_factory=dict, max_length=100)


class Validation(BaseModel):
    valid: bool
    error: dict[str, Any] | None = None
    indexed: list[str] = Field(default_factory=list, description="Patterns, of which one must match.")
    exact: bool = Field(default=True, description="Whether the index decides alone.")
    evaluated: str = Field(default="", description="What is evaluated on the documents that pass the index.")
    reason: str = ""
    always: bool = False
    never: bool = False


class TryIn(ExpressionIn):
    xml: str = Field(default="", description="The document, as text: whatever encoding it declares.")


class Tried(BaseModel):
    """Places in the document are counted in units of UTF-16, as browsers do."""

    validation: Validation
    document_error: dict[str, Any] | None = Field(
        default=None, description="What is wrong with the document: code, detail, line, column, and its place."
    )
    failure: dict[str, Any] | None = Field(default=None, description="Why it could not be decided here.")
    matched: bool | None = None
    patterns: list[dict[str, Any]] | None = Field(
        default=None, description="Each with its steps: step, depth, found, satisfied, hint, and where else it is."
    )
    evaluated: bool | None = Field(
        default=None, description="What the evaluation gave; null if the index decided alone."
    )
    selects: int | None = Field(default=None, description="How many nodes.")
    nodes: list[tuple[int, int, str]] | None = Field(
        default=None, description="Start, end and path of the first 5,000: of the element, or of the one that has it."
    )
    namespaces: list[dict[str, Any]] | None = Field(
        default=None, description="If a prefix or a name is missing, those of the document: uri, prefix, elements."
    )


class ProposeIn(_In):
    xml: str
    element: int = Field(ge=1, description="Its number, counted from 1 in document order.")
    attribute: str | None = Field(default=None, max_length=1000, description="Of that element, as it is written.")
    namespaces: dict[Text, Text] = Field(default_factory=dict, max_length=100)


class Proposals(BaseModel):
    items: list[dict[str, Any]] = Field(description="xpath, says, selects; the most general first.")
    namespaces: dict[str, str] = Field(description="All prefixes that they need.")


class PreviewIn(ExpressionIn):
    documents: int = Field(default=1000, ge=1, le=10_000, description="How many of the latest documents are tried.")


class Preview(BaseModel):
    documents: int
    matched: int
    ids: list[str] = Field(description="The documents that it matched, the latest first, at most 100.")
    caught: list[dict[str, Any]] = Field(description="The same: id, label, received, size.")
    broken: int
    warning: str = ""


class SubscriberIn(_In):
    """Where deliveries go: they wait to be asked for (pull), are sent to a URL (webhook), or to a topic (kafka)."""

    kind: Literal["pull", "webhook", "kafka"] = "pull"
    url: str | None = Field(default=None, max_length=2000)
    secret: str | None = Field(default=None, max_length=200, description="whsec_…; one is made if none is given.")
    topic: str | None = Field(default=None, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")
    backlog: int | None = Field(
        default=None, ge=1, description="The most deliveries that wait; then the oldest are dropped."
    )
    state: Literal["active", "paused"] = "active"

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> SubscriberIn:
        if (self.kind == "webhook") != (self.url is not None):
            raise ValueError("a webhook has a url, and nothing else has")
        if (self.kind == "kafka") != (self.topic is not None):
            raise ValueError("kafka has a topic, and nothing else has")
        if self.secret is not None and self.kind != "webhook":
            raise ValueError("only a webhook has a secret")
        return self


class SubscriberOut(BaseModel):
    id: str
    owner: str
    kind: str
    url: str | None = None
    topic: str | None = None
    secret: str | None = Field(default=None, description="Of a new webhook, this once.")
    backlog: int
    state: str
    reason: str = Field(description="Why it ended, or what went wrong last.")
    created: float
    last: str = Field(description="The id of the last delivery.")
    acknowledged: str
    waiting: int
    dropped: int
    attempts: int
    retry_at: float | None = None


class Acknowledgement(_In):
    id: str = Field(max_length=60, description="This delivery and all before it were received.")


class Deliveries(BaseModel):
    deliveries: list[dict[str, Any]]
    dropped: int = Field(default=0, description="Deliveries before these that were dropped from the backlog.")


class PublishedDocument(BaseModel):
    id: str | None = None
    label: str = ""
    matches: list[dict[str, Any]] | None = Field(
        default=None, description="With wait=matches: the caller's subscriptions that matched."
    )
    failures: list[dict[str, Any]] | None = Field(
        default=None, description="Likewise: those that could not be decided on it, if there are any."
    )
    error: dict[str, Any] | None = None


class MatchAnswer(BaseModel):
    matches: list[dict[str, Any]]
    failures: list[dict[str, Any]] | None = Field(
        default=None, description="Subscriptions that could not be decided on it, if there are any: id, code, detail."
    )


class SelectAnswer(MatchAnswer):
    matches: list[dict[str, Any]] = Field(description="Each with its nodes: path, element, start, end, xml.")


class TrialIn(_In):
    """A document with an expression, or with the id of a subscription; without either, the caller's subscriptions."""

    xml: str
    xpath: str | None = Field(default=None, max_length=65_536)
    subscription: Name | None = None
    ordered: bool = False
    namespaces: dict[Text, Text] = Field(default_factory=dict, max_length=100)


class ExplanationOut(BaseModel):
    id: str
    xpath: str
    matched: bool
    patterns: list[dict[str, Any]] = Field(description="Each with its steps: step, depth, found, satisfied, hint.")
    evaluated: bool | None = Field(
        default=None, description="What the evaluation gave; null if the index decided alone."
    )
    residual: str = ""
    nodes: list[dict[str, Any]]
    text: str


class KeyIn(_In):
    owner: Name
    roles: list[Literal["publish", "subscribe", "admin"]] = Field(min_length=1)
    name: Text = ""


class Key(BaseModel):
    id: str
    owner: str
    roles: list[str]
    name: str
    created: float
    revoked: float | None = None
    key: str | None = Field(default=None, description="The key itself, when it is made, and never again.")


class Session(BaseModel):
    owner: str
    roles: list[str]


class Samples(BaseModel):
    now: float
    every: float = Field(description="Seconds between two samples.")
    samples: dict[str, list[float | None]] = Field(description="A list for each name; `at` is when.")
