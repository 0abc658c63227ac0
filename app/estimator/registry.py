"""All estimates by name; run one for typed inputs."""

import dataclasses
import functools
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

from app.estimator.common_inputs import LLAMA_CPP, replace_as_published_formats
from app.estimator.inputs import describe_how_k_suffixes_were_read, input_specs, parse_inputs
from app.estimator.models.architecture import Architecture
from app.estimator.models.lookup import (
    build_model_from_pasted_config,
    describe_how_weights_are_counted,
    find_model,
    list_model_caveats,
    shape_assumed_from_size_notes,
    unread_size_fields_warning,
    wide_weights_warning,
)
from app.estimator.models.weight_formats import GGUF_FORMATS, PUBLISHED
from app.estimator.result import Estimate, OutputSpec


@dataclasses.dataclass(frozen=True, slots=True)
class EstimateSpec:
    """One estimate, as the form, the API and the command line use it.

    `name` is the name in URL, API, command and links (`training-memory`);
    `inputs_type` the frozen dataclass; `compute_estimate` the pure function; `topic` the slug
    of its concept page; `group` the heading it is listed under; `most_important_outputs` the most important
    outputs, of which short results show the first three that are known; `outputs_of_typed_inputs` an
    input and the output that comes before them if it differs from its default; `main_inputs` the inputs
    that a form shows, all that are not advanced if empty; `is_search` is whether it
    compares many computed candidates, so that it may take long.
    """

    name: str
    title: str
    summary: str
    group: str
    inputs_type: type
    compute_estimate: Callable[[Any], Estimate]
    outputs: tuple[OutputSpec[Any], ...]
    topic: str = ""
    most_important_outputs: tuple[str, ...] = ()
    outputs_of_typed_inputs: tuple[tuple[str, str], ...] = ()
    main_inputs: tuple[str, ...] = ()
    is_search: bool = False

    def compute(self, inputs: Any) -> Estimate:
        """Compute the estimate, with notes on weight formats and unread configuration fields."""
        typed, inputs = inputs, replace_as_published_formats(inputs)
        cache = inputs.cache if getattr(typed, "cache", "") == PUBLISHED else ""
        estimate = self.compute_estimate(inputs)
        model = _requested_model(inputs)
        if model is None:
            return estimate
        counted = _weight_format_note(model, inputs)
        if getattr(typed, "weights", "") != getattr(inputs, "weights", ""):
            file = GGUF_FORMATS[inputs.weights]
            counted = f"llama.cpp loads GGUF files: {file}, the usual one, is counted."
        notes = (*shape_assumed_from_size_notes(inputs, model), *list_model_caveats(model))
        verdict, is_llama_cpp = estimate.verdict, getattr(inputs, "engine", "") == LLAMA_CPP
        if cache and is_llama_cpp:
            notes += ("KV cache in F16, as llama.cpp keeps it unless -ctk and -ctv say otherwise.",)
        elif cache == "bf16":
            notes += ("KV cache in BF16, as engines keep it where the checkpoint names no format.",)
        elif cache:
            counted = f"{counted} KV cache as published: {cache.upper()}."
        return dataclasses.replace(
            estimate,
            verdict=dataclasses.replace(
                verdict,
                lead=" ".join(filter(None, (*_model_warnings(model, inputs), verdict.lead))),
                text=f"{verdict.text} {counted}".strip(),
            ),
            notes=estimate.notes + notes,
        )

    def list_most_important_outputs(self, inputs: Any) -> tuple[str, ...]:
        """Return the outputs that matter most with these inputs, first those asked for by a typed one."""
        preset = self.inputs_type()
        asked_for = tuple(
            output
            for name, output in self.outputs_of_typed_inputs
            if getattr(inputs, name) != getattr(preset, name)
        )
        return tuple(dict.fromkeys((*asked_for, *self.most_important_outputs)))

    def compute_with_k_suffix_notes(
        self, inputs: Any, typed_by_field: Mapping[str, Any]
    ) -> Estimate:
        """Compute the estimate, and say how the numbers of tokens that were typed were read."""
        estimate = self.compute(inputs)
        reading = describe_how_k_suffixes_were_read(self.inputs_type, typed_by_field)
        return dataclasses.replace(estimate, notes=(*filter(None, [reading]), *estimate.notes))


def _requested_model(inputs: Any) -> Architecture | None:
    pasted = getattr(inputs, "config", "").strip()
    if pasted:
        return build_model_from_pasted_config(pasted)
    name = getattr(inputs, "model", "")
    return find_model(name) if name else None


def _model_warnings(model: Architecture, inputs: Any) -> tuple[str, ...]:
    weights = inputs.weights if _weight_formats_by_name(inputs) else ""
    return (unread_size_fields_warning(model), wide_weights_warning(model, weights))


def _weight_formats_by_name(inputs: Any) -> Mapping[str, str]:
    """Return the labels of the formats to choose from; empty where none is that of the model."""
    kind: type = type(inputs)
    field = input_specs(kind).get("weights")
    if field is None or getattr(inputs, "job", "serving") != "serving":
        return {}
    text = dict(field.choices)
    return text if PUBLISHED in text else {}


def _weight_format_note(model: Architecture, inputs: Any) -> str:
    text = _weight_formats_by_name(inputs)
    if not text:
        return ""
    return describe_how_weights_are_counted(model, inputs.weights, text[inputs.weights])


# All estimates, in display order. Each module `estimates/NAME_report.py`, or `NAME.py` of a short
# one, is imported when it is first used.
ESTIMATE_NAMES = (
    "training-run",
    "deployment",
    "model",
    "weights",
    "kv-cache",
    "inference-memory",
    "training-memory",
    "training-time",
    "parallelism-plan",
    "latency",
    "serving-capacity",
    "collectives",
    "fabric",
    "storage",
    "power-cooling",
    "cost",
    "quantization",
    "mig",
    "accelerator-choice",
)


def list_estimates() -> tuple[EstimateSpec, ...]:
    return tuple(entry for name in ESTIMATE_NAMES if (entry := find_estimate(name)))


@functools.cache
def find_estimate(name: str) -> EstimateSpec | None:
    """Return the estimate called `name` (hyphens or underscores), or None."""
    known = name.replace("_", "-")
    if known not in ESTIMATE_NAMES:
        return None
    module = f"app.estimator.estimates.{known.replace('-', '_')}"
    report_module = f"{module}_report"
    has_report_module = importlib.util.find_spec(report_module) is not None
    entry: EstimateSpec = importlib.import_module(
        report_module if has_report_module else module
    ).ENTRY
    return entry


def require_estimate(name: str) -> EstimateSpec:
    """Return the estimate called `name`; raises KeyError for an unknown name."""
    entry = find_estimate(name)
    if entry is None:
        raise KeyError(name)
    return entry


def run_estimate(name: str, typed_by_field: Mapping[str, Any]) -> Estimate:
    """Compute the estimate `name` for typed inputs.

    Raises KeyError for an unknown name and `InvalidInputsError` for unusable inputs.
    """
    entry = require_estimate(name)
    return entry.compute(parse_inputs(entry.inputs_type, typed_by_field))
