"""The package, and the folder of its templates, static files, migrations, documents and course."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
IN_WHEEL = (_PACKAGE / "files").is_dir()
"""Whether the app was installed from a wheel, and not from a clone."""
ROOT = _PACKAGE / "files" if IN_WHEEL else _PACKAGE.parent
