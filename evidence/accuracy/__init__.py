"""How near the estimates come to published and measured values."""
