"""Pydantic schemas and the OpenAPI document."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.json_schema import models_json_schema

from app.api import course
from app.estimator import inputs
from app.estimator.inputs import InputSpec
from app.estimator.registry import EstimateSpec

# The JSON types of a field: base units as a number, or text as in a form.
_JSON_TYPES: dict[str, Any] = {
    "number": float | str,
    "count": int | str,
    "flag": bool | str,
    "text": str | dict[str, Any],
}


class Problem(BaseModel):
    """One mistake in the request."""

    field: str = Field(
        description="Input with the mistake; empty if it is about the whole request."
    )
    message: str


class Problems(BaseModel):
    """All mistakes in a request."""

    problems: list[Problem]
    hint: str = ""


class VerdictOut(BaseModel):
    """The verdict of an estimate, as one sentence."""

    status: Literal["fits", "tight", "no", "info"] = Field(
        description="Whether it fits: `tight` if barely, or if only a part of the range of the "
        "estimate does; `info` if nothing has to fit."
    )
    lead: str = Field(description="The beginning of the sentence.")
    text: str = Field(description="The rest of the sentence.")


class FigureOut(BaseModel):
    """A figure in base units; `low` and `high` are the range of a modeled one."""

    name: str = Field(description="Name in checked figures and expressions.")
    label: str = Field(description="Name on the page.")
    value: float | int | bool | str | None = Field(
        description="In the base unit; null if the inputs do not determine it. The figure `fits` "
        "is true if the most likely values fit; `status` of the verdict weighs their range too."
    )
    unit: str = Field(description="The base unit; empty for a plain number.")
    low: float | None = Field(description="The lower end of the range of a modeled figure.")
    high: float | None = Field(description="The upper end.")
    exact: bool = Field(description="Whether it is computed from the inputs without a model.")
    primary: bool = Field(description="Whether the page shows it first.")
    text: str = Field(description="Value and unit as the page writes them.")
    note: str = Field(description="Why it is unknown, or a remark.")


class StepOut(BaseModel):
    """A formula step: formula, numbers, result, source."""

    label: str = Field(description="What is computed.")
    formula: str = Field(description="The formula in symbols.")
    substituted: str = Field(description="The formula with numbers.")
    value: float = Field(description="In the base unit.")
    unit: str
    source: str = Field(description="Source of the formula or the number.")
    figure: str = Field(description="Name of the figure that this step computes; may be empty.")


class TableOut(BaseModel):
    """A table of texts, or of values with their units."""

    label: str = Field(description="Caption.")
    columns: list[str] = Field(description="Column titles.")
    rows: list[list[Any]] = Field(description="Rows of cells.")


class ChangeOut(BaseModel):
    """A verdict change: the nearest value of an input at which the verdict changes."""

    field: str = Field(description="Name of the input.")
    label: str = Field(description="Name on the page.")
    now: str = Field(description="The present value.")
    flips_at: str = Field(description="The nearest value at which the verdict changes.")
    becomes: str = Field(description="The verdict there.")
    also: dict[str, str] = Field(description="Values of other inputs that have to change with it.")


class Answer(BaseModel):
    """The result of an estimate."""

    estimate: str = Field(description="Name in URLs.")
    title: str = Field(description="Name on the page.")
    inputs: dict[str, Any] = Field(description="All inputs as they were parsed, with defaults.")
    verdict: VerdictOut
    figures: list[FigureOut]
    steps: list[StepOut] = Field(description="The formula steps in order.")
    tables: list[TableOut]
    notes: list[str] = Field(description="Assumptions.")
    changes: list[ChangeOut] = Field(description="What would change the verdict.")
    sections: list["SectionAnswer"] = Field(
        default=[], description="Results of other estimates that this one is made of."
    )


class SectionAnswer(Answer):
    """One section of a larger estimate: the whole result of another."""

    heading: str = Field(description="Heading of the section.")


def build_pydantic_model_of_inputs(entry: EstimateSpec) -> type[BaseModel]:
    """Return the inputs of an estimate as a model: types, units, ranges, defaults, help."""
    defaults = {f.name: f.default for f in dataclasses.fields(entry.inputs_type)}
    fields: dict[str, Any] = {}
    for name, spec in inputs.input_specs(entry.inputs_type).items():
        json_type = _JSON_TYPES.get(spec.kind, str)
        annotation = json_type | None if spec.optional else json_type
        fields[name] = (annotation, _build_field_info(spec, defaults[name]))
    name = entry.name.title().replace("-", "")
    model: type[BaseModel] = create_model(
        f"{name}Inputs",
        __config__=ConfigDict(extra="forbid", protected_namespaces=()),
        __doc__=entry.summary,
        **fields,
    )
    return model


def build_estimate_list_entry(entry: EstimateSpec) -> dict[str, Any]:
    """Return an estimate as the list of estimates shows it: inputs with units and ranges."""
    defaults = {f.name: f.default for f in dataclasses.fields(entry.inputs_type)}
    return {
        "name": entry.name,
        "title": entry.title,
        "summary": entry.summary,
        "group": entry.group,
        "inputs": [
            {
                "name": name,
                "label": spec.label,
                "kind": spec.kind,
                "unit": spec.unit,
                "typed_unit": spec.typed_unit,
                "default": defaults[name],
                "minimum": spec.minimum,
                "maximum": spec.maximum,
                "choices": [value for value, _ in spec.choices],
                "optional": spec.optional,
                "help": spec.help,
            }
            for name, spec in inputs.input_specs(entry.inputs_type).items()
        ],
        "outputs": [
            {name: getattr(output, name) for name in ("name", "label", "unit", "better", "modeled")}
            for output in entry.outputs
        ],
    }


def _build_field_info(spec: InputSpec, default: Any) -> Any:
    sentences = [spec.help or f"{spec.label}."]
    if spec.kind not in {"model", "gpu", "system", "network", "text"}:
        sentences.append(f"Takes {inputs.describe_valid_values(spec)}.")
    if spec.typed_unit and spec.typed_unit == spec.unit:
        sentences.append(f"A number is in {spec.unit}.")
    elif spec.typed_unit:
        number = f"in {spec.unit}" if spec.unit else "a share, so that 0.1 is 10%"
        sentences.append(
            f"A JSON number is {number}; a number in a string without a unit is in {spec.typed_unit}."
        )
    extra: dict[str, Any] = {"x-unit": spec.unit} if spec.unit else {}
    if spec.choices:
        extra["enum"] = [value for value, _ in spec.choices]
    return Field(
        default, title=spec.label, description=" ".join(sentences), json_schema_extra=extra or None
    )


_REF = "#/components/schemas/{model}"
CATALOGUES = {
    "models": "Model architectures",
    "accelerators": "Accelerators",
    "systems": "Servers and racks sold as one",
    "networks": "Links, adapters and switches",
}


def build_openapi_document(entries: Sequence[EstimateSpec], app_version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of everything under /api/v1."""
    models = {entry.name: build_pydantic_model_of_inputs(entry) for entry in entries}
    schema_models: list[type[BaseModel]] = [*models.values(), Answer, Problems]
    schemas = models_json_schema(
        [(model, "validation") for model in schema_models], ref_template=_REF
    )[1]
    paths: dict[str, Any] = {
        "/api/v1/estimates": {
            "get": _build_parameterless_get_operation(
                "List the estimates, their inputs, units and ranges"
            )
        }
    }
    for entry in entries:
        schema = schemas["$defs"][models[entry.name].__name__]
        paths[f"/api/v1/estimates/{entry.name}"] = {
            "get": _estimate_get_operation(entry, schema),
            "post": _estimate_post_operation(entry, models[entry.name].__name__),
        }
    for name, summary in CATALOGUES.items():
        paths[f"/api/v1/catalogue/{name}"] = {"get": _build_parameterless_get_operation(summary)}
    course_document = get_openapi(title="", version="", routes=course.router.routes)
    paths |= {
        path: {"get": _describe_responses(operations["get"])}
        for path, operations in course_document["paths"].items()
    }
    course_schemas = course_document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):  # our routes answer with Problems
        del course_schemas[name]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headroom",
            "version": app_version,
            "description": "Numbers are in base units: B, s, FLOP, W, USD. The same "
            "figures as the calculators and `headroom estimate`. The course is that of "
            "the pages, without the answers to its questions.",
        },
        "paths": paths,
        "components": {"schemas": schemas["$defs"] | course_schemas},
    }


def _build_parameterless_get_operation(summary: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "responses": {
            "200": {
                "description": summary,
                "content": {"application/json": {"schema": {"type": "object"}}},
            }
        },
    }


def _describe_responses(operation: dict[str, Any]) -> dict[str, Any]:
    """Return what FastAPI says of a course endpoint, with the responses that it has here."""
    responses = {"200": operation["responses"]["200"] | {"description": operation["summary"]}}
    sources = {parameter["in"] for parameter in operation.get("parameters", ())}
    if "path" in sources:
        responses["404"] = _build_response_object("There is no such course or topic", "Problems")
    if "query" in sources:
        responses["422"] = _build_response_object("What cannot be used, by field", "Problems")
    return operation | {"responses": responses}


def _estimate_get_operation(entry: EstimateSpec, inputs_schema: dict[str, Any]) -> dict[str, Any]:
    parameters = [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": field.get("description", ""),
            "schema": {k: v for k, v in field.items() if k != "description"},
        }
        for name, field in inputs_schema["properties"].items()
    ]
    return _estimate_operation("get", entry, {"parameters": parameters})


def _estimate_post_operation(entry: EstimateSpec, schema_name: str) -> dict[str, Any]:
    body = {"required": True, "content": _json_content(schema_name)}
    return _estimate_operation("post", entry, {"requestBody": body})


def _estimate_operation(
    method: str, entry: EstimateSpec, parameters_or_body: dict[str, Any]
) -> dict[str, Any]:
    return {
        "summary": entry.summary,
        "operationId": f"{method}_{entry.name.replace('-', '_')}",
        **parameters_or_body,
        "responses": {
            "200": _build_response_object("The answer", "Answer"),
            "422": _build_response_object("What cannot be used, by field", "Problems"),
        },
    }


def _build_response_object(description: str, schema_name: str) -> dict[str, Any]:
    return {"description": description, "content": _json_content(schema_name)}


def _json_content(schema_name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(model=schema_name)}}}
