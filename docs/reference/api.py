"""docs/api.md: addresses, answers and inputs from the OpenAPI description."""

from collections.abc import Iterator
from typing import Any

from app.api.openapi import build_openapi_document
from app.estimator import registry
from docs.reference.parts import DOCS, code, filled, table

PATH = DOCS / "api.md"
_ESTIMATE = "/api/v1/estimates/"
_SHAPES = ("Answer", "VerdictOut", "FigureOut", "StepOut", "TableOut", "ChangeOut")
_COURSE = (
    *("CourseOut", "SyllabusOut", "TopicOut", "PageOut", "TermOut", "CardOut"),
    "QuestionOut",
)
Spec = dict[str, Any]


def document() -> str:
    """The document as it has to be."""
    spec = build_openapi_document(registry.list_estimates(), "")
    parts = {
        "addresses": _addresses(spec),
        "answers": _answers(spec),
        "problems": _shape("Problems", spec) + "\n\n" + _shape("Problem", spec),
        "estimates": _estimates(spec),
        "course": "\n\n".join(_shape(name, spec) for name in _COURSE),
    }
    return filled(PATH.read_text(encoding="utf-8"), parts)


def _addresses(spec: Spec) -> str:
    rows = (
        (", ".join(way.upper() for way in ways), code(path), _summary(ways))
        for path, ways in spec["paths"].items()
    )
    return table(("methods", "address", "answers"), rows)


def _summary(ways: Spec) -> str:
    return str(next(iter(ways.values()))["summary"])


def _answers(spec: Spec) -> str:
    return "\n\n".join(_shape(name, spec) for name in _SHAPES)


def _shape(name: str, spec: Spec) -> str:
    shape = spec["components"]["schemas"][name]
    rows = (
        (code(field), _type(one), one.get("description", ""))
        for field, one in shape["properties"].items()
    )
    words = shape.get("description", "")
    return f"**{name.removesuffix('Out')}.** {words}\n\n" + table(
        ("field", "type", "meaning"), rows
    )


def _type(schema: Spec) -> str:
    """A schema in a few words: “number or null”, “list of Figure”."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2].removesuffix("Out")
    if "enum" in schema:
        return "one of " + ", ".join(code(str(word)) for word in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items') or {'type': 'values'})}"
    return str(schema.get("type", "any value"))


def _estimates(spec: Spec) -> str:
    return "\n\n".join(_estimate(path, ways) for path, ways in _asked(spec))


def _asked(spec: Spec) -> Iterator[tuple[str, Spec]]:
    for path, ways in spec["paths"].items():
        if path.startswith(_ESTIMATE):
            yield path.removeprefix(_ESTIMATE), ways["get"]


def _estimate(name: str, way: Spec) -> str:
    rows = (
        (
            code(one["name"]),
            _default(one["schema"].get("default")),
            one["schema"].get("x-unit", ""),
            _meaning(one),
        )
        for one in way["parameters"]
    )
    return f"### {code(name)}\n\n{way['summary']}\n\n" + table(
        ("input", "default", "unit", "meaning"), rows
    )


def _default(value: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return code("yes" if value else "no")
    return code(f"{value:.15g}" if isinstance(value, float) else str(value))


def _meaning(parameter: Spec) -> str:
    return str(parameter["description"]).replace("|", "\\|").replace("\n", " ")
