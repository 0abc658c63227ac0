"""The Markdown of a page without its items: what may be passed on without a key."""

from app.content.read.metadata import front_matter
from app.content.read.regions import cut
from app.content.source_file import Manuscript
from app.questions.written import Draft


def prose_of(text: str) -> str:
    """A page as its author wrote it, without front matter, questions and cards."""
    sheet = Manuscript("", text)
    body = front_matter(sheet)[1]
    items = {
        number
        for region in cut(body, sheet)
        if isinstance(region, Draft)
        for number in range(region.line, region.line + region.text.count("\n") + 1)
    }
    lines = body.split("\n")
    kept = [line for number, line in enumerate(lines, 1) if number not in items]
    return "\n".join(kept).strip("\n") + "\n"
