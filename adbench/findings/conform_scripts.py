"""A stand-alone program for a fault of an operation, which imports only the library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from adbench.findings.conform_judge import Fault

HEADS: Mapping[str, tuple[str, str]] = {
    "torch": (
        "import torch\nfrom torch.func import jvp, vjp\n\ntorch.set_default_dtype(torch.float64)\narray = torch.tensor",
        "torch",
    ),
    "jax": (
        'import jax\nfrom jax import jvp, vjp\n\njax.config.update("jax_enable_x64", True)\narray = jax.numpy.array',
        "jax",
    ),
}
COMPUTED: Mapping[str, str] = {
    "value": "f(*at)",
    "gradient": "vjp(f, *at)[1](array(1.0))",
    "jvp": "jvp(f, at, v)[1]",
    "hvp_forward_over_forward": "jvp(lambda *p: jvp(f, p, v)[1], at, unit)[1]",
    "hvp_reverse_over_forward": "vjp(lambda *p: jvp(f, p, v)[1], *at)[1](array(1.0))",
    "hvp_forward_over_reverse": "jvp(lambda *p: vjp(f, *p)[1](array(1.0)), at, v)[1]",
    "hvp_reverse_over_reverse": (
        "vjp(lambda *p: sum((g * d).sum() for g, d in zip(vjp(f, *p)[1](array(1.0)), v)), *at)[1](array(1.0))"
    ),
}
ENTRY = re.compile(r"(?P<name>[a-z])(?:\[(?P<index>[\d, ]+)\])?$")


def script(fault: Fault, expression: str) -> str:
    """The program; for other libraries than torch and jax the command that repeats the sweep of this operation."""
    head = HEADS.get(fault.library.partition("_")[0])
    if head is None or not expression:
        return f"adbench conform -b {fault.library} --operation {fault.operation}\n"
    found = ENTRY.match(fault.entry)
    lines = [head[0], ""]
    lines += [f"{name} = array({_written(value)})" for name, value in fault.point.items() if name not in fault.active]
    names = ", ".join(fault.active)
    body = f"(w * ({expression})).sum()" if "w" in fault.point else expression
    lines += ["", "", f"def f({names}):", f"    return {body}", "", ""]
    lines.append(f"at = ({' '.join(f'array({_written(fault.point[name])}),' for name in fault.active)})")
    if fault.vector:
        lines.append(f"v = ({' '.join(f'array({_written(value)}),' for value in fault.vector)})")
    if fault.operator == "hvp_forward_over_forward":
        lines.append(f"unit = ({' '.join(f'array({_written(part)}),' for part in _unit(fault, found))})")
    lines.append(f"got = {COMPUTED[fault.operator]}")
    if fault.operator not in ("value", "jvp", "hvp_forward_over_forward") and found is not None:
        index = found["index"]
        lines.append(f"got = got[{fault.active.index(found['name'])}]" + (f"[{index}]" if index else ""))
    lines += ['print("got     ", float(got))', f'print("expected", "{fault.expected}")']
    return "\n".join(lines) + "\n"


def _unit(fault: Fault, entry: re.Match[str] | None) -> list[Any]:
    """The unit vector of the entry, as nested lists."""
    import numpy as np

    parts = [np.zeros(np.shape(fault.point[name])) for name in fault.active]
    if entry is not None:
        index = tuple(map(int, entry["index"].split(","))) if entry["index"] else ()
        parts[fault.active.index(entry["name"])][index] = 1.0
    return [part.tolist() for part in parts]


def _written(value: Any) -> str:
    """Nested lists of floats as Python text."""
    return repr(value).replace("inf", 'float("inf")').replace("nan", 'float("nan")')
