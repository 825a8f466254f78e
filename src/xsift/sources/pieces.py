"""A stream cut at a separator, in bounded memory: lines of JSON, documents with NULs between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["TOO_LONG", "WAIT", "split_stream"]

TOO_LONG: Final = "too long"
"""Stands for a piece that is longer than allowed; it was passed over up to its end."""
WAIT: Final = "wait"
"""Says that the next piece has to be waited for: deliver what there is."""


def split_stream(chunks: Iterable[bytes], separator: bytes, most_bytes: int) -> Iterator[bytes | str]:
    """The pieces between separators, one byte each; the last one only if it is not empty. After each chunk WAIT."""
    held: list[bytes] = []
    size = 0
    skipping = False
    for chunk in chunks:
        *whole, rest = chunk.split(separator)
        for piece in whole:
            if skipping or size + len(piece) > most_bytes:
                yield TOO_LONG
            else:
                yield b"".join([*held, piece]) if held else piece
            held, size, skipping = [], 0, False
        if not skipping and size + len(rest) > most_bytes:
            held, skipping = [], True
        elif not skipping and rest:
            held.append(rest)
            size += len(rest)
        yield WAIT
    if skipping:
        yield TOO_LONG
    elif held:
        yield b"".join(held)
