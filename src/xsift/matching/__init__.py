"""The matching room: subscriptions in rows, engines in segments, and the matcher that people use. See DESIGN.md."""
