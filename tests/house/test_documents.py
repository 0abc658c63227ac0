"""What the documents name is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_security_names_is_there() -> None:
    named = set(re.findall(r"`(tests/[^`]+)`", (ROOT / "SECURITY.md").read_text()))

    assert len(named) > 15
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_setting_that_the_hosting_guide_names_is_one() -> None:
    settings = (ROOT / "app/settings.py").read_text()
    named = set(re.findall(r"\bHEADROOM_([A-Z_]+)\b", (ROOT / "docs/hosting.md").read_text()))

    assert named
    assert [
        n for n in sorted(named) if not re.search(rf"^    {n.lower()}:", settings, re.MULTILINE)
    ] == []


def test_a_link_of_a_document_leads_somewhere() -> None:
    documents = (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
    links = [
        (path, target)
        for path in documents
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", without_code(path.read_text()))
    ]
    assert links
    assert [(p.name, t) for p, t in links if not (p.parent / t).exists()] == []


def without_code(text: str) -> str:
    """A document without its examples, whose links lead out of the example."""
    return re.sub(r"^(`{3,}).*?^\1$|`[^`\n]+`", "", text, flags=re.MULTILINE | re.DOTALL)


def test_a_link_to_a_heading_leads_to_one() -> None:
    documents = (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
    lost = [
        (path.name, file, anchor)
        for path in documents
        for file, anchor in re.findall(
            r"\]\(([^)#:]*\.md|)#([^)]+)\)", without_code(path.read_text())
        )
        if anchor not in anchors(path.parent / file if file else path)
    ]

    assert lost == []


def anchors(path: Path) -> set[str]:
    """The addresses that a code host gives to the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {word.replace(" ", "-") for word in words}


def test_the_readme_is_short_and_its_pictures_are_light() -> None:
    readme = (ROOT / "README.md").read_text()
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", readme)

    assert len(readme.splitlines()) <= 120
    assert len(pictures) == 2
    assert max((ROOT / name).stat().st_size for name in pictures) <= 200_000
