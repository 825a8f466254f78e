"""From deliveries to subscribers.

outbox.py     what was made durable, for whoever reads it: from memory while it is new, else from the store
events.py     how a delivery looks outside: JSON, a server-sent event
courier.py    a loop for each subscriber that is sent to: in order, with retries, dead letters, bounded backlog
webhooks.py   one request a delivery, signed
addresses.py  which addresses webhooks may go to
kafka.py      one message a delivery
"""
