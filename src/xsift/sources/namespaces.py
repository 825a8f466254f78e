"""Namespaces as data: the prefixes that expressions use, as people write them down.

    prefix=uri prefix=uri …                  in a cell of a table, or an option
    {"prefix": "uri", …}                     the same as JSON
    a file of either, one pair per line; .json; .toml, at the top or in a table [namespaces]

A prefix with two meanings is an error, wherever the two were said.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xsift.errors import SubscriptionError
from xsift.sources.compression import reason_of

__all__ = ["combined", "namespaces_in_file", "namespaces_in_text", "namespaces_in_value"]

HINT = "write PREFIX=URI, such as n=urn:news"
FILE_LIMIT_BYTES = 16 << 20


def namespaces_in_text(text: str) -> dict[str, str]:
    """Pairs of PREFIX=URI with spaces or newlines between them, or a JSON object."""
    text = text.strip()
    if text.startswith("{"):
        try:
            return _checked(json.loads(text, object_pairs_hook=_no_prefix_twice))
        except RecursionError:
            raise SubscriptionError("bad-namespace", "the namespaces are nested too deeply") from None
        except ValueError as error:
            raise SubscriptionError("bad-namespace", f"the namespaces are no JSON: {reason_of(error)}") from None
    found: dict[str, str] = {}
    for pair in text.split():
        prefix, separator, uri = pair.partition("=")
        if not prefix or not separator or not uri:
            raise SubscriptionError("bad-namespace", f"{pair} is no namespace", hint=HINT)
        found = combined(found, {prefix: uri})
    return found


def namespaces_in_value(value: Any) -> dict[str, str]:
    """What a column `namespaces` may hold: text, an object of JSON, a map or a struct of Arrow, or nothing."""
    if value is None:
        return {}
    if isinstance(value, str):
        return namespaces_in_text(value)
    if isinstance(value, dict):
        return _checked({prefix: uri for prefix, uri in value.items() if uri is not None})
    if isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return _checked(_no_prefix_twice(value))
    raise SubscriptionError("bad-namespace", f"the namespaces are {value!r:.80}", hint=HINT)


def namespaces_in_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """The prefixes of a file: TOML or JSON by its name, else one pair per line; `#` begins a comment line."""
    name = os.fspath(path)
    try:
        if os.path.isfile(name) and os.path.getsize(name) > FILE_LIMIT_BYTES:
            raise SubscriptionError("malformed-file", f"{name} is too large to be a file of namespaces")
        text = Path(name).read_bytes().decode("utf-8-sig")
        if name.lower().endswith(".toml"):
            table = tomllib.loads(text)
            return _checked(table.get("namespaces", table))
        if not name.lower().endswith(".json"):
            text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        return namespaces_in_text(text)
    except SubscriptionError as error:
        error.place = error.place or name
        raise
    except OSError as error:
        raise SubscriptionError("unreadable-file", f"{name} cannot be read: {reason_of(error)}") from error
    except (ValueError, RecursionError) as error:
        raise SubscriptionError("malformed-file", f"{name} cannot be read: {reason_of(error)}") from error


def combined(known: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Both together. Raises SubscriptionError if a prefix means two things."""
    for prefix, uri in more.items():
        if known.get(prefix, uri) != uri:
            raise SubscriptionError(
                "namespace-conflict",
                f"the prefix {prefix!r} means {known[prefix]!r} and {uri!r}",
                hint="give one of the two another prefix",
            )
    return {**known, **more}


def _no_prefix_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for prefix, uri in pairs:
        found = combined(found, {prefix: uri})
    return found


def _checked(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(uri, str) for uri in value.values()):
        raise SubscriptionError(
            "bad-namespace", "namespaces must be texts by prefix", hint='such as {"n": "urn:news"}'
        )
    return value
