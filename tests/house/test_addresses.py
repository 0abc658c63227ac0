"""What others rely on stays: addresses, the fields of the API, and those of stored questions."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from app.api.openapi import build_openapi_document
from app.estimator import registry
from app.quiz.store import QUESTION

HERE = Path(__file__).parent


def test_no_address_is_lost(app: FastAPI) -> None:
    now = {
        " ".join((*sorted(route.methods or ()), route.path or ""))
        for route in iter_route_contexts(app.router.routes)
    }
    # What takes a path of several names takes one name as well.
    now |= {address.replace(":path}", "}") for address in now}

    assert set((HERE / "kept_addresses.txt").read_text().splitlines()) - now == set()


def test_no_field_of_the_api_is_lost() -> None:
    schemas = build_openapi_document(registry.list_estimates(), "")["components"]["schemas"]
    now = {f"{n}.{p}" for n, s in schemas.items() for p in s.get("properties", ())}

    assert set((HERE / "kept_fields.txt").read_text().splitlines()) - now == set()


def test_no_field_of_a_stored_question_is_lost() -> None:
    """Each revision that was answered is stored with the names of these fields."""
    schemas = QUESTION.json_schema()
    now = {f"Question.{p}" for p in schemas["properties"]}
    now |= {f"{n}.{p}" for n, s in schemas["$defs"].items() for p in s.get("properties", ())}

    assert set((HERE / "kept_question_fields.txt").read_text().splitlines()) - now == set()
