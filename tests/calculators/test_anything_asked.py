"""Whatever stands in an address: a page or fragment, never a fault."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.estimator import registry
from app.estimator.inputs import input_specs
from tests.amounts import OF_EACH, each_of_sample

NAMES = [entry.name for entry in registry.list_estimates()]
WORDS = st.one_of(
    st.text(max_size=12),
    st.integers(-10, 10**20).map(str),
    st.floats().map(str),
    st.sampled_from(["", "70B", "128k", "8x H100", "1e400", "%", "<i>raw", "½", "yes"]),
)
FORMS = ("", "/result", "/reading", "/compare", "/compare/result", "/result.md")


@each_of_sample("name", NAMES, 5)
def test_anything_asked_of_a_calculator_is_answered_or_refused(client, name):
    fields = list(input_specs(registry.find_estimate(name).inputs_type))
    names = st.one_of(
        st.sampled_from(fields),
        st.sampled_from(fields).map(lambda f: f"b.{f}"),
        st.sampled_from(["scenarios", "c.", ".", "a.b.c"]),
        st.text(max_size=5),
    )

    @settings(OF_EACH, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(FORMS), st.dictionaries(names, WORDS, max_size=4))
    def ask(form, typed):
        answer = client.get(f"/calculators/{name}{form}", params=typed, follow_redirects=True)
        assert answer.status_code in {200, 422}, (form, typed)
        assert "<i>raw" not in answer.text

    ask()
