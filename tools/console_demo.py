"""`make console`: a server with data in it, to look at the console. Everything is made up and stays in build/console.

Four owners have some hundred subscriptions to news and invoices; some documents a second are published, a few of them
broken; a webhook fails for a while, so that there are dead letters to replay.
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import xsift

FOLDER = Path("build/console")
SETTINGS = """
log_level = "error"
[webhooks]
allow_networks = ["127.0.0.0/8"]
attempts = 2
first_retry_seconds = 0.2
longest_retry_seconds = 1
breaker_failures = 1000
[matching]
slow_milliseconds = 1000
"""
START_SECONDS = 60.0
TOPICS = ("Spark", "harvest", "election", "football", "chess", "energy", "glaciers", "railways", "cheese", "robots")
PLACES = ("Zürich", "Lagos", "Lima", "Osaka", "Tallinn", "Perth", "Quito", "Tromsø")
PEOPLE = ("Ada Byron", "Grace Murray", "Emmy Noether", "Mary Jackson", "Hedy Kiesler")
VERBS = ("surprise", "divide", "delay", "outgrow", "reach", "follow")
UBL = "urn:oasis:names:specification:ubl:schema:xsd:"
CAC, CBC = f"{UBL}CommonAggregateComponents-2", f"{UBL}CommonBasicComponents-2"


class Sink(http.server.BaseHTTPRequestHandler):
    """Webhooks: one takes all, the other one fails until it is told not to."""

    fails = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(503 if Sink.fails and self.path == "/hook" else 204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class ConsoleDemo:
    """A server in a process of its own, with data in it."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self._folder, self._port = folder, port
        self._random = random.Random(7)
        self._documents = 0
        self._stopped = threading.Event()
        self._publisher: threading.Thread | None = None
        self.url = ""

    def __enter__(self) -> ConsoleDemo:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        config = self._folder / "serve.toml"
        config.write_text(SETTINGS)
        self._sink = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
        threading.Thread(target=self._sink.serve_forever, daemon=True).start()
        self._port = self._port if _is_free(self._port) else _free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "xsift.cli", "serve", "--config", str(config)),
                *("--data", str(self._folder / "data"), "--port", str(self._port)),
            ],
            start_new_session=True,  # Ctrl-C is for us; we stop it then
        )
        self._wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_publishing()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        self._sink.shutdown()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/readyz", timeout=2):
                return
            time.sleep(0.1)
        raise SystemExit("the server did not start")

    # What is in it

    def fill(self, documents: int = 300) -> None:
        """Subscriptions, then some documents."""
        for owner in ("default", "sports", "science", "accounts"):
            with xsift.Client(self.url, owner=owner) as client:
                client.add_many(list(_subscriptions(owner)))
                if owner == "accounts":
                    sink = f"http://127.0.0.1:{self._sink.server_port}"
                    client.put_subscriber("ledger", kind="webhook", url=f"{sink}/hook")
                    client.put_subscriber("archive", kind="webhook", url=f"{sink}/archive")
                    client.add("everything", "/*", subscriber="archive")
                    client.add(
                        "large-invoices", "//cbc:PayableAmount[. > 480]", namespaces={"cbc": CBC}, subscriber="ledger"
                    )
        self.publish(documents)

    def publish(self, number: int) -> None:
        """Publishes some documents, at once."""
        with xsift.Client(self.url) as client:
            client.publish_many([self._document() for _ in range(number)])

    def go_on(self, seconds: float) -> None:
        """Publishes for some seconds, a few documents each."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._stopped.is_set():
            self.publish(self._random.randint(1, 4))
            self._stopped.wait(0.25)

    def go_on_beside(self) -> None:
        """The same beside whatever else is done, until the end."""
        self._publisher = threading.Thread(target=self.go_on, args=[float("inf")])
        self._publisher.start()

    def repair_webhook(self) -> None:
        """From now on the webhook takes what it is sent."""
        Sink.fails = False

    def stop_publishing(self) -> None:
        """Ends `go_on`."""
        self._stopped.set()
        if self._publisher is not None:
            self._publisher.join()

    def close_the_door(self) -> None:
        """Makes a key: from now on everybody needs one."""
        body = b'{"owner": "ops", "roles": ["admin"]}'
        headers = {"content-type": "application/json"}
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/keys", body, headers)).close()

    def _document(self) -> xsift.Document:
        self._documents += 1
        number, choose = self._documents, self._random.choice
        if number % 37 == 0:
            text = f"<nitf>\n  <head><title>{choose(TOPICS)}</title>\n  <body/>\n</nitf>"
            return xsift.Document(text, label=f"wire/{number}.xml")
        if number % 5 == 0:
            return xsift.Document(_invoice(number, self._random), label=f"invoices/{number}.xml")
        topic, place = choose(TOPICS), choose(PLACES)
        headline = f"{topic[0].upper()}{topic[1:]} {choose(VERBS)} {place}"
        text = _news(number, headline, topic, place, choose(PEOPLE), self._random.randint(1, 8))
        return xsift.Document(text, label=f"news/{number}.xml")


def _subscriptions(owner: str) -> Iterator[dict[str, object]]:
    team = {"team": owner}
    for topic in TOPICS:
        yield {
            "id": f"{topic.lower()}-headlines",
            "xpath": f"//hl1[contains(., '{topic}')]",
            "deliver": "fragments",
            "labels": team | {"topic": topic.lower()},
            "metadata": {"priority": len(topic) % 3},
        }
        for place in PLACES:
            yield {
                "id": f"{topic.lower()}-{place.lower()}",
                "xpath": f"/nitf[.//location = '{place}']/head[.//keyword/@key = '{topic.lower()}']/title",
                "labels": team | {"place": place},
            }
    yield {"id": "urgent", "xpath": "//urgency[@ed-urg <= 2]", "labels": {**team, "kind": "urgent"}}
    yield {"id": "long-reads", "xpath": "/nitf/body//p[string-length(.) > 120]", "labels": team}
    yield {
        "id": "invoices-above-300",
        "xpath": "//cac:LegalMonetaryTotal[cbc:PayableAmount > 300]",
        "namespaces": {"cac": CAC, "cbc": CBC},
        "deliver": "fragments",
        "labels": {**team, "kind": "invoice"},
    }


def _news(number: int, headline: str, topic: str, place: str, person: str, urgency: int) -> str:
    return f"""<?xml version="1.0"?>
<nitf>
  <head>
    <title>{headline}</title>
    <docdata>
      <doc-id id-string="news-{number}"/>
      <urgency ed-urg="{urgency}"/>
      <key-list><keyword key="{topic.lower()}"/></key-list>
    </docdata>
  </head>
  <body>
    <hedline><hl1>{headline}</hl1></hedline>
    <byline><person>{person}</person></byline>
    <dateline><location>{place}</location></dateline>
    <p lede="true">{person} reports from {place}.</p>
    <p>What began as a note on {topic.lower()} became the story of the day, and of the next one.</p>
  </body>
</nitf>
"""


def _invoice(number: int, choose: random.Random) -> str:
    amount = choose.randint(2000, 60000) / 100
    return f"""<Invoice xmlns="{UBL}Invoice-2" xmlns:cac="{CAC}" xmlns:cbc="{CBC}">
  <cbc:ID>INV-{number}</cbc:ID>
  <cbc:DocumentCurrencyCode>CHF</cbc:DocumentCurrencyCode>
  <cac:LegalMonetaryTotal>
    <cbc:PayableAmount currencyID="CHF">{amount:.2f}</cbc:PayableAmount>
  </cac:LegalMonetaryTotal>
</Invoice>
"""


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return port > 0 and probe.connect_ex(("127.0.0.1", port)) != 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    """Runs until Ctrl-C."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=8080, help="another one is taken if it is not free")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    options = parser.parse_args()
    with ConsoleDemo(FOLDER, options.port) as demo, contextlib.suppress(KeyboardInterrupt):
        demo.fill()
        print(f"The console, with data in it: {demo.url}     (Ctrl-C stops it)", flush=True)
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(demo.url)
        started = time.monotonic()
        while time.monotonic() - started < options.seconds:
            demo.go_on(min(30.0, options.seconds))
            demo.repair_webhook()


if __name__ == "__main__":
    main()
