"""Addresses and inputs that cannot be read at all."""

from fastapi.testclient import TestClient


def test_an_address_with_a_word_for_a_number_is_not_found(rosa: TestClient):
    answer = rosa.get("/exams/sittings/abc/report")

    assert answer.status_code == 404
    assert "There is no page at this address." in answer.text


def test_a_long_input_is_not_repeated_in_full(client: TestClient):
    answer = client.get("/search", params={"q": "x" * 5_000})

    assert answer.status_code == 422
    assert "Search: enter at most 400 characters" in answer.text
    assert "x" * 100 not in answer.text
