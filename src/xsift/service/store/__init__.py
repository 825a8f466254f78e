"""What lasts: SQLite by default, PostgreSQL by URL. Tables, migrations, queries, and the one thread that writes."""
