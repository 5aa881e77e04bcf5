"""What a backend's KNOWN says about the traps, in the parts that reports show. Loads no library: cases are enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from adbench.model import tree
from adbench.model.backend import KnownBug, KnownBugs, Trap
from adbench.model.case import ARROW, THREAD, Case, parts_of_reason
from adbench.model.errors import contained
from adbench.model.events import KnownBugsRead

MOST_ENTRIES = 12  # of an array, written out
LONGEST = 160  # characters of a text from a file


def of_no_backend(cases: Mapping[str, Case], checked: Iterable[str]) -> KnownBugs:
    """How many traps each family has, and what those among the checked cases are: all that is known before a load."""
    families = Counter(family_of(case) for case in cases.values() if case.is_trap)
    return KnownBugs(dict(families), {name: described(cases[name]) for name in checked if cases[name].is_trap})


def read(backend: str, known: Mapping[str, str], cases: Mapping[str, Case]) -> KnownBugsRead:
    """The entries of KNOWN that are about traps."""
    bugs = []
    for key, given in known.items():
        name, *operators = key.split()
        if name in cases and cases[name].is_trap:
            got, why, thread = parts_of_reason(cases[name].known_fault(given))
            thread = thread or _thread_of(cases[name])
            bugs.append(KnownBug(name, tuple(operators), got[:LONGEST], why[:LONGEST], thread))
    return KnownBugsRead(backend, tuple(bugs), {bug.trap: described(cases[bug.trap]) for bug in bugs})


def described(case: Case) -> Trap:
    """A trap in words. Its expected gradient is in numbers where the case has one, else in the summary's words."""
    function, _, words = case.summary.removesuffix(".").partition(ARROW)
    return Trap(family_of(case), function[:LONGEST], (_gradient(case) or words)[:LONGEST])


def family_of(case: Case) -> str:
    """The name of its file, without "trap_"."""
    return Path(case.file).stem.removeprefix("trap_")


def _thread_of(case: Case) -> str:
    """The first thread that the trap's own record cites; it need not be the backend's."""
    cited = THREAD.search(case.f.__doc__ or "")
    return f"as {cited.group()}" if cited else ""


def _gradient(case: Case) -> str:
    """The gradient by hand, one text for each active input; "" if the case has no gradient."""
    if case.gradient is None:
        return ""
    try:
        with contained():
            names, args, _ = case.bind(case.sizes[0], 0)
            return " and ".join(map(_text, tree.leaves(case.gradient(**dict(zip(names, args, strict=True))))))
    except Exception:  # a user's own function; the check reports what is wrong with it
        return ""


def _text(value: Any) -> str:
    """A number, or an array as nested brackets."""
    array = np.asarray(value, dtype=np.float64)
    if array.size == 0:
        return "no entry"
    if array.size > MOST_ENTRIES:
        return f"{_text(array.ravel()[:3])[:-1]}, …) of shape {'×'.join(map(str, array.shape))}"
    return f"{float(array):.6g}" if array.ndim == 0 else f"({', '.join(map(_text, array))})"
