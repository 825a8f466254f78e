"""Tables in the old format, a folder with one Parquet file per version: read once, and converted.

Such a file has the columns version, position, id, xpath, ordered and writer; a row without an xpath removes its id.
Of two files with one version the one that was written first counts. The converted table has the same versions. It
is made in a folder inside the old one, and appears when its log is moved to its place, so that a crash in the middle
leaves the old table as it was. The old files are deleted afterwards.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from xsift.tables.delta import Log
from xsift.tables.rows import BOOKKEEPING, OWN, latest

__all__ = ["convert_old_table", "old_files"]

OLD_COLUMNS = {"version", "position", "id", "xpath", "ordered", "writer"}
LOCK = "_xsift.lock"
DELTA_LOG = "_delta_log"


def old_files(folder: str) -> list[Path]:
    """The files of a table in the old format; none if the folder is a Delta table, or holds something else."""
    if os.path.isdir(os.path.join(folder, DELTA_LOG)):
        return []
    files = sorted(path for path in Path(folder).glob("*.parquet") if not path.name.startswith(("_", ".")))
    # Files of the new format may be among them, from a conversion that was killed.
    return [path for path in files if set(pyarrow.parquet.read_schema(path).names) >= OLD_COLUMNS]


def convert_old_table(folder: str) -> None:
    """Converts the table in a folder from the old format to Delta Lake, with the same versions."""
    files = old_files(folder)
    rows, last = _old_changes(files)
    made = Path(tempfile.mkdtemp(dir=folder, prefix="_converting-"))
    Log.create(str(made), {}, {}, offset=last - 1)
    Log(str(made), {}).import_changes(rows)
    for path in made.glob("*.parquet"):
        path.rename(Path(folder) / path.name)
    try:
        (made / DELTA_LOG).rename(Path(folder) / DELTA_LOG)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # else another process has converted it
            raise
    shutil.rmtree(made, ignore_errors=True)
    for path in [*files, *(Path(folder) / name for name in (LOCK, "_SUCCESS"))]:
        path.unlink(missing_ok=True)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _old_changes(files: list[Path]) -> tuple[pa.Table, int]:
    """All changes of a table in the old format, as rows of the new one, and the last version."""
    first: dict[int, tuple[float, str, pa.Table]] = {}
    for path in files:
        table = pyarrow.parquet.read_table(path)
        if not table.num_rows:
            continue
        version, writer = int(table["version"][0].as_py()), str(table["writer"][0].as_py())
        entry = (path.stat().st_mtime, writer, table)
        if version not in first or entry[:2] < first[version][:2]:
            first[version] = entry
    parts = [_converted(table, written) for written, _, table in first.values()]
    empty = pa.schema([*BOOKKEEPING, *OWN]).empty_table()
    rows = pa.concat_tables([empty, *parts])
    return rows.sort_by([("_version", "ascending"), ("_position", "ascending")]), max(first, default=0)


def _converted(table: pa.Table, written: float) -> pa.Table:
    ordered = table.sort_by("position")
    kept = latest(ordered)  # a version that had an id twice: its last row counted
    time = pa.scalar(datetime.fromtimestamp(written, UTC), BOOKKEEPING.field("_time").type)
    columns = {
        "_version": kept["version"].cast(pa.int64()),
        "_position": kept["position"].cast(pa.int64()),
        "_time": pa.repeat(time, kept.num_rows),
        "_user": pa.nulls(kept.num_rows, pa.string()),
        "_removed": kept["xpath"].is_null(),
        "id": kept["id"].cast(pa.string()),
        "xpath": kept["xpath"].cast(pa.string()),
        "ordered": kept["ordered"].cast(pa.bool_()),
        "namespaces": pa.nulls(kept.num_rows, OWN.field("namespaces").type),
    }
    return pa.table(columns).cast(pa.schema([*BOOKKEEPING, *OWN]))
