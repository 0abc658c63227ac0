"""The database: every table, the engine, and one session per request."""
