"""A large XML file as its records, from beginning to end in constant memory: what `--record NAME` reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from xsift.sources.records import DEFAULT_RECORD_LIMIT_BYTES, Record, decoded, read_header, scan_records

__all__ = ["read_records"]


def read_records(
    chunks: Iterator[bytes], record: str, limit_bytes: int = DEFAULT_RECORD_LIMIT_BYTES
) -> Iterator[Record]:
    """The outermost elements of that name, each a document of its own. Raises DocumentError where the file cannot be
    cut any further."""
    plain = decoded(chunks)
    seen: list[bytes] = []

    def noted() -> Iterator[bytes]:
        for chunk in plain:
            seen.append(chunk)
            yield chunk

    header = read_header(noted(), record)
    head = b"".join(seen)
    yield from scan_records(chain([head[header.end :]], plain), record, header, header.end, limit_bytes)
