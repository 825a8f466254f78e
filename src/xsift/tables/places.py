"""How a table is named: a path or a URL, and on the command line perhaps a version behind an @."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import datetime

from xsift.errors import TableError

__all__ = ["check_place", "is_table", "location", "split_version", "version_in"]

LOG = "_delta_log"
SCHEME = re.compile("^([a-z][a-z0-9+.-]+):/(?!/)")  # dbfs:/folder, which is no folder of this machine
UNUSABLE = re.compile(r"[\[\]^|\\\x00-\x1f\x7f]|%[0-9A-Fa-f]{2}")  # to delta-rs a path is part of a URL


def location(path: str | os.PathLike[str]) -> str:
    """The path or URL in the form that delta-rs takes."""
    name = os.fspath(path)
    if name.startswith("file:"):
        name = "/" + name.removeprefix("file:").lstrip("/")
    name = SCHEME.sub(r"\1:///", name)
    if "://" not in name:
        return os.path.abspath(name)
    scheme, rest = name.split("://", 1)
    return f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{rest.rstrip('/')}"


def is_local(place: str) -> bool:
    """Whether a location is a folder of this machine."""
    return "://" not in place


def check_place(place: str) -> None:
    """Raises an error if no table can be made at a location."""
    wrong = UNUSABLE.search(place) if is_local(place) else None
    if wrong:
        raise TableError("bad-path", f"a table's path cannot have {wrong[0]!r} in it: {place}", hint="choose another")


def is_table(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> bool:
    """Whether there is a subscription table, or a Delta table of another kind, at a path or URL."""
    place = location(path)
    if is_local(place):
        return os.path.isdir(os.path.join(place, LOG)) or is_old_table(place)
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        return bool(DeltaTable.is_deltatable(place, dict(storage_options or {})))
    except (DeltaError, OSError):
        return False


def is_old_table(place: str) -> bool:
    """Whether a folder holds a table in the old format, which was Parquet without Delta Lake."""
    from xsift.tables.conversion import old_files

    return is_local(place) and os.path.isdir(place) and bool(old_files(place))


def split_version(name: str) -> tuple[str, int | datetime | None]:
    """`TABLE@12` or `TABLE@2030-01-31T12:00` as a table and a version or time; a name without an @ is a table. An
    @ that belongs to the name of a folder stays there."""
    path, at, text = name.rpartition("@")
    if not at or not path or os.path.exists(name) or "/" in text:
        return name, None
    return path, version_in(text)


def version_in(text: str) -> int | datetime:
    """A version's number, or a time."""
    if text.isdecimal() and text.isascii():
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise TableError(
            "bad-version", f"{text!r} is no version", hint="a number, or a time such as 2030-01-31T12:00"
        ) from None
