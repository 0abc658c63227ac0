"""Upkeep: backups, restoring them, daily copies, and `headroom doctor`."""
