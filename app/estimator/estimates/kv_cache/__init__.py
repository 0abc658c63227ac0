"""The estimate `kv-cache`: what the cache of a model takes, per token and in all."""
