"""The estimate `latency`: time to the first token and per token, and what bounds it."""
