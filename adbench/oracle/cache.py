"""References on disk, computed once for each source and its inputs.

One JSON file per reference, named by a digest of everything that it depends on. Users may delete the folder at any
time; a damaged file counts as missing. The package ships references of built-in cases at the sizes of a first look
(`scripts/references` writes them).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optree

from adbench.oracle.reference import ORACLE_VERSION, Reference

SHIPPED = Path(__file__).with_name("references.json.xz")


def reference_key(text: str, args: tuple[Any, ...], wrt: Sequence[int], seed: int, **options: Any) -> str:
    """A digest of the case's source, the exact inputs, the seed, the options and the oracle's version."""
    digest = hashlib.sha256()
    head = [ORACLE_VERSION, text, list(wrt), seed, sorted((name, repr(value)) for name, value in options.items())]
    digest.update(json.dumps(head).encode())
    inputs: Any = args
    for path, leaf in zip(optree.tree_paths(inputs), optree.tree_leaves(inputs), strict=True):
        array = np.asarray(leaf)
        # The type matters: an integer is a constant, the equal float is not.
        digest.update(repr((path, type(leaf).__name__, array.dtype.str, array.shape)).encode())
        digest.update(repr(leaf).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def cached(folder: Path, key: str, compute: Callable[[], Reference]) -> Reference:
    """Read the reference with this key from ``folder`` or the package, or compute it and write it to ``folder``.

    If the folder is not writable, the next run computes it again. `folder` has a subfolder for each version of the
    oracle's source.
    """
    folder /= _text_of_oracle()
    file = folder / f"{key}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return Reference.from_plain(json.loads(file.read_text(encoding="utf-8")))
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return Reference.from_plain(shipped(SHIPPED)[key])
    found = compute()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        _write(file, json.dumps(found.to_plain(), allow_nan=False))
    return found


@functools.cache
def _text_of_oracle() -> str:
    """A digest of this package's source."""
    here = Path(__file__).parent
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(here.rglob("*.py")))).hexdigest()[:16]


@functools.cache
def shipped(file: Path) -> Mapping[str, dict[str, Any]]:
    """Key -> reference, as plain data, from a file made by `pack`; empty if it cannot be read."""
    try:
        import lzma
    except ImportError:  # some builds of Python lack it
        return {}
    try:
        found: dict[str, dict[str, Any]] = json.loads(lzma.decompress(file.read_bytes()))
    except (OSError, ValueError, EOFError, lzma.LZMAError):
        return {}
    return found


def pack(folder: Path, file: Path, more: Mapping[str, dict[str, Any]] | None = None) -> int:
    """Write every reference of the folder, and `more` by key, into one compressed file and return their number."""
    import lzma

    found = dict(more or {}) | {path.stem: json.loads(path.read_bytes()) for path in sorted(folder.rglob("*.json"))}
    text = json.dumps(found, allow_nan=False, separators=(",", ":"))
    file.write_bytes(lzma.compress(text.encode(), preset=9))
    return len(found)


def _write(file: Path, text: str) -> None:
    """Write atomically, so that other processes never read half a file."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.stem[:16], suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(name, file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
