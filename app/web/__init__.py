"""How answers look: pages, fragments, errors, the clock, and who may write."""
