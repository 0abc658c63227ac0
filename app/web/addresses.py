"""Addresses that a form may name, to lead back to where it was sent from."""

from typing import Annotated

from pydantic import AfterValidator, Field


def local(address: str) -> str:
    """An address within this site; raises ValueError for any other."""
    fine = address.startswith("/") and not address.startswith(("//", "/\\"))
    if address and not (fine and address.isprintable()):
        raise ValueError("must be an address on this site")
    return address


Address = Annotated[str, AfterValidator(local), Field(max_length=400)]
