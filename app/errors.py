"""NotFoundError, ConflictError, InvalidInputError, ForbiddenError."""


class AppError(Exception):
    """What was asked cannot be done; `message` says why, `hint` what to do.

    `onward` is the address of a page that leads on, and what the link to it says.
    """

    status = 400
    retry_after = 0
    """Seconds after which the same request may succeed; 0 where nothing is known."""

    def __init__(self, message: str, hint: str = "", onward: tuple[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.onward = onward


class NotFoundError(AppError):
    """There is no such thing, or it belongs to somebody else."""

    status = 404


class ForbiddenError(AppError):
    """The asker may not do this at all."""

    status = 403


class ConflictError(AppError):
    """It was possible once and is not any more."""

    status = 409


class StorageFullError(AppError):
    """There is no room for more on the server."""

    status = 507


class QuotaExceededError(AppError):
    """So much was asked that the rest has to wait for some seconds."""

    status = 429

    def __init__(self, message: str, hint: str, retry_after: int) -> None:
        super().__init__(message, hint)
        self.retry_after = retry_after


class InvalidInputError(AppError):
    """What was typed cannot be used; `field` names where it was typed."""

    status = 422

    def __init__(self, message: str, field: str = "", hint: str = "") -> None:
        super().__init__(message, hint)
        self.field = field


class BusyError(AppError):
    """Somebody else is in the way for the moment."""

    status = 503
    retry_after = 60


class DiskFullError(AppError):
    """There is no room to save anything."""

    status = 507
