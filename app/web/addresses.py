"""Addresses that a form may name, and addresses that go out of this site."""

from typing import Annotated

from fastapi import Request
from pydantic import AfterValidator, Field


def local(address: str) -> str:
    """An address within this site; raises ValueError for any other."""
    fine = address.startswith("/") and not address.startswith(("//", "/\\"))
    if address and not (fine and address.isprintable()):
        raise ValueError("must be an address on this site")
    return address


Address = Annotated[str, AfterValidator(local), Field(max_length=400)]


def public(request: Request) -> str:
    """The address of this server for links that leave it, without a slash at its end.

    The setting decides where there is one; else the name that the browser used.
    """
    told: str = request.app.state.settings.url
    return (told or str(request.base_url)).rstrip("/")


def public_address_of(request: Request) -> str:
    """The whole address that was asked for, query included."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    query = request.scope["query_string"].decode("latin-1")
    return f"{public(request)}{path}{'?' if query else ''}{query}"
