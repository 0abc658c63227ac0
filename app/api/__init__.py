"""The same estimates for programs: JSON under /api/v1."""
