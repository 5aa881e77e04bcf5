"""Machine code kept on disk, for programs that are started again and again. Nothing is kept unless a folder is named.

What is kept is the object code of one module, under a digest of everything that it depends on: the module's text, the
level of optimisation, the processor and its features, and the version of LLVM. Recording and lowering are done anew, so
that nothing that Python knows comes out of a file; LLVM's time, which is most of a long wait, is saved.

An entry is code that will run, so whoever can write entries can run code. Therefore

* the folder must be the user's own, and nobody else's to write; links are not followed;
* each entry is sealed (HMAC-SHA256) with a key that lies beside the entries and that only the user can read. The seal
  is over the digest too: an entry under another name is none;
* what is too long, cut off, changed, or not the user's is not read, and compiled anew.

This holds against other users and against damage, not against somebody who can write as the user: he can change the
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
"""Bytes of object code; of more, nothing is kept."""
TOTAL_LIMIT = 512 * 2**20
"""Bytes of all entries; when there are more, the oldest go."""


class CodeCache:
    """A folder of object code. Raises ValueError, in one line, if it cannot be trusted or made."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = os.lstat(self.folder)
        except OSError as error:
            raise ValueError(f"compile: cache: {self.folder}: {error.strerror}; name another folder") from error
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
            raise ValueError(
                f"compile: cache: {self.folder} must be a folder of yours that nobody else can write to, as code is run"
                " from it; try chmod go-w, or name another folder"
            )
        self._key = self._read_or_make_key()

    def get(self, digest: bytes) -> bytes | None:
        """The code under this digest; None if there is none that can be trusted."""
        kept = _read(self._path(digest), len(MAGIC) + SEAL + LARGEST)
        if kept is None or not kept.startswith(MAGIC):
            return None
        seal, code = kept[len(MAGIC) : len(MAGIC) + SEAL], kept[len(MAGIC) + SEAL :]
        return code if hmac.compare_digest(seal, self._seal(digest, code)) else None

    def put(self, digest: bytes, code: bytes) -> None:
        """Keeps code, in one step; a folder that cannot be written to keeps nothing."""
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
        if key is None or len(key) != KEY:  # entries that were sealed with another one are none
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
    """A digest of texts; no two lists of texts have the same."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode()
        whole.update(len(data).to_bytes(8, "little"))
        whole.update(data)
    return whole.digest()


def _read(path: Path, most: int) -> bytes | None:
    """A regular file of the user's that nobody else can write to, and that is not longer than this."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
                return None
            return file.read(most) if about.st_size <= most else None
    except OSError:
        return None


def _write(path: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent)  # to be read and written by the user only
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
