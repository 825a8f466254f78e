"""The parts of a running server, as the API sees them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from xsift.service.activity import Activity
from xsift.service.delivery.courier import Couriers
from xsift.service.delivery.outbox import Outbox, Reads
from xsift.service.delivery.webhooks import WebhookSender
from xsift.service.history import History
from xsift.service.live_set import LiveSet
from xsift.service.metrics import Metrics
from xsift.service.publishing import Publisher
from xsift.service.settings import Settings
from xsift.service.store.database import Database
from xsift.service.store.writer import Writer

__all__ = ["Parts"]


@dataclass
class Parts:
    """What a server consists of. Made by server.py."""

    settings: Settings
    database: Database
    writer: Writer
    reads: Reads
    live_set: LiveSet
    publisher: Publisher
    outbox: Outbox
    couriers: Couriers
    webhooks: WebhookSender
    metrics: Metrics
    activity: Activity
    history: History
    trials: ThreadPoolExecutor
    """For questions that store nothing: they must not take the pool from documents."""
    ready: bool = field(default=False)
