"""The yardstick: the smallest answer that Starlette can give."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route


async def hello(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


app = Starlette(routes=[Route("/", hello)])
