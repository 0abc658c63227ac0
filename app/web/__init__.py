"""ASGI middleware, templates, and what every page shares."""
