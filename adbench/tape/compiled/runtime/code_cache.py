"""A cache of machine code on disk, for programs that start often. It is off unless a folder is named.

An entry is the object code of one module, under a digest of all that it depends on: the module's source, the level of
optimisation, the processor and its features, and the version of LLVM. Every process records and lowers again, so no
Python data comes from a file. The cache saves LLVM's time, the largest part of a long wait.

Entries are code that will run, so write access to entries allows running code. Therefore

* the folder must belong to the user, and no one else may write to it; links are not followed;
* each entry is sealed (HMAC-SHA256) with a key next to the entries that only the user can read. The seal
  covers the digest too: a renamed entry is invalid;
* an entry that is too long, truncated, changed or another user's is ignored, and the code compiled again.

This protects against other users and against damage, but not against code that runs as the user, which could change the
program itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
import tempfile
from pathlib import Path

MAGIC = b"adbench compiled 1\n"
SEAL, KEY = 32, 32
LARGEST = 64 * 2**20
"""The largest cached object code, in bytes."""
TOTAL_LIMIT = 512 * 2**20
"""The most bytes of all entries; beyond it, the oldest are deleted."""


class CodeCache:
    """A folder of object code. Raises ValueError if the folder cannot be created or is not private."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = os.lstat(self.folder)
        except OSError as error:
            raise ValueError(f"compile: cache: {self.folder}: {error.strerror}; name another folder") from error
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
            raise ValueError(
                f"compile: cache: {self.folder} is not yours, or others can write to it, and code from it will run;"
                " try chmod go-w, or name another folder"
            )
        self._key = self._read_or_make_key()

    def get(self, digest: bytes) -> bytes | None:
        """The code under this digest, or None if there is no valid entry."""
        entry = _read(self._path(digest), len(MAGIC) + SEAL + LARGEST)
        if entry is None or not entry.startswith(MAGIC):
            return None
        seal, code = entry[len(MAGIC) : len(MAGIC) + SEAL], entry[len(MAGIC) + SEAL :]
        return code if hmac.compare_digest(seal, self._seal(digest, code)) else None

    def put(self, digest: bytes, code: bytes) -> None:
        """Store code atomically; do nothing if the folder is not writable."""
        if len(code) <= LARGEST:
            with contextlib.suppress(OSError):
                _write(self._path(digest), MAGIC + self._seal(digest, code) + code)
                self._tidy()

    def _path(self, digest: bytes) -> Path:
        return self.folder / f"{digest.hex()}.code"

    def _seal(self, digest: bytes, code: bytes) -> bytes:
        return hmac.digest(self._key, MAGIC + digest + code, "sha256")

    def _read_or_make_key(self) -> bytes:
        path = self.folder / "key"
        key = _read(path, KEY)
        if key is None or len(key) != KEY:  # entries sealed by another key are invalid
            key = secrets.token_bytes(KEY)
            with contextlib.suppress(OSError):
                _write(path, key)
        return key

    def _tidy(self) -> None:
        entries = sorted(((p.lstat(), p) for p in self.folder.glob("*.code")), key=lambda e: e[0].st_mtime)
        total = sum(about.st_size for about, _ in entries)
        for about, path in entries:
            if total <= TOTAL_LIMIT:
                break
            path.unlink(missing_ok=True)
            total -= about.st_size


def digest_of(*parts: str) -> bytes:
    """A digest of texts, different for any two lists of texts."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode()
        whole.update(len(data).to_bytes(8, "little"))
        whole.update(data)
    return whole.digest()


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
