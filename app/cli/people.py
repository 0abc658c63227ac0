"""`headroom author` and `headroom learners`: who may come in."""

from collections.abc import Sequence

from app.authors.commands import author_command
from app.cli.installation import address_of, database
from app.cli.settings import read_settings
from app.cli.stop import CommandError
from app.content.live.courses import folders
from app.learners.commands import learners_command
from app.main import doorkeeper_of
from app.web.clock import utc_now


def author(words: Sequence[str]) -> int:
    """Print a link onto the bench, list or revoke sessions, show the log."""
    settings = read_settings()
    if not settings.authoring:
        raise CommandError("the author's bench is switched off by HEADROOM_AUTHORING.")
    with database(settings) as engine:
        return author_command(words, engine, address_of(settings), utc_now())


def learners(words: Sequence[str]) -> int:
    """List learners, or print a link that lets one back in."""
    settings = read_settings()
    with database(settings) as engine:
        keeper = doorkeeper_of(settings)
        courses = folders(settings.content)
        address = address_of(settings)
        return learners_command(words, engine, keeper, address, courses)
