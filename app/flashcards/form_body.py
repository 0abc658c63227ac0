"""What a form sends, for routes that are asked too often to resolve dependencies."""

from typing import TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from app.errors import InvalidInputError

Form = TypeVar("Form", bound=BaseModel)
_MOST_FIELDS = 200
_PLAIN = "application/x-www-form-urlencoded"


async def parse_form(request: Request, form: type[Form]) -> Form:
    """The fields of a posted form as a route gets them that declares `Form`.

    A field left empty is one that was not sent. Raises RequestValidationError.
    """
    fields = await _fields(request)
    try:
        return form.model_validate({n: v for n, v in fields.items() if v != ""})
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None


async def _fields(request: Request) -> dict[str, str]:
    if not request.headers.get("content-type", "").startswith(_PLAIN):
        async with request.form(max_files=0, max_fields=_MOST_FIELDS) as parts:
            return {n: v for n, v in parts.items() if isinstance(v, str)}
    body = (await request.body()).decode(errors="replace")
    try:
        pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidInputError(f"There are more than {_MOST_FIELDS} fields.") from None
    return dict(pairs)
