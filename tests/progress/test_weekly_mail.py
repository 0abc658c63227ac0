"""The weekly summary by mail: asked for, confirmed, sent once a week, ended."""

import dataclasses
import datetime as dt

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.content.course import Course
from app.database.tables import Learner
from app.progress.weekly_mail import MailServer, send_due_confirmations_and_summaries
from tests.conftest import Clock

SERVER = MailServer("smtp://mail.example", "study@example.org", "https://study.example/")


@dataclasses.dataclass
class Post:
    """The mails that a server sent: to whom, subject, text."""

    app: object
    course: Course
    sent: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)

    def send(self, to: str, subject: str, text: str, leave: str) -> None:
        assert leave in text
        self.sent.append((to, subject, text))

    def round(self, now: dt.datetime) -> int:
        engine = self.app.state.engine  # type: ignore[attr-defined]
        return send_due_confirmations_and_summaries(
            engine, {"": self.course}, SERVER, now, self.send
        )


@pytest.fixture
def post(app, course: Course) -> Post:
    app.state.settings = app.state.settings.model_copy(update={"smtp": SERVER.smtp_url})
    return Post(app, course)


def key_of(session: Session) -> str:
    session.expire_all()
    return session.exec(select(Learner.mail_key)).one()


def read_page(rosa: TestClient) -> None:
    rosa.post("/concepts/weights/readings")
    rosa.get("/")


def test_without_a_mail_server_no_address_is_asked_for(rosa: TestClient):
    assert "Weekly summary by email" not in rosa.get("/settings").text
    assert rosa.post("/settings/mail", data={"address": "rosa@example.org"}).status_code == 404


def test_an_address_gets_one_mail_until_it_is_confirmed(
    rosa: TestClient, post: Post, session: Session, clock: Clock
):
    read_page(rosa)
    assert "Weekly summary by email" in rosa.get("/settings").text
    rosa.post("/settings/mail", data={"address": " rosa@example.org "})

    rounds = [post.round(clock.now + dt.timedelta(days=n)) for n in range(10)]

    assert rounds == [1] + [0] * 9
    to, subject, text = post.sent[0]
    assert (to, subject) == ("rosa@example.org", "Confirm your weekly summary")
    assert f"https://study.example/mail/{key_of(session)}" in text


def test_a_confirmed_address_gets_one_summary_each_week(
    rosa: TestClient, post: Post, session: Session, clock: Clock
):
    read_page(rosa)
    rosa.post("/settings/mail", data={"address": "rosa@example.org"})
    post.round(clock.now)
    page = f"/mail/{key_of(session)}"
    assert "Yes, send it" in rosa.get(page).text
    rosa.post(page, data={"wanted": "yes"})

    days = [clock.now + dt.timedelta(days=n) for n in range(15)]
    sent_on = [day.weekday() for day in days if post.round(day)]

    assert sent_on == [0, 0]
    subject, text = post.sent[1][1:]
    assert subject == "Your week: 1 day of study"
    assert "Your last seven days: 1 day of study, 1 page" in text
    assert "objectives are ready" in text


def test_the_link_of_a_mail_ends_the_mails(
    rosa: TestClient, client: TestClient, post: Post, session: Session, clock: Clock
):
    read_page(rosa)
    rosa.post("/settings/mail", data={"address": "rosa@example.org"})
    page = f"/mail/{key_of(session)}"

    client.post(page, data={"wanted": "no"})

    assert post.round(clock.now) == 0
    assert "gets no emails" in client.get(page).text
    assert client.post(page, data={"wanted": "yes"}).status_code == 404


@pytest.mark.usefixtures("post")
@pytest.mark.parametrize(
    "address", ["rosa", "rosa@home", "a b@example.org", "x" * 250 + "@example.org"]
)
def test_what_is_no_address_is_refused(rosa: TestClient, address: str):
    answer = rosa.post("/settings/mail", data={"address": address})

    assert answer.status_code == 422
    assert "Enter an email address such as" in answer.text
