"""Case and backend files that adbench writes itself. They stay in the cache, so that a run can be resumed or repeated.

A file's folder is named by a digest of everything in it: the same contents give the same path, other contents another.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from adbench.model.atomic_file import write_whole
from adbench.model.errors import BadOutput
from adbench.model.settings import cache_folder

MOST_NAME = 60  # characters
DIGEST_LENGTH = 12
ANOTHER_PLACE = "set ADBENCH_CACHE to a folder that can be written"


def generated_file(
    kind: Literal["cases", "commands"], name: str, text: str, data: Mapping[str, bytes] | None = None
) -> Path:
    """Write `<kind>/<digest>/<name>.py` in the user's cache; returns its path.

    name    of the case or backend: a file's stem, as `file_stem` makes it
    data    file name -> contents of the files that the text reads: Path(__file__).with_name("arguments.npz")

    Raises BadOutput if the file cannot be written.
    """
    contents = {**(data or {}), f"{name}.py": text.encode("utf-8", "surrogatepass")}
    digest = hashlib.sha256()
    for called, content in sorted(contents.items()):
        digest.update(f"{called}\0{len(content)}\0".encode() + content)
    folder = cache_folder() / kind / digest.hexdigest()[:DIGEST_LENGTH]
    for called, content in contents.items():  # the Python file last: who sees it finds the others
        _write(folder / called, content)
    return folder / f"{name}.py"


def is_command(path: str | Path) -> bool:
    """Whether a file was written for the command of a backend."""
    return Path(path).parent.parent.name == "commands"


def file_stem(name: str) -> str:
    """The name as a file's stem: letters, digits and single underscores only, and none at the ends."""
    return re.sub(r"[\W_]+", "_", name).strip("_")[:MOST_NAME] or "unnamed"


def _write(file: Path, content: bytes) -> None:
    try:
        if file.is_file() and file.read_bytes() == content:
            return
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadOutput(f"{file}: cannot be written: {error.strerror}; {ANOTHER_PLACE}") from error
    write_whole(file, content, kept=ANOTHER_PLACE)
