"""A folder of files that adbench wrote itself: machine code, shared objects, references.

An entry is code that will run, or a truth that others are judged by: who can write to entries can change results.
Therefore

* the folder must belong to the user, who alone may write to it; links are not followed;
* each entry is sealed (HMAC-SHA256) with a key that lies next to the entries and that only the user can read. The seal
  covers the name too: a renamed entry is invalid;
* an entry that is too long, truncated, changed or another user's counts as missing.

This protects against other users and against damage, but not against code that runs as the user, which could change the
program itself.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import stat
import tempfile
from pathlib import Path

MAGIC = b"adbench sealed 1\n"
SEAL, KEY = 32, 32
LARGEST = 64 * 2**20
"""Bytes of the largest entry."""
LOOKS = 64
"""A process looks for old entries when it has written this part of the limit, and once at its first entry."""

_unseen: dict[tuple[str, str], int] = {}  # folder and suffix -> bytes written since this process last looked


class SealedFolder:
    """A folder of sealed entries. Raises ValueError, in one line, if it cannot be trusted or made.

    limit   bytes of all entries: the oldest are deleted beyond that; None for no limit
    """

    def __init__(self, folder: str | os.PathLike[str], *, limit: int | None = None) -> None:
        self.folder, self.limit = Path(folder), limit
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = os.lstat(self.folder)
        except OSError as error:
            raise ValueError(f"{self.folder}: {error.strerror}; name another folder") from error
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
            raise ValueError(
                f"{self.folder} must be a folder of yours that nobody else can write to, because adbench trusts what it"
                " holds; try chmod go-w, or name another folder"
            )
        self._key = self._read_or_make_key()

    def get(self, name: str) -> bytes | None:
        """The data of the entry; None if there is no valid one."""
        entry = _read(self.folder / name, len(MAGIC) + SEAL + LARGEST)
        if entry is None or not entry.startswith(MAGIC):
            return None
        seal, data = entry[len(MAGIC) : len(MAGIC) + SEAL], entry[len(MAGIC) + SEAL :]
        return data if hmac.compare_digest(seal, self.seal(name, data)) else None

    def put(self, name: str, data: bytes) -> None:
        """Store the entry atomically; does nothing if the folder is not writable."""
        if len(data) <= LARGEST:
            with contextlib.suppress(OSError):
                _write(self.folder / name, MAGIC + self.seal(name, data) + data)
                self._tidy(Path(name).suffix, len(data))

    def seal(self, name: str, data: bytes) -> bytes:
        """What only the owner of the folder can compute of a name and its data: 32 bytes."""
        return hmac.digest(self._key, MAGIC + name.encode() + b"\0" + data, "sha256")

    def _read_or_make_key(self) -> bytes:
        path = self.folder / "key"
        key = _read(path, KEY)
        if key is None or len(key) != KEY:  # entries sealed by another key are invalid
            key = secrets.token_bytes(KEY)
            with contextlib.suppress(OSError):
                _write(path, key)
                key = _read(path, KEY) or key  # that of another process, where two made one at a time
        return key

    def _tidy(self, suffix: str, written: int) -> None:
        """Delete the oldest entries beyond the limit; looks at the folder once for many small entries."""
        if self.limit is None:
            return
        here = str(self.folder), suffix
        _unseen[here] = _unseen.get(here, self.limit) + written
        if _unseen[here] <= self.limit // LOOKS:
            return
        _unseen[here] = 0
        entries = sorted(((p.lstat(), p) for p in self.folder.glob(f"*{suffix}")), key=lambda e: e[0].st_mtime)
        total = sum(about.st_size for about, _ in entries)
        for about, path in entries:
            if total <= self.limit:
                break
            path.unlink(missing_ok=True)
            total -= about.st_size


def _read(path: Path, most: int) -> bytes | None:
    """The content of a regular file of at most this length that only the user can write to; else None."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
                return None
            return file.read(most) if about.st_size <= most else None
    except OSError:
        return None


def _write(path: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent)  # readable by the user only
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
