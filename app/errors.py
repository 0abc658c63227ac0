"""Errors with a message for people, which handlers turn into responses."""

from typing import NamedTuple


class HelpLink(NamedTuple):
    url: str
    text: str


class AppError(Exception):
    """The request cannot be done. `message` says why, `hint` what to do."""

    status = 400
    retry_after = 0
    """Seconds after which the same request may succeed; 0 if unknown."""

    def __init__(self, message: str, hint: str = "", help_link: HelpLink | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.help_link = help_link


class NotFoundError(AppError):
    """The object does not exist, or it belongs to another learner."""

    status = 404


class TopicMovedError(AppError):
    """The page of the topic `old_slug` now has the address of the topic `new_slug`."""

    status = 308

    def __init__(self, old_slug: str, new_slug: str) -> None:
        super().__init__(f"This page has moved from “{old_slug}” to “{new_slug}”.")
        self.old = old_slug
        self.new = new_slug


class ForbiddenError(AppError):
    status = 403


class ConflictError(AppError):
    """The current state does not allow this, e.g. because something changed."""

    status = 409


class StorageFullError(AppError):
    """The server has no space for more data."""

    status = 507


class QuotaExceededError(AppError):
    """The client has reached a limit and must wait `retry_after` seconds."""

    status = 429

    def __init__(self, message: str, hint: str, retry_after: int) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after


class InvalidInputError(AppError):
    """The input is invalid. `field` names the form field."""

    status = 422

    def __init__(self, message: str, field: str = "", hint: str = "") -> None:
        super().__init__(message, hint)
        self.field = field


class BusyError(AppError):
    """The database is busy with other writers."""

    status = 503
    retry_after = 60


class DiskFullError(AppError):
    """The disk is full, so nothing can be saved."""

    status = 507
