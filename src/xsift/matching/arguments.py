"""What callers give to `Subscriptions` and `Matcher`, checked at the door: an error says what was expected."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from xsift.document.document import Document
from xsift.document.limits import Limits
from xsift.errors import DocumentError, SubscriptionError

__all__ = ["arrow_array", "is_flag", "one_by_one", "text", "thread_count", "tuple_limit", "valid_limits"]


def text(name: str, value: Any) -> str:
    """An id or an expression."""
    if not isinstance(value, str):
        raise SubscriptionError("bad-value", f"{name} must be str, not {type(value).__name__}")
    return value


def is_flag(value: Any) -> bool:
    """Whether it is True or False, or says the same in another type: not text, for "false" would count as true."""
    return value is None or (isinstance(value, int | np.integer | np.bool_) and value in (0, 1))


def one_by_one(documents: Iterable[Any]) -> Iterator[Any]:
    """Several documents. A single one is a mistake: its characters would be taken for documents."""
    if isinstance(documents, str | bytes | bytearray | memoryview | os.PathLike | Document):
        raise DocumentError(
            "not-a-document",
            f"match_many takes documents, one after the other, not one {type(documents).__name__}",
            hint="match takes one; or put it into a list",
        )
    if not isinstance(documents, Iterable):
        raise DocumentError(
            "not-a-document", f"match_many takes documents, one after the other, not {type(documents).__name__}"
        )
    return iter(documents)


def arrow_array(documents: Any) -> pa.Array:
    """An Arrow array of strings or bytes; a column of a table is one in pieces."""
    if isinstance(documents, pa.ChunkedArray):
        documents = documents.combine_chunks()
    kind = documents.type if isinstance(documents, pa.Array) else None
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    if kind is None or not any(is_kind(kind) for is_kind in kinds):
        given = type(documents).__name__ if kind is None else f"one of {kind}"
        raise DocumentError(
            "not-a-document",
            f"match_array takes an Arrow array of strings or bytes, not {given}",
            hint="pyarrow.array([…]); match_many takes documents of any kind",
        )
    return documents


def thread_count(threads: Any) -> int:
    if not isinstance(threads, int) or threads < 1:
        raise ValueError(f"threads must be a whole number from 1 on, not {threads!r}")
    return threads


def tuple_limit(limit: Any) -> int | None:
    """How many tuples are wanted of a subscription; None for all."""
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise ValueError(f"limit must be a whole number from 0 on, or None, not {limit!r}")
    return limit


def valid_limits(limits: Any) -> Limits:
    """Those given, or the usual ones."""
    if limits is None:
        return Limits()
    if not isinstance(limits, Limits):
        raise TypeError(f"limits must be xsift.Limits, not {type(limits).__name__}")
    return limits
