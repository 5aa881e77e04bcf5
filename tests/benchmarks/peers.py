"""How fast the compiled gear is: ratios to its peers and to gradients written by hand in C++, taken in one run.

    python tests/benchmarks/peers.py                      prints the tables
    python tests/benchmarks/peers.py recurrence=1,100     of these cases, at these sizes, only
    python tests/benchmarks/peers.py --markdown out.md    and writes them down
    python tests/benchmarks/peers.py tanh --threads 2     with two threads for ours, jax and BLAS

Everybody computes value and gradient of the same case at the same point, on one thread, as its backend does it; every
result is compared before it is timed. The contenders of a row are timed in turns, round after round, in batches shorter
than what a busy system gives a process at a time; of all batches the least counts, since whatever comes between only
adds.

A call    from Python, with all that the binding takes; ours is `tape.compile(...)`
The work  without Python: machine code that calls the prepared function again and again, ours and the C++ libraries'
"""

from __future__ import annotations

import argparse
import ctypes
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

if "--threads" not in sys.argv:  # libraries read these when they are imported
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from adbench import tape
from adbench.catalog.discovery import catalog, load
from adbench.measure.clock import bind
from adbench.model import tree
from adbench.model.backend import from_module
from adbench.model.errors import AdbenchError
from adbench.tape.machine.llvm import Loaded
from tests.benchmarks.about_machine import machine
from tests.benchmarks.peer_functions import FUNCTIONS, calls, ours
from tests.benchmarks.peer_functions import PEERS as OF_ARRAYS

Call = Callable[[], Any]

THREADS = int(next((value for option, value in pairwise(sys.argv) if option == "--threads"), "1"))

CASES: dict[str, tuple[int, ...]] = {
    "normal_log_density": (1, 10, 100, 1_000, 10_000, 1_000_000),
    "rosenbrock": (100, 10_000, 1_000_000),
    "recurrence": (1, 5, 100, 10_000),
    "lotka_volterra": (1_000,),
    "matrix_product": (8, 32, 64),
    "log_determinant": (8, 32, 64),
    "gaussian_mixture": (10, 100, 1_000),
    "logistic_regression": (10, 100, 1_000, 10_000),
}
HAND, SIMD = "cpp_hand", "cpp_simd"
PEERS = (
    *(HAND, SIMD, "jax", "stan_math", "stan_math_builtin", "stan_math_matrix", "cppad_optimised", "cppad", "sacado"),
    *("adolc_reuse", "casadi", "casadi_c"),
)
SLOW_TO_PREPARE = {"casadi": 50_000, "casadi_c": 5_000}
"""Scalar expressions grow with the size; these many operations are as many as are worth waiting for."""

CATALOG = catalog()


@dataclass
class Row:
    """One case at one size: for each contender a call, and where there is one the prepared function without Python."""

    name: str
    calls: dict[str, Call] = field(default_factory=dict)
    works: dict[str, Call] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    work_seconds: dict[str, float] = field(default_factory=dict)

    def time(self, rounds: int) -> None:
        """Seconds per call and per work, the least of all batches."""
        self.seconds = least(self.calls, rounds)
        self.work_seconds = least(self.works, rounds, inside=True)


def least(calls: dict[str, Callable[..., Any]], rounds: int, *, inside: bool = False) -> dict[str, float]:
    """Seconds per call of each, in turns. `inside`: the call is given how often to repeat, and does so itself.

    Untimed calls come first in each turn: otherwise large arrays are read from memory or from the cache, depending
    on how much the contender before has used.
    """
    best = {key: min(_timed(call, 1, inside) for _ in range(3)) for key, call in calls.items()}
    for turn in range(rounds):
        for key, call in calls.items():
            if best[key] < SLOW or turn < 5:
                count = max(1, int(BATCH / max(best[key], 1e-9)))
                _timed(call, WARM, inside)
                best[key] = min(best[key], _timed(call, count, inside))
    return best


BATCH, SLOW, WARM = 2e-4, 0.02, 4
"""Seconds of a batch; of a call that is timed a few times only; and how many calls come before a batch."""


def _timed(call: Callable[..., Any], count: int, inside: bool) -> float:
    if inside:
        start = time.perf_counter()
        call(count)
        return (time.perf_counter() - start) / count
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


# Contenders ------------------------------------------------------------------------------------------


def rows(wanted: dict[str, tuple[int, ...]], peers: Sequence[str]) -> Iterator[Row]:
    """Rows whose contenders agree; reports failed preparations on stderr."""
    for name, sizes in wanted.items():
        case = CATALOG.cases[name]
        for size in sizes:
            row = Row(f"{name} {size}")
            names, args, wrt = case.bind(size, 0)
            operations = case.flops(size) if case.flops else 0
            expected = None
            for peer in ("ours", *peers):
                if operations > SLOW_TO_PREPARE.get(peer, 1e12):
                    continue
                try:
                    call, work, result = prepared(peer, case, names, args, wrt)
                except (AdbenchError, ImportError, KeyError, MemoryError, RuntimeError) as reason:
                    print(f"{row.name}: {peer}: {str(reason).splitlines()[0]:.150}", file=sys.stderr)
                    continue
                found = flat(result())
                expected = found if expected is None else expected
                np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9, err_msg=f"{row.name}: {peer}")
                row.calls[peer] = call
                if work is not None:
                    row.works[peer] = work
            yield row


def prepared(
    peer: str, case: Any, names: tuple[str, ...], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> tuple[Call, Any, Call]:
    """(a call, the work without Python or None, a call whose result is numpy's)."""
    backend = from_module(peer, load(CATALOG.backends["tape_compiled" if peer == "ours" else peer]))
    f = backend.function(case, names, None)
    given = backend.native_inputs(args)
    if peer == "ours":
        compiled = tape.compile(f, *given, wrt=wrt, threads=THREADS)
        return bind(compiled, given), our_work(compiled, given), bind(compiled, given)
    if backend.build is not None:
        backend.build(f, given, wrt)
    call = backend.prepare("value_and_gradient", f, given, wrt)
    return bind(call, given, backend.sync), library_work(call), lambda: tree.map_leaves(backend.to_numpy, call(*given))


def flat(result: Any) -> Any:
    """A value and a gradient as one vector."""
    return np.concatenate([np.ravel(np.asarray(part, float)) for part in tree.leaves(result)])


_AGAIN = """
@environment = global [1 x ptr] zeroinitializer, align 8
define void @again3(ptr %f, ptr %a, ptr %b, ptr %c, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %r = call i32 %f(ptr %a, ptr %b, ptr %c)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %out
out:
  ret void
}
define void @again1(ptr %f, ptr %a, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %r = call double %f(ptr %a)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %out
out:
  ret void
}
"""
_loops: list[Loaded] = []


def again(name: str, pointers: int) -> Any:
    """Machine code that calls a function with so many pointers n times."""
    if not _loops:
        _loops.append(Loaded(_AGAIN, [], level=1))
    kinds = [ctypes.c_void_p] * (pointers + 1)
    return ctypes.PYFUNCTYPE(None, *kinds, ctypes.c_int64)(_loops[0].address(name))


def our_work(compiled: Any, args: tuple[Any, ...]) -> Callable[[int], None] | None:
    """The recording itself, on memory that was prepared."""
    (signature,) = compiled._signatures.values()
    program = signature.programs[0]
    data = [x for x in args if isinstance(x, (float, np.ndarray))]
    if len(data) != len(program.lowered.inputs):
        return None
    slots = (ctypes.c_int64 * len(data))()
    numbers = (ctypes.c_double * len(data)).from_buffer(slots)
    for k, x in enumerate(data):
        if isinstance(x, float):
            numbers[k] = x
        else:
            slots[k] = x.ctypes.data
    parts = [np.empty(s) for s in program.lowered.results]
    out = (ctypes.c_int64 * len(parts))(*(p.ctypes.data for p in parts))
    loop, kept = again("again3", 3), (data, parts, compiled)

    def work(count: int, _kept: Any = kept) -> None:
        place = signature.dispatch.borrow()
        loop(program.address, ctypes.addressof(slots), ctypes.addressof(out), place, count)
        signature.dispatch.give_back(place)

    return work


def library_work(call: Callable[..., Any]) -> Callable[[int], None] | None:
    """The same of a C++ library's twin; None for other backends."""
    held = inspect.getclosurevars(call).nonlocals.get("self") if inspect.isfunction(call) else None
    if not hasattr(held, "opened"):
        return None
    loop = again("again1", 1)
    address = ctypes.cast(held.run, ctypes.c_void_p).value
    return lambda count: loop(address, held.handle, count)


def function_rows(wanted: dict[str, tuple[int, ...]]) -> Iterator[Row]:
    """Rows of functions of arrays."""
    for name, sizes in wanted.items():
        of = FUNCTIONS[name]
        for n in sizes:
            x = of.point(n)
            call, compiled = ours(of.f, x, THREADS)
            row = Row(f"{name} {n}", {"ours": call})
            work = our_work(compiled, (x,))
            if work is not None:
                row.works["ours"] = work
            for peer, theirs, result in calls(of.f, x, THREADS):
                np.testing.assert_allclose(flat(result()), flat(call()), rtol=1e-10, atol=1e-10, err_msg=row.name)
                row.calls[peer] = theirs
            yield row


# Tables ----------------------------------------------------------------------------------------------


def target(peer: str, row: str) -> float:
    """How many times our time a peer should take at least."""
    if peer == HAND:
        return 1 / 1.5
    if peer == SIMD:
        return 0.9
    return 5.0 if peer == "jax" and int(row.split()[1]) <= 100 else 1.0


def figure(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)):
        if seconds < 999.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def line(name: str, seconds: dict[str, float], peers: Sequence[str], *, targets: bool = True) -> str:
    """A row of Markdown: our time, and how many times that the others take; ! where that is less than it should be."""
    cells = []
    for peer in peers:
        if peer not in seconds:
            cells.append("")
            continue
        ratio = seconds[peer] / seconds["ours"]
        missed = targets and ratio < target(peer, name)
        cells.append(f"{ratio:.3g}{' !' if missed else ''}")
    return f"| {name.replace('_', ' ')} | {figure(seconds['ours'])} | {' | '.join(cells)} |"


def head(what: str, peers: Sequence[str]) -> list[str]:
    """The head of a table."""
    return [f"| {what} | ours | {' | '.join(p.replace('_', ' ') for p in peers)} |", "|---" * (len(peers) + 2) + "|"]


def calling_cost() -> Iterator[str]:
    """What a call costs over the work: x² of a number, and of an array of three; the loop that measures taken off."""
    for name, x in (("a number", 1.5), ("an array of three", np.ones(3))):
        compiled = tape.compile(lambda x: tape.sum(x * x), x)
        work = our_work(compiled, (x,))
        nothing = least({"call": bind(compiled, (x,)), "nothing": lambda: None}, 400)
        inside = least({"work": work}, 400, inside=True) if work else {"work": 0.0}
        over = nothing["call"] - nothing["nothing"] - inside["work"]
        yield f"calling with {name}: {over * 1e9:.0f} ns over {inside['work'] * 1e9:.1f} ns of work"


def compile_cost() -> Iterator[str]:
    """Seconds of processor time for an operation, by length; the levels are the default ones."""
    for turns in (20, 200, 2_000, 20_000):

        def f(x: Any, turns: int = turns) -> Any:
            s = x
            for _ in range(turns):
                s = s + (x * s + 1.0) / (s + 2.0)
            return s

        start = time.process_time()
        compiled = tape.compile(f, 7.0)
        spent = time.process_time() - start
        each = spent / (5 * turns) * 1e6
        yield f"compiling {5 * turns} operations, {compiled.nodes()} nodes: {each:.0f} µs an operation"


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wanted", nargs="*", metavar="CASE[=N,N]", help="these cases or functions, at these sizes")
    parser.add_argument("--peers", default=",".join(PEERS), metavar="NAME,NAME", help="these backends")
    parser.add_argument("--rounds", type=int, default=60, metavar="N")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads for ours, jax and BLAS")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables to this file too")
    asked = parser.parse_args()
    known = {**CASES, **{name: of.sizes for name, of in FUNCTIONS.items()}}
    wanted: dict[str, tuple[int, ...]] = {}
    for text in asked.wanted:
        name, _, sizes = text.partition("=")
        if name not in known:
            parser.error(f"no case {name!r}; choose from {', '.join(known)}")
        wanted[name] = tuple(map(int, sizes.split(","))) if sizes else known[name]
    wanted = wanted or known
    peers = [p for p in asked.peers.split(",") if p in CATALOG.backends]
    written: list[str] = []

    def say(text: str) -> None:
        written.append(text)
        print(text, flush=True)

    for text in machine():
        say(text)
    cases = {name: sizes for name, sizes in wanted.items() if name in CASES}
    functions = {name: sizes for name, sizes in wanted.items() if name in FUNCTIONS}
    for found, of in ((rows(cases, peers), peers), (function_rows(functions), [p for p in OF_ARRAYS if p in peers])):
        works: list[Row] = []
        for k, row in enumerate(found):
            for text in ["", *head("a call from Python", of)] if k == 0 else ():
                say(text)
            row.time(asked.rounds)
            say(line(row.name, row.seconds, of))
            works.append(Row(row.name, work_seconds=row.work_seconds))
        native = [p for p in of if any(p in row.work_seconds for row in works)]
        for k, row in enumerate(row for row in works if native and "ours" in row.work_seconds):
            for text in ["", *head("the work alone", native)] if k == 0 else ():
                say(text)
            say(line(row.name, row.work_seconds, native))
    if not asked.wanted:
        say("")
        for text in (*calling_cost(), *compile_cost()):
            say(text)
    if asked.markdown:
        asked.markdown.write_text("\n".join(written) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
