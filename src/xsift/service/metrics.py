"""What is counted: a counter for every promise that can be broken, in Prometheus' format."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]

SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """The metrics of one server."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"xsift_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"xsift_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, *labels: str) -> Histogram:
            return Histogram(f"xsift_{name}_seconds", text, labels, registry=registry, buckets=SECONDS)

        self.documents = counter("documents", "Documents that were stored", "source")
        self.bytes = counter("document_bytes", "Bytes of documents that were stored")
        self.broken = counter("broken_documents", "Documents that were refused", "code")
        self.matches = counter("matches", "Subscriptions that matched a document, all documents together")
        self.candidates = counter(
            "candidates", "Subscriptions that the index could not decide, and that were evaluated"
        )
        self.failures = counter("match_failures", "Subscriptions that could not be decided on a document")
        self.slow = counter("slow_documents", "Documents whose matching took longer than the slow log allows")
        self.match_seconds = histogram("match", "Matching one document")
        self.queue_seconds = histogram("queue", "From the receipt of a document to its turn in the matching pool")
        self.commit_seconds = histogram("commit", "One transaction of the writer")
        self.publish_seconds = histogram("publish", "From the receipt of documents to their being durable")
        self.deliveries = counter("deliveries", "Deliveries that were made durable")
        self.sent = counter("deliveries_sent", "Deliveries that were sent", "kind")
        self.lag_seconds = histogram("delivery_lag", "From a delivery's being durable to its being sent", "kind")
        self.retries = counter("delivery_retries", "Deliveries that failed and are tried again", "kind")
        self.dead = counter("dead_letters", "Deliveries that were given up", "kind")
        self.dropped = counter("deliveries_dropped", "Deliveries for which a subscriber's backlog had no room")
        self.waiting = gauge("deliveries_waiting", "Deliveries that wait", "kind")
        self.oldest = gauge("deliveries_oldest_seconds", "Age of the oldest delivery that waits", "kind")
        self.breakers = gauge("breakers_open", "Webhook hosts that are left alone for a while, each owner's")
        self.streams = gauge("streams", "Open streams of events")
        self.match_queue = gauge("match_queue", "Documents that wait for the matching pool")
        self.write_queue = gauge("write_queue", "Pieces of work that wait for the writer")
        self.set_size = gauge("subscriptions", "Live subscriptions")
        self.set_version = gauge("subscriptions_version", "Version of the set that documents are matched with")
        self.set_refused = gauge("subscriptions_refused", "Stored subscriptions that cannot be used")
        self.index_bytes = gauge("index_bytes", "Memory of the index", "structure")
        self.thread_seconds = gauge("thread_cpu_seconds", "CPU time by what threads are for", "purpose")
        self.swap_seconds = histogram("set_swap", "Bringing the set to a new version")
        self.requests = counter("http_requests", "Requests", "method", "route", "status")
        self.request_seconds = histogram("http_request", "Answering a request", "route")

    def text(self) -> bytes:
        """What a scrape gets."""
        return generate_latest(self.registry)
