"""Words are spelled as in the United States, save those that are addresses by now."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "app",
    "benchmarks",
    "content",
    "docs",
    "evidence",
    "static",
    "templates",
    "tests",
)
KINDS = {".py", ".html", ".css", ".js", ".md", ".toml", ".svg"}
FOREIGN = ("static/vendor/", "tests/content/cases/", "tests/import_export/fuhrmanator/")
BOTH = ("app/lessons/search.py", "tests/lessons/test_search.py")
"""What knows that learners write both."""
_VERBS = (
    "central|custom|emphas|initial|material|maxim|minim|normal|optim|organ|priorit"
    "|quant|recogn|regular|serial|special|summar|synchron|token|util|virtual"
)
_BRITISH = re.compile(
    r"behaviour|centre|colour|\benrol(?:s|ment)?\b|favour|\bgrey\b|honour|judgement"
    r"|licence|neighbour|per cent|practis"
    rf"|(?:model|label|level)l(?:ed|ing)\b|(?:{_VERBS})is(?:ed?|ers?|es|ing|ations?)\b"
)
# Ids, slugs, fields and keys that files, addresses and programs hold.
_PUBLIC = re.compile(
    r"<!-- (?:q:|=) *[\w-]+|\]\([^)]*\)|\[[\^\w.-]+\]|https?://\S+|^(?:aliases|essential): .*|life-cycle#optimise"
    r"|[\"`.]utilisation\b|\butilisation[=:]|[\"`]quantised[\"`]"
    r"|\"data-centre-monitoring\"|ai-enterprise-licence"
    r"|[\"](?:virtualisation|rail-optimised|quantisation|centre|in-colour|grey)[\"]",
    re.MULTILINE,
)


def british(text: str) -> list[str]:
    """The words of a text that are none of those of the United States."""
    text = text.lower()
    return _BRITISH.findall(_PUBLIC.sub("", text)) if _BRITISH.search(text) else []


def test_words_are_spelled_as_in_the_united_states() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {word}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in KINDS
        and not str(path.relative_to(ROOT)).startswith((*FOREIGN, *BOTH))
        and path != Path(__file__)
        for word in british(path.read_text())
    ]
    assert wrong == []
