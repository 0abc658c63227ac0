"""Runs every part of the audit and prints its counts; 1 where something was found.

    python -m tests.audit [requests]

The API is attacked by Schemathesis, every form by our own fuzzer, the code is read by
Bandit, licenses and known faults of the packages are looked up. Without a network the
list of known faults may be out of reach, which is said and is no finding.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.audit.forms import fuzz
from tests.browser.server import ROOT, Server
from tests.conftest import TINY, two_courses
from tests.web.addresses import BESIDE_OTHERS

_BIN = Path(sys.executable).parent
_REFUSED = re.compile(r"\b(AGPL|Affero|(?<!Lesser )General Public|(?<!L)GPL)", re.IGNORECASE)
_NAMES = """[parameters]
course = ["aid", "sizing", "none"]
topic = ["weights", "reanimation", "none"]
"""
_LESSER = re.compile(r"LGPL|Lesser General Public", re.IGNORECASE)


def main(requests: int) -> int:
    """The number of parts that found something."""
    parts = (
        ("API, Schemathesis", lambda: _api(requests)),
        ("API beside a course", lambda: _api(requests, BESIDE_OTHERS)),
        ("Forms, own fuzzer", lambda: _forms(requests)),
        ("Forms beside a course", lambda: _forms(requests, BESIDE_OTHERS)),
        ("Code, Bandit", _code),
        ("Licenses of the packages", _licenses),
        ("Known faults of the packages, pip-audit", _faults),
    )
    failed = 0
    for name, part in parts:
        words, fine = part()
        print(f"{'fine ' if fine else 'FOUND'}  {name}: {words}", flush=True)
        failed += not fine
    return failed


def _api(requests: int, below: str = "") -> tuple[str, bool]:
    """So many requests made from the description of the API.

    To a course alone any names are sent; below one of two, those of courses and topics.
    """
    with tempfile.TemporaryDirectory() as folder:
        off = {f"rate_{kind}": "off" for kind in ("estimates", "comparisons")}
        content = two_courses(Path(folder) / "content") if below else TINY
        names = Path(folder) / "schemathesis.toml"
        names.write_text(_NAMES if below else "")
        report = Path(folder) / "report.json"
        with Server(Path(folder) / "data", content, **off) as server:
            subprocess.run(
                [
                    *(str(_BIN / "st"), "--config-file", str(names)),
                    *("run", f"{server.url}{below}/api/v1/openapi.json"),
                    *("--url", server.url + below),
                    *("--checks", "not_a_server_error", "--phases", "fuzzing"),
                    *("--max-examples", str(requests // 18), "--seed", "1"),
                    *("--continue-on-failure", "--suppress-health-check", "all"),
                    *("--warnings", "off", "--report-ndjson-path", str(report)),
                ],
                cwd=folder,  # where it leaves what it keeps in mind
                check=False,
                stdout=subprocess.DEVNULL,
            )
            sent, broken = _counted(report)
    return f"{sent:,} requests, {broken} server errors", not broken and sent > 0


def _counted(report: Path) -> tuple[int, int]:
    """Requests and server errors in a report of Schemathesis, a JSON on each line."""
    text = report.read_text() if report.exists() else ""
    statuses = [int(s) for s in re.findall(r'"status_code":\s*(\d{3})', text)]
    return len(statuses), sum(status >= 500 for status in statuses)


def _forms(requests: int, below: str = "") -> tuple[str, bool]:
    tally = fuzz(requests, below, seed=2 if below else 1)
    for found in tally.found[:20]:
        print(f"       {found}")
    spread = ", ".join(f"{n:,} × {s}" for s, n in sorted(tally.statuses.items()))
    return f"{tally.sent:,} requests ({spread})", not tally.found


def _code() -> tuple[str, bool]:
    """Bandit's findings; one that the linter also makes has its answer on its line."""
    done = _said("bandit", "-q", "-r", "app", "-f", "json", "-ll")
    results = json.loads(done.stdout)["results"]
    wrong = [one for one in results if not _is_answered(one)]
    for one in wrong:
        print(f"       {one['filename']}:{one['line_number']} {one['issue_text']}")
    lines = json.loads(done.stdout)["metrics"]["_totals"]["loc"]
    answered = len(results) - len(wrong)
    words = f"{lines:,} lines, {len(wrong)} findings of medium or more"
    return f"{words}, {answered} more with the reason beside it", not wrong


def _is_answered(finding: dict[str, Any]) -> bool:
    """Whether a line says why this is no fault: `# noqa: S608 - the reason`."""
    lines = (ROOT / finding["filename"]).read_text(encoding="utf-8").splitlines()
    rule = "S" + finding["test_id"].removeprefix("B")
    reason = re.compile(rf"# noqa: [A-Z0-9, ]*\b{rule}\b[A-Z0-9, ]* - \w")
    return any(reason.search(lines[n - 1]) for n in finding["line_range"])


def _licenses() -> tuple[str, bool]:
    wanted = re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    done = _said("pip-licenses", "--format=json", "--packages", *wanted)
    found = json.loads(done.stdout)
    wrong = [
        f"{p['Name']} ({p['License']})"
        for p in found
        if _REFUSED.search(_LESSER.sub("", p["License"]))
    ]
    return f"{len(found)} packages, not allowed: {wrong or 'none'}", not wrong


def _faults() -> tuple[str, bool]:
    done = _said(
        *("pip-audit", "-r", "requirements.lock", "--disable-pip"),
        *("--require-hashes", "--progress-spinner", "off", "-f", "json"),
    )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError):
        return "the list could not be reached", True
    known = [p for p in packages if p.get("vulns")]
    unseen = sum("skip_reason" in p for p in packages)
    words = f"{len(packages) - unseen} packages looked up, {unseen} out of reach"
    return f"{words}, {len(known)} with known faults", not known


def _said(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(_BIN / words[0]), *words[1:]],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
