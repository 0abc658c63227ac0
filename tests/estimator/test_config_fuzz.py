"""A pasted config.json, whatever it holds: an answer or a refusal, never a crash."""

import json
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from app.estimator.estimates.model import ModelInputs
from app.estimator.estimates.model import estimate as compute
from app.estimator.inputs import InvalidInputsError

SHAPES = json.loads((Path(__file__).parent / "shapes.json").read_text())
KEYS = sorted({key for shape in SHAPES for key in shape["config"]})
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-10, 10**12)
    | st.floats(allow_nan=True)
    | st.sampled_from(["", "auto", "full_attention", "M-E*", "alternate", "7"])
    | st.lists(st.integers(0, 9) | st.sampled_from(["sliding_attention", "x"]))
    | st.dictionaries(st.sampled_from(["0", "head_dim", "alibi"]), st.integers(0, 9))
)


def answer(text: str) -> None:
    try:
        found = compute(ModelInputs(config=text))
    except InvalidInputsError as refusal:
        (problem,) = refusal.problems
        assert problem.field == "config"
        assert problem.message.endswith(".")
        return
    for figure in found.figures:
        if isinstance(figure.value, int | float):
            assert math.isfinite(figure.value)
            assert figure.value >= 0


@given(
    st.sampled_from(SHAPES),
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4),
    st.sets(st.sampled_from(KEYS), max_size=2),
)
def test_a_configuration_with_any_values_is_answered_or_refused(
    shape: dict, changes: dict, missing: set
) -> None:
    config = {k: v for k, v in shape["config"].items() if k not in missing}
    answer(json.dumps({**config, **changes}))


@given(st.text(max_size=200))
def test_any_text_is_answered_or_refused(text: str) -> None:
    answer(text or "x")


@given(st.recursive(VALUES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_any_json_is_answered_or_refused(value: object) -> None:
    answer(json.dumps(value))


def test_a_deeply_nested_text_is_refused() -> None:
    answer('{"text_config":' * 100_000 + "{}" + "}" * 100_000)
