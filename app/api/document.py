"""The OpenAPI document of estimates and course, from the same declarations."""

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from app.api import course
from app.api.schemas import Answer, Problems, inputs_model
from app.estimator.registry import EstimateSpec

_REF = "#/components/schemas/{model}"
CATALOGUES = {
    "models": "Model architectures",
    "accelerators": "Accelerators",
    "systems": "Servers and racks sold as one",
    "networks": "Links, adapters and switches",
}
_COURSE: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("", "The courses of this server", course.CoursesOut),
    ("/{course}", "A course: domains, objectives, topics", course.SyllabusOut),
    ("/{course}/topics/{topic}", "A page, in Markdown and HTML", course.PageOut),
    ("/{course}/glossary", "The terms of a course", course.GlossaryOut),
    ("/{course}/cards", "Cards, of a topic or all", course.CardsOut),
    ("/{course}/questions", "Questions without their answers", course.QuestionsOut),
)
_TOLD = tuple(shape for _, _, shape in _COURSE)
_OF_TOPIC = frozenset({"/{course}/cards", "/{course}/questions"})


def openapi(entries: Sequence[EstimateSpec], version: str) -> dict[str, Any]:
    """Everything under /api/v1 as an OpenAPI 3.1 document."""
    models = {entry.name: inputs_model(entry) for entry in entries}
    shapes: list[type[BaseModel]] = [*models.values(), Answer, Problems, *_TOLD]
    schemas = models_json_schema([(shape, "validation") for shape in shapes], ref_template=_REF)[1]
    paths: dict[str, Any] = {
        "/api/v1/estimates": {"get": _reading("List the estimates, their inputs, units and ranges")}
    }
    for entry in entries:
        schema = schemas["$defs"][models[entry.name].__name__]
        paths[f"/api/v1/estimates/{entry.name}"] = {
            "get": _asked_by_address(entry, schema),
            "post": _asked_by_body(entry, models[entry.name].__name__),
        }
    for name, words in CATALOGUES.items():
        paths[f"/api/v1/catalogue/{name}"] = {"get": _reading(words)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headroom",
            "version": version,
            "description": "Numbers are in base units: B, s, FLOP, W, USD. The same "
            "figures as the calculators and `headroom estimate`. The course is that of "
            "the pages, without the answers to its questions.",
        },
        "paths": paths | _courses(),
        "components": {"schemas": schemas["$defs"]},
    }


def _reading(summary: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "responses": {
            "200": {
                "description": summary,
                "content": {"application/json": {"schema": {"type": "object"}}},
            }
        },
    }


def _courses() -> dict[str, Any]:
    return {
        f"/api/v1/courses{path}": {"get": _of_course(path, words, shape)}
        for path, words, shape in _COURSE
    }


def _of_course(path: str, summary: str, shape: type[BaseModel]) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]
    if path in _OF_TOPIC:
        one: dict[str, Any] = {"name": "topic", "in": "query", "required": False}
        schema = {"type": "string", "maxLength": course.LONGEST}
        parameters.append(one | {"description": "Of one topic only", "schema": schema})
    answers = {"200": _with_schema(summary, shape.__name__)}
    if parameters:
        answers["404"] = _with_schema("There is no such course or topic", "Problems")
    return {"summary": summary, "parameters": parameters, "responses": answers}


def _asked_by_address(entry: EstimateSpec, schema: dict[str, Any]) -> dict[str, Any]:
    parameters = [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": field.get("description", ""),
            "schema": {k: v for k, v in field.items() if k != "description"},
        }
        for name, field in schema["properties"].items()
    ]
    return {
        "summary": entry.summary,
        "operationId": f"get_{_underscored(entry)}",
        "parameters": parameters,
        "responses": _answers(),
    }


def _asked_by_body(entry: EstimateSpec, model: str) -> dict[str, Any]:
    body = {"application/json": {"schema": {"$ref": _REF.format(model=model)}}}
    return {
        "summary": entry.summary,
        "operationId": f"post_{_underscored(entry)}",
        "requestBody": {"required": True, "content": body},
        "responses": _answers(),
    }


def _answers() -> dict[str, Any]:
    return {
        "200": _with_schema("The answer", "Answer"),
        "422": _with_schema("What cannot be used, by field", "Problems"),
    }


def _with_schema(words: str, model: str) -> dict[str, Any]:
    schema = {"$ref": _REF.format(model=model)}
    return {"description": words, "content": {"application/json": {"schema": schema}}}


def _underscored(entry: EstimateSpec) -> str:
    return entry.name.replace("-", "_")
