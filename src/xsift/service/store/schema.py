"""The tables, for SQLite and PostgreSQL alike.

`subscriptions` is a table with history: a row says from which version of the set on it was there, and from which
on no more. So one table answers what is live now, what changed between two versions, and who changed what.

A delivery is named by its subscriber and its place in that subscriber's sequence. The sequence has no holes: what
is dropped is counted in `dropped_place`.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

__all__ = [
    "audit",
    "broken",
    "dead_letters",
    "deliveries",
    "documents",
    "facts",
    "keys",
    "leases",
    "metadata",
    "receipts",
    "subscribers",
    "subscriptions",
    "versions",
]

metadata = MetaData()
Number = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER counts up by itself in SQLite

facts = Table(
    "facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

versions = Table(
    "versions",
    metadata,
    Column("version", Number, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("actor", Text, nullable=False),
    Column("added", Integer, nullable=False),
    Column("removed", Integer, nullable=False),
)

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("row", Number, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("subscriber", Number, nullable=False),
    Column("xpath", Text, nullable=False),
    Column("ordered", Boolean, nullable=False),
    Column("deliver", Text, nullable=False),
    Column("namespaces", JSON, nullable=False),
    Column("labels", JSON, nullable=False),
    Column("metadata", JSON, nullable=False),
    Column("added", Number, nullable=False),
    Column("added_at", Float, nullable=False),
    Column("added_by", Text, nullable=False),
    Column("removed", Number),
    Column("removed_at", Float),
    Column("removed_by", Text),
)
LIVE = text("removed IS NULL")
Index(
    "subscriptions_live",
    subscriptions.c.owner,
    subscriptions.c.id,
    unique=True,
    sqlite_where=LIVE,
    postgresql_where=LIVE,
)
Index("subscriptions_added", subscriptions.c.added)
Index(
    "subscriptions_removed",
    subscriptions.c.removed,
    sqlite_where=text("removed IS NOT NULL"),
    postgresql_where=text("removed IS NOT NULL"),
)
Index("subscriptions_history", subscriptions.c.owner, subscriptions.c.id, subscriptions.c.added)

subscribers = Table(
    "subscribers",
    metadata,
    Column("number", Number, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("kind", Text, nullable=False),  # pull, webhook, kafka
    Column("target", JSON, nullable=False),  # url and secret, or topic
    Column("backlog", Integer, nullable=False),  # the most deliveries that wait
    Column("state", Text, nullable=False),  # active, paused, ended
    Column("reason", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("last_place", Number, nullable=False),  # of the delivery made last
    Column("acknowledged_place", Number, nullable=False),
    Column("dropped_place", Number, nullable=False),  # up to here deliveries were dropped, acknowledged or not
    Column("dropped", Number, nullable=False),  # how many were dropped without having been acknowledged
    Column("attempts", Integer, nullable=False),  # of the delivery whose turn it is
    Column("retry_at", Float, nullable=False),
    UniqueConstraint("owner", "id"),
    sqlite_autoincrement=True,  # a number names deliveries, also outside: another subscriber never gets it
)

documents = Table(
    "documents",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("received", Float, nullable=False),
    Column("encoding", Text),
    Column("matches", Integer, nullable=False),
    Column("size", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
Index("documents_owner", documents.c.owner, documents.c.number)

broken = Table(
    "broken",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=False),
    Column("owner", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("received", Float, nullable=False),
    Column("size", Integer, nullable=False),
    Column("error", JSON, nullable=False),
    Column("body", LargeBinary, nullable=False),  # its beginning
)

receipts = Table(
    "receipts",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    Column("document", Number, nullable=False),
    Column("at", Float, nullable=False),
)
Index("receipts_at", receipts.c.at)

deliveries = Table(
    "deliveries",
    metadata,
    Column("subscriber", Number, primary_key=True, autoincrement=False),
    Column("place", Number, primary_key=True, autoincrement=False),
    Column("document", Number, nullable=False),
    Column("at", Float, nullable=False),
    Column("whole", Boolean, nullable=False),  # whether the document itself is delivered
    Column("content", LargeBinary, nullable=False),  # members of a JSON object: document, matches
    sqlite_with_rowid=False,
)
Index(
    "deliveries_whole",
    deliveries.c.document,
    sqlite_where=text("whole"),
    postgresql_where=text("whole"),
)

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("subscriber", Number, primary_key=True, autoincrement=False),
    Column("place", Number, primary_key=True, autoincrement=False),
    Column("document", Number, nullable=False),
    Column("at", Float, nullable=False),
    Column("whole", Boolean, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("failed_at", Float, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("reason", Text, nullable=False),
)
Index("dead_letters_whole", dead_letters.c.document)

keys = Table(
    "keys",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("roles", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("created", Float, nullable=False),
    Column("revoked", Float),
)

audit = Table(
    "audit",
    metadata,
    Column("number", Number, primary_key=True),
    Column("at", Float, nullable=False),
    Column("actor", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("detail", JSON, nullable=False),
)
Index("audit_owner", audit.c.owner, audit.c.number)

leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("until", Float, nullable=False),
)
