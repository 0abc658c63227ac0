"""`headroom author` and `headroom learners`, beside a server that runs."""

import os
import pty
import re
import time
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.cli import main
from app.database.tables import AuditEntry, Learner
from app.main import create_app
from app.settings import Settings
from app.web.dependencies import public_or_listening_url
from tests.accounts.test_devices import enter
from tests.browser.server import Server
from tests.conftest import TINY, visit

HOME = "https://study.example/nca"


@pytest.fixture
def environment(settings: Settings, monkeypatch) -> None:
    """What the server was started with, for the commands beside it."""
    monkeypatch.setenv("HEADROOM_DATA", str(settings.data))
    monkeypatch.setenv("HEADROOM_DATABASE_URL", settings.database_url)
    monkeypatch.setenv("HEADROOM_SECRET", settings.secret)
    monkeypatch.setenv("HEADROOM_CONTENT", str(TINY))
    monkeypatch.setenv("HEADROOM_URL", HOME + "/")


@pytest.fixture
def now_app(settings: Settings, live_course):
    """The app with the clock of the machine, as commands have it."""
    app = create_app(settings, live_course=live_course)
    yield app
    app.state.engine.dispose()


@pytest.fixture
def browser(now_app: FastAPI):
    with visit(now_app) as client:
        yield client


def rename(client: TestClient, name: str) -> None:
    form = {"name": name, "minutes_a_day": "30", "retention": "90"}
    assert client.post("/settings", data=form).status_code == 303


@pytest.mark.usefixtures("environment")
def test_the_command_prints_a_link_that_lets_a_browser_in(browser: TestClient, capsys):
    assert main(["author", "link"]) == 0
    said = capsys.readouterr().out

    assert said.startswith(f"{HOME}/authoring/enter?token=")
    assert "within 15 minutes. It works once" in said
    address = said.split()[0].removeprefix(HOME)
    token = address.partition("token=")[2]
    assert "Sign in" in browser.get(address).text
    browser.post("/authoring/enter", data={"token": token})
    assert browser.get("/authoring").status_code == 200

    main(["author", "list"])
    assert "Unknown browser" in capsys.readouterr().out
    assert main(["author", "revoke", "1"]) == 0
    assert browser.get("/authoring").status_code == 403
    assert main(["author", "revoke", "1"]) == 1
    assert "headroom author list" in capsys.readouterr().err
    main(["author", "list"])
    assert capsys.readouterr().out == "No browser is signed in as an author.\n"
    main(["author", "log"])
    log = capsys.readouterr().out
    assert re.findall(r"link made|session began|session revoked", log) == [
        "link made",
        "session began",
        "session revoked",
    ]
    assert token not in log


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("words", [["x"], ["-1"], ["9" * 5000], []])
def test_what_cannot_be_revoked_is_said_in_a_sentence(words: list[str], capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["author", "revoke", *words])

    assert stopped.value.code == 2
    assert "usage: headroom author revoke" in capsys.readouterr().err


@pytest.mark.usefixtures("environment")
def test_without_a_bench_there_is_no_link(monkeypatch, capsys):
    monkeypatch.setenv("HEADROOM_AUTHORING", "0")

    assert main(["author", "link"]) == 2
    assert "HEADROOM_AUTHORING" in capsys.readouterr().err


def test_a_command_makes_no_database(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HEADROOM_DATA", str(tmp_path))
    monkeypatch.delenv("HEADROOM_DATABASE_URL", raising=False)

    assert main(["author", "link"]) == 2
    assert main(["learners", "list"]) == 2

    assert "start the server once" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("environment")
def test_learners_are_listed_without_any_secret(browser: TestClient, session: Session, capsys):
    main(["learners", "list"])
    assert capsys.readouterr().out == "Nobody has saved anything yet.\n"
    rename(browser, "Rosa \x1b[2JMeyer")

    assert main(["learners", "list"]) == 0

    said = capsys.readouterr().out
    assert said.splitlines()[0].split() == ["ID", "NAME", "CREATED", "LAST", "SEEN"]
    assert "Rosa ?[2JMeyer" in said
    assert session.exec(select(Learner.key)).one() not in said


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("wanted", ["Rosa Meyer", " rosa  meyer ", "1", "001"])
def test_a_learner_who_lost_the_cookie_gets_back_in(
    browser: TestClient, now_app: FastAPI, session: Session, capsys, wanted: str
):
    rename(browser, "Rosa Meyer")

    assert main(["learners", "link", wanted]) == 0

    said = capsys.readouterr().out
    address = said.split()[0].removeprefix(HOME)
    assert address.startswith("/continue?code=")
    code = address.partition("code=")[2]
    with visit(now_app) as new:
        assert f'value="{code}"' in new.get(address).text
        assert enter(new, code).is_redirect
        assert "Rosa Meyer" in new.get("/settings").text
    with visit(now_app) as third:
        assert enter(third, code).status_code == 422
    entry = session.exec(select(AuditEntry)).one()
    assert (entry.session, entry.action) == (0, "learner code made")
    assert entry.subject == "learner 1"


@pytest.mark.usefixtures("environment")
def test_of_several_with_one_name_the_numbers_are_named(
    browser: TestClient, now_app: FastAPI, capsys
):
    rename(browser, "Rosa")
    with visit(now_app) as other:
        rename(other, "Rosa")

    assert main(["learners", "link", "Rosa"]) == 1

    said = capsys.readouterr().err
    assert "several learners have the name “Rosa”" in said
    assert re.findall(r"(\d+) \(last seen", said) == ["1", "2"]


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("wanted", ["Nobody", "7", "9" * 5000, ""])
def test_of_a_learner_who_is_not_there_nothing_is_made(wanted: str, session, capsys):
    assert main(["learners", "link", wanted]) == 1

    assert "headroom learners list" in capsys.readouterr().err
    assert session.exec(select(AuditEntry)).all() == []


@pytest.mark.usefixtures("environment")
def test_a_lost_secret_loses_no_learner(
    settings: Settings, live_course, browser: TestClient, monkeypatch, capsys
):
    rename(browser, "Rosa Meyer")
    monkeypatch.setenv("HEADROOM_SECRET", "another one, since the first was lost")
    changed = settings.model_copy(update={"secret": os.environ["HEADROOM_SECRET"]})
    app = create_app(changed, live_course=live_course)
    with visit(app) as client:
        client.cookies.update(browser.cookies)
        assert "Rosa Meyer" not in client.get("/settings").text

        main(["learners", "link", "Rosa Meyer"])

        code = re.findall(r"code=(\S+)", capsys.readouterr().out)[0]
        enter(client, code)
        assert "Rosa Meyer" in client.get("/settings").text
    app.state.engine.dispose()


@pytest.mark.parametrize(
    ("given", "address"),
    [
        (("", "127.0.0.1", 8000), "http://127.0.0.1:8000"),
        (("", "0.0.0.0", 80), "http://127.0.0.1:80"),  # noqa: S104 - not listened on
        (("", "::", 8000), "http://127.0.0.1:8000"),
        (("", "::1", 8000), "http://[::1]:8000"),
        (("https://x.example/a/", "::", 80), "https://x.example/a"),
    ],
)
def test_a_link_begins_with_the_address_of_the_server(given, address: str):
    assert public_or_listening_url(*given) == address


def test_a_server_that_starts_in_a_terminal_prints_a_link(tmp_path):
    ours, theirs = pty.openpty()
    server = Server(tmp_path / "data", TINY)
    server.launch(Path(os.ttyname(theirs)))
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        os.set_blocking(ours, False)
        said = b""
        while b"It works once" not in said:
            assert server.runs, said
            time.sleep(0.02)
            said += terminal.read(4096) or b""
        server.stop()
    os.close(theirs)

    assert re.search(rb"Author  http://127\.0\.0\.1:\d+/authoring/enter\?token=", said)
