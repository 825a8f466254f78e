"""What a document must have for a subscription to match it: names, a name below a name, values of attributes.

A set that is split over machines uses it: a document need not go where none of its names are asked for. What is
said here is necessary and never sufficient. It is read from the patterns that rows have anyway, for all rows at once.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from xsift.xpath.symbols import SEPARATOR

if TYPE_CHECKING:
    from xsift.matching.subscriptions import Subscriptions
    from xsift.xpath.symbols import Symbols

__all__ = ["Required", "key_expression", "required_keys"]

NODE_BYTES = 7  # of a node in a pattern's key: symbol (4), axis and kind (1), number of children (2)
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Required:
    """Pairs of a row and a key: a document that the row matches has the key. Rows of which nothing is known have
    none."""

    keys: list[str]
    rows: Numbers
    places: Numbers
    """The places in `keys`, one for each of `rows`."""


def required_keys(subscriptions: Subscriptions, *, values: bool = True) -> Required:
    """The keys of all rows of a set. Without `values` names alone, of which there are few. A key is written `name`,
    `name/name` or `@name = 'value'`, names of a namespace as `{uri}name`: see `key_expression`."""
    rows, symbols = subscriptions._rows, subscriptions._symbols
    saved = rows.saved(rows.removed_rows())
    ends = saved["rows.alternative_ends"].view("<i8")
    patterns = saved["rows.alternative_pattern"].view("<i4")
    single = np.flatnonzero(np.diff(ends, prepend=0) == 1)  # with several patterns no one of them has to match
    names, codes = _nodes(saved["rows.patterns.blob"], saved["rows.patterns.ends"].view("<i8"), symbols, values)
    order = np.argsort(names, kind="stable")
    names, codes = names[order], codes[order]
    pattern = patterns[ends[single] - 1].astype(np.int64)
    begins, stops = np.searchsorted(names, pattern), np.searchsorted(names, pattern, side="right")
    counts = stops - begins
    before = np.concatenate([[0], np.cumsum(counts)])
    places = np.repeat(begins - before[:-1], counts) + np.arange(before[-1])
    distinct, used = np.unique(codes[places], return_inverse=True)
    return Required([_text(int(code), symbols) for code in distinct], np.repeat(single, counts), used)


def _nodes(blob: npt.NDArray[np.uint8], ends: Numbers, symbols: Symbols, values: bool) -> tuple[Numbers, Numbers]:
    """Pairs of a pattern and a code: a symbol, or two of them, parent and child, as one number."""
    begins = np.concatenate([[0], ends])[:-1]
    counts = (ends - begins - 1) // NODE_BYTES
    first = np.concatenate([[0], np.cumsum(counts)])[:-1]
    at = np.repeat(begins + 1 - NODE_BYTES * first, counts) + NODE_BYTES * np.arange(int(counts.sum()))
    symbol = np.zeros(len(at), dtype=np.int64)
    for byte in range(4):
        symbol |= blob[at + byte].astype(np.int64) << (8 * byte)
    pattern = np.repeat(np.arange(len(counts)), counts)
    keys = [symbols.key(number) for number in range(len(symbols))]
    is_name = np.array([_is_name(key) for key in keys])
    is_key = is_name | np.array([values and _is_value(key) for key in keys])
    # In pre-order a node with children is followed by the first of them.
    below = (
        (pattern[1:] == pattern[:-1])
        & is_name[symbol[1:]]
        & is_name[symbol[:-1]]
        & (blob[at[1:] + 4] & 1 == 0)
        & (blob[at[:-1] + 5] > 0)
    )
    pairs = (symbol[:-1][below] << 32) | symbol[1:][below]
    wanted = is_key[symbol]
    return np.concatenate([pattern[wanted], pattern[:-1][below]]), np.concatenate([symbol[wanted], pairs])


def _is_name(key: bytes) -> bool:
    """Whether a symbol is a name that can be told from the key's text: not if braces are in its URI."""
    return key[:1] == b"E" and b"{" not in key and b"}" not in key


def _is_value(key: bytes) -> bool:
    """Whether a symbol is an attribute without a namespace that equals a string or a usual number (condition.hpp has
    the layout). Fractions are none: libxml2 reads digits so that not every number can be written, and read again."""
    if key[:1] != b"C" or key[1:5] != b"\x00\x00\x00\x01" or key[6:7] != b"\x00" or SEPARATOR.encode() in key:
        return False
    if key[5]:
        number = float(struct.unpack_from("<d", key, 7)[0])
        return number.is_integer() and abs(number) < 1e9
    return not (b"'" in key and b'"' in key)


def _text(code: int, symbols: Symbols) -> str:
    parent, child = code >> 32, code & 0xFFFFFFFF
    return f"{symbols.text(parent)}/{symbols.text(child)}" if parent else symbols.text(child)


def key_expression(key: str, prefixes: dict[str, str]) -> str:
    """A key as an expression. Prefixes that it needs are put into `prefixes`, from prefix to URI."""
    if key.startswith("@"):
        return f"//*[{key}]"
    return "//" + "/".join(_prefixed(name, prefixes) for name in _names(key))


def _names(key: str) -> list[str]:
    """The one or two names of a key; a URI may have slashes."""
    names, rest = [], key
    while rest:
        if rest.startswith("{"):
            close = rest.index("}")
            local, _, after = rest[close + 1 :].partition("/")
            names.append(rest[: close + 1] + local)
        else:
            local, _, after = rest.partition("/")
            names.append(local)
        rest = after
    return names


def _prefixed(name: str, prefixes: dict[str, str]) -> str:
    if not name.startswith("{"):
        return name
    uri, _, local = name[1:].rpartition("}")
    known = {value: prefix for prefix, value in prefixes.items()}
    prefix = known.get(uri) or f"n{len(prefixes)}"
    prefixes[prefix] = uri
    return f"{prefix}:{local}"
