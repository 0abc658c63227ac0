"""What addresses are made of: rows by their number, and the way back of a form."""

from typing import Annotated

from fastapi import Path
from pydantic import AfterValidator, Field

LAST_ROW = 2**31 - 1
"""The largest number of a row: PostgreSQL counts them in 32 bits."""


def local(address: str) -> str:
    """An address within this site; raises ValueError for any other."""
    fine = address.startswith("/") and not address.startswith(("//", "/\\"))
    if address and not (fine and address.isprintable()):
        raise ValueError("must be an address on this site")
    return address


RowNumber = Annotated[int, Path(ge=1, le=LAST_ROW)]
"""The number of a row as a part of an address; any other is not found."""
Address = Annotated[str, AfterValidator(local), Field(max_length=400)]
