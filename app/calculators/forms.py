"""What was typed into a calculator: from an address, a form or a file."""

from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, urlencode

from fastapi import Request
from starlette.datastructures import UploadFile

from app.errors import InvalidInputError

_MOST_FIELDS = 200


def inputs_from_query(query: str) -> dict[str, str]:
    """The inputs of an address. The first filled-in value of a name counts.

    So a list wins over the free field beside it, and a box that is ticked over the
    “no” that stands behind it.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidInputError(f"There are more than {_MOST_FIELDS} inputs.") from None
    return first_filled(pairs)


def first_filled(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """One value for each name: the first that is not empty."""
    typed: dict[str, str] = {}
    for name, value in pairs:
        if not typed.get(name):
            typed[name] = value
    return typed


async def posted_inputs(request: Request) -> dict[str, str]:
    """The inputs of a posted form; a file stands for the text of its field."""
    async with request.form(max_files=4, max_fields=_MOST_FIELDS) as form:
        items = form.multi_items()
        files = [(n, await _text(n, v)) for n, v in items if isinstance(v, UploadFile)]
    words = [(n, v) for n, v in items if isinstance(v, str)]
    return first_filled([*files, *words])


async def _text(name: str, value: UploadFile) -> str:
    try:
        return (await value.read()).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInputError("The file is not text.", field=name) from None


def query_of(typed: Mapping[str, str]) -> str:
    """The address form of what was typed, empty fields left out."""
    return urlencode({name: value for name, value in typed.items() if value})
