"""/metrics: counts for Prometheus, open to whoever has the token."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from app.main import create_app
from app.settings import Settings, list_settings_masking_secrets
from app.web.monitoring import share_metrics_between_processes
from tests.conftest import SECRET, TINY, visit
from tests.databases import ABOUT_SQLITE
from tests.loops import outcome
from tests.web.test_hostile_values import addressed, routes

GIVEN = "a token of the tests"
TYPED = "correct horse battery staple"


@pytest.fixture
def settings(tmp_path: Path, database: str) -> Settings:
    return Settings(
        data=tmp_path,
        content=TINY,
        database_url=database,
        secret=SECRET,
        metrics_token=GIVEN,
    )


@pytest.fixture
def unset(settings: Settings, clock, live_course) -> Iterator[TestClient]:
    """A server for which no token was set."""
    without = settings.model_copy(update={"metrics_token": ""})
    app = create_app(without, clock, live_course)
    with visit(app) as client:
        yield client
    app.state.engine.dispose()


def shown(text: str) -> dict[tuple[str, ...], float]:
    """Samples by name and values of labels."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def asked(client: TestClient) -> str:
    answer = client.get("/metrics", headers={"authorization": f"Bearer {GIVEN}"})
    assert answer.status_code == 200
    return answer.text


def test_without_the_setting_there_is_no_such_address(unset: TestClient):
    for token in ("", GIVEN):
        header = {"authorization": f"Bearer {token}"}
        assert unset.get("/metrics", headers=header).status_code == 404


@pytest.mark.parametrize(
    "header", ["", "Bearer ", "Bearer wrong", f"Basic {GIVEN}", f"Bearer {GIVEN}x"]
)
def test_without_the_token_nothing_is_shown(client: TestClient, header: str):
    answer = client.get("/metrics", headers={"authorization": header})

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "headroom_" not in answer.text


def test_the_token_is_not_listed_among_the_settings(settings: Settings):
    assert GIVEN not in str(list_settings_masking_secrets(settings))


def test_requests_are_counted_by_method_route_and_class_of_status(client: TestClient):
    client.get("/concepts/weights")
    client.get("/concepts/kv-cache")
    client.get("/concepts/nowhere")
    client.post("/settings/appearance", data={"theme": "dark"})

    found = shown(asked(client))

    count = "headroom_requests_total"
    assert found[count, "GET", "/concepts/{topic}", "2xx"] == 2
    assert found[count, "GET", "/concepts/{topic}", "4xx"] == 1
    assert found[count, "POST", "/settings/appearance", "3xx"] == 1
    assert found["headroom_request_seconds_count", "GET", "/concepts/{topic}"] == 3


def test_every_route_has_its_template(app: FastAPI, rosa: TestClient):
    for method, template in routes(app):
        rosa.request(method, addressed(template))

    counted = {key[2] for key in shown(asked(rosa)) if "_requests_total" in key[0]}

    unknown = {path for _, path in routes(app)} - counted
    assert unknown <= {"/healthz", "/readyz", "/metrics"}


def test_files_and_what_has_no_route_are_counted_without_their_address(
    client: TestClient,
):
    client.get("/static/css/headroom.css")
    client.get(f"/{TYPED}")
    client.request("BREW", "/")

    found = shown(asked(client))

    count = "headroom_requests_total"
    assert found[count, "GET", "static", "2xx"] == 1
    assert found[count, "GET", "-", "4xx"] == 1
    assert sum(found.get((count, "other", r, "4xx"), 0) for r in ("-", "/")) == 1


def test_writes_are_timed(rosa: TestClient):
    rosa.post("/concepts/weights/readings")

    found = shown(asked(rosa))

    assert found["headroom_write_seconds_count",] == 1
    assert found["headroom_write_wait_seconds_count",] == 1
    assert found["headroom_writers_waiting",] == 0


@ABOUT_SQLITE
def test_who_waits_to_write_is_counted(app: FastAPI):
    async def seen(web: httpx.AsyncClient) -> str:
        token = {"authorization": f"Bearer {GIVEN}"}
        return (await web.get("/metrics", headers=token)).text

    async def while_one_writes() -> str:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as web:
            async with app.state.open_write_session():
                waiting = asyncio.ensure_future(web.post("/concepts/weights/readings"))
                for _ in range(1000):  # turns of the loop, until it waits
                    await asyncio.sleep(0)
                    if "writers_waiting 1.0" in (text := await seen(web)):
                        break
            await waiting
        return text

    assert shown(outcome(while_one_writes()))["headroom_writers_waiting",] == 1


def test_a_file_that_is_taken_in_is_counted_until_it_is(rosa: TestClient):
    rosa.post("/settings/cards", files={"file": ("a.apkg", b"no package")})

    assert shown(asked(rosa))["headroom_imports_running",] == 0


def test_the_process_and_the_course_are_looked_at(client: TestClient, course):
    found = shown(asked(client))

    assert found["headroom_content_problems",] == len(course.problems)
    assert found["process_resident_memory_bytes",] > 10_000_000
    assert found["process_cpu_seconds_total",] > 0
    assert found["process_open_fds",] > 3


def test_nothing_that_was_sent_is_a_label(rosa: TestClient):
    rosa.post("/settings", data={"name": TYPED, "minutes_a_day": "x"})
    rosa.post("/quiz/weights/w-bf16-70b/attempts", data={"answer": TYPED})
    rosa.get("/search", params={"q": TYPED})
    rosa.get(f"/concepts/{TYPED}")

    assert "horse" not in asked(rosa)


def test_what_an_earlier_server_shared_is_removed_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "restored after the test")
    folder = tmp_path / "metrics"
    folder.mkdir()
    (folder / "counter_1.db").write_bytes(b"old")

    share_metrics_between_processes(folder)

    assert list(folder.iterdir()) == []
