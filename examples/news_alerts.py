"""News alerts: readers subscribe to what interests them, and each gets a folder with the paragraphs that do.

    python examples/news_alerts.py

A stream of news files, subscriptions that change while it runs, a folder for each reader, and one for what is broken.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from xsift.spark import FolderSink, make_session, match_stream
from xsift.tables import SubscriptionTable

NEWS = {
    "spark.xml": "<nitf><body><hl1>Spark 5 is out</hl1><p lede='true'>Faster.</p><p>Much faster.</p></body></nitf>",
    "rain.xml": "<nitf><body><hl1>Rain again</hl1><p lede='true'>Take an umbrella.</p></body></nitf>",
    "broken.xml": "<nitf><body><hl1>The line broke in the mid",
}
LATER = {"later.xml": "<nitf><body><hl1>More Spark</hl1><p>And more.</p></body></nitf>"}


def put(inbox: Path, news: dict[str, str]) -> None:
    """Files appear whole: they are written under a hidden name first."""
    for name, text in news.items():
        hidden = inbox / f".{name}"
        hidden.write_text(text)
        hidden.rename(inbox / name)


def main(folder: Path) -> None:
    inbox = folder / "inbox"
    inbox.mkdir()
    put(inbox, NEWS)
    spark = make_session("local[2]")
    readers = SubscriptionTable.create(folder / "readers")
    readers.add([("alice", "/nitf/body[contains(hl1, 'Spark')]/p"), ("bob", "//p[@lede = 'true']")])
    files = spark.readStream.format("binaryFile").schema(
        "path string, modificationTime timestamp, length bigint, content binary"
    )
    query = match_stream(
        files.load(str(inbox)).selectExpr("path as file", "content as xml"),
        subscriptions=readers,
        kind="nodes",
        sink=FolderSink(str(folder / "alerts")),
        dead_letters=str(folder / "broken"),
        checkpoint=str(folder / "checkpoint"),
    )
    query.processAllAvailable()  # here, so that the example ends; a real stream goes on
    readers.add([("carol", "//hl1")])  # from the next micro-batch on
    put(inbox, LATER)
    query.processAllAvailable()
    query.stop()
    alerts = spark.read.parquet(str(folder / "alerts"))
    for row in alerts.orderBy("subscription", "file", "path").collect():
        print(f"{row.subscription:6} {Path(row.file).name:10} {bytes(row.fragment).decode()}")
    for row in spark.read.parquet(str(folder / "broken")).collect():
        print(f"broken {Path(row.file).name}: {row.error.message}")
    spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="news-alerts-") as made:
        main(Path(made))
