"""A stand-alone program for a fault of an operation, which imports only the library."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from adbench.findings.conform.judgement import Fault
from adbench.findings.operations import OPERATIONS
from adbench.findings.operations.as_text import text_of
from adbench.findings.programs.random_program import PLACE
from adbench.findings.script_libraries import INNER, LIBRARIES, OF_ONE_ENTRY, OF_ONE_NUMBER, THIRD, in_library
from adbench.model.settings import PROCESSOR

ENTRY = re.compile(r"(?P<name>[a-z])(?:\[(?P<index>[\d, ]+)\])?$")


def script(fault: Fault, expression: str, peer: str = "") -> str:
    """The program; for a library that has no such one, the command that repeats the sweep of this operation.

    expression   of the library; "" for the definition of the table
    peer         another backend of the same library, whose number is printed too
    """
    library = LIBRARIES.get(fault.library)
    computed = None if library is None else library.computed(fault.operator)
    definition, helpers, has_all = "", list[str](), True
    if library is not None and not expression and fault.operation in OPERATIONS:
        text, definition = text_of(OPERATIONS[fault.operation])
        expression = PLACE.sub(lambda match: [*fault.point][int(match[1])], text)
        expression, helpers, has_all = in_library(f"{definition}\n\n\n{expression}".strip(), library)
        definition, _, expression = expression.rpartition("\n\n\n")
    if library is None or computed is None or not expression or not has_all:
        on = f" --device {fault.device}" if fault.device != PROCESSOR else ""
        return f"adbench conform -b {fault.library} --operation {fault.operation}{on}\n"
    head, number = library.head_for(computed, fault.device), ENTRY.match(fault.entry)
    if fault.precision != "float64":
        head = head.replace("torch.float64", f"torch.{fault.precision}").replace(
            '"jax_enable_x64", True', '"jax_enable_x64", False'
        )
        if fault.precision != "float32":
            head = head.replace("array = jnp.array", f"def array(x):\n    return jnp.array(x, jnp.{fault.precision})")
    lines = [head, ""]
    lines += [f"{name} = array({_written(value)})" for name, value in fault.point.items() if name not in fault.active]
    lines[:0] = [f"import {name}" for name in sorted(set(INNER.findall(expression)))]
    lines += [f"\n{text}\n" for text in (*helpers, definition) if text]
    body = f"{library.numpy}.sum(w * ({expression}))" if "w" in fault.point else expression
    lines += ["", f"def f({', '.join(fault.active)}):", f"    return {body}", "", ""]
    if fault.operator == THIRD:
        lines.append(f"slope = {'torch.func' if library.module == 'torch' else library.module}.grad(f)")
    lines.append(f"at = {_tuple([fault.point[name] for name in fault.active])}")
    if fault.vector:
        lines.append(f"v = {_tuple(fault.vector)}")
    if fault.operator in OF_ONE_ENTRY:
        lines.append(f"unit = {_tuple(_unit(fault, number))}")
    of_entry = ""
    if fault.operator not in OF_ONE_NUMBER and number is not None and number["name"] in fault.active:
        of_entry = f"[{fault.active.index(number['name'])}]" + (f"[{number['index']}]" if number["index"] else "")
    by_peer = LIBRARIES[peer].computed(fault.operator) if peer else None
    for title, by_form in (("got     ", computed), (peer, by_peer)):
        if by_form is not None:
            lines += [f"got = {by_form}", *([f"got = got{of_entry}"] if of_entry else [])]
            lines.append(f'print("{title}", float(got))')
    lines.append(f'print("expected", "{fault.expected}")')
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
