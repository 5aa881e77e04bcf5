"""References on disk: one computation for each text and its inputs.

One JSON file per reference, named by a digest of everything that the reference depends on. Users may delete the folder
at any time; a damaged file counts as missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optree

from adbench.oracle.reference import ORACLE_VERSION, Reference


def reference_key(text: str, args: tuple[Any, ...], wrt: Sequence[int], seed: int, **options: Any) -> str:
    """The digest of the case's text, its inputs to the last bit, the seed, the options and the oracle's version."""
    digest = hashlib.sha256()
    head = [ORACLE_VERSION, text, list(wrt), seed, sorted((name, repr(value)) for name, value in options.items())]
    digest.update(json.dumps(head).encode())
    inputs: Any = args
    for path, leaf in zip(optree.tree_paths(inputs), optree.tree_leaves(inputs), strict=True):
        array = np.asarray(leaf)
        # The type too: a whole number is a constant where the same float is not.
        digest.update(repr((path, type(leaf).__name__, array.dtype.str, array.shape)).encode())
        digest.update(repr(leaf).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def cached(folder: Path, key: str, compute: Callable[[], Reference]) -> Reference:
    """Reads the reference of that key from ``folder``, or computes it and writes it there.

    A folder that cannot be written costs the next run time, nothing else.
    """
    file = folder / f"{key}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return Reference.from_plain(json.loads(file.read_text(encoding="utf-8")))
    found = compute()
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        _write(file, json.dumps(found.to_plain(), allow_nan=False))
    return found


def _write(file: Path, text: str) -> None:
    """In one step, so that another process never reads half a file."""
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.stem[:16], suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(name, file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
