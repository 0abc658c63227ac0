"""GET /authoring, POST /authoring/reports/{report}/settlement, GET …/changes"""

import re
import time

from sqlmodel import select

from app.database.tables import ItemReport
from app.main import create_app
from app.settings import Settings
from tests.conftest import let_in, visit

QUIZ = "topics/kv-cache/quiz.md"


def break_it(folder) -> None:
    """Two right answers in a single choice."""
    quiz = folder / QUIZ
    quiz.write_text(quiz.read_text().replace("- [ ] Accuracy for speed", "- [ ]Accuracy for speed"))


def report(session, crowd, item="k-trade", words="The key is wrong.") -> int:
    (learner,) = crowd.join(1)
    row = ItemReport(learner_id=learner, token=words, item=item, revision="r", words=words, at=1)
    session.add(row)
    session.commit()
    return row.id


def test_a_sound_course_says_so(client):
    html = client.get("/authoring").text

    assert "No errors" in html
    assert "The check finds nothing to fix." in html


def test_a_problem_is_named_with_its_place_and_remedy(client, folder):
    break_it(folder)

    html = client.get("/authoring").text

    assert "kv-cache/quiz.md:12:3" in html
    assert "E24" in html
    assert re.search(r'data-n="12"[^>]*><span>- \[ \]Accuracy for speed<', html)


def test_problems_are_filtered_by_severity_and_file(app, folder):
    break_it(folder)  # before anybody has read it: what was sound would stay
    (folder / "topics/weights/concept.md").write_text("---\ntitle: W\n---\n\nText.\n")

    with visit(app) as browser:
        client = let_in(browser)
        every = client.get("/authoring").text
        errors = client.get("/authoring?severity=error").text
        here = client.get(f"/authoring?file={QUIZ}").text

    assert "E24" in every
    assert "W87" in every
    assert "E24" in errors
    assert "W87" not in errors
    assert "E24" in here
    assert "weights/concept.md:1:1" not in here


def test_the_problem_that_is_looked_at_is_in_the_address(client, folder):
    (folder / "topics/kv-cache/cards.md").unlink()  # W73 at the syllabus comes first
    at = "topics/kv-cache/concept.md:1:1:W87"

    html = client.get(f"/authoring?at={at}").text

    assert 'aria-label="Source of topics/kv-cache/concept.md"' in html


def test_an_address_that_names_no_problem_shows_the_first(client, folder):
    break_it(folder)

    html = client.get("/authoring?at=../../etc/passwd:1:1:E01").text

    assert f'aria-label="Source of {QUIZ}"' in html


def test_a_severity_that_is_none_is_refused(client):
    assert client.get("/authoring?severity=grave").status_code == 422


def test_reports_are_shown_with_their_words_and_no_name(client, session, crowd):
    report(session, crowd, words="Is <b>this</b> right?")

    html = client.get("/authoring").text

    assert "Is &lt;b&gt;this&lt;/b&gt; right?" in html
    assert 'href="/authoring/questions/k-trade"' in html
    assert "1\u00a0open report" in html


def test_a_settled_report_leaves_the_list_and_stays_with_its_question(client, session, crowd):
    number = report(session, crowd)

    answer = client.post(f"/authoring/reports/{number}/settlement")

    assert answer.status_code == 303
    assert "The key is wrong." not in client.get("/authoring").text
    assert "settled" in client.get("/authoring/questions/k-trade").text
    session.rollback()
    assert session.exec(select(ItemReport.settled_at)).one()


def test_a_report_that_does_not_exist_is_404(client):
    assert client.post("/authoring/reports/7/settlement").status_code == 404


def test_a_saved_file_changes_the_version_at_once(client, folder):
    before = client.get("/authoring/changes").text
    assert f'data-version="{before}"' in client.get("/authoring").text

    break_it(folder)
    time.sleep(0.03)

    assert client.get("/authoring/changes").text != before


def test_the_footer_leads_to_the_bench(client):
    assert 'href="/authoring"' in client.get("/glossary").text


def test_switched_off_there_is_no_bench(settings: Settings, clock, live_course):
    app = create_app(settings.model_copy(update={"authoring": False}), clock, live_course)
    with visit(app) as client:
        for path in ("", "/questions", "/questions/k-trade", "/pages/weights"):
            assert client.get(f"/authoring{path}").status_code == 404
        assert client.get("/authoring/changes").status_code == 404
        assert client.post("/authoring/reports/1/settlement").status_code == 404
        assert "/authoring" not in client.get("/glossary").text
    app.state.engine.dispose()
