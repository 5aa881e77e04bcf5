"""The folder of a site on disk: written file by file, and replaced by the next site."""

from __future__ import annotations

from pathlib import Path

from adbench.model.atomic_file import write_whole
from adbench.model.errors import BadOutput

MARK = "search-index.js"
"""A folder with this file holds a site of ours."""

FOLDERS = ("backends", "cases", "conform", "machines", "runs")


class SiteFolder:
    """A new or empty folder, or one with an earlier site. Raises BadOutput for any other, before it writes a file."""

    def __init__(self, path: Path) -> None:
        try:
            there = list(path.iterdir()) if path.exists() else []
            if there and not (path / MARK).is_file():
                raise BadOutput(f"{path}: has other files; choose a new or empty folder with -o")
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadOutput(f"{path}: cannot be written: {error.strerror}; choose another folder with -o") from error
        self._path = path
        self._written: set[Path] = set()

    def write(self, address: str, text: str) -> None:
        """Write one file. Raises BadOutput."""
        file = self._path / address
        try:
            file.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise BadOutput(f"{file.parent}: cannot be written: {error.strerror}") from error
        write_whole(file, text)
        self._written.add(file)

    def finish(self) -> None:
        """Remove pages of an earlier site that are not in this one; other files of the user stay."""
        for folder in FOLDERS:
            for file in (self._path / folder).glob("*.html"):
                if file not in self._written:
                    file.unlink()
