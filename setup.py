"""Puts what the app reads beside its code into the wheel; the rest is in pyproject.toml."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

FILES = ("content/**/*", "docs/*.md", "migrations/**/*", "static/**/*", "templates/**/*")


class BuildWithFiles(build_py):
    """Copy the files to app/files, where app/__init__.py looks for them."""

    def run(self) -> None:
        """Build the package, and add the files unless it is installed from a clone."""
        super().run()
        if self.editable_mode:
            return
        for source in (file for pattern in FILES for file in Path().glob(pattern)):
            hidden = any(part.startswith((".", "__pycache__")) for part in source.parts)
            if source.is_file() and not hidden:
                target = Path(self.build_lib, "app", "files", source)
                self.mkpath(str(target.parent))
                self.copy_file(str(source), str(target))


setup(cmdclass={"build_py": BuildWithFiles})
