"""Which operation is the first whose result differs between the eager and the compiled form of a library?

Both forms compute growing parts of the traced program, each as a separate program, so that the compiler fuses what it
fuses in the whole. The search halves the program: it names an operation up to which the forms agree bit for bit. A
program that imports only the library shows the difference.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from time import monotonic
from typing import Any

import numpy as np

from adbench.execution.operators.prepared_point import CasePoint
from adbench.findings.script_libraries import LIBRARIES
from adbench.findings.variants.traced import TracedProgram, numbers_of, traced
from adbench.model import tree
from adbench.model.backend import Backend
from adbench.model.errors import Unsupported, contained
from adbench.model.operator import Operator
from adbench.model.settings import PROCESSOR
from adbench.oracle.evidence import DOUBLE
from adbench.oracle.leaves import output_weights

GROWN = 100.0
"""A difference this many times as large as the first one has grown in a later operation."""

JAX_HEAD = """import numpy
from jax.extend.core import primitives
from numpy import dtype, inf, nan
"""
TORCH_HEAD = """import operator

import numpy
from torch import device, inf, nan
"""
TAPE_HEAD = """import numpy
from adbench import tape
from numpy import inf, nan


def array(x):
    return numpy.array(x) if isinstance(x, list) else x
"""
CLASS = re.compile(r"\b[A-Z]\w+(?=[.(])")
HEADS = {"jax": (JAX_HEAD, LIBRARIES["jax"]), "torch": (TORCH_HEAD, LIBRARIES["torch_func"]), "tape": (TAPE_HEAD, None)}
CALLS = {
    ("jax", "value"): ("f(*at)", "jax.jit(f)(*at)"),
    ("jax", "vjp"): ("vjp(f, *at)[1](w)", "jax.jit(lambda w, *at: vjp(f, *at)[1](w))(w, *at)"),
    ("torch", "value"): ("f(*at)", "torch.compile(f)(*at)"),
    ("torch", "vjp"): ("vjp(f, *at)[1](w)", "torch.compile(lambda w, *at: vjp(f, *at)[1](w))(w, *at)"),
    ("tape", "value"): ("f(*at)", 'tape.compile(f, *at, operator="value")(*at)'),
    ("tape", "vjp"): (
        "tape.vjp(lambda x: f(*x), at, w)[1]",
        'tape.compile(f, *at, w, operator="vjp", wrt=tuple(range(len(at))))(*at, w)[1]',
    ),
}
"""(library, operator) -> the text of the eager form and of the compiled one."""

END = """

same = True
for number, results in enumerate(zip(eager, compiled)):
    one, other = (numpy.asarray(part.detach().cpu() if hasattr(part, "detach") else part) for part in results)
    apart = ~((one == other) | (numpy.isnan(one) & numpy.isnan(other)))
    same = same and not apart.any()
    print(f"result {number}: {apart.sum()} of {one.size} numbers differ")
    print("  eager   ", *map(repr, one[apart].tolist()[:5]))
    print("  compiled", *map(repr, other[apart].tolist()[:5]))
sys.exit(0 if same else 1)
"""


@dataclass(frozen=True)
class FirstDifference:
    """Where two forms differ first.

    program     the traced program; end: the number of the first operation of `program.ends` that differs
    operator    "value" or "vjp"
    ulp         the largest difference there; grown: the number of the operation after which it has its final size
    final_ulp   of the whole program
    """

    program: TracedProgram
    operator: Operator
    end: int
    ulp: float
    grown: int
    final_ulp: float

    def __str__(self) -> str:
        every, what = self.program.operations, "value" if self.operator == "value" else "derivative"
        first, count = every[self.program.ends[self.end]], len(every)
        number = self.program.ends[self.end] + 1
        sentence = f"the forms first differ in the {what} of {first}, operation {number} of {count}: {in_ulp(self.ulp)}"
        if self.grown == self.end:
            return sentence
        later = every[self.program.ends[self.grown]]
        return f"{sentence}; this grows to {in_ulp(self.final_ulp)} at {later}"


def in_ulp(ulp: float) -> str:
    """A difference in words: "1 ulp", "3e+07 ulp"."""
    return "NaN or infinity" if math.isinf(ulp) else f"{ulp:.2g} ulp" if ulp < 100 else f"{ulp:.0e} ulp"


def first_difference(
    eager: Backend, compiled: Backend, at: CasePoint, operators: Sequence[Operator], seconds: float
) -> FirstDifference:
    """The first operation of the case at this point whose results differ, in the first of these operators that differs.

    Raises Unsupported with the reason if the forms agree, if the library cannot trace the case, or if it takes longer.
    """
    program, deadline = traced(eager, at), monotonic() + seconds
    if not program.ends:
        raise Unsupported("it has no operation on floating-point numbers")

    @cache
    def apart(operator: Operator, end: int) -> float:
        if monotonic() > deadline:
            raise Unsupported(f"the search takes longer than {seconds:.0f} s")
        return difference(*(_numbers(form, program, end, operator, at) for form in (eager, compiled)))

    last = len(program.ends) - 1
    for operator in operators:
        if final := apart(operator, last):
            break
    else:
        raise Unsupported("the forms agree bit for bit on the traced program")
    first = _halved(lambda end: apart(operator, end) > 0, last)
    ulp, grown = apart(operator, first), first
    if final > GROWN * ulp:
        grown = first + 1 + _halved(lambda end: apart(operator, first + 1 + end) > final / 10, last - first - 1)
    return FirstDifference(program, operator, first, ulp, grown, final)


def _halved(holds: Callable[[int], bool], last: int) -> int:
    """A number k at which it holds, and at k - 1 not; it holds at the last one, and counts as false before 0."""
    before, after = -1, last
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (before, middle) if holds(middle) else (middle, after)
    return after


def difference(some: list[Any], others: list[Any]) -> float:
    """The largest difference of two lists of arrays in units in the last place of float64; 0 if all bits agree."""
    largest = 0.0
    for a, b in zip(some, others, strict=True):
        with np.errstate(all="ignore"):
            apart = np.abs(a - b) / DOUBLE.ulps(b)
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.where(np.isfinite(apart), apart, np.inf))
        largest = max(largest, float(np.max(apart, initial=0.0)))
    return largest


def _numbers(form: Backend, program: TracedProgram, end: int, operator: Operator, at: CasePoint) -> list[Any]:
    """The results of a shorter program by a form of the library."""
    f, inputs = program.function(end, form.xp), at.args
    try:
        with contained(), np.errstate(all="ignore"):
            native = form.native_inputs(inputs)
            if operator != "value":
                shape = np.shape(form.numpy_result(f(*native)))
                native = (*native, form.to_native(output_weights(at.seed, 0, shape) if shape else 1.0))
            result = form.numpy_result(form.waited(form.prepare(operator, f, native, at.wrt)(*native)))
    except Exception as error:  # of the library
        raise Unsupported(f"{form.name} fails on a part of the program: {type(error).__name__}: {error}") from error
    return [np.asarray(part, dtype=np.float64) for part in tree.leaves(result)]


def script(first: FirstDifference, library: str, eager: Backend, at: CasePoint, device: str = PROCESSOR) -> str:
    """The text of the program, up to the operation after which the difference has its final size, for this device.

    Raises Unsupported if an operation has no text.
    """
    program, end = first.program, first.grown
    lines, before = program.lines(end)
    shape = np.shape(eager.numpy_result(program.function(end, eager.xp)(*eager.native_inputs(at.args))))
    weights = output_weights(at.seed, 0, shape) if shape else np.ones(())
    head, of_library = HEADS[library]
    head += of_library.head_for("", device) if of_library else ""
    texts = [f'"""{library}: {str(first)[:100]}."""', "", "import sys", "", head]
    classes = sorted(set(CLASS.findall("\n".join([*before, *lines]))))  # in the parameters of jax's primitives
    texts += [*([f"from jax.lax import {', '.join(classes)}"] if classes and library == "jax" else []), "", ""]
    texts += [*(f"{one}\n\n" for one in before), f"def f({', '.join(program.names)}):"]
    texts += [*(f"    {line}" for line in lines), "", ""]
    texts.append(f"at = ({' '.join(f'array({_written(leaf)}),' for leaf in numbers_of(at.args))})")
    texts.append(f"w = array({_written(weights)})")
    active = [k for k, position in enumerate(_positions(at)) if position in at.wrt]
    for name, call in zip(("eager", "compiled"), CALLS[library, first.operator], strict=True):
        texts.append(f"{name} = ({call},)" if first.operator == "value" else f"{name} = {call}")
        if first.operator != "value" and len(active) < len(_positions(at)):
            texts.append(f"{name} = [{name}[k] for k in {active}]")
    return "\n".join([*texts, END])


def _positions(at: CasePoint) -> list[int]:
    """For each number or array of the arguments, the position of its argument."""
    return [k for k, arg in enumerate(at.args) for _ in numbers_of([arg])]


def _written(value: Any) -> str:
    return repr(np.asarray(tree.dense(value), dtype=np.float64).tolist())
