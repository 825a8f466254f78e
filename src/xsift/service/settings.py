"""What a server can be told: on the command line, or in a TOML file (`xsift serve --config FILE`).

Every limit has a default. docs/serve.md lists them all.
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from xsift.errors import XsiftError

__all__ = ["Settings", "read_settings"]


ALL_SETTINGS = "docs/serve.md lists all settings"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Matching(_Section):
    """[matching]"""

    engine: str = "auto"
    residuals: Literal["verify", "refuse"] = "verify"
    threads: int = Field(default_factory=lambda: max(1, min(8, (os.cpu_count() or 2) - 1)), ge=1, le=64)
    waiting_documents: int = Field(default=10_000, ge=1)
    """Documents that may wait to be matched and stored; then publishers are told to come back (503)."""
    waiting_bytes: int = Field(default=256 << 20, ge=1)
    slow_milliseconds: float = Field(default=100, gt=0)
    """A document that takes longer is named in the log, with the subscriptions that took it."""
    document_depth: int = Field(default=1000, ge=1)


class OwnerLimits(_Section):
    """[limits]: what one owner may ask for."""

    body_bytes: int = Field(default=16 << 20, ge=1)
    """One document, or one request that is not streamed."""
    fragment_bytes: int = Field(default=1 << 20, ge=0)
    """Of all fragments in one delivery; those beyond it are left out, and it is said how many."""
    upload_bytes: int = Field(default=1 << 30, ge=1)
    """A streamed request: many documents or subscriptions."""
    documents_per_second: float = Field(default=0, ge=0)
    """0 for no limit."""
    bytes_per_second: float = Field(default=0, ge=0)
    subscriptions: int = Field(default=2_000_000, ge=0)
    subscribers: int = Field(default=10_000, ge=0)
    requests_at_once: int = Field(default=64, ge=1)
    """Requests of one owner that are worked on at a time; streams of events are not counted."""
    streams: int = Field(default=2000, ge=1)
    """Open streams of events."""


class Keeping(_Section):
    """[keep]: what is kept, and how long."""

    documents: int = Field(default=10_000, ge=0)
    """The latest documents are kept, whether somebody still needs them or not."""
    document_bytes: int = Field(default=1 << 30, ge=0)
    """And no more bytes of them than this."""
    deliveries_hours: float = Field(default=72, gt=0)
    """A delivery that waits longer is dropped."""
    backlog: int = Field(default=10_000, ge=1)
    """The most deliveries that wait for a subscriber that does not say otherwise."""
    largest_backlog: int = Field(default=1_000_000, ge=1)
    dead_letters_hours: float = Field(default=720, gt=0)
    """How long a delivery that was given up can be looked at and replayed, from when its document came."""
    receipts_hours: float = Field(default=24, gt=0)
    """How long an idempotency key is remembered."""


class Webhooks(_Section):
    """[webhooks]"""

    timeout_seconds: float = Field(default=15, gt=0)
    attempts: int = Field(default=10, ge=1)
    """Then a delivery is a dead letter."""
    first_retry_seconds: float = Field(default=1, gt=0)
    longest_retry_seconds: float = Field(default=3600, gt=0)
    breaker_failures: int = Field(default=5, ge=1)
    """So many failures in a row, of whatever delivery, and a host is left alone for a while."""
    breaker_seconds: float = Field(default=30, gt=0)
    at_once: int = Field(default=64, ge=1)
    """Requests that are under way at a time, to all subscribers together."""
    allow_networks: tuple[str, ...] = ()
    """Networks that are not public and may be called all the same: "127.0.0.0/8", "10.1.0.0/16"."""

    @field_validator("allow_networks")
    @classmethod
    def _are_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        for network in networks:
            ipaddress.ip_network(network)
        return networks


class Kafka(_Section):
    """[kafka]: topics that deliveries go to, and that documents come from."""

    servers: str = ""
    options: dict[str, Any] = Field(default_factory=dict)
    """Any setting of librdkafka: security, compression …"""
    allow_topics: tuple[str, ...] = ()
    """Topics that deliveries of owners may go to who are no admins: "news", "of-alice-*"."""
    topics: tuple[str, ...] = ()
    """Documents are read from these."""
    group: str = "xsift"
    owner: str = "default"
    """In whose name they are published."""

    @model_validator(mode="after")
    def _has_servers(self) -> Kafka:
        if self.topics and not self.servers:
            raise ValueError("topics are read from kafka.servers, and there are none")
        return self


class FolderSettings(_Section):
    """[folder]: documents that are put into a folder are published, then moved to `done` or `broken` inside it."""

    path: str = ""
    owner: str = "default"
    poll_seconds: float = Field(default=0.5, gt=0)


class TableSettings(_Section):
    """[table]: a Delta table of subscriptions that the server follows, or writes its own set to."""

    path: str = ""
    direction: Literal["follow", "write"] = "follow"
    owner: str = "default"
    poll_seconds: float = Field(default=1.0, gt=0)


class Tls(_Section):
    """[tls]"""

    certificate: str = ""
    key: str = ""

    @model_validator(mode="after")
    def _has_a_certificate(self) -> Tls:
        if self.key and not self.certificate:
            raise ValueError("a key is of no use without its certificate")
        return self


class Settings(_Section):
    """All of it."""

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    data: str = "xsift-data"
    database: str = ""
    """A URL; without one it is SQLite in the data folder."""
    insecure: bool = False
    """Serve others than this machine although there is no API key."""
    open_metrics: bool = False
    """/metrics without a key."""
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    shutdown_seconds: float = Field(default=20, gt=0)
    hosts: tuple[str, ...] = ()
    """Names under which the server may be called, beside localhost; needed only while there is no key."""
    matching: Matching = Matching()
    limits: OwnerLimits = OwnerLimits()
    keep: Keeping = Keeping()
    webhooks: Webhooks = Webhooks()
    kafka: Kafka = Kafka()
    folder: FolderSettings = FolderSettings()
    table: TableSettings = TableSettings()
    tls: Tls = Tls()

    @property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{Path(self.data).absolute() / 'xsift.db'}"


def read_settings(path: str | None, **overrides: Any) -> Settings:
    """The settings of a TOML file, with what the command line says put over them. Raises XsiftError."""
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise XsiftError("unreadable-file", f"{path} cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise XsiftError("bad-config", f"{path} is not TOML: {error}") from error
    for name, value in overrides.items():
        if value is None:
            continue
        section, _, setting = name.partition("__")
        if setting:
            into = values.setdefault(section, {})
            if not isinstance(into, dict):
                raise XsiftError("bad-config", f"{path}: {section} is a section: [{section}]", hint=ALL_SETTINGS)
            into[setting] = value
        else:
            values[section] = value
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        why = "there is no such setting" if first["type"] == "extra_forbidden" else first["msg"]
        raise XsiftError(
            "bad-config",
            f"{path or 'the command line'}: {where + ': ' if where else ''}{why}",
            hint=ALL_SETTINGS,
        ) from error
