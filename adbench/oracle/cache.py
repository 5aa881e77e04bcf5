"""References on disk, computed once for each source and its inputs.

One file per reference, named by a digest of everything that it depends on, and sealed, because an edited one would call
a correct library wrong. Users may delete the folder at any time; a damaged file counts as missing. The package ships
references of built-in cases at the sizes of checks and runs (`scripts/references` writes them). They took as much time
as any request allows, so their key lacks the time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optree

from adbench.oracle.reference import ORACLE_VERSION, Reference
from adbench.sealed_folder import SealedFolder

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


def cached(folder: Path, key: str, shipped_as: str, compute: Callable[[], Reference]) -> Reference:
    """Read the reference by its key from ``folder`` or from the package, or compute it and write it to ``folder``.

    If the folder is not writable, or others can write to it, the next run computes it again. `folder` has a subfolder
    for each version of the oracle's source.
    """
    own, name = folder / _text_of_oracle(), f"{key}.json"
    entries = _entries(own) if own.is_dir() else None
    with contextlib.suppress(ValueError):
        return Reference.from_plain(json.loads((entries and entries.get(name)) or b""))
    with contextlib.suppress(ValueError, KeyError):
        return Reference.from_plain(shipped(SHIPPED)[shipped_as])
    reference = compute()
    if (entries := entries or _entries(own)) is not None:
        entries.put(name, json.dumps(reference.to_plain(), allow_nan=False).encode())
    return reference


def _entries(folder: Path) -> SealedFolder | None:
    """The kept references of a folder; None if it cannot be trusted or written."""
    try:
        return SealedFolder(folder)
    except ValueError:
        return None


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
        references: dict[str, dict[str, Any]] = json.loads(lzma.decompress(file.read_bytes()))
    except (OSError, ValueError, EOFError, lzma.LZMAError):
        return {}
    return references


def pack(folder: Path, file: Path, more: Mapping[str, dict[str, Any]] | None = None) -> int:
    """Write every reference of the folder, and `more` by key, into one compressed file and return their number."""
    import lzma

    paths = sorted(folder.rglob("*.json"))
    kept = {path.stem: json.loads(SealedFolder(path.parent).get(path.name) or b"null") for path in paths}
    references = dict(more or {}) | kept
    text = json.dumps(references, allow_nan=False, separators=(",", ":"))
    file.write_bytes(lzma.compress(text.encode(), preset=9))
    return len(references)
