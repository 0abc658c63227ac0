"""Where people find this server, as commands print it."""

_EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104 - asked about, not listened on


def own_address(url: str, host: str, port: int) -> str:
    """The address to print: the public one where it is set, else that listened on."""
    if url:
        return url.rstrip("/")
    host = "127.0.0.1" if host in _EVERYWHERE else host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
