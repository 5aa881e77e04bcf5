"""Addresses that stay: each page's file name follows from the name of its case or backend, or from its run.

Names come from other people's files. A name of lower-case letters, digits, `_` and `-` is its own file name. Any other
gets a readable part and eight digits of its hash, so that no name leaves its folder and no two names share a file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from adbench.model.record import Run
from adbench.results.comparison_inputs import digest, machine_of

PLAIN = re.compile(r"[a-z0-9_-]{1,64}")
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)")  # no file on Windows may be called this


SAME_BITS, SAME_BITS_DATA = "same-bits.html", "same-bits.json"


def slug(name: str) -> str:
    """The file name of a case, backend or library, without its suffix."""
    if PLAIN.fullmatch(name) and not RESERVED.fullmatch(name):
        return name
    readable = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")[:40]
    code = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return "-".join(filter(None, (readable, code)))


def machine_id(run: Run) -> str:
    """Eight digits, the same for runs on like machines with as many threads."""
    return digest(machine_of(run))


def run_id(run: Run) -> str:
    """The start of a run and its machine: "2026-11-24t01-43-23-1a2b3c4d"."""
    return f"{slug(re.sub(r'[^0-9A-Za-z-]+', '-', run.created[:19]).lower())}-{machine_id(run)}"


def page(folder: str, name: str) -> str:
    """The page of a case, a backend, a machine (by its digits) or a run (by `run_id`), from the root of the site."""
    return f"{folder}/{slug(name)}.html"


def conform_page(library: str, precision: str) -> str:
    """The page of a library's operations."""
    return f"conform/{slug(library)}{'' if precision == 'float64' else '-' + slug(precision)}.html"


def every_input_page(libraries: Iterable[str]) -> str:
    """The page of these libraries' functions at every input of 16 bits."""
    return f"conform/every-input-{slug('-'.join(libraries))}.html"
