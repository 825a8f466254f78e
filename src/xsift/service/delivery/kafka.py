"""Deliveries as messages of a Kafka topic: the key is the subscriber, so they stay in order in one partition."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any

from xsift.errors import XsiftError
from xsift.service.delivery.courier import SendVerdict
from xsift.service.delivery.events import as_json
from xsift.service.settings import Kafka
from xsift.service.store.deliveries import StoredDelivery
from xsift.service.store.numbers import delivery_id

if TYPE_CHECKING:
    from confluent_kafka import Producer

__all__ = ["KafkaSender", "kafka_module"]

HOPELESS = ("MSG_SIZE_TOO_LARGE", "TOPIC_EXCEPTION", "INVALID_RECORD", "TOPIC_AUTHORIZATION_FAILED")


def kafka_module() -> Any:
    """confluent_kafka. Raises XsiftError if it is not installed."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise XsiftError(
            "no-kafka", "confluent-kafka is not installed", hint="pip install 'xsift[serve,kafka]'"
        ) from error
    return confluent_kafka


class KafkaSender:
    """Sends deliveries to topics. A message carries the delivery's id in the header `xsift-delivery-id`."""

    kind = "kafka"

    def __init__(self, settings: Kafka) -> None:
        self._settings = settings
        self._producer: Producer | None = None
        self._poller: threading.Thread | None = None
        self._closed = False

    def _connected(self) -> Any:
        if self._producer is None:
            options = {
                "enable.idempotence": True,
                "message.timeout.ms": 10_000,
                "linger.ms": 5,
                **self._settings.options,
                "bootstrap.servers": self._settings.servers,
            }
            self._producer = kafka_module().Producer(options)
            self._poller = threading.Thread(target=self._poll, name="xsift-kafka-poll", daemon=True)
            self._poller.start()
        return self._producer

    def _poll(self) -> None:
        while not self._closed:
            self._connected().poll(0.1)

    async def send(self, subscriber: Any, deliveries: list[StoredDelivery]) -> SendVerdict:
        """Sends all of them; those before the first that failed count as received."""
        loop = asyncio.get_running_loop()
        try:
            producer = self._connected()
        except (kafka_module().KafkaException, ValueError, TypeError) as error:
            return SendVerdict(0, reason=f"kafka.options: {error}")
        results: list[asyncio.Future[Any]] = []
        for delivery in deliveries:
            future: asyncio.Future[Any] = loop.create_future()
            results.append(future)
            try:
                producer.produce(
                    subscriber.target["topic"],
                    value=as_json(delivery, subscriber.id),
                    key=f"{subscriber.owner}/{subscriber.id}",
                    headers=[("xsift-delivery-id", delivery_id(delivery.subscriber, delivery.place))],
                    on_delivery=_teller(loop, future),
                )
            except (BufferError, kafka_module().KafkaException) as error:
                future.set_result(error)
                break
        done = 0
        failure: Any = None
        for future in results:
            outcome = await future
            if outcome is None and failure is None:
                done += 1
            elif failure is None:
                failure = outcome
        if failure is None:
            return SendVerdict(done)
        cause = failure.args[0] if isinstance(failure, Exception) and failure.args else failure
        name = cause.name() if hasattr(cause, "name") else ""
        return SendVerdict(done, reason=str(failure), hopeless=name.lstrip("_") in HOPELESS)

    async def close(self) -> None:
        self._closed = True
        if self._poller is not None:
            await asyncio.to_thread(self._poller.join)
        if self._producer is not None:
            await asyncio.to_thread(self._producer.flush, 5)


def _teller(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any]) -> Any:
    def resolve(error: Any) -> None:
        if not future.done():
            future.set_result(error)

    def tell(error: Any, _message: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(resolve, error)

    return tell
