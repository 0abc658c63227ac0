"""Requests with parts that are too long."""

import pytest
from fastapi.testclient import TestClient

KILO = 1024

KILO = 1024


@pytest.mark.parametrize("address", ["/", "/glossary", "/calculators/kv-cache/result"])
def test_cookies_that_are_too_long_are_refused(client: TestClient, address: str):
    answer = client.get(address, headers={"cookie": "x=" + "y" * 9 * KILO})

    assert answer.status_code == 431
    assert "at most 8,192 are read" in answer.text


def test_cookies_that_come_in_several_lines_are_counted_together(client: TestClient):
    lines = [("cookie", f"x{n}=" + "y" * 7 * KILO) for n in range(4)]

    assert client.get("/", headers=lines).status_code == 431
    assert client.get("/", headers=lines[:1]).status_code == 200


@pytest.mark.parametrize("hosts", [("evil.example", "a"), ("a", "a")])
def test_a_request_with_two_hosts_is_refused(client: TestClient, hosts):
    client.get("/glossary")

    answer = client.get("/glossary", headers=[("host", host) for host in hosts])

    assert answer.status_code == 400
    assert "more than one Host" in answer.text


def test_a_query_that_is_too_long_is_refused(client: TestClient):
    answer = client.get("/calculators/kv-cache/result?model=" + "x" * 60 * KILO)

    assert answer.status_code == 414
    assert "at most 16,384 are read" in answer.text
