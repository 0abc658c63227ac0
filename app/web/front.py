"""What stands before the routes: static files, and the headers of every answer."""

from starlette.types import ASGIApp, Receive, Scope, Send

from app.web.static import StaticFiles


class Front:
    """Answers what needs no route and hands on the rest."""

    def __init__(self, app: ASGIApp, static: StaticFiles) -> None:
        self.app = app
        self.static = static

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/static/"):
            await self._file(scope, send)
        else:
            await self.app(scope, receive, send)

    async def _file(self, scope: Scope, send: Send) -> None:
        asked = dict(scope["headers"])
        status, headers, body = self.static.answer(
            scope["path"],
            scope["query_string"],
            asked.get(b"accept-encoding", b""),
            asked.get(b"if-none-match", b""),
        )
        headers.append((b"content-length", str(len(body)).encode()))
        await send(
            {"type": "http.response.start", "status": status, "headers": headers}
        )
        await send({"type": "http.response.body", "body": body})
