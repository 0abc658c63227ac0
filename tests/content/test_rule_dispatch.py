"""Rules picked by the character at hand read what all of them read."""

from hypothesis import given
from hypothesis import strategies as st

from app.content.markdown.syntax import _reader, patient_reader, plain, tokens

LEADS = (
    "- _> _ _   _    _\t_1. _# _## _* _+ _~~~_```_$$_| a _[^k]: _[x]: _<!-- _<b>_---"
    "_==="
)
WORDS = (
    r"word [x] [ ] (b) **b** _ ` $1$ <b> &amp; \ ~~ ! {n} # - : ^ [^k] [a](b) | "
    r"https://x.org <i>c</i> [[x|y]] --> 1) é × -- = |---|:-:|"
)
LINES = st.builds(
    lambda leads, words: "".join(leads) + " ".join(words),
    st.lists(st.sampled_from(LEADS.split("_")), max_size=3),
    st.lists(st.sampled_from(WORDS.split(" ")), max_size=6),
)
TEXTS = st.one_of(st.lists(LINES, max_size=12).map("\n".join), st.text(max_size=40))


@given(TEXTS)
def test_the_picked_rules_read_what_all_of_them_read(text: str) -> None:
    patient = [t.as_dict() for t in patient_reader().parse(text)]

    assert [t.as_dict() for t in _reader().parse(text)] == patient


def test_words_alone_lose_their_gaps_and_nothing_else() -> None:
    found = tokens("Two  words\tand  \tmore")

    assert plain(found) == "Two words and more"
