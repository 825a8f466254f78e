"""Workers that have xsift from an archive alone (spark.archives), on a cluster of one executor. Prints `ok`.

The archive has what the package is: Python files and kernels. Where a whole environment is sent, `venv-pack` makes
it.
"""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

import xsift
from xsift.spark import make_session, match_documents


def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import xsift.document

    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"place": [xsift.document.__file__]})


def main(folder: str) -> None:
    archive = os.path.join(folder, "package.tar.gz")
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(Path(xsift.__file__).parent, "xsift", filter=_wanted)
    os.environ.pop("PYTHONPATH", None)  # executors on this machine would find the package by it
    spark = make_session(
        "local-cluster[1,1,1024]",
        settings={
            "spark.executor.memory": "512m",
            "spark.archives": f"{archive}#package",
            "spark.executorEnv.PYTHONPATH": "./package",
        },
    )
    made = xsift.Subscriptions()
    made.add_many([("a", "//a"), ("b", "//b[. = 'x']")])
    documents = spark.createDataFrame([(1, "<a><b>x</b></a>"), (2, "<c/>")], "number int, xml string")
    found = {row.number: row.matches for row in match_documents(documents, subscriptions=made).collect()}
    assert found == {1: ["a", "b"], 2: []}, found
    place = documents.mapInArrow(where, "place string").collect()[0].place
    assert "/package/xsift/" in place, place
    print("ok", flush=True)
    spark.stop()


def _wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    sources = (".pyx", ".pxd", ".hpp", ".cpp", ".c", ".pyc")
    return None if entry.name.endswith(sources) or "__pycache__" in entry.name else entry


if __name__ == "__main__":
    main(sys.argv[1])
