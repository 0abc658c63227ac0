"""What the documents name is there."""

import re
import tomllib
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


# Code that a document may name. Paths are written from the root of the repository, or
# from `app/` where the document says so.
FOLDERS = ("app", "benchmarks", "docs", "evidence", "migrations", "static", "templates", "tests")


def documents() -> list[Path]:
    return sorted((*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")))


def is_there(path: str) -> bool:
    return any(ROOT.glob(path)) or any((ROOT / "app").rglob(path))


# They speak of code; the others also of course files and folders of an installation.
ABOUT_CODE = ("CONTRIBUTING.md", "DECISIONS.md", "SECURITY.md", "architecture.md", "vocabulary.md")
COURSE_FILES = {"syllabus.toml", "sources.toml"}


def paths_in(document: Path) -> set[str]:
    text = document.read_text()
    found = set(re.findall(rf"(?<![\w/.-])(?:{'|'.join(FOLDERS)})/[\w./*-]*[\w*]", text))
    if document.name in ABOUT_CODE:
        found |= set(re.findall(r"`([\w*/-]+\.(?:py|html|css|js|toml))`", text)) - COURSE_FILES
    return found


def test_a_path_in_a_document_exists() -> None:
    named = [(path.name, name) for path in documents() for name in sorted(paths_in(path))]

    assert len(named) > 100
    assert [(document, name) for document, name in named if not is_there(name)] == []


def test_a_name_of_code_in_a_document_exists() -> None:
    """`ClassName`, `some_name`, `package.module` and `module.name` in backquotes."""
    known = {
        word
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for word in (path.stem, path.parent.name, *re.findall(r"\w+", path.read_text("utf-8")))
    }
    name = re.compile(
        r"`(?!HEADROOM_)((?:\w+\.)*(?:[A-Z][a-z]+[A-Z]\w*|\w+_\w+)|(?:app|benchmarks)\.[\w.]+)`"
    )
    lost = [
        (document.name, named)
        for document in documents()
        if document.name in ABOUT_CODE
        for named in set(name.findall(document.read_text()))
        if not known.issuperset(named.split("."))
    ]

    assert lost == []


def test_the_table_of_packages_follows_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    ordered = [name.strip() for layer in layers for name in layer.split("|")]
    table = re.findall(
        r"^\| `(\w+)` \|[^|]*\|(.*)\|$", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE
    )
    packages = [package for package, _ in table]
    lost = [
        f"{package}/{module}"
        for package, modules in table
        for module in re.findall(r"`([\w/]+)`", modules)
        if not (ROOT / f"app/{package}/{module}.py").exists()
        and not (ROOT / f"app/{package}/{module}/__init__.py").exists()
    ]

    assert packages == [name for name in ordered if name != "__main__"]
    assert lost == []
