"""The short route, and pages whose topic was renamed."""

import datetime as dt
import html
import math
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.accounts.learner import PlanCalendar
from app.content.check import check_course
from app.content.course import Course, load_course
from app.content.course_facts import cached_course_facts
from app.content.live_courses import LiveCourse
from app.content.reading_routes import (
    ReadingRoute,
    list_sections_on_route,
    list_short_route_questions_without_answer_on_route,
    measure_short_route_coverage,
    sum_reading_minutes_on_route,
)
from app.main import create_app
from app.settings import Settings
from app.study_plan.day_list import choose_route
from app.study_plan.facts import LearnerFacts, ReadingFact
from tests.conftest import TINY, Clock, visit
from tests.exams.sitting import begin, finish

DAY = dt.date(2026, 11, 24)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The tiny course, with one essential section on one page, and the other page deeper."""
    folder = Path(shutil.copytree(TINY, tmp_path / "course"))
    edit_front(folder, "weights", "essential: [two-bytes-each]\naliases: [mass]")
    edit_front(folder, "kv-cache", "level: deeper")
    return folder


def edit_front(folder: Path, topic: str, lines: str) -> None:
    page = folder / "topics" / topic / "concept.md"
    page.write_text(page.read_text().replace("reviewed:", f"{lines}\nreviewed:", 1))


@pytest.fixture
def client(settings: Settings, clock, folder: Path) -> Iterator[TestClient]:
    app: FastAPI = create_app(settings, clock, LiveCourse(folder))
    with visit(app) as client:
        client.get("/unreachable")
        yield client


def test_the_short_route_reads_the_opening_and_what_is_essential(folder: Path):
    topics = load_course(folder).topics

    short = [s.anchor for s in list_sections_on_route(topics["weights"], "short")]
    assert short == ["", "two-bytes-each", "check-yourself"]
    assert list_sections_on_route(topics["weights"], "full") == topics["weights"].sections
    assert list_sections_on_route(topics["kv-cache"], "short") == ()
    assert sum_reading_minutes_on_route(topics["kv-cache"], "short") == 0
    assert 0 < sum_reading_minutes_on_route(topics["weights"], "short") < topics["weights"].minutes


def test_a_page_that_names_no_section_is_essential_as_a_whole():
    topics = load_course(TINY).topics

    assert all(list_sections_on_route(t, "short") == t.sections for t in topics.values())


def test_an_opening_announces_no_case_that_the_short_route_folds(
    shipped: Course, subtests: pytest.Subtests
):
    for topic in shipped.topics.values():
        opening, *sections = topic.sections
        if [section.anchor for section in sections if section.essential] != ["in-short"]:
            continue
        with subtests.test(topic=topic.slug):
            assert not re.search(r"On this page, you|[Tt]o find out why, follow", opening.plain)


def test_a_whole_page_takes_the_minutes_that_the_plan_counts(shipped: Course):
    for slug, page in cached_course_facts(shipped).pages.items():
        assert sum_reading_minutes_on_route(shipped.topics[slug], "full") == page.reading_minutes


def test_the_course_with_one_route_offers_no_other(rosa: TestClient):
    assert "route=short" not in rosa.get("/course").text
    assert "route=short" not in rosa.get("/concepts/weights").text


def test_progress_and_the_report_of_an_exam_lead_to_pages_on_the_route_of_the_plan(
    client: TestClient,
):
    for route in ("short", "full"):
        client.post("/plan", data={"minutes_a_day": "30", "page_route": route})
        sitting = begin(client)
        pages = [
            client.get("/progress").text,
            client.get(finish(client, sitting).headers["location"]).text,
        ]
        for page in pages:
            of_weights = set(re.findall(r'"(/concepts/weights[^"]*)"', page))
            assert of_weights == {"/concepts/weights" + "?route=short" * (route == "short")}
            assert "/concepts/kv-cache?" not in page  # which the short route skips


def test_a_section_that_is_not_there_is_reported_where_it_is_named(folder: Path):
    page = folder / "topics/weights/concept.md"
    page.write_text(page.read_text().replace("[two-bytes-each]", "[two-bytes-eech]"))

    (found,) = [p for p in check_course(folder, today=DAY) if p.code == "E61"]

    assert (found.path, found.line) == ("topics/weights/concept.md", 6)
    assert "two-bytes-eech" in found.message
    assert "two-bytes-each" in found.hint


def test_a_page_on_the_short_route_folds_the_rest(client: TestClient):
    page = client.get("/concepts/weights?route=short").text

    folded = page.partition('<details class="skipped"><summary>')[2]
    assert 'id="try-it"' in folded
    assert re.search(r"</span> [^<]+</h2> <span[^>]*>not in “Essentials”<", folded)
    assert "Essentials:" in page  # the top line has the same word
    assert 'id="two-bytes-each"' not in folded
    assert 'href="/concepts/weights"' in page
    assert "skipped" not in client.get("/concepts/weights").text


def test_a_page_that_takes_as_long_on_both_routes_offers_no_choice(
    client: TestClient, folder: Path
):
    page = folder / "topics/weights/concept.md"
    page.write_text(page.read_text().replace("[two-bytes-each]", "[try-it]"))

    full, short = (client.get(f"/concepts/weights{query}").text for query in ("", "?route=short"))

    assert "Essentials: " not in full + short
    assert "<span>3\xa0minutes</span>" in full
    assert '<details class="skipped">' in short


def test_the_course_says_what_each_route_costs(client: TestClient):
    full, short = (client.get(f"/course{query}").text for query in ("", "?route=short"))

    assert "Essentials only: " in full
    assert re.search(r"All pages: \d+\s+min\w*</b>", full)
    assert '<a href="/course?route=short">' in full
    assert '<a href="/course?route=full">' in short
    assert 'href="/concepts/weights?route=short"' in short
    assert 'href="/concepts/kv-cache"' in short.partition("Beyond the exam")[2]


def test_a_page_is_read_on_the_short_route_when_its_essentials_are(client: TestClient):
    answer = client.post("/concepts/weights/readings?route=short")

    assert answer.headers["location"] == "/concepts/weights?route=short#end"
    assert "Mark as read" not in client.get("/concepts/weights?route=short").text
    assert "Mark as read" in client.get("/concepts/weights").text
    course_page = client.get("/course?route=short").text
    assert "1 of 1 page read." in " ".join(course_page.split())
    assert "essentials read" in client.get("/course").text


def test_the_short_route_folds_no_section_that_its_questions_need(live_shipped: LiveCourse):
    assert (
        list_short_route_questions_without_answer_on_route(live_shipped.get_current_course()) == ()
    )


def test_what_to_know_for_the_exam_is_essential(shipped: Course):
    sections = [(t.slug, s) for t in shipped.topics.values() if not t.level for s in t.sections]
    boxes = [(page, s) for page, s in sections if "What to know for the exam." in s.plain]

    assert len(boxes) > 50
    assert [page for page, s in boxes if not s.essential] == []
    # Of the first page, the box takes every section for granted.
    assert all(s.essential for page, s in sections if page == "ai-ml-deep-learning")


def test_a_section_that_an_objective_names_is_essential(shipped: Course, subtests: pytest.Subtests):
    named = {
        "1.1": "software-stack#the-layers-at-a-glance",
        "1.2": "training-versus-inference#training-forward-backward-update "
        "training-versus-inference#inference-prefill-then-decode "
        "training-versus-inference#side-by-side",
        "1.3": "ai-ml-deep-learning#how-the-terms-are-nested",
        "1.4": "why-ai-advanced#four-causes-at-the-same-time",
        "1.5": "use-cases#eight-workloads industries#typical-uses",
        "1.6": "product-map#the-map solutions#the-systems-by-scale",
        "1.7": "life-cycle#five-steps-in-a-loop life-cycle#prepare life-cycle#train "
        "life-cycle#optimise life-cycle#deploy",
        "1.8": "gpu-and-cpu#where-the-transistors-went gpu-and-cpu#how-a-gpu-is-built "
        "gpu-and-cpu#side-by-side gpu-and-cpu#when-a-cpu-is-enough",
        "2.1": "sizing-for-training#memory-first sizing-for-training#from-use-case-to-hardware",
        "2.2": "scaling-gpu-infrastructure#scale-up-and-scale-out",
        "2.3": "power-and-cooling#what-systems-draw power-and-cooling#pue cooling#how-much-air",
        "2.4": "on-premises-and-cloud#three-places on-premises-and-cloud#what-outweighs-the-money "
        "on-premises-and-cloud#a-rule-of-thumb-for-each-case",
        "2.5": "cluster-components#four-jobs cluster-components#four-networks",
        "2.6": "facility-requirements#power-and-cooling-decide-first",
        "2.7": "fast-network-options#what-the-workload-asks fast-network-options#network-by-workload",
        "2.8": "network-protocols#two-families-of-networks network-protocols#tcp-ip-and-rdma",
        "2.9": "interconnects#scale-out-two-ways-to-rdma fast-network-options#products-by-need",
        "2.10": "dpu#without-a-dpu dpu#offload-accelerate-isolate",
        "3.1": "data-center-monitoring#one-tool-for-each-layer",
        "3.2": "orchestration-and-scheduling#the-words orchestration-and-scheduling#who-runs-next",
        "3.3": "gpu-monitoring#the-measures-to-watch",
        "3.4": "virtualization#five-ways-to-share virtualization#choosing",
    }
    objectives = [o.number for domain in shipped.syllabus.domains for o in domain.objectives]
    assert list(named) == objectives
    for number, sections in named.items():
        for slug, _, anchor in (section.partition("#") for section in sections.split()):
            with subtests.test(f"{number}: {slug}#{anchor}"):
                on_route = list_sections_on_route(shipped.topics[slug], "short")
                assert anchor in [section.anchor for section in on_route]


def test_a_question_on_the_page_whose_answer_is_folded_is_named(folder: Path):
    page = folder / "topics/weights/concept.md"
    asked = """
## Check yourself

### What is a colonnade?
<!-- q: folded-answer
difficulty: 1
-->

- [ ] A wall
  > No.
- [x] A row of columns with gargoyles
"""
    folded = "\n## Architecture\n\nA colonnade is a row of columns with gargoyles.\n"

    page.write_text(page.read_text() + asked)
    assert list_short_route_questions_without_answer_on_route(load_course(folder)) == ()
    page.write_text(page.read_text().replace(asked, folded + asked))
    assert list_short_route_questions_without_answer_on_route(load_course(folder)) == (
        "folded-answer",
    )


def test_the_way_back_from_a_question_keeps_the_route(client: TestClient):
    back = r'name="back" value="/concepts/weights(\?route=short)?#q-'

    assert set(re.findall(back, client.get("/concepts/weights?route=short").text)) == {
        "?route=short"
    }
    assert set(re.findall(back, client.get("/concepts/weights?route=full").text)) == {""}


def test_only_the_plan_says_what_comes_next(client: TestClient, course: Course):
    course_page = client.get("/course").text.partition('class="chapters')[2]
    first, second, *_ = re.findall(r'<li[^>]*><a\s+href="/concepts/([\w-]+)', course_page)
    client.post(f"/concepts/{first}/readings")
    client.get("/")
    page = client.get(f"/concepts/{first}").text

    foot = page[page.index('aria-label="Previous and next page in course order"') :]
    following = re.search(r'rel="next"><small>(.*?)<svg.*?</small>(.*?)</a>', foot, re.DOTALL)
    assert following[1].strip() == "Course order: next"
    assert course.topics[second].title in following[2]
    assert "Course order: previous" in client.get(f"/concepts/{second}").text
    assert "Next in the course" not in page


def test_the_detours_of_a_page_come_back_to_its_route(client: TestClient, course: Course):
    address, short = "/concepts/weights", "/concepts/weights?route=short"
    section = next(s.anchor for s in course.topics["weights"].sections if s.anchor)
    page = client.get(short).text
    assert page.count('name="route" value="short"') == page.count('name="beside"') > 0
    assert f'href="{address}/notes?route=short"' in page
    assert 'name="route"' not in client.get(address).text

    note = {"section": section, "words": "Mine.", "route": "short"}
    beside = client.post(f"{address}/notes", data=note | {"beside": "yes"})
    assert beside.headers["location"] == f"{short}#n-{section}"
    alone = client.post(f"{address}/notes", data=note)
    assert alone.headers["location"] == f"{address}/notes?route=short#n-{section}"
    notes = client.get(alone.headers["location"]).text
    assert f'<a href="{short}">' in notes
    assert f'<a href="{short}#{section}">' in notes
    assert 'name="route" value="short"' in notes
    assert "route=short" not in client.get(f"{address}/notes").text


def test_a_note_that_is_swapped_keeps_the_route(htmx: TestClient, course: Course):
    section = next(s.anchor for s in course.topics["weights"].sections if s.anchor)
    note = {"section": section, "words": "Mine.", "route": "short", "beside": "yes"}

    fragment = htmx.post("/concepts/weights/notes", data=note).text

    assert 'name="route" value="short"' in fragment


def test_a_question_of_a_page_keeps_the_route_through_its_feedback(client: TestClient):
    page = client.get("/concepts/weights?route=short").text
    action = re.search(r'action="(/quiz/weights/[^"]+)/attempts"', page)[1]
    back = re.search(r'name="back" value="(/concepts/weights[^"]+)"', page)[1]
    sent = {"context": "page", "back": back, "unknown": "yes"}

    answered = client.post(f"{action}/attempts", data=sent).headers["location"]

    feedback = client.get(answered).text
    assert f'href="{back}"' in feedback
    assert 'href="/concepts/weights#' not in feedback
    assert 'href="/concepts/weights?route=short#' in feedback
    flag = re.search(r'/flag" hx-target.*?name="back" value="([^"]+)"', feedback, re.DOTALL)
    flagged = client.post(
        f"{action}/flag", data={"wanted": "yes", "back": html.unescape(flag[1])}
    ).headers["location"]
    assert f'href="{back}"' in client.get(flagged).text


def test_a_number_whose_section_is_folded_is_named(folder: Path):
    page = folder / "topics/weights/concept.md"
    asked = """
## Check yourself

### How many columns does the portico have?
<!-- q: folded-number
type: numeric
difficulty: 1
-->

- [x] `8`

> [!NOTE]
> Four columns on each side of the portico, so eight columns.
"""
    told = "\n## Architecture\n\nThe portico has four columns on each side.\n"

    page.write_text(page.read_text() + told + asked)

    assert list_short_route_questions_without_answer_on_route(load_course(folder)) == (
        "folded-number",
    )


def test_the_course_shows_the_minutes_that_the_plan_uses(client: TestClient):
    client.post("/concepts/weights/readings", data={"section": "try-it"})
    plan = {"exam_day": "2026-06-13", "minutes_a_day": "5"}

    client.post("/plan", data=plan | {"page_route": "full"})
    full = client.get("/course").text
    client.post("/plan", data=plan | {"page_route": "short"})
    short = client.get("/course").text

    assert '<b aria-current="true">All pages' in full
    assert '<b aria-current="true">Essentials' in short


def test_full_pages_that_do_not_fit_are_read_short(course: Course):
    course_facts = cached_course_facts(course)
    day, minutes = (
        dt.date(2026, 6, 9),
        sum(page.reading_minutes for page in course_facts.pages.values()),
    )

    def route(days: int, begun: Collection[str] = ()) -> ReadingRoute:
        calendar = PlanCalendar(day, exam_day=day + dt.timedelta(days=days))
        readings = [ReadingFact(page, 0.1, day - dt.timedelta(days=1), 0) for page in begun]
        learner = LearnerFacts(day, readings=readings)
        return choose_route(course_facts, learner, calendar, minutes / 2, "auto")

    assert route(3) == "short"
    assert route(30) == "full"
    assert route(3, course_facts.pages) == "full"


def test_reading_never_adds_to_what_is_left(
    settings: Settings, clock: Clock, live_shipped: LiveCourse
):
    def read_text(browser: TestClient, address: str) -> str:
        return " ".join(browser.get(address).text.replace("\xa0", " ").split())

    with visit(create_app(settings, clock, live_shipped)) as browser:
        browser.get("/unreachable")
        form = {"exam_day": "2026-07-03", "minutes_a_day": "30", "card_amount": "fewer"}
        browser.post("/plan", data=form)
        before = math.inf
        for _ in range(9):  # until the first mock exam
            while "/concepts/" in (listed := read_text(browser, "/").partition("</ol>")[0]):
                slug, _, query = (
                    listed.partition('href="/concepts/')[2].partition('"')[0].partition("?")
                )
                browser.post(f"/concepts/{slug}/readings?{query}")
                plan, course_page = read_text(browser, "/plan"), read_text(browser, "/course")
                found = re.search(
                    r"(?:pages left:|their essentials) (?:(\d+) h)? ?(?:(\d+) min)?[,.:]", plan
                )
                assert found
                left = 60 * int(found[1] or 0) + int(found[2] or 0)
                assert left <= before
                before = left
                assert '<b aria-current="true">Essentials' in course_page
                assert "There is time for the essentials of every page" in plan
            clock.tick(days=1)


def test_all_minutes_of_a_page_are_read_once_its_sections_are(
    settings: Settings, clock: Clock, live_shipped: LiveCourse
):
    with visit(create_app(settings, clock, live_shipped)) as browser:
        # Pages whose sections add up to another rounded minute.
        for slug in ("gpu-and-cpu", "cooling", "dpu"):
            for query in ("?route=short", "?route=full"):
                browser.post(f"/concepts/{slug}/readings{query}")
                page = browser.get(f"/concepts/{slug}{query}").text
                read = re.search(r"(\d+) of (\d+)\s+minutes? read", page)
                assert read
                assert read[1] == read[2]


def test_an_unknown_route_is_refused(client: TestClient):
    assert client.get("/course?route=scenic").status_code == 422


def test_a_question_is_covered_where_the_words_of_its_answer_are_essential(folder: Path):
    course = load_course(folder)
    answered = measure_short_route_coverage(course)
    page = folder / "topics/weights/concept.md"
    page.write_text(page.read_text().replace("[two-bytes-each]", "[try-it]"))

    other = measure_short_route_coverage(load_course(folder))

    exam_level = sum(not question.level for question in course.questions.values())
    assert (
        other.covered_question_count
        < answered.covered_question_count
        <= answered.question_count
        == exam_level
    )
    full = measure_short_route_coverage(load_course(TINY))  # names no essential section
    assert answered.word_count < full.word_count


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("/concepts/mass?route=short", "/concepts/weights?route=short"),
        ("/concepts/mass/notes", "/concepts/weights/notes"),
        ("/quiz/mass", "/quiz/weights"),
        ("/quiz/mass/w-bf16-70b", "/quiz/weights/w-bf16-70b"),
        ("/flashcards?topic=mass", "/flashcards?topic=weights"),
    ],
)
def test_an_old_address_leads_to_the_page_for_good(client: TestClient, old: str, new: str):
    answer = client.get(old)

    assert (answer.status_code, answer.headers["location"]) == (308, new)
    assert client.get(new).status_code == 200


def test_an_alias_is_no_name_of_another_topic(folder: Path):
    page = folder / "topics/weights/concept.md"
    page.write_text(page.read_text().replace("[mass]", "[kv-cache, Mass]"))

    codes = {p.code: p.message for p in check_course(folder, today=DAY)}

    assert "kv-cache" in codes["E11"]
    assert "Mass" in codes["E03"]


def test_the_first_visit_and_the_plan_say_the_minutes_of_the_planned_route(client: TestClient):
    plan = {"exam_day": "2026-12-30", "minutes_a_day": "30", "page_route": "short"}
    client.post("/plan", data=plan)

    welcome, course_page = (client.get(at).text.replace("\xa0", " ") for at in ("/", "/course"))
    essentials = re.search(r"Essentials only: (\d+) min", course_page)
    assert essentials
    assert 'href="/concepts/weights?route=short"' in welcome
    assert f'class="min">{essentials[1]} minute' in welcome
    assert "essentials only, to fit before your exam" in welcome
    assert f"1 page left; its essentials take {essentials[1]} min." in " ".join(
        client.get("/plan").text.replace("\xa0", " ").split()
    )


def test_a_page_of_two_objectives_is_found_under_both(
    settings: Settings, clock: Clock, live_shipped: LiveCourse
):
    course = live_shipped.get_current_course()
    with visit(create_app(settings, clock, live_shipped)) as browser:
        course_page = browser.get("/course").text
        for slug in course.syllabus.topics:
            for number in course.topics[slug].objectives:
                below = course_page.partition(f'id="o{number}"')[2].partition('class="spot"')[0]
                is_beyond_exam = course.topics[slug].level
                assert (f'href="/concepts/{slug}"' in below) != bool(is_beyond_exam), (slug, number)
