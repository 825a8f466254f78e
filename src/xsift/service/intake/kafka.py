"""A Kafka topic: each message is a document. Offsets are committed after the documents are durable, and the topic,
partition, offset and time of a message are its idempotency key, so that a message that comes twice is published once;
in a topic that was made anew others have its offset, and another time.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import Any

from xsift.errors import StorageError, XsiftError
from xsift.service.delivery.kafka import kafka_module
from xsift.service.publishing import Incoming, Publisher
from xsift.service.settings import Kafka

__all__ = ["KafkaIntake"]

log = logging.getLogger("xsift.service.intake")

TOGETHER = 64
LATER_SECONDS = 0.5
AGAIN_SECONDS = 5.0


class KafkaIntake:
    """Reads topics, on a thread of its own."""

    def __init__(self, settings: Kafka, publisher: Publisher) -> None:
        self._settings = settings
        self._publisher = publisher
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="xsift-kafka", daemon=True)

    def start(self) -> None:
        self._consumer().close()  # what it cannot be made with is said now
        self._thread.start()

    def _consumer(self) -> Any:
        module = kafka_module()
        options = {
            "auto.offset.reset": "earliest",
            **self._settings.options,
            "bootstrap.servers": self._settings.servers,
            "group.id": self._settings.group,
            "enable.auto.commit": False,
        }
        try:
            return module.Consumer(options)
        except (module.KafkaException, ValueError, TypeError) as error:
            raise XsiftError("bad-config", f"kafka.options: {error}") from error

    def close(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with contextlib.closing(self._consumer()) as consumer:
                    consumer.subscribe(list(self._settings.topics))
                    self._consume(consumer)
            except Exception:
                log.exception("reading from Kafka failed; it is tried again")
                self._stop.wait(AGAIN_SECONDS)

    def _consume(self, consumer: Any) -> None:
        while not self._stop.is_set():
            messages = consumer.consume(TOGETHER, 0.2)
            for message in messages:
                if message.error() is not None:
                    log.warning("Kafka says", extra={"reason": str(message.error())})
            good = [message for message in messages if message.error() is None]
            for message in good:
                if not self._publish(message):
                    return  # the server stops: what was not published is read again by the next one
            if good:
                consumer.commit(asynchronous=False)

    def _publish(self, message: Any) -> bool:
        where = f"{message.topic()}:{message.partition()}:{message.offset()}"
        label = message.key().decode("utf-8", "replace")[:1000] if message.key() else where
        while not self._stop.is_set():
            try:
                receipts = self._publisher.publish_blocking(
                    self._settings.owner,
                    [Incoming(message.value() or b"", label)],
                    key=f"kafka:{where}:{message.timestamp()[1]}",
                    source="kafka",
                )
                if receipts[0].error is not None:
                    log.warning("a message was refused", extra={"offset": where, "reason": str(receipts[0].error)})
                return True
            except XsiftError as error:
                if error.code == "closed":
                    return False
                if not isinstance(error, StorageError) and error.code != "overloaded":
                    log.warning("a message was refused", extra={"offset": where, "reason": str(error)})
                    return True
                self._stop.wait(LATER_SECONDS)  # nothing was stored: it is published again
        return False
