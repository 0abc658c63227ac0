"""Type of ASGI headers, and the security headers of every response."""

Headers = list[tuple[bytes, bytes]]

_POLICY = (
    "default-src 'self'; "
    "img-src 'self' data:; "
    "object-src 'none'; "
    "base-uri 'none'; "
    "form-action 'self'; "
    "frame-ancestors 'none'"
)
_REFUSED = ("camera", "geolocation", "microphone", "payment", "usb", "browsing-topics")


def security_headers(*, https: bool) -> Headers:
    """Return the security headers. `https` adds Strict-Transport-Security."""
    words = {
        "content-security-policy": _POLICY,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": ", ".join(f"{name}=()" for name in _REFUSED),
    }
    if https:
        words["strict-transport-security"] = "max-age=31536000"
    return [(name.encode(), value.encode()) for name, value in words.items()]
