"""`adbench check --same-bits`: a gradient again in calls, processes, threads and batches, compared bit for bit."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from adbench.catalog.ad_hoc import AdHoc
from adbench.catalog.discovery import select
from adbench.catalog.selection import Selection, installed, resolve
from adbench.execution.workers.context import Context
from adbench.execution.workers.process import NoAnswer
from adbench.execution.workers.resident_worker import ResidentWorker
from adbench.execution.workers.supervisor import Supervisor, default_limit
from adbench.findings.same_bits.repetitions import CALLS, BitDifference
from adbench.functions.recognition import library_of
from adbench.measure.machine.processors import usable_cpus
from adbench.model.errors import UsageError
from adbench.model.serialization import from_plain, to_plain
from adbench.model.settings import PROCESSOR, Settings, on_device
from adbench.oracle.evidence import PRECISIONS

WORKER = "adbench.findings.same_bits.repetitions"
SECONDS = 300.0
"""For the answer of one process."""

CHANGES = {
    "repeat": f"{CALLS - 1} more calls",
    "process": "2 more processes",
    "threads": "2 threads instead of 1",
    "batch": "the same rows in smaller batches",
    "padding": "more rows",
    "chunks": "the sum of two halves",
}
"""What is changed in each kind of repetition."""

SAME_INPUTS = ("repeat", "process", "threads")
"""Kinds that repeat one computation; in others the library computes something else."""

LIBRARIES_OF_XP = ("torch", "jax", "autograd", "tape")

Ask = Callable[[int, str, Mapping[str, Any]], Any]
"""ask(number of the process, function of the worker, request); process 3 has two threads."""


@dataclass(frozen=True)
class BitRow:
    """One kind of repetition: the first difference; None if all bits agree, or for `reason` if nothing can be compared.

    changed   what was changed where it differs; behind: the operation that adds numbers on the way there, or ""
    """

    kind: str
    difference: BitDifference | None = None
    reason: str = ""
    changed: str = ""
    behind: str = ""

    @property
    def word(self) -> str:
        """ "same", "differs" or "–"."""
        return "differs" if self.difference else "–" if self.reason else "same"

    def __str__(self) -> str:
        if self.difference is None:
            return f"{self.kind:9}{self.word:9}{self.reason or CHANGES[self.kind]}"
        one = self.difference
        digits = math.ceil(1 - math.log10(PRECISIONS[one.type].unit))  # with so many, different numbers look different
        first, again = (f"{number:.{digits}g}" for number in (one.first, one.again))
        numbers = f"{one.place} is {first}, then {again}, {one.ulp:.3g} ulp"
        behind = f"; behind it: {self.behind}" if self.behind else ""
        return f"{self.kind:9}{self.word:9}{self.changed}: {numbers}{behind}"


@dataclass(frozen=True)
class SameBits:
    """All kinds of repetitions of one function's gradient by one backend."""

    function: str
    backend: str
    version: str
    rows: tuple[BitRow, ...]

    @property
    def differs(self) -> bool:
        """Whether the same inputs gave other bits."""
        return any(row.difference for row in self.rows if row.kind in SAME_INPUTS)

    def text(self, width: int) -> str:
        """For a terminal of this width."""
        title = f"{self.function} by {self.backend} {self.version}".rstrip()
        lines = [textwrap.fill(f"  {row}", width, subsequent_indent=" " * 20) for row in self.rows]
        return "\n".join([title, *lines])

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        rows = {row.kind: {"word": row.word, **to_plain(row)} for row in self.rows}
        return {"function": self.function, "backend": self.backend, "version": self.version, "rows": rows}


def same_bits(
    named: AdHoc,
    sizes: Sequence[str],
    backends: Sequence[str],
    folders: Sequence[str],
    seed: int,
    device: str = PROCESSOR,
) -> list[SameBits]:
    """Repeat the gradient of a function at its arguments of one size by these backends; none: by its library's.

    Raises UsageError in one line for a function, arguments or a backend that cannot be repeated.
    """
    if len(sizes) > 1:
        raise UsageError(f"-n {' '.join(sizes)}: --same-bits takes one size; write a whole number from 1")
    (size,) = named.sizes_of(sizes)
    passed = named.arguments_by_size()(size)
    library = library_of(named.function(), *passed, backends[0] if backends else None)
    wanted = backends or (LIBRARIES_OF_XP if library.name == "xp" else (library.backend,))
    chosen = resolve(backends=wanted, backend_folders=folders)
    names = select("backend", chosen.catalog.backends, chosen.backends)
    if not backends and library.name == "xp":  # only the installed ones, with the device
        sources = chosen.catalog.backends
        names = tuple(name for name in names if not (sources[name].missing or sources[name].refuses(device)))
    for name in names:
        library.refuse_backend(name, named.name)
    installed(replace(chosen, backends=names))
    found = []
    for name in names:
        with asking(replace(chosen, catalog=chosen.catalog.on(device)), name, seed) as ask:
            rows = repetitions(ask, {"named": asdict(named), "size": size, "seed": seed})
        found.append(SameBits(named.name, on_device(name, device), chosen.catalog.backends[name].version or "", rows))
    return found


@contextmanager
def asking(chosen: Selection, backend: str, seed: int) -> Iterator[Ask]:
    """In the block, four processes with this backend answer; each starts when it is first asked."""
    with Supervisor(default_limit()) as supervisor, ExitStack() as stack:
        context = Context(supervisor, chosen.catalog, Settings(seed=seed))
        workers: dict[int, ResidentWorker] = {}

        def ask(process: int, function: str, request: Mapping[str, Any]) -> Any:
            if process not in workers:
                start = context.plain_start(2 if process == 3 else 1, backend)
                workers[process] = stack.enter_context(ResidentWorker(context, backend, start))
            try:
                return workers[process].ask({"do": "call", "function": f"{WORKER}:{function}", **request}, SECONDS)
            except NoAnswer as no:
                raise UsageError(f"{backend}: {no.reason.removeprefix('UsageError: ')}") from no

        yield ask


def repetitions(ask: Ask, request: Mapping[str, Any]) -> tuple[BitRow, ...]:
    """A row for each kind of repetition."""
    base = ask(0, "repeated", {**request, "all": True})
    types, numbers = [PRECISIONS[name] for name in base["types"]], base["numbers"]
    rows: dict[str, BitRow] = {kind: BitRow(kind) for kind in CHANGES}

    def note(kind: str, changed: str, found: BitDifference | str | None) -> None:
        if isinstance(found, str):
            rows[kind] = BitRow(kind, reason=found)
        elif found is not None and rows[kind].difference is None:
            rows[kind] = BitRow(kind, found, changed=changed)

    for kind, changed, found in base["found"]:
        note(kind, changed, from_plain(found, BitDifference) if isinstance(found, dict) else found)
    for process in (1, 2, 3):
        kind, changed = ("threads", CHANGES["threads"]) if process == 3 else ("process", f"process {process + 1}")
        if process == 3 and len(usable_cpus()) < 2:
            note(kind, changed, "this machine has one processor")
            continue
        again = ask(process, "repeated", {**request, "all": False})["numbers"]
        note(kind, changed, BitDifference.between(base["names"], numbers, again, types))
    return tuple(_explained(row, ask, base["names"], request) for row in rows.values())


def _explained(row: BitRow, ask: Ask, names: Sequence[str], request: Mapping[str, Any]) -> BitRow:
    """The row with the operation behind its difference."""
    if row.difference is None:
        return row
    of_place = max((name for name in names if row.difference.place.startswith(name)), key=len)
    return replace(row, behind=ask(0, "reduction", {**request, "which": names.index(of_place)}))
