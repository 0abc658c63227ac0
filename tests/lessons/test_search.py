"""`find`: what a search has, in which order, and what it must never tell."""

import pytest

from app.content.course import Course, load_course
from app.lessons.search import SearchHit, SearchResults, list_search_documents, search_course
from tests.conftest import TINY

COURSE = {
    "syllabus.toml": (TINY / "syllabus.toml").read_text(),
    "sources.toml": (TINY / "sources.toml").read_text(),
    "glossary.md": (TINY / "glossary.md").read_text(),
}


def titles(found: SearchResults, kind: str = "") -> list[str]:
    return [text(hit) for hit in found.hits if kind in ("", hit.kind)]


def text(hit: SearchHit) -> str:
    return "".join(piece.text for piece in hit.title)


def everything(found: SearchResults) -> str:
    return " ".join(piece.text for hit in found.hits for piece in (*hit.title, *hit.excerpt))


def test_all_four_kinds_are_found(course: Course):
    kinds = {hit.kind for words in ("cache", "size") for hit in search_course(course, words).hits}

    assert kinds == {"page", "term", "card", "calculator"}


def test_what_is_called_so_comes_first(course: Course):
    first = search_course(course, "kv cache").hits[0]

    assert text(first).casefold() == "kv cache"


@pytest.mark.parametrize("words", ["EAGLE", "MTP", "speculation"])
def test_speculation_is_found_by_the_names_of_its_kinds(shipped: Course, words: str):
    hits = search_course(shipped, words).hits[:2]

    assert "What does speculation bring?" in [text(hit) for hit in hits]


@pytest.mark.parametrize("words", ["settings", "setting", "change settings"])
def test_the_settings_come_first_of_what_speaks_of_settings(shipped: Course, words: str):
    first = search_course(shipped, words).hits[0]

    assert (text(first), first.url) == ("Settings", "/settings")


def test_the_beginning_of_a_word_is_enough(course: Course):
    assert titles(search_course(course, "param"), "term") == ["Parameter"]


def test_every_word_must_be_there(course: Course):
    both = search_course(course, "weights parameters")
    one = search_course(course, "weights")

    assert 0 < both.hit_count < one.hit_count


def test_a_plural_finds_the_singular(course: Course):
    assert "Parameter" in titles(search_course(course, "parameters"), "term")


def test_large_letters_and_accents_do_not_matter(course: Course):
    assert titles(search_course(course, "PARAMÉTER")) == titles(search_course(course, "parameter"))


def test_the_words_that_led_there_are_marked(course: Course):
    hit = next(h for h in search_course(course, "param").hits if h.kind == "term")

    assert [p.text for p in hit.title if p.is_match] == ["Parameter"]


@pytest.mark.parametrize("typed", ["paramter", "parmaeter", "parametre", "paraemter"])
def test_a_slip_of_the_finger_is_forgiven(course: Course, typed: str):
    found = search_course(course, typed)

    assert found.corrected_query.startswith("parameter")
    assert "Parameter" in titles(found)


@pytest.mark.parametrize("typed", ["TCO", "TPU", "MIG", "Groq"])
def test_an_acronym_is_no_slip_of_the_finger(course: Course, typed: str):
    assert search_course(course, typed).corrected_query == ""


def test_what_the_app_has_is_found_by_its_usual_name(course: Course, subtests: pytest.Subtests):
    for typed, address in [
        ("mock exam", "/exams"),
        ("mock exams", "/exams"),
        ("practice test", "/exams"),
        ("pass mark", "/settings"),
        ("passing score", "/settings"),
        ("study plan", "/plan"),
        ("bury a card", "/flashcards/deck"),
        ("suspend card", "/flashcards/deck"),
    ]:
        with subtests.test(typed=typed, address=address):
            found = search_course(course, typed)

            assert (found.hits[0].url, found.corrected_query) == (address, "")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("data centre", "data center"),
        ("quantisation", "quantization"),
        ("virtualised", "virtualized"),
        ("utilisation", "utilization"),
    ],
)
def test_both_spellings_find_the_same(shipped: Course, one: str, other: str):
    first, second = search_course(shipped, one), search_course(shipped, other)

    assert first.hit_count == second.hit_count > 0
    assert first.corrected_query == second.corrected_query == ""
    assert {hit.url for hit in first.hits} == {hit.url for hit in second.hits}


@pytest.mark.parametrize("typed", ["asdfqwer", "qwertyuiop"])
def test_letters_at_random_are_no_slip_of_the_finger(shipped: Course, typed: str):
    assert search_course(shipped, typed).corrected_query == ""


def test_only_the_wrong_word_is_mended(course: Course):
    assert search_course(course, "kv cahce").corrected_query == "kv cache"


def test_some_of_the_words_are_better_than_nothing(course: Course):
    found = search_course(course, "parameter zzzzzzzz")

    assert found.corrected_query == "parameter"
    assert not found.match_only_some_words
    assert "Parameter" in titles(found)


def test_words_that_never_stand_together_are_not_called_a_slip(course: Course):
    found = search_course(course, "mock parameter")

    assert found.match_only_some_words
    assert found.hit_count > 0


def test_nothing_is_made_up_for_words_like_none(course: Course):
    assert search_course(course, "zzzzzzzz") == SearchResults()


def test_no_words_can_break_it(course: Course, subtests: pytest.Subtests):
    for typed in [
        "",
        "   ",
        '"',
        "*",
        "AND",
        "NOT weights",
        'a"b',
        "(",
        "title:weights",
        "\x00",
        "weights\x00cache",
        "^",
        "-",
        "NEAR(a b)",
        "💥",
        "a" * 5000,
        "x " * 500,
    ]:
        with subtests.test(typed=typed):
            assert isinstance(search_course(course, typed), SearchResults)


@pytest.mark.parametrize(
    "typed",
    [
        "para\u00admeter",
        "\ufeffparameter\u200b",
        "\u2067para\u2060meter\u2069",
        "para\u200dmeter",
        "„parameter“",
        "«parameter»",
        "parameter。",
        "ｐａｒａｍｅｔｅｒ",  # noqa: RUF001 - as typed on a Japanese keyboard
        "parame\u0301ter",
    ],
)
def test_what_nobody_sees_makes_no_difference(course: Course, typed: str):
    found = search_course(course, typed)

    assert (found.corrected_query, titles(found)) == (
        "",
        titles(search_course(course, "parameter")),
    )


def test_what_nobody_sees_in_a_text_hides_it_from_no_search(tmp_path):
    pages = {**COURSE, "glossary.md": "## Quo\u00adkka\n\nA mar\u200bsupial, ﬁerce.\n"}
    for name, words in pages.items():
        path = tmp_path / "course" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words)
    course = load_course(tmp_path / "course")

    for typed in ("quokka", "marsupial", "fierce", "quo\u00adkka"):
        assert titles(search_course(course, typed), "term") == ["Quokka"]


def test_a_hit_leads_to_its_section(course: Course):
    section = course.topics["weights"].sections[1]

    addresses = [hit.url for hit in search_course(course, section.title).hits]

    assert f"/concepts/weights#{section.anchor}" in addresses


def test_no_back_of_a_card_is_ever_found(course: Course):
    found = search_course(course, "bytes per parameter")

    assert "Size of the weights" in titles(search_course(course, "size weights"), "card")
    assert "Parameters × bytes per parameter." not in everything(found)
    assert all("~r" not in hit.url for hit in found.hits)


@pytest.fixture
def guarded(tmp_path) -> Course:
    """A course whose answers consist of words that stand nowhere else."""
    pages = {
        **COURSE,
        "topics/weights/concept.md": """---
title: Weights
objective: 1.1
summary: What they are.
sources: [herd]
---

## A section

Some visible prose.

### Which animal guards the page?
<!-- q: guard-card
type: card
-->

The quokka.

### What is asked?
<!-- q: guard-q
type: single
difficulty: 1
source: herd
-->

- [x] axolotl
  > numbat
- [ ] wombat
  > dugong
- [ ] potoroo
  > bilby

> echidna
""",
        "topics/weights/cards.md": """---
title: Cards
objective: 1.1
source: herd
---

### Front animal
<!-- q: guard-both
type: card
reverse: yes
-->

The cassowary.
""",
    }
    for name, words in pages.items():
        path = tmp_path / "course" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words)
    return load_course(tmp_path / "course")


def test_the_answers_of_the_course_are_in_no_document(guarded: Course):
    assert {"guard-card", "guard-both", "guard-both~r"} <= set(guarded.cards)
    assert "guard-q" in guarded.questions
    assert "quokka" in " ".join(s.plain for s in guarded.topics["weights"].sections)
    assert titles(search_course(guarded, "animal"), "card")
    for answer in ("quokka", "cassowary", "axolotl", "wombat", "echidna", "numbat"):
        assert search_course(guarded, answer).hits == ()
        assert answer not in everything(search_course(guarded, "prose animal asked weights"))


def test_another_state_of_the_course_is_another_index(course: Course, guarded: Course):
    assert search_course(guarded, "visible prose").hit_count == 1
    assert "Some visible prose" not in everything(search_course(course, "visible prose"))
    assert search_course(guarded, "visible prose").hit_count == 1


def test_a_part_is_told_in_whole_sentences(course: Course) -> None:
    parts_ = [d for d in list_search_documents(course, ()) if d.kind == "part"]

    assert parts_
    assert not [d.title for d in parts_ if ".." in d.body or not d.body]
    link = next(d for d in parts_ if d.title.startswith("NVLink 4"))
    assert link.body == "NVIDIA. Bandwidth 450 GB/s one way. All links of an H100 or H200."


@pytest.mark.parametrize("name", ["H100-80GB", "H100-SXM-80GB", "A100-PCIe-40GB"])
def test_a_part_is_found_by_its_other_names(course: Course, name: str) -> None:
    found = [hit for hit in search_course(course, name).hits if hit.kind == "part"]

    assert found


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("datacenter", "data center"),
        ("tensorcore", "tensor core"),
        ("datacentre power", "data centre power"),
    ],
)
def test_two_words_written_as_one_are_parted(shipped: Course, typed: str, meant: str):
    found = search_course(shipped, typed)

    assert (found.corrected_query, found.match_only_some_words) == (meant, False)
    assert found.hits


def test_the_cells_of_a_table_are_parted_in_an_excerpt(shipped: Course):
    hits = search_course(shipped, "cuda core addition").hits
    excerpts = ["".join(p.text for p in hit.excerpt) for hit in hits]

    assert any("; CUDA core, one multiplication" in words for words in excerpts)


def test_an_excerpt_is_short_and_that_of_a_term_is_all_of_its_meaning(shipped: Course):
    pages = [hit for hit in search_course(shipped, "checkpoint").hits if hit.kind == "page"]
    terms = [
        hit for hit in search_course(shipped, "activation checkpoint").hits if hit.kind == "term"
    ]
    term = terms[0]
    meaning = "".join(piece.text for piece in term.excerpt)

    assert len(pages) > 3
    for hit in pages:
        assert any(piece.is_match for piece in (*hit.title, *hit.excerpt))
        assert len("".join(piece.text for piece in hit.excerpt).split()) <= 27
    assert meaning.startswith("Keeping only some of the activations")
    assert meaning.endswith("gradient checkpointing.")


@pytest.mark.parametrize(
    ("typed", "kind", "says"),
    [
        ("how many gpus in dgx h100", "part", "GPUs 8"),
        ("what is MIG", "term", "Splitting a GPU in hardware"),
        ("pue", "term", "the energy of the whole facility divided by"),
        ("xid 79", "page", "GPU has fallen off the bus"),
        ("roce", "term", "RDMA over Converged Ethernet"),
    ],
)
def test_the_first_hit_answers_what_was_asked(
    shipped: Course, typed: str, kind: str, says: str
) -> None:
    first = search_course(shipped, typed).hits[0]

    assert first.kind == kind
    assert says in "".join(piece.text for piece in first.excerpt)


def test_pages_come_before_hardware_that_was_not_asked_for(shipped: Course) -> None:
    kinds = [hit.kind for hit in search_course(shipped, "infiniband").hits]

    assert kinds[0] == "term"
    assert kinds.index("part") > kinds.index("page")
