"""Table: a TOML table that is read key by key, so that whatever is wrong with it is said with its place.

`tomllib` gives dictionaries. Taking values straight out of them turns a misspelt key into a silent default, and a
wrong type into a traceback somewhere else. A `Table` knows where in the file it is, checks each value as it is taken,
and refuses what nobody took.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from xsift.experiments.errors import ExperimentError

__all__ = ["Table", "nearest"]

Kind = TypeVar("Kind")
_REQUIRED: Any = object()


def nearest(word: str, words: Iterable[str]) -> str:
    """A hint for a misspelt word: what was probably meant, and all there is."""
    known = sorted(set(words))
    close = difflib.get_close_matches(word, known, n=1)
    listed = "one of: " + ", ".join(known) if known else "there is none"
    return f"did you mean {close[0]!r}? {listed}" if close else listed


class Table:
    """One table of a definition, and its place in the file."""

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self._values = dict(values)
        self._known: list[str] = []
        self.place = place

    def error(self, code: str, message: str, hint: str = "") -> ExperimentError:
        """An error at this table's place, for the caller to raise."""
        return ExperimentError(code, message, place=self.place, hint=hint)

    def has(self, key: str) -> bool:
        """Whether the file gives this key."""
        return key in self._values

    def take(self, key: str, kind: type[Kind], default: Any = _REQUIRED) -> Kind:
        """The value of a key, checked to be of a kind. A float may be written as a whole number."""
        self._known.append(key)
        if key not in self._values:
            if default is _REQUIRED:
                raise self.error("missing-key", f"{key!r} is missing")
            return default  # type: ignore[no-any-return]
        value = self._values.pop(key)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.error("wrong-type", f"{key!r} is {value!r}, which is no {_WORDS.get(kind, kind.__name__)}")
        return value

    def choice(self, key: str, choices: Iterable[str], default: str) -> str:
        """A string that is one of some."""
        value = self.take(key, str, default)
        if value not in choices:
            raise self.error("bad-value", f"{key!r} is {value!r}", nearest(value, choices))
        return value

    def at_least(self, least: float, key: str, kind: type[Kind], default: Any = _REQUIRED) -> Kind:
        """A number that is not below `least`."""
        value = self.take(key, kind, default)
        if value is not None and value < least:  # type: ignore[operator]
            raise self.error("bad-value", f"{key!r} is {value!r}", f"at least {least:g}")
        return value

    def list_of(self, key: str, kind: type[Kind], default: Any = _REQUIRED) -> list[Kind]:
        """A list whose members are all of a kind."""
        members = self.take(key, list, default)
        for member in members:
            if not isinstance(member, kind):
                raise self.error(
                    "wrong-type", f"{key!r} holds {member!r}, which is no {_WORDS.get(kind, kind.__name__)}"
                )
        return members

    def table(self, key: str) -> Table:
        """A table in this table; empty if the file does not give it."""
        return Table(self.take(key, dict, {}), f"{self.place}, {key}")

    def tables(self, key: str) -> list[Table]:
        """The members of an array of tables, in order; each is called by its label or id if it has one."""
        return [
            Table(member, f"{self.place}, {key} {member.get('label', member.get('id', number))!r}")
            for number, member in enumerate(self.list_of(key, dict, []), 1)
        ]

    def rest(self) -> dict[str, Any]:
        """All keys that were not taken yet, whatever they are."""
        rest, self._values = self._values, {}
        return rest

    def finish(self) -> None:
        """Refuses the keys that nobody took."""
        for key in self._values:
            raise self.error("unknown-key", f"there is no key {key!r} here", nearest(key, self._known))


_WORDS: dict[type, str] = {
    str: "string",
    int: "whole number",
    float: "number",
    bool: "true or false",
    dict: "table",
    list: "list",
}
