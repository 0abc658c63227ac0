"""Calculator and hardware pages."""
