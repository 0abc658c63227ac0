"""That the net sees no difference where there is none, and sees one where there is."""

import os
import subprocess
import sys

import pytest

from tests.net import __main__ as net

PART = """
import json, os, sys
from tests.net import repeatable
repeatable.freeze()
from tests.net import runs
with runs.visitor("test", one=runs.TINY) as someone:
    someone.send(someone.page("/quiz").form("/quiz/runs"), pick="placement")
    for address in runs.questions(someone, "cb-1")[:3]:
        someone.send(someone.page(address).form("/attempts"))
    runs.review(someone, "")
    print(json.dumps({**someone.texts, "test/database": runs.database()}))
"""


def texts(hash_seed: str, folder: str) -> bytes:
    """What a few acts at the tiny course lead to, in a process of its own."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": net.ROOT}
    command = [sys.executable, "-c", PART]
    return subprocess.run(
        command, env=environment, cwd=folder, check=True, capture_output=True
    ).stdout


@pytest.mark.drill
def test_two_runs_give_the_same_texts(tmp_path):
    first = texts("1", net.ROOT)

    assert b"test/database" in first
    assert texts("2", str(tmp_path)) == first


def test_what_changed_came_and_went_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(net, "HASHES", tmp_path / "hashes.json")
    monkeypatch.setattr(net, "TEXTS", tmp_path / "texts")
    net.record({"new/GET /": "1", "new/GET /a": "2", "new/GET /b": "3"})

    assert net.compare({"new/GET /": "1", "new/GET /a": "2", "new/GET /b": "3"}) == 0
    assert net.compare({"new/GET /": "1", "new/GET /a": "4", "new/GET /c": "3"}) == 1
    told = capsys.readouterr().out
    assert "new/GET /b, is gone" in told
    assert "new/GET /c, is new" in told
    assert net.file_of("new/GET /a", "found").read_text() == "4"
