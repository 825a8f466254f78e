"""Which version of the subscriptions each micro-batch of a query used: a small file a batch, beside Spark's own notes
in the checkpoint.

Spark runs a batch again as long as it has not noted its end, and lets people go back by as many batches as
spark.sql.streaming.minBatchesToRetain says. So many notes are kept, and no more. After a start one note is looked
up, by its name, however many batches there were.
"""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
from collections.abc import Mapping
from typing import Any

import pyarrow.parquet

from xsift.errors import XsiftError
from xsift.tables.folders import Folder, LocalFolder, open_folder

__all__ = ["Notes", "check_output", "forget_output", "query_id", "versions_used"]

logger = logging.getLogger("xsift.spark")

FOLDER = "xsift-versions"
OUTPUT_NOTE = "xsift-output.json"
RETAINED = 100  # Spark's default for minBatchesToRetain


class Notes:
    """The notes of the query with this checkpoint."""

    def __init__(self, checkpoint: str, storage_options: Mapping[str, str] | None, retained: int = RETAINED) -> None:
        self._folder = open_folder(f"{checkpoint.rstrip('/')}/{FOLDER}", storage_options)
        self._retained = max(2, retained)
        self._cleaned = False

    def version_of(self, batch_id: int) -> int | None:
        """The version that a batch has noted, if it has."""
        content = self._folder.read(_name(batch_id))
        if content is None:
            return _old_note(self._folder, batch_id)
        return int(json.loads(content)["version"])

    def note(self, batch_id: int, version: int) -> None:
        """Notes the version that a batch uses, and removes the note that nobody needs any more."""
        self._folder.write(_name(batch_id), json.dumps({"version": version}).encode())
        if self._cleaned:
            self._folder.delete(_name(batch_id - self._retained))
            return
        self._cleaned = True
        for name in self._folder.names():
            if _batch_id(name) is not None and int(_batch_id(name) or 0) <= batch_id - self._retained:
                self._folder.delete(name)
        _remove_old_notes(self._folder)

    def all(self) -> dict[int, int]:
        """The versions of all notes that are there, by the batch's number."""
        found = {_batch_id(name): self._folder.read(name) for name in self._folder.names()}
        return {
            id: int(json.loads(content)["version"]) for id, content in found.items() if id is not None and content
        }


def versions_used(checkpoint: str, *, storage_options: Mapping[str, str] | None = None) -> dict[int, int]:
    """The version of the subscriptions that each of the last micro-batches of a query used, by the batch's number."""
    return dict(sorted(Notes(checkpoint, storage_options).all().items()))


def query_id(checkpoint: str, storage_options: Mapping[str, str] | None = None) -> str:
    """The id of the query with this checkpoint, which Spark noted when it first began. It stays the same."""
    metadata = open_folder(checkpoint, storage_options).read("metadata")
    if metadata is None:
        raise FileNotFoundError(f"{checkpoint}/metadata")
    return str(json.loads(metadata)["id"])


def check_output(checkpoint: str, storage_options: Mapping[str, str], facts: Mapping[str, Any]) -> bool:
    """Notes what a query gives when it first begins, and returns whether it did. Raises an error if it gave something
    else before: its sink would have rows of two kinds."""
    try:
        folder = open_folder(checkpoint, storage_options)
        content = folder.read(OUTPUT_NOTE)
        if content is None:
            folder.write(OUTPUT_NOTE, json.dumps(facts).encode())
            return True
    except (OSError, ValueError) as error:  # a file system that Spark knows, and Arrow does not
        logger.warning("%s cannot be reached, so a restart with another kind goes unnoticed: %s", checkpoint, error)
        return False
    for name, before in json.loads(content).items():
        if facts.get(name) != before:
            raise XsiftError(
                "other-output",
                f"the query of this checkpoint has {name}={before!r}, and was started with {facts.get(name)!r}",
                hint="start it as before, or with another checkpoint and another sink",
            )
    return False


def forget_output(checkpoint: str, storage_options: Mapping[str, str]) -> None:
    """Takes the note of check_output back: the query did not start."""
    open_folder(checkpoint, storage_options).delete(OUTPUT_NOTE)


def _name(batch_id: int) -> str:
    return f"{batch_id}.json"


def _batch_id(name: str) -> int | None:
    number = name.removesuffix(".json")
    return int(number) if number.isdigit() else None


# Notes were folders of Parquet before: read once, then removed.


def _old_note(folder: Folder, batch_id: int) -> int | None:
    inside = open_folder(f"{folder.place}/batch_id={batch_id}")
    for name in inside.names() if isinstance(inside, LocalFolder) else []:
        content = inside.read(name) if name.endswith(".parquet") else None
        if content:
            # On this thread: one of Arrow's own must not hold a Python object when the interpreter ends.
            rows = pyarrow.parquet.ParquetFile(io.BytesIO(content), pre_buffer=False).read(use_threads=False)
            return int(rows["version"][0].as_py())
    return None


def _remove_old_notes(folder: Folder) -> None:
    if isinstance(folder, LocalFolder):
        with os.scandir(folder.place) as entries:
            old = [entry.path for entry in entries if entry.name.startswith("batch_id=")]
        for path in old:
            shutil.rmtree(path, ignore_errors=True)
