"""The key that signs cookies: given, or made once and kept in the data folder."""

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

from app.upkeep.files import make_private, make_private_folder, sync
from app.upkeep.installation import InstallationError

LEAST = 32
"""Characters of a key; fewer could be found by trying."""
_MAKE_ONE = "python3 -c 'import secrets; print(secrets.token_urlsafe(48))' prints a good one"


def load_secret_key(given: str, path: Path) -> str:
    """The key in force: `given` by a setting, or the one in the file at `path`.

    Raises Unusable for one that is too short; an empty one would sign for everybody.
    """
    if given:
        if len(given.strip()) < LEAST:
            raise InstallationError(
                f"HEADROOM_SECRET has {len(given.strip())} characters and needs at "
                f"least {LEAST}: set a longer one ({_MAKE_ONE}), or leave it out to "
                "use the key in the data folder."
            )
        return given
    if not path.exists():
        make_private_folder(path.parent)
        _make(path)
    make_private(path)
    return read_secret_file(path)


def read_secret_file(path: Path) -> str:
    """The key in a file; Unusable where it is none."""
    if os.geteuid() == 0 and path.is_symlink():
        # A backup holds the key and goes to the owner of the folder, who could so have
        # root read any file for them.
        raise InstallationError(f"the key {path} is a link, which root does not follow.")
    try:
        key = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        key = ""
    except OSError as error:
        raise InstallationError(
            f"the key {path} cannot be read ({error.strerror}): let the user who runs "
            "Headroom own the file."
        ) from None
    if len(key.strip()) < LEAST:
        raise InstallationError(
            f"the file {path} holds no usable key (at least {LEAST} characters are "
            "needed): get it back with `headroom restore FILE`, or delete it for a new "
            "key, with which every browser begins as a new learner."
        )
    return key


def _make(path: Path) -> None:
    # Several server processes may start at once: the first link wins and all read it.
    handle, name = tempfile.mkstemp(prefix="secret.", dir=path.parent)
    draft = Path(name)
    with os.fdopen(handle, "w", encoding="ascii") as stream:
        stream.write(secrets.token_urlsafe(48))
    sync(draft)
    with contextlib.suppress(FileExistsError):
        path.hardlink_to(draft)
    draft.unlink()
    sync(path.parent)
