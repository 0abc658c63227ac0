"""The client of the tests sends and takes what that of Starlette does."""

import json
from typing import Any

import pytest
from fastapi import FastAPI, Request, Response
from fastapi.testclient import TestClient

from tests.direct_client import DirectClient

_WAYS = (TestClient, DirectClient)


@pytest.fixture
def echo() -> FastAPI:
    """An app that answers with what it was asked, and sets the cookies that are named."""
    app = FastAPI()

    @app.api_route("/{path:path}", methods=["GET", "HEAD", "POST"])
    async def say(request: Request) -> Response:
        scope = request.scope
        told = {
            name: scope[name]
            for name in ("method", "path", "scheme", "server", "client", "root_path")
        }
        told |= {name: scope[name].decode() for name in ("raw_path", "query_string")}
        told["headers"] = sorted([n.decode(), v.decode()] for n, v in scope["headers"])
        told["body"] = (await request.body()).decode()
        answer = Response(json.dumps(told), media_type="application/json")
        if "boom" in scope["path"]:
            raise ZeroDivisionError
        for cookie in request.query_params.getlist("set"):
            answer.headers.append("set-cookie", cookie)
        return answer

    return app


def told(
    app: FastAPI, way: type[TestClient], base: str, asked: list[tuple[str, str, dict[str, Any]]]
) -> list[object]:
    """What a client of a kind is answered to these requests, one after the other."""
    found: list[object] = []
    with way(app, base_url=base, headers={"X-One": "1"}, follow_redirects=False) as client:
        client.cookies.set("mine", "a")
        for method, address, more in asked:
            answer = client.request(method, address, **more)
            found += [answer.status_code, sorted(answer.headers.multi_items()), answer.text]
            found += [str(answer.url), dict(answer.cookies)]
            found += sorted((c.domain, c.path, c.name, c.value or "") for c in client.cookies.jar)
    return found


@pytest.mark.parametrize("base", ["http://testserver", "https://study.example/courses/one"])
def test_what_is_sent_and_taken_is_the_same(echo: FastAPI, base: str):
    fields = {"a": "1 & 2", "b": ["x", "ü"], "c": None, "d": True, "e": 3, "f": []}
    cookies = ["one=1; Path=/", "deep=2; Path=/courses", "far=3; Path=/elsewhere"]
    cookies += [
        "safe=4; Path=/; Secure; HttpOnly",
        "gone=5; Max-Age=0",
        "__Host-x=6; Secure; Path=/",
    ]
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "/", {"params": {"set": cookies}}),
        ("GET", "/a/b%20c.d?x=%C3%BC&y=1+2&z=", {}),
        ("GET", "/courses/one", {"headers": {"X-One": "2", "Accept": "text/plain"}}),
        ("GET", "/quoted ü/'?q=ü 'x'", {}),
        ("GET", "/a/../b/./c", {}),
        ("GET", "/a%2Fb%2525", {}),
        ("GET", "/a?", {}),
        ("GET", "/a", {"params": {"q": "x ü'&", "r": ["1", "2"], "s": None, "t": True}}),
        ("GET", "/a?p=1", {"params": {"q": "x y"}}),
        ("get", "/a?set=late=7;Path=/a", {}),
        ("GET", "/a", {"headers": {"cookie": "own=1"}}),
        ("HEAD", "/a", {}),
        ("POST", "/a", {}),
        ("POST", "/a", {"data": fields}),
        ("POST", "/a", {"data": {}}),
        ("POST", "/a", {"data": fields, "headers": {"content-type": "text/x"}}),
        ("POST", "/a", {"json": {"a": ["ü", 1.5, None]}}),
        ("POST", "/a", {"content": b"a=%00"}),
        ("POST", "/a", {"content": "ü", "headers": {"content-type": "text/plain"}}),
        ("BREW", "/a", {}),
    ]

    there, here = (told(echo, way, base, asked) for way in _WAYS)

    assert here == there


def test_a_fault_of_the_app_is_one_of_the_test(echo: FastAPI):
    for way in _WAYS:
        with way(echo, follow_redirects=False) as client, pytest.raises(ZeroDivisionError):
            client.get("/boom")


def test_an_app_that_was_not_started_is_asked_all_the_same(echo: FastAPI):
    assert DirectClient(echo, follow_redirects=False).get("/a").json()["path"] == "/a"
