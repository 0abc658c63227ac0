"""What is recorded: each run starts from nothing and gives texts by name."""

import contextlib
import importlib
import itertools
import json
import logging
import os
import random
import re
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from tests.net import repeatable
from tests.net.browser import (
    ROOT,
    Texts,
    Visitor,
    dump,
    headroom,
    installation,
    masked,
    served_course,
)

SHIPPED = ROOT / "content"
TINY, AID = ROOT / "tests/courses/tiny", ROOT / "tests/courses/first-aid"
CASES, BROKEN = ROOT / "tests/content/cases", ROOT / "tests/content/broken"
CASE_PAGE = ROOT / "tests/content/page.md"
_PART = re.compile(r"^~~~ (\S+)\n(.*?)^~~~$", re.DOTALL | re.MULTILINE)
_INPUTS = 60
_WEEKS = 3
# What is the same for every learner is walked for the newcomer alone.
UNLINKED = ("/search?q=memory", "/search/results?q=cache", "/healthz", "/readyz")
UNLINKED += ("/sw.js", "/unreachable", "/continue", "/settings/erasure", "/nowhere")
ALIKE = ("/calculators/", "/hardware/", "/api/")


@contextlib.contextmanager
def visitor(name: str, **courses: Path) -> Iterator[Visitor]:
    """A new browser at an app of its own, which serves these courses."""
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        content, data = Path(folder, "content"), Path(folder, "data")
        if len(courses) > 1:
            content.mkdir()
        for course_name, source in courses.items():
            served_course(source, content / course_name if len(courses) > 1 else content)
        with installation(content, data):
            app = importlib.import_module("app.main").serve_app()
            plain = {"accept-encoding": "identity"}
            with TestClient(app, follow_redirects=False, headers=plain) as client:
                client.get("/api/v1/courses")  # the course is read, with what it draws
                yield Visitor(name, client)


def database() -> str:
    """All that is kept in the database of the installation."""
    return dump(Path(os.environ["HEADROOM_DATA"], "headroom.db"))


def questions(someone: Visitor, course_name: str) -> list[str]:
    """The addresses of all questions that practice asks."""
    told = someone.ask("GET", f"/api/v1/courses/{course_name}/questions").json()
    return [question["address"] for question in told["questions"]]


def newcomer() -> Texts:
    """Every page of the shipped course for somebody who never did a thing."""
    with visitor("new", one=SHIPPED) as someone:
        someone.walk("/", *UNLINKED)
        return someone.texts | {"new/database": database()}


def practitioner() -> Texts:
    """Every page of the shipped course after some weeks of questions and cards."""
    with visitor("weeks", one=SHIPPED) as someone:
        someone.send(someone.page("/plan").form("/plan"), exam_day="2026-12-30")
        asked = questions(someone, "nca-aiio")
        for day in range(_WEEKS * 7):
            for address in someone.chance.sample(asked, 8):
                someone.send(someone.page(address).form("/attempts"))
            for _ in range(10):
                review(someone, "")
            if day % 5 == 0:
                topic = someone.chance.choice(asked).split("/")[2]
                unread = someone.page(f"/concepts/{topic}").form("/readings")
                if unread is not None:
                    someone.send(unread)
            if day == 14:
                sit(someone, someone.page("/exams"), most=12)
            repeatable.advance(days=1)
        kept = {"weeks/database": database()}
        someone.texts = Texts()  # the evening records such answers
        someone.walk("/", *UNLINKED, apart=ALIKE)
        return someone.texts | kept


def review(someone: Visitor, course_name: str) -> None:
    """Turn the first card of the queue and grade it."""
    shown = someone.page(f"{course_name}/flashcards").form("/flashcards")
    graded = someone.send(shown).form("/reviews") if shown is not None else None
    if graded is not None:
        someone.send(graded)


def sit(someone: Visitor, exams: Any, most: int = 99) -> None:
    """Sit the first mock exam that is offered, and look at the report."""
    offered = next(link for link in exams.links if re.search(r"/exams/[^/]+$", link))
    page = someone.send(someone.page(offered).form("/sittings"), kinds="all", target="")
    sitting = page.address.rpartition("/questions/")[0]
    for number in range(1, most):
        form = someone.page(f"{sitting}/questions/{number}").form(f"/answers/{number}")
        if form is None:
            break
        someone.send(form)
    someone.send(someone.page(f"{sitting}/review").form("/submission"))


def evening() -> Texts:
    """Everything that a learner can do, then every page, also those of an author."""
    course_name = "/courses/sizing"
    with visitor("evening", aid=AID, sizing=TINY) as someone:
        page, send = someone.page, someone.send
        send(page(f"{course_name}/plan").form("/plan"), exam_day="2026-12-21")
        send(
            page(f"{course_name}/settings").form("/settings"),
            exam_day="2026-12-20",
            target="80",
            theme="dark",
        )
        run = send(page(f"{course_name}/quiz").form("/quiz/runs"), pick="placement")
        for place in range(1, 6):
            form = page(f"{run.address}/{place}").form("/attempts")
            if form is not None:
                send(form)
        practice(someone)
        for topic, form in itertools.product(("weights", "kv-cache"), ("/notes", "/readings")):
            send(page(f"{course_name}/concepts/{topic}").form(form))
        for _ in range(2):
            send(page(f"{course_name}/flashcards/own").form("/own"), front="One?", back="1")
        remember(someone, course_name)
        sit(someone, page(f"{course_name}/exams"))
        send(page(f"{course_name}/plan").form("/calendar"))
        send(page(f"{course_name}/settings").form("/codes"))
        link = re.search(r"http://\S+", headroom("author", "link"))
        entry = page(link[0].partition(":9")[2]).form("/enter") if link else None
        send(entry)
        someone.texts |= {"evening/database": database()} | reports()
        starts = ["/", "/courses", f"{course_name}/authoring", "/courses/aid/"]
        starts += [course_name + address for address in UNLINKED]
        someone.walk(*starts, apart=tuple(course_name + prefix for prefix in ALIKE))
        return someone.texts


def practice(someone: Visitor) -> None:
    """Answer every question of the tiny course twice, then report and keep it."""
    page, send = someone.page, someone.send
    for address in questions(someone, "sizing"):
        send(page(address).form("/flag"))
        for _ in range(2):
            judged = send(page(address).form("/attempts"))
        for ending in ("/reports", "/addition"):
            if (form := judged.form(ending)) is not None:
                send(form)


def remember(someone: Visitor, course_name: str) -> None:
    """Grade cards over some days, with second thoughts."""
    page, send = someone.page, someone.send
    for turn in range(24):
        review(someone, course_name)
        for ending, every in (("/undo", 5), ("/acts", 6), ("/suspension", 9)):
            form = page(f"{course_name}/flashcards").form(ending)
            if turn % every == every - 1 and form is not None:
                send(form)
        repeatable.advance(hours=turn % 8)


def reports() -> Texts:
    """What commands say of a database in which there is something."""
    lines = "learners list;author list;author log;doctor;learners adopt sizing"
    lines += ";export attempts-csv - --course sizing"
    lines += ";export attempts-json - --course sizing;regrade w-bf16-70b --course sizing"
    return {f"evening/{line}": headroom(*line.split()) for line in lines.split(";")}


def interface() -> Texts:
    """Every document of the API, and what estimates answer to drawn inputs."""
    with visitor("api", one=SHIPPED) as someone:
        described = someone.ask("GET", "/api/v1/openapi.json").json()["paths"]
        plain = [path for path, verbs in described.items() if "get" in verbs]
        course_name = "/api/v1/courses/nca-aiio"
        topics = someone.ask("GET", course_name).json()["topics"]
        plain += [f"{course_name}/topics/{topic['topic']}" for topic in topics]
        for path in [*plain, "/api/v1/openapi.json", "/api", f"{course_name}/nothing"]:
            if not path.endswith("{topic}"):
                address = path.replace("{course}", "nca-aiio")
                someone.note(f"GET {address}", someone.ask("GET", address))
        known = {
            kind: [row["id"] for row in _rows(someone, kind)]
            for kind in ("models", "accelerators", "systems", "networks")
        }
        offered = someone.ask("GET", "/api/v1/estimates").json()["estimates"]
        for estimate, number in itertools.product(offered, range(_INPUTS)):
            name = f"{estimate['name']}/{number:02}"
            inputs = drawn(random.Random(name), estimate["inputs"], known)
            address = f"/api/v1/estimates/{estimate['name']}"
            told = someone.ask("POST", address, json=inputs)
            someone.note(name, told)
            someone.texts[f"api/{name}"] += f"\n\n{json.dumps(inputs)}"
        return someone.texts


def _rows(someone: Visitor, kind: str) -> list[dict[str, Any]]:
    """The entries of a part of the catalog, which may be divided further."""
    told = someone.ask("GET", f"/api/v1/catalogue/{kind}").json()
    lists = [value for value in told.values() if isinstance(value, list)]
    return [row for rows in lists for row in rows if "id" in row]


def drawn(chance: random.Random, asked: list[Any], known: dict[str, Any]) -> dict:
    """Some inputs of an estimate, changed within their declaration and a bit beyond."""
    lists = {"model": "models", "gpu": "accelerators"}
    lists |= {"system": "systems", "network": "networks"}
    inputs: dict[str, object] = {}
    changed = chance.uniform(0.05, 0.4)
    for one in asked:
        if chance.random() > changed:
            continue
        if one["kind"] in lists:
            inputs[one["name"]] = chance.choice(known[lists[one["kind"]]])
        elif one["kind"] == "choice":
            inputs[one["name"]] = chance.choice(one["choices"])
        elif one["kind"] == "flag":
            inputs[one["name"]] = chance.random() < 0.5
        elif one["kind"] in {"count", "number"}:
            least, most = one["minimum"] or 0, one["maximum"] or 1e9
            usual = one["default"] or min(most, max(least, 1) * 8)
            value = usual * 2 ** chance.uniform(-2, 2)
            value = value if chance.random() < 0.03 else min(most, max(least, value))
            inputs[one["name"]] = round(value) if one["kind"] == "count" else value
    return inputs


def commands() -> Texts:
    """The help of every command, and what those that only read say."""
    helped = re.findall(r"^    ([a-z]+)", headroom("--help"), re.MULTILINE)
    lines = ["", "--help", "nothing", *(f"{name} --help" for name in helped)]
    lines += [f"author {name} --help" for name in ("link", "list", "revoke", "log")]
    lines += [f"learners {name} --help" for name in ("list", "link", "adopt")]
    lines += [f"new {name} --help" for name in ("course", "topic", "question", "exam")]
    lines += ["check", "check --format json", "check --explain E20", "check nowhere"]
    lines += ["check --explain E00x", "coverage", "settings", "doctor", "health"]
    lines += ["estimate --list", "estimate nothing", "estimate cost --nothing 1"]
    lines += ["catalogue", "catalogue --missing", "catalogue --json", "accuracy"]
    lines += ["catalogue h100-sxm5-80", "accuracy --verbose", "accuracy --json"]
    formats = ("aiken", "csv", "gift", "json", "moodle", "qti", "qti21", "apkg")
    lines += [f"export {name} - --content {TINY}" for name in formats]
    lines += ["export json - --topic mig"]
    for name in re.findall(r"^  ([a-z-]+) ", headroom("estimate", "--list"), re.MULTILINE):
        lines += [f"estimate {name}{rest}" for rest in ("", " --json", " --help")]
    with tempfile.TemporaryDirectory() as data, installation(SHIPPED, Path(data)):
        return {f"command/{masked(line)}": headroom(*line.split()) for line in lines}


def broken_courses() -> Texts:
    """What the check says of every broken course that the tests know."""
    return {f"check/{name}": _checked(put) for name, put in _defects()}


def _defects() -> Iterator[tuple[str, Callable[[Path], None]]]:
    for case in sorted(CASES.glob("*.md")):
        parts = _PART.findall(case.read_text(encoding="utf-8"))
        yield case.stem, lambda folder, parts=parts: _put_parts(folder, parts)
    for table in sorted(BROKEN.glob("*.toml")):
        kind = tomllib.loads(table.read_text(encoding="utf-8"))
        for number, case in enumerate(kind["case"]):
            name, files = f"{table.stem}-{number:03}", kind.get("files", {})
            yield name, lambda f, c=case, k=files: _edit(f, k, c["edits"])


def _put_parts(folder: Path, parts: list[tuple[str, str]]) -> None:
    for name, content in parts:
        if name == "without":
            (folder / content.strip()).unlink()
        elif name not in {"expected", "tracked"}:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content, encoding="utf-8")


def _edit(folder: Path, files: dict[str, str], edits: list[list[str]]) -> None:
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    for *names, old, new in edits:
        place = names or [n for n, text in files.items() if old in text]
        text = (folder / place[0]).read_text(encoding="utf-8")
        (folder / place[0]).write_text(text.replace(old, new, 1), encoding="utf-8")


def _checked(put: Callable[[Path], None]) -> str:
    """What the check says of the tiny course with a further topic and a defect."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent, "course")
        served_course(TINY, folder)
        (folder / "topics/case").mkdir()
        shutil.copy(CASE_PAGE, folder / "topics/case/concept.md")
        put(folder)
        register = folder / "syllabus.toml"
        ordered = register.read_bytes().replace(b'"kv-cache"]', b'"kv-cache", "case"]')
        register.write_bytes(ordered)
        return headroom("check", str(folder)).replace(str(folder), "<course>")
