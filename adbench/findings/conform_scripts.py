"""A stand-alone program for a fault of an operation, which imports only the library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from adbench.findings.conform_judge import Fault
from adbench.findings.conform_worker import THIRD

OF_TRANSFORMS = """

def forward(g, x, v):
    return jvp(g, x, v)[1]


def reverse(g, x):
    return vjp(g, *x)[1](array(1.0))
"""
TORCH = """import torch
from torch.autograd import forward_ad

torch.set_default_dtype(torch.float64)
array = torch.tensor


def tangent(dual):
    primal, slope = forward_ad.unpack_dual(dual)
    return torch.zeros_like(primal) if slope is None else slope


def forward(g, x, v):
    with forward_ad.dual_level():
        found = g(*map(forward_ad.make_dual, x, v))
        return tuple(map(tangent, found)) if isinstance(found, tuple) else tangent(found)


def reverse(g, x):
    leaves = tuple(leaf.view_as(leaf).requires_grad_() for leaf in x)
    value = g(*leaves)
    if not value.requires_grad:  # torch refuses to differentiate a constant
        return tuple(map(torch.zeros_like, leaves))
    return torch.autograd.grad(value, leaves, create_graph=True, materialize_grads=True)
"""
TORCH_FUNC = (
    "import torch\nfrom torch.func import jvp, vjp\n\ntorch.set_default_dtype(torch.float64)\narray = torch.tensor\n"
    + OF_TRANSFORMS
)
JAX = (
    'import jax\nfrom jax import jvp, vjp\n\njax.config.update("jax_enable_x64", True)\n'
    'jax.config.update("jax_platforms", "cpu")\narray = jax.numpy.array\n' + OF_TRANSFORMS
)
HEADS: Mapping[str, str] = {"torch": TORCH, "torch_func": TORCH_FUNC, "jax": JAX, "jax_eager": JAX}
"""The two modes of a backend, as its file has them."""

COMPUTED: Mapping[str, str] = {
    "value": "f(*at)",
    "gradient": "reverse(f, at)",
    "jvp": "forward(f, at, v)",
    "hvp_forward_over_forward": "forward(lambda *p: forward(f, p, v), at, unit)",
    "hvp_reverse_over_forward": "reverse(lambda *p: forward(f, p, v), at)",
    "hvp_forward_over_reverse": "forward(lambda *p: reverse(f, p), at, v)",
    THIRD: "reverse(lambda *p: sum((g * d).sum() for g, d in zip(reverse(slope, p), v)), at)",
    "hvp_reverse_over_reverse": "reverse(lambda *p: sum((g * d).sum() for g, d in zip(reverse(f, p), v)), at)",
}
OF_ONE_NUMBER = ("value", "jvp", "hvp_forward_over_forward")
INNER = re.compile(r"\bjax(?:\.scipy)?\.(?:special|linalg|stats|integrate|fft|ops)\b")
"""Modules that `import jax` leaves out."""

ENTRY = re.compile(r"(?P<name>[a-z])(?:\[(?P<index>[\d, ]+)\])?$")


def script(fault: Fault, expression: str) -> str:
    """The program; for libraries other than torch and jax the command that repeats the sweep of this operation."""
    head = HEADS.get(fault.library)
    if head is None or not expression:
        return f"adbench conform -b {fault.library} --operation {fault.operation}\n"
    found = ENTRY.match(fault.entry)
    if fault.precision == "float32":
        head = head.replace("torch.float64", "torch.float32").replace(
            '"jax_enable_x64", True', '"jax_enable_x64", False'
        )
    lines = [head, ""]
    lines += [f"{name} = array({_written(value)})" for name, value in fault.point.items() if name not in fault.active]
    lines[:0] = [f"import {name}" for name in sorted(set(INNER.findall(expression)))]
    body = f"(w * ({expression})).sum()" if "w" in fault.point else expression
    lines += ["", f"def f({', '.join(fault.active)}):", f"    return {body}", "", ""]
    if fault.operator == THIRD:
        lines.append(f"slope = {'torch.func' if fault.library.startswith('torch') else 'jax'}.grad(f)")
    lines.append(f"at = {_tuple([fault.point[name] for name in fault.active])}")
    if fault.vector:
        lines.append(f"v = {_tuple(fault.vector)}")
    if fault.operator == "hvp_forward_over_forward":
        lines.append(f"unit = {_tuple(_unit(fault, found))}")
    computed = COMPUTED[fault.operator]
    lines.append(f"got = jax.jit(lambda at: {computed})(at)" if fault.library == "jax" else f"got = {computed}")
    if fault.operator not in OF_ONE_NUMBER and found is not None:
        entry = f"[{found['index']}]" if found["index"] else ""
        lines.append(f"got = got[{fault.active.index(found['name'])}]{entry}")
    lines += ['print("got     ", float(got))', f'print("expected", "{fault.expected}")']
    return "\n".join(lines) + "\n"


def _unit(fault: Fault, entry: re.Match[str] | None) -> list[Any]:
    """The unit vector of the entry, as nested lists."""
    parts = [np.zeros(np.shape(fault.point[name])) for name in fault.active]
    if entry is not None:
        index = tuple(map(int, entry["index"].split(","))) if entry["index"] else ()
        parts[fault.active.index(entry["name"])][index] = 1.0
    return [part.tolist() for part in parts]


def _tuple(values: Any) -> str:
    return f"({' '.join(f'array({_written(value)}),' for value in values)})"


def _written(value: Any) -> str:
    """Nested lists of floats as Python text."""
    return repr(value).replace("inf", 'float("inf")').replace("nan", 'float("nan")')
