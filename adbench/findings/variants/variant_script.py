"""A program that imports only the library, and shows that its eager and its compiled form differ."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from adbench.execution.operators.prepared_point import CasePoint
from adbench.findings.script_libraries import LIBRARIES
from adbench.findings.variants.first_difference import FirstDifference
from adbench.findings.variants.traced import numbers_of
from adbench.model import tree
from adbench.model.backend import Backend
from adbench.model.settings import PROCESSOR
from adbench.oracle.leaves import output_weights

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
