"""A large XML file as its records, from beginning to end in constant memory: what `--record NAME` reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from xsift.document import Limits
from xsift.sources.records import (
    DEFAULT_RECORD_LIMIT_BYTES,
    Record,
    beginning,
    decoded,
    read_header,
    scan_records,
    wide_encoding,
)

__all__ = ["read_records"]


def read_records(
    chunks: Iterator[bytes],
    record: str,
    limit_bytes: int = DEFAULT_RECORD_LIMIT_BYTES,
    encoding: str | None = None,
    limits: Limits | None = None,
) -> Iterator[Record]:
    """The outermost elements of that name, each a document of its own. `encoding` is the file's, whatever it
    declares; `limits` are as in `scan_records`. Raises DocumentError where the file cannot be cut any further."""
    first = beginning(chunks)
    codec = wide_encoding(first, record, encoding)
    plain: Iterator[bytes] = chain([first], chunks)
    if codec is not None:
        plain, encoding = decoded(plain, codec), "utf-8"
    seen: list[bytes] = []

    def noted() -> Iterator[bytes]:
        for chunk in plain:
            seen.append(chunk)
            yield chunk

    header = read_header(noted(), record, encoding)
    head = b"".join(seen)
    rest = chain([head[header.end :]], plain)
    yield from scan_records(rest, record, header, header.end, limit_bytes, limits=limits)
