"""The service: documents are published, subscriptions catch them, subscribers are told. See "The service" in
DESIGN.md.

- settings.py: what a server can be told
- server.py: a server from start to stop: which parts there are (parts.py), and in which order they come and go
- live_set.py: the subscriptions as one snapshot that matches; follows the store
- publishing.py: from documents to deliveries: matched in a bounded pool, then made durable
- store/: SQL: tables, migrations, the one thread that writes
- delivery/: from deliveries to subscribers: streams, webhooks, Kafka
- intake/: documents that do not come by HTTP: a watched folder, a Kafka topic
- api/: HTTP: routes, keys, limits, errors; connections.py: what a client may send before it is known who it is
- console/: the page for people
- activity.py, history.py: what happened in the last minutes; metrics.py: what is counted; threads.py: who works
- logs.py: lines of the log; slow_log.py: which documents were slow, and whose subscriptions made them so
- janitor.py: keeps what is bounded within its bounds
- table_sync.py: the set and a table of subscriptions kept alike
- keys_tool.py: keys from the command line
- client.py: the same from the other side; texts.py: documents as text, for JSON
"""
