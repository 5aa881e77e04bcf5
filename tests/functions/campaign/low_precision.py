"""False alarms in low precision: `python -m tests.functions.campaign.low_precision torch|jax FIRST SECONDS [STEPS]`.

Random programs, as of `adbench fuzz`, in float32 and bfloat16. Their gradients are judged by the truth and the noise of
their text; where these say ✗, `adbench.check` judges the operations that the library ran. Each ✗ is printed with the
verdict of the same library in float64: one that is right there is a false alarm, or a function that the library
computes with fewer digits than its type has.
"""

from __future__ import annotations

import importlib
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

import adbench
from adbench.catalog.discovery import load
from adbench.catalog.selection import resolve
from adbench.execution.precision.given import in_numpy
from adbench.findings.programs.generation import drawn
from adbench.findings.programs.random_program import Program
from adbench.functions.libraries import double_precision
from adbench.model.backend import from_module
from adbench.model.errors import AdbenchError
from adbench.model.namespace import PLAIN
from adbench.oracle.compute import reference
from adbench.oracle.evidence import BRAIN, SINGLE, Precision
from adbench.oracle.leaves import Point
from adbench.oracle.operators import judge_entries
from adbench.oracle.subject import Effort, Subject

BACKENDS = {"torch": "torch", "jax": "jax_eager"}
TYPES = (SINGLE, BRAIN)


@dataclass
class Alarms:
    """The compared entries by type and word, and the checks with a ✗."""

    entries: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, str, int, str]] = field(default_factory=list)


@cache
def namespace(backend: str) -> Any:
    """The `xp` of a backend; loading it leaves the defaults of jax and torch as users have them."""
    with double_precision():
        return from_module(backend, load(resolve(backends=[backend]).catalog.backends[backend])).xp


def function_of(program: Program, library: str) -> Any:
    """The program as a function of this library's arrays alone."""
    names = ", ".join(program.names)
    xp = PLAIN if library == "numpy" else namespace(library)
    scope = {"numpy": np, "torch": torch, "jax": jax, "xp": xp, "__name__": "programs"}
    exec(f"{program.source(library)}\n\ndef g({names}): return f(xp, {names})", scope)
    return scope["g"]


def arguments(program: Program, library: str, form: Precision) -> list[Any]:
    """The program's inputs, rounded to the type; those that are not differentiated are Python's floats."""

    def native(value: Any) -> Any:
        if library == "torch":
            return torch.tensor(value, dtype=getattr(torch, form.name))
        return jnp.asarray(value, dtype=form.name)

    values = rounded(program, form)
    return [native(value) if one.active else value for value, one in zip(values, program.inputs, strict=True)]


def rounded(program: Program, form: Precision) -> tuple[Any, ...]:
    """The inputs as numbers of this type."""
    numbers = (form.rounded(one.native) if one.active else one.native for one in program.inputs)
    return tuple(number if np.ndim(number) else float(number) for number in numbers)


def checked(program: Program, library: str, form: Precision, precision: Any = "given") -> Any:
    """The table of `adbench.check`, or None with the refusal."""
    try:
        g, args = function_of(program, library), arguments(program, library, form)
        return adbench.check(g, *args, wrt=program.wrt, backend=BACKENDS[library], precision=precision)
    except AdbenchError:
        return None


def judged(program: Program, library: str, form: Precision) -> tuple[bool, Sequence[Any]]:
    """Whether an entry of the library's gradient is ✗ by the truth of the program's text, and the entries."""
    args, f = rounded(program, form), program.function()
    subject = Subject(lambda *x: f(PLAIN, *x), Point(args, program.wrt, program.names), f)
    known = reference(subject, Effort(precision=form, max_seconds=1.0))
    if not known.all_outputs.proved:
        return False, ()
    g, native = function_of(program, library), arguments(program, library, form)
    if library == "jax":
        gradient = jax.jit(jax.grad(g, argnums=program.wrt))(*native)  # else each operation is compiled by itself
    else:
        active = [native[k].requires_grad_() for k in program.wrt]
        parts = torch.autograd.grad(g(*native), active, allow_unused=True)
        gradient = [part if part is not None else torch.zeros_like(x) for part, x in zip(parts, active, strict=True)]
    verdict, entries = judge_entries("gradient", tuple(map(in_numpy, gradient)), known, within=form)
    return verdict.word == "wrong", entries


def examine(seed: int, steps: int, library: str, alarms: Alarms) -> None:
    """Check the program of this seed in each type."""
    program = drawn(Random(seed).randrange, steps=steps)
    for form in TYPES:
        try:
            suspected, entries = judged(program, library, form)
        except Exception as error:  # the library lacks an operation, or the program has no value at rounded numbers
            alarms.refused[f"{type(error).__name__}: {str(error)[:40]}"] += 1
            continue
        for entry in entries:
            alarms.entries[form.name, entry.word] += 1
        table = checked(program, library, form) if suspected else None
        if suspected and (table is None or table.is_wrong):
            in_double = checked(program, library, form, "float64")
            alarms.wrong.append((library, form.name, seed, in_double and in_double.word))
            print(f"✗ {alarms.wrong[-1]}\n{program.source(library)}\n{rounded(program, form)}", flush=True)
            print(table or [entry for entry in entries if entry.word == "wrong"], "\n", flush=True)
        elif suspected:
            alarms.entries[form.name, "wrong, but by the text alone"] += 1


def main(library: str, first: int, seconds: float, steps: int = 8) -> None:
    """Examine programs from this seed on for so many seconds, at least one, and print the counts."""
    warnings.simplefilter("ignore")
    importlib.import_module("torch._dynamo")  # which nested derivatives import: it takes a minute inside a check
    alarms, started, seed = Alarms(), time.time(), first
    while seed == first or time.time() < started + seconds:
        examine(seed, steps, library, alarms)
        seed += 1
    total = sum(alarms.entries.values())
    print(f"{library}: {total} entries of the programs {first} to {seed - 1}; {len(alarms.wrong)} checks with ✗")
    print(dict(sorted(alarms.entries.items())))
    print("refused:", alarms.refused.total(), dict(alarms.refused.most_common(8)))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
