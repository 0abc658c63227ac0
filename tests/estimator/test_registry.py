"""Every estimate keeps the promises of its entry, on every face alike."""

import dataclasses
import functools
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.content.file_reader import parse_file
from app.estimator.data_files import SOURCES
from app.estimator.hardware.catalog import list_network_parts, list_systems
from app.estimator.inputs import (
    InputProblem,
    InputSpec,
    InvalidInputsError,
    input_specs,
    non_default_inputs_to_query,
    parse_inputs,
)
from app.estimator.registry import (
    ESTIMATE_NAMES,
    EstimateSpec,
    find_estimate,
    list_estimates,
    run_estimate,
)
from app.estimator.result import Chart, Estimate, StackedBar, Timeline
from tests.amounts import OF_EACH, each_of_sample

ENTRIES = list_estimates()
SYLLABUS = Path(__file__).parents[2] / "content" / "syllabus.toml"
each_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
FIELDS = [(entry, name) for entry in ENTRIES for name in input_specs(entry.inputs_type)]

# Further questions in which inputs count that do not count by default. They are asked after
# the defaults, unless those are named here.
CONTEXTS: dict[str, list[dict[str, Any]]] = {
    "kv-cache": [
        {"tensor_parallel": 4},
        {"context": 1001},
        {"model": "mamba-2.8b"},
    ],
    "inference-memory": [
        {"model": "mistral-7b-v0.1"},
        {"context": 1001},
        {"engine": "transformers"},
    ],
    "training-memory": [
        {"framework": "transformers", "zero": "0", "gpus": "1"},
        {"framework": "torch"},
        {"method": "lora", "recompute": "none"},
        {"method": "qlora"},
        {"zero": "1", "tensor_parallel": 4},
        {"pipeline_parallel": 4, "recompute": "none"},
        {"pipeline_parallel": 4, "micro_batches": 2, "recompute": "none"},
        {"model": "mixtral-8x7b", "pipeline_parallel": 2, "gpus": 32},
        {"tensor_parallel": 4, "recompute": "none", "gpus": 32},
    ],
    "training-time": [
        {"method": "lora"},
        {"model": "mixtral-8x7b", "expert_parallel": 8},
        {"tensor_parallel": 4},
        {"pipeline_parallel": 4},
    ],
    "latency": [
        {"draft_tokens": 4},
        {"model": "llama-3.1-70b", "tensor_parallel": 16},
        {"model": "llama-3.1-70b", "tensor_parallel": 8},
    ],
    "serving-capacity": [
        {"draft_tokens": 4},
        {"requests_per_second": 5.0, "simulate": True},
        {"tensor_parallel": 16},
        {"requests_per_second": 30.0, "replicas": 4},
        {"model": "mixtral-8x7b"},
        {"model": "llama-3.1-8b", "prefill_gpus": 2, "decode_gpus": 2},
    ],
    "deployment": [
        {"model": "mixtral-8x7b", "tensor_parallel": 8},
        {"model": "llama-3.1-8b", "prefill_gpus": 2, "decode_gpus": 2},
    ],
    "collectives": [{"gpus": 64}, {"gpus": 8, "domain": 4}],
    "fabric": [{"nodes": 8}],
    "power-cooling": [{"system": "gb200-nvl72"}, {"liquid": 0.8}],
    "weights": [{"weights": "awq-int4"}, {"model": "gpt-oss-20b"}],
    # To rank all GPUs for a training searches layouts of each: one is asked about first.
    "accelerator-choice": [
        {"job": "training", "model": "7B", "only": "h100-sxm5-80"},
        {},
        {"rank": "speed"},
        {"prices": "h100 4, h200 5"},
    ],
    "mig": [{"instances": "1g.10gb"}],
}


@functools.cache
def topics() -> set[str]:
    """The slugs of all concept pages that the syllabus names."""
    objectives = tomllib.loads(SYLLABUS.read_text())
    return set(re.findall(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*", str(objectives)))


@functools.cache
def terms() -> set[str]:
    """The anchors of the glossary of the course."""
    text = SYLLABUS.with_name("glossary.md").read_text()
    return {term.anchor for term in parse_file(text, "glossary.md").glossary_terms}


def answered(entry: EstimateSpec) -> Estimate:
    return entry.compute(entry.inputs_type())


def test_every_name_has_its_estimate() -> None:
    assert [entry.name for entry in ENTRIES] == list(ESTIMATE_NAMES)


def test_an_estimate_is_found_by_hyphens_and_underscores() -> None:
    assert find_estimate("kv_cache") is find_estimate("kv-cache")
    assert find_estimate("horoscope") is None
    with pytest.raises(KeyError):
        run_estimate("horoscope", {})


@each_entry
def test_defaults_have_an_answer_with_every_promised_figure(entry: EstimateSpec) -> None:
    found = answered(entry)
    assert found.name == entry.name
    assert found.verdict.lead
    assert found.verdict.text.endswith((".", "!"))
    assert [figure.output for figure in found.figures] == list(entry.outputs)


@each_entry
def test_figures_have_one_name_and_one_is_the_answer(entry: EstimateSpec) -> None:
    found = answered(entry)
    names = [figure.name for figure in found.figures]
    assert len(names) == len(set(names))
    assert any(figure.primary for figure in found.figures)


@each_entry
def test_no_figure_is_infinite_or_nan(entry: EstimateSpec) -> None:
    assert_finite(answered(entry))


def assert_finite(found: Estimate) -> None:
    for figure in found.figures:
        assert figure.is_exact or figure.output.modeled, figure
        for value in (figure.value, figure.low, figure.high):
            if isinstance(value, float):
                assert math.isfinite(value), figure
        if figure.low is not None:
            assert figure.high is not None
            assert figure.low <= figure.high
    assert all(math.isfinite(step.value) for step in found.steps)


@each_entry
def test_a_stated_interval_holds_its_value(entry: EstimateSpec) -> None:
    for figure in answered(entry).figures:
        if figure.low is not None and isinstance(figure.value, int | float):
            assert figure.low <= figure.value <= figure.high


@each_entry
def test_the_working_leads_to_sources_and_topics_that_exist(entry: EstimateSpec) -> None:
    found = answered(entry)
    figures = {figure.name for figure in found.figures}
    assert found.steps
    for step in found.steps:
        assert step.source == "" or step.source in SOURCES
        assert step.topic == "" or step.topic in topics()
        assert step.output_name == "" or step.output_name in figures
        assert step.formula
        assert step.substituted


@each_entry
def test_pictures_are_drawn_from_finite_numbers(entry: EstimateSpec) -> None:
    for picture in answered(entry).pictures:
        assert picture.label
        if isinstance(picture, StackedBar):
            assert all(s.value >= 0 for s in picture.segments)
        if isinstance(picture, Chart):
            points = [p for line in picture.lines for p in line.points]
            assert all(math.isfinite(x) and math.isfinite(y) for x, y in points)
        if isinstance(picture, Timeline):
            assert all(span.start <= span.end for span in picture.spans)


@each_entry
def test_tables_are_as_wide_as_their_head(entry: EstimateSpec) -> None:
    for table in answered(entry).tables:
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_an_input_carries_what_every_face_needs(subtests: pytest.Subtests) -> None:
    for entry, field in FIELDS:
        with subtests.test(f"{entry.name}.{field}"):
            meaning = input_specs(entry.inputs_type)[field]
            assert meaning.label
            assert meaning.help.endswith(".")
            assert meaning.topic == "" or meaning.topic in topics()
            assert meaning.term == "" or meaning.term in terms()
            if meaning.kind in {"count", "number"}:
                assert meaning.minimum is not None
                assert meaning.maximum is not None
            if meaning.kind == "choice":
                assert len(meaning.choices) > 1


def others(meaning: InputSpec, now: Any) -> list[Any]:
    """Other values of an input, near and far."""
    if meaning.kind == "choice":
        return [value for value, _ in meaning.choices if value != now]
    if meaning.kind == "flag":
        return [not now]
    named = {
        "model": ["llama-3.1-8b", "mixtral-8x7b", "7B", "deepseek-v3"],
        "gpu": ["l4", "b200-sxm", "a100-sxm4-80"],
        "system": [s.id for s in list_systems()],
        "network": [n.id for n in list_network_parts() if n.kind == "switch"],
        "text": ["1g.10gb", CONFIG, "more", "h200 5, l40s 1"],
    }
    if meaning.kind in named:
        return [value for value in named[meaning.kind] if value != now]
    return numbers(meaning, now)


CONFIG = (
    '{"model_type":"llama","hidden_size":512,"num_hidden_layers":4,'
    '"num_attention_heads":8,"intermediate_size":1024,"vocab_size":1000}'
)


def numbers(meaning: InputSpec, now: float | None) -> list[float]:
    least, most = meaning.minimum or 0, meaning.maximum or 1e9
    base = now if now is not None else max(1, least)
    values = [
        base * 2,
        base * 4,
        base / 2,
        base * 8,
        base + 1,
        least,
        most,
        base * 1000,
    ]
    kind = int if meaning.kind == "count" else float
    return [kind(v) for v in values if least <= v <= most and v != now]


def asked(
    entry: EstimateSpec, words: dict[str, Any]
) -> tuple[Estimate | None, tuple[InputProblem, ...]]:
    try:
        return entry.compute(parse_inputs(entry.inputs_type, words)), ()
    except InvalidInputsError as refusal:
        return None, refusal.problems


def moved(entry: EstimateSpec, typed: dict[str, Any], fields: list[str]) -> list[str]:
    """Those fields another value of which gets another answer; a refusal is none."""
    before = asked(entry, typed)[0]
    assert before is not None, typed
    inputs = parse_inputs(entry.inputs_type, typed)
    return [
        field
        for field in fields
        if any(
            asked(entry, {**typed, field: value})[0] not in (None, before)
            for value in others(input_specs(entry.inputs_type)[field], getattr(inputs, field))
        )
    ]


@each_of_sample("entry", list_estimates(), 6, ids=lambda entry: entry.name)
def test_every_input_moves_something(entry: EstimateSpec) -> None:
    contexts = CONTEXTS.get(entry.name, [])
    still = list(input_specs(entry.inputs_type))
    for context in contexts if {} in contexts else [{}, *contexts]:
        done = moved(entry, context, still)
        still = [field for field in still if field not in done]
    assert still == []


@each_entry
def test_a_link_gives_the_inputs_back(entry: EstimateSpec) -> None:
    defaults = entry.inputs_type()
    assert non_default_inputs_to_query(defaults) == {}
    for name, meaning in input_specs(entry.inputs_type).items():
        for value in others(meaning, getattr(defaults, name))[:2]:
            changed = dataclasses.replace(defaults, **{name: value})
            assert parse_inputs(entry.inputs_type, non_default_inputs_to_query(changed)) == changed


def typed(entry: EstimateSpec) -> st.SearchStrategy[dict[str, Any]]:
    """Inputs as somebody might type them, sensible and not."""
    junk = st.sampled_from(["", "0", "-1", "nan", "1e400", "x", "9" * 40, "½", "70B"])
    fields = {}
    for name, meaning in input_specs(entry.inputs_type).items():
        good = st.sampled_from(others(meaning, None) or [""])
        fields[name] = good | junk
    return st.dictionaries(st.sampled_from(sorted(fields)), st.none(), max_size=6).flatmap(
        lambda keys: st.fixed_dictionaries({k: fields[k] for k in keys})
    )


@each_entry
@OF_EACH
@given(data=st.data())
def test_any_input_has_an_answer_or_a_named_problem(
    entry: EstimateSpec, data: st.DataObject
) -> None:
    words = data.draw(typed(entry))
    found, problems = asked(entry, words)
    known = set(input_specs(entry.inputs_type)) | set(words)
    assert {problem.field for problem in problems} <= known
    assert all(p.message.endswith((".", "?")) for p in problems)
    if found is None:
        assert problems
        return
    assert_finite(found)
    for figure in found.figures:
        if figure.unit == "B" and figure.name not in {"free", "saved", "room"}:
            assert figure.value is None or figure.value >= 0
