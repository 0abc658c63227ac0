"""Whether a file that is gone belongs to a Git repository, read from its index."""

from pathlib import Path

_NAME = 0xFFF  # the low bits of the flags hold the length of the name, up to this


def is_tracked(file: Path) -> bool:
    """Whether the repository around a file knows it, there or not.

    An entry of the index is read by its flags, its name and the zero behind it, which
    is how versions 2 and 3 write it. Where there is no such index the answer is no.
    """
    for root in file.absolute().parents:
        index = _index_of(root)
        if index is not None:
            name = file.absolute().relative_to(root).as_posix().encode()
            flags = min(len(name), _NAME).to_bytes(2)
            return flags + name + b"\0" in index
    return False


def _index_of(root: Path) -> bytes | None:
    """The index of the repository whose files lie in `root`; None where none does."""
    git = root / ".git"
    try:
        if git.is_file():  # a further work tree names its folder in a file
            word = git.read_text(encoding="utf-8").partition("gitdir:")[2].strip()
            git = root / word
        return (git / "index").read_bytes() if git.is_dir() else None
    except (OSError, ValueError):
        return None
