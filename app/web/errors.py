"""Error handlers: responses as page, htmx fragment or JSON."""

import dataclasses
import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from app.database.engine import convert_to_app_error
from app.errors import AppError, TopicMovedError
from app.estimator.inputs import InvalidInputsError
from app.markup.expressions import ExpressionError
from app.web.render import is_htmx_request, render_page

_log = logging.getLogger("headroom")
_NOWHERE = "There is no page at this address."
# These errors are temporary: the same request may succeed later.
_NOT_NOW = {429, 503, 507}
# Form fields that the learner did not enter.
_UNSAID = {
    *("age", "back", "context", "go", "hints", "move", "place", "revision", "run"),
    *("seed", "settled", "shown", "since", "token", "who"),
}
_MOST_FIELDS = 500
_MAX_SHOWN_LENGTH = 80  # characters of an input that an error message repeats
# Labels of form fields for error messages.
_LABELS = {
    "act": "What to do with the card",
    "count": "Questions",
    "day": "Due on",
    "deck": "Deck",
    "pick": "What to practice",
    "q": "Search",
    "rating": "Grade",
    "section": "Section",
    "topic": "Topic",
    "what": "What to remove",
    "words": "Your words",
}
_ALLOWED = {
    "bool_parsing": "choose yes or no",
    "greater_than_equal": "enter {ge} or more",
    "int_parsing": "enter a whole number",
    "less_than": "enter a number below {lt}",
    "less_than_equal": "enter {le} or less",
    "literal_error": "choose {expected}",
    "string_too_long": "enter at most {max_length} characters",
    "string_too_short": "enter something",
}


def register_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(AppError, _app_error_response)
    app.add_exception_handler(InvalidInputsError, _invalid_inputs_response)
    app.add_exception_handler(ExpressionError, _uncomputable_question_response)
    app.add_exception_handler(RequestValidationError, _validation_error_response)
    app.add_exception_handler(HTTPException, _http_error_response)
    app.add_exception_handler(UnicodeEncodeError, _surrogate_error_response)


def response_for_exception(request: Request, error: Exception, request_id: str) -> Response:
    """Return the response for an exception raised by the app or the middleware."""
    if isinstance(error, AppError):
        return _app_error_response(request, error)
    if isinstance(error, HTTPException):
        return _http_error_response(request, error)
    refusal = convert_to_app_error(error)
    if refusal is not None:
        return _app_error_response(request, refusal)
    return _server_error_response(request, error, request_id)


def error_response(
    request: Request,
    status: int,
    problems: list[dict[str, str]],
    hint: str = "",
    help_link: tuple[str, str] | None = None,
) -> Response:
    """Return the problems ({"field", "message"}) as JSON, htmx fragment or page.

    `help_link` is the URL and the text of a link to a page that helps.
    """
    path: str = request.scope["path"]
    below = path.removeprefix(request.scope.get("root_path", ""))
    if below.startswith("/api/"):
        return JSONResponse({"problems": problems, "hint": hint}, status)
    fragment = is_htmx_request(request)
    again = status in _NOT_NOW and not fragment
    response = render_page(
        request,
        "shared/_problems.html" if fragment else "shared/error.html",
        status=status,
        problems=problems,
        hint=hint,
        onward=help_link,
        code=status,
        submitted_fields=_read_submitted_fields(request) if again else [],
        action=f"{below}?{request.url.query}" if request.url.query else below,
    )
    if fragment and status != 422:
        # Insert the error above the present content, so that no input is lost.
        response.headers["HX-Reswap"] = "afterbegin show:top"
    return response


@dataclasses.dataclass(frozen=True, slots=True)
class _SubmittedField:
    """A submitted form field. `label` is empty for fields that the learner did not enter."""

    name: str
    value: str
    label: str


def _read_submitted_fields(request: Request) -> list[_SubmittedField]:
    """Return the fields of the rejected form, so that it can be sent again."""
    body: bytes = getattr(request.state, "form", b"")
    try:
        pairs = parse_qsl(body.decode(), True, max_num_fields=_MOST_FIELDS)
    except ValueError:  # not a URL-encoded form
        return []
    return [
        _SubmittedField(n, v, "" if n in _UNSAID or not v else _LABELS.get(n, n)) for n, v in pairs
    ]


def _app_error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, AppError)  # noqa: S101 - for the type checker
    if isinstance(error, TopicMovedError):
        return _moved_response(request, error)
    field = getattr(error, "field", "")
    problem = {"field": field, "message": error.message}
    response = error_response(request, error.status, [problem], error.hint, error.onward)
    if error.retry_after:
        response.headers["retry-after"] = str(error.retry_after)
    return response


def _moved_response(request: Request, moved: TopicMovedError) -> Response:
    """Redirect to the same page of the topic's present slug."""
    path: str = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    target = "/".join(moved.new if part == moved.old else part for part in path.split("/"))
    query = request.url.query.replace(f"topic={moved.old}", f"topic={moved.new}")
    return RedirectResponse(f"{target}?{query}" if query else target, moved.status)


def _uncomputable_question_response(request: Request, error: Exception) -> Response:
    """Respond to a computed question whose parameters have no valid combination any more."""
    assert isinstance(error, ExpressionError)  # noqa: S101 - for the type checker
    words = "This question cannot be asked: its numbers have no answer."
    hint = f"Its author can mend it: {error.message}"
    return error_response(request, 409, [{"field": "", "message": words}], hint)


def _invalid_inputs_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidInputsError)  # noqa: S101 - for the type checker
    problems = [{"field": p.field, "message": p.message} for p in error.problems]
    return error_response(request, 422, problems)


def _validation_error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - for the type checker
    if any(e["loc"][0] == "path" for e in error.errors()):
        return error_response(request, 404, [{"field": "", "message": _NOWHERE}])
    problems = [
        {"field": str(e["loc"][-1]), "message": _format_validation_error(e)} for e in error.errors()
    ]
    return error_response(request, 422, problems)


def _format_validation_error(error: Mapping[str, Any]) -> str:
    """Return one sentence about a field: what is wrong and what was sent."""
    name = str(error["loc"][-1])
    label = _LABELS.get(name, name)
    if error["type"] == "missing":
        return f"{label}: this field is required, and was not sent."
    allowed = _ALLOWED.get(error["type"], "").format(**error.get("ctx", {}))
    message = allowed or error["msg"].removeprefix("Value error, ")
    return f"{label}: {message} (given: {_quote_shortened_value(error.get('input'))})"


def _surrogate_error_response(request: Request, _error: Exception) -> Response:
    """Respond to a lone surrogate, which only a program can send."""
    words = "A text that was sent holds half a character, which no text may hold."
    return error_response(request, 422, [{"field": "", "message": words}])


def _quote_shortened_value(given: object) -> str:
    """Return the rejected value for display, truncated if it is long."""
    words = given if isinstance(given, str) else repr(given)
    return f"“{words}”" if len(words) <= _MAX_SHOWN_LENGTH else f"“{words[:_MAX_SHOWN_LENGTH]}…”"


def _http_error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - for the type checker
    words = {404: _NOWHERE, 405: "This cannot be done here."}
    message = words.get(error.status_code, str(error.detail))
    response = error_response(request, error.status_code, [{"field": "", "message": message}])
    response.headers.update(error.headers or {})
    return response


def _server_error_response(request: Request, error: Exception, request_id: str) -> Response:
    known = {"request": request_id, "method": request.method}
    _log.error("request %s failed", request_id, exc_info=error, extra=known)
    message = f"Something is broken on our side. It is logged as {request_id}."
    hint = "Nothing that was confirmed before is lost. Try again, or report the number."
    return error_response(request, 500, [{"field": "", "message": message}], hint)
