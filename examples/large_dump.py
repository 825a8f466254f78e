"""Splitting a large dump: one file with very many articles, cut into a row each and matched, without parsing it into
columns.

    python examples/large_dump.py [FILE RECORD XPATH]

Without arguments it makes a file of 20,000 articles first.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import xsift
from xsift.spark import make_session, match_documents, register_sources

XPATH = "/d:article[@id mod 5000 = 4999]/d:title"


def make_dump(path: Path) -> str:
    with path.open("w") as file:
        file.write('<dump xmlns="urn:example:dump">\n')
        for number in range(20_000):
            file.write(f'<article id="{number}"><title>Article {number}</title><!-- <article> --></article>\n')
        file.write("</dump>\n")
    return str(path)


def main(path: str, record: str, xpath: str, split_bytes: int = 32 * 2**20) -> None:
    spark = make_session("local[*]")
    register_sources(spark)
    articles = spark.read.format("xsift").option("record", record).option("splitBytes", split_bytes).load(path)
    subscriptions = xsift.Subscriptions(namespaces={"d": "urn:example:dump"})
    subscriptions.add("wanted", xpath)
    found = articles.transform(match_documents, subscriptions=subscriptions, kind="nodes")
    print(f"{articles.count():,} records")
    for row in found.orderBy("position").limit(5).collect():
        print(f"byte {row.position:,}: {row.path}: {bytes(row.fragment).decode()[:100]}")
    spark.stop()


if __name__ == "__main__":
    if sys.argv[1:]:
        main(*sys.argv[1:4])
    else:
        with tempfile.TemporaryDirectory(prefix="large-dump-") as folder:
            # A small file is split for the sake of the example.
            main(make_dump(Path(folder) / "dump.xml"), "article", XPATH, split_bytes=500_000)
