"""An excerpt begins where a sentence or a row of a table does."""

from hypothesis import given
from hypothesis import strategies as st

from app.lessons.search import CLOSE, OPEN, build_excerpt, split_highlights


def marked(text: str) -> str:
    """Stars stand for the marks."""
    first, *others = text.split("*")
    marks = (OPEN, CLOSE) * len(others)
    return first + "".join(m + o for m, o in zip(marks, others, strict=False))


def shown(text: str) -> str:
    return build_excerpt(marked(text)).replace(OPEN, "").replace(CLOSE, "")


def test_it_begins_with_the_row_and_not_with_the_head_of_a_table() -> None:
    assert shown(
        "It is reported. Claim, What to do; 50 questions in 60 minutes, plan with it, "
        "as the *mock* *exams* here do; NVIDIA says that counts may change; Price of "
        "the exam, 125 dollars; and more rows."
    ) == ("…50 questions in 60 minutes, plan with it, as the mock exams here do…")


def test_it_ends_with_its_sentence_where_that_is_long_enough() -> None:
    assert shown(
        "Know the terms CapEx (investment), OpEx (running cost), *TCO*, egress fee, "
        "lock-in and utilization, and what DGX Cloud is. Pizza. IaaS rents a kitchen."
    ) == (
        "Know the terms CapEx (investment), OpEx (running cost), TCO, egress fee, "
        "lock-in and utilization, and what DGX Cloud is."
    )


def test_the_place_with_most_of_the_words_is_shown() -> None:
    far = " ".join(["word"] * 40)

    assert shown(f"A *cache* here. {far}. The *kv* *cache* grows.") == ("…The kv cache grows.")


def test_a_hit_far_into_a_sentence_has_some_words_before_it() -> None:
    far = " ".join(f"w{n}" for n in range(60))

    assert shown(f"{far} *cache* end.") == ("…w52 w53 w54 w55 w56 w57 w58 w59 cache end.")


def test_without_a_hit_it_is_the_beginning() -> None:
    assert shown("One. " + "two " * 40) == "One." + " two" * 25 + "…"
    assert shown("") == ""


@given(st.lists(st.sampled_from(["a", "b.", "c;", "*d*", "*e f*", "*g.*"]), max_size=90))
def test_an_excerpt_is_short_and_shows_a_hit_where_there_is_one(
    some: list[str],
) -> None:
    text = marked(" ".join(some))
    made = build_excerpt(text)

    assert len(made.split()) <= 26
    assert any(p.is_match for p in split_highlights(made)) == (OPEN in text)
