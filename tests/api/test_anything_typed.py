"""Whatever is sent to an estimate: an answer in real numbers, or a named refusal."""

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.estimator import registry
from app.estimator.hardware import catalog as accelerators
from app.estimator.inputs import input_specs
from app.estimator.models import lookup
from tests.amounts import OF_EACH, each_of_sample

GAPS = {"free", "saved"}  # distances, which go both ways
NAMES = [entry.name for entry in registry.list_estimates()]
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(["70B", "-1", "0", "1e400", "128k", "nan", "8x H100", "½", "{}"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
LISTS = {
    "model": [key for key, _ in lookup.list_models()] + ["10M", "7B", "100T"],
    "gpu": [a.id for a in accelerators.list_accelerators()],
    "system": [s.id for s in accelerators.list_systems()],
    "network": [n.id for n in accelerators.list_network_parts()],
}


def between(field):
    """Values inside of the range, small and large ones alike."""
    low, high = field.minimum or 0.0, field.maximum or 1e12
    start = math.log10(max(low, 1e-6))
    exponents = st.floats(start, max(start, math.log10(max(high, 1e-6))))
    inside = exponents.map(lambda e: min(max(10**e, low), high))
    if field.kind == "count":
        inside = inside.map(lambda v: min(max(round(v), int(low)), int(high)))
    return st.one_of(inside, st.sampled_from([low, high]))


def usable(field):
    """What may be sent for a field: inside of its range or list."""
    if field.kind in LISTS:
        return st.sampled_from(LISTS[field.kind])
    if field.kind == "choice":
        return st.sampled_from([value for value, _ in field.choices])
    if field.kind == "flag":
        return st.booleans()
    if field.kind == "text":
        return st.sampled_from(["", "{}", '{"hidden_size": 64}', "[", "{" * 50])
    return between(field)


def sent_to(entry):
    """Mostly inputs that may be, in any combination; at times anything at all."""
    fields = input_specs(entry.inputs_type)
    good = {name: usable(field) for name, field in fields.items()}
    mixed = {name: st.one_of(values, JUNK) for name, values in good.items()}
    some_good = st.fixed_dictionaries({}, optional=good)
    return st.one_of(
        some_good,
        some_good,
        some_good,
        st.fixed_dictionaries({}, optional=mixed),
        st.dictionaries(st.text(max_size=6), JUNK, max_size=2),
    )


def numbers_in(node):
    if isinstance(node, bool):
        return
    if isinstance(node, int | float):
        yield node
    for inner in node.values() if isinstance(node, dict) else ():
        yield from numbers_in(inner)
    for inner in node if isinstance(node, list) else ():
        yield from numbers_in(inner)


def check_answer(body):
    assert all(math.isfinite(number) for number in numbers_in(body))
    for figure in body["figures"]:
        value = figure["value"]
        if figure["unit"] == "B" and value is not None and figure["name"] not in GAPS:
            assert value >= 0, figure
        if figure["low"] is not None:
            assert figure["low"] <= value <= figure["high"], figure


@each_of_sample("name", NAMES, 5)
def test_anything_is_answered_or_refused_by_name(client, name):
    entry = registry.find_estimate(name)
    known = set(input_specs(entry.inputs_type))

    @settings(OF_EACH, suppress_health_check=list(HealthCheck))
    @given(sent_to(entry))
    def ask(sent):
        answer = client.post(f"/api/v1/estimates/{name}", json=sent)
        assert answer.status_code in {200, 422}, answer.text
        if answer.status_code == 200:
            check_answer(answer.json())
            return
        problems = answer.json()["problems"]
        assert problems
        for problem in problems:
            assert problem["field"] in known | set(sent), problem
            assert problem["message"].endswith((".", "?")), problem

    ask()
