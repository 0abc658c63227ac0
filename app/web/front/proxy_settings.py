"""Addresses of proxies and path prefixes as they are written. Standard library only."""

import ipaddress
import re

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+")


def networks(words: str) -> tuple[Network, ...]:
    """The addresses and networks of a setting, parted by commas.

    Raises ValueError for what is neither.
    """
    names = [name.strip() for name in words.split(",") if name.strip()]
    return tuple(ipaddress.ip_network(name, strict=False) for name in names)


def prefix_in(words: str) -> str:
    """A path prefix without a slash at its end, empty for none or for nonsense."""
    words = words.strip().rstrip("/")
    return words if _PREFIX.fullmatch(words) else ""


def network_of(host: str) -> str:
    """The client that an address belongs to: IPv6 hosts have a /64, IPv4 hosts one."""
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network((host, 64), strict=False))
    except ValueError:
        return host
