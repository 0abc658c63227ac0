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

from app.database.engine import find_busy_or_disk_full_error
from app.errors import AppError, HelpLink, TopicMovedError
from app.estimator.inputs import InvalidInputsError
from app.markup.expressions import ExpressionError
from app.web.render import is_htmx_request, render_page

_log = logging.getLogger("headroom")
_NO_SUCH_PAGE = "There is no page at this address."
# These errors are temporary: the same request may succeed later.
_TEMPORARY_STATUSES = {429, 503, 507}
# Form fields that the learner did not enter.
_HIDDEN_FIELDS = {
    *("age", "back", "context", "go", "hints", "move", "place", "revision", "run"),
    *("seed", "settled", "shown", "since", "token", "who"),
}
_MOST_FIELDS = 500
_MAX_SHOWN_LENGTH = 80  # characters of an input that an error message repeats
# Labels of form fields for error messages.
_LABEL_BY_FIELD = {
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
_VALIDATION_MESSAGES = {
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
    for error_class in (
        *(AppError, InvalidInputsError, ExpressionError),
        *(RequestValidationError, HTTPException, UnicodeEncodeError),
    ):
        app.add_exception_handler(error_class, _respond_to_client_error)


def response_for_exception(request: Request, error: Exception, request_id: str) -> Response:
    """Return the response for an exception raised by the app or the middleware."""
    refusal = (
        error
        if isinstance(error, AppError | HTTPException)
        else find_busy_or_disk_full_error(error)
    )
    if refusal is None:
        return _log_and_respond_to_server_error(request, error, request_id)
    return _respond_to_client_error(request, refusal)


def _respond_to_client_error(request: Request, error: Exception) -> Response:
    """Return the response for an error that a request caused, and not the server."""
    match error:
        case TopicMovedError():
            response = _redirect_to_new_topic_address(request, error)
        case AppError():
            response = _app_error_response(request, error)
        case InvalidInputsError():
            problems = [_problem_dict(p.message, p.field) for p in error.problems]
            response = error_response(request, 422, problems)
        case ExpressionError():  # the parameters of a question have no valid combination any more
            problem = _problem_dict("This question cannot be asked: its numbers have no answer.")
            hint = f"Its author can mend it: {error.message}"
            response = error_response(request, 409, [problem], hint)
        case RequestValidationError():
            response = _validation_error_response(request, error)
        case HTTPException():
            response = _http_error_response(request, error)
        case _:  # a lone surrogate, which only a program can send
            words = "A text that was sent holds half a character, which no text may hold."
            response = error_response(request, 422, [_problem_dict(words)])
    return response


def _problem_dict(message: str, field: str = "") -> dict[str, str]:
    return {"field": field, "message": message}


def error_response(
    request: Request,
    status: int,
    problems: list[dict[str, str]],
    hint: str = "",
    help_link: HelpLink | None = None,
) -> Response:
    """Return the problems ({"field", "message"}) as JSON, htmx fragment or page."""
    path: str = request.scope["path"]
    below = path.removeprefix(request.scope.get("root_path", ""))
    if below.startswith("/api/"):
        return JSONResponse({"problems": problems, "hint": hint}, status)
    fragment = is_htmx_request(request)
    again = status in _TEMPORARY_STATUSES and not fragment
    response = render_page(
        request,
        "shared/_problems.html" if fragment else "shared/error.html",
        status=status,
        problems=problems,
        hint=hint,
        help_link=help_link,
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
        _SubmittedField(n, v, "" if n in _HIDDEN_FIELDS or not v else _LABEL_BY_FIELD.get(n, n))
        for n, v in pairs
    ]


def _app_error_response(request: Request, error: AppError) -> Response:
    problem = _problem_dict(error.message, getattr(error, "field", ""))
    response = error_response(request, error.status, [problem], error.hint, error.help_link)
    if error.retry_after:
        response.headers["retry-after"] = str(error.retry_after)
    return response


def _redirect_to_new_topic_address(request: Request, moved: TopicMovedError) -> Response:
    """Redirect to the same page of the topic's present slug."""
    path: str = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    target = "/".join(moved.new if part == moved.old else part for part in path.split("/"))
    query = request.url.query.replace(f"topic={moved.old}", f"topic={moved.new}")
    return RedirectResponse(f"{target}?{query}" if query else target, moved.status)


def _validation_error_response(request: Request, error: RequestValidationError) -> Response:
    if any(e["loc"][0] == "path" for e in error.errors()):
        return error_response(request, 404, [_problem_dict(_NO_SUCH_PAGE)])
    problems = [
        _problem_dict(_format_validation_error(e), str(e["loc"][-1])) for e in error.errors()
    ]
    return error_response(request, 422, problems)


def _format_validation_error(error: Mapping[str, Any]) -> str:
    """Return one sentence about a field: what is wrong and what was sent."""
    name = str(error["loc"][-1])
    label = _LABEL_BY_FIELD.get(name, name)
    if error["type"] == "missing":
        return f"{label}: this field is required, and was not sent."
    allowed = _VALIDATION_MESSAGES.get(error["type"], "").format(**error.get("ctx", {}))
    message = allowed or error["msg"].removeprefix("Value error, ")
    return f"{label}: {message} (given: {_quote_shortened_value(error.get('input'))})"


def _quote_shortened_value(value: object) -> str:
    """Return the rejected value for display, truncated if it is long."""
    words = value if isinstance(value, str) else repr(value)
    return f"“{words}”" if len(words) <= _MAX_SHOWN_LENGTH else f"“{words[:_MAX_SHOWN_LENGTH]}…”"


def _http_error_response(request: Request, error: HTTPException) -> Response:
    words = {404: _NO_SUCH_PAGE, 405: "This cannot be done here."}
    message = words.get(error.status_code, str(error.detail))
    response = error_response(request, error.status_code, [_problem_dict(message)])
    response.headers.update(error.headers or {})
    return response


def _log_and_respond_to_server_error(
    request: Request, error: Exception, request_id: str
) -> Response:
    known = {"request": request_id, "method": request.method}
    _log.error("request %s failed", request_id, exc_info=error, extra=known)
    message = f"Something is broken on our side. It is logged as {request_id}."
    hint = "Nothing that was confirmed before is lost. Try again, or report the number."
    return error_response(request, 500, [_problem_dict(message)], hint)
