"""A wrong derivative as a script that imports only the library and numpy, and prints both numbers.

The text of the function is the same as everywhere, with the library's own names instead of `xp` (`script_libraries`).
That of a finding exits with 1 as long as the library has the fault.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.findings.conform.judgement import Fault
from adbench.findings.finding import Finding
from adbench.findings.operations import OPERATIONS
from adbench.findings.operations.as_text import text_of
from adbench.findings.programs.judging import ProgramTrial
from adbench.findings.programs.random_program import PLACE
from adbench.findings.script_libraries import (
    INNER,
    LIBRARIES,
    OF_ONE_ENTRY,
    OF_ONE_NUMBER,
    THIRD,
    ScriptLibrary,
    in_library,
)
from adbench.model import tree
from adbench.model.operator import definition
from adbench.model.settings import PROCESSOR

ENTRY = re.compile(r"(?P<name>[a-z]\d*)(?:\[(?P<index>[\d, ]+)\])?$")


@dataclass(frozen=True)
class ScriptPoint:
    """A derivative of f at a point, as lines of a script.

    inputs   name -> number or array, in the order of f; active: the names of those that are differentiated
    vector   v, one part for each of these; empty for operators without
    place    which number it is about, such as "x[2]"; of other words, the first one
    """

    library: ScriptLibrary
    operator: str
    inputs: Mapping[str, Any]
    active: Sequence[str]
    vector: Sequence[Any]
    place: str

    @property
    def entry(self) -> tuple[int, tuple[int, ...]]:
        """The position of the active input, and the index in it."""
        match = ENTRY.match(self.place)
        if match is None or match["name"] not in self.active:
            axes = [np.ndim(self.inputs[name]) for name in self.active]
            return 0, (0,) * (axes[0] if axes else 0)
        index = match["index"].split(",") if match["index"] else ()
        return self.active.index(match["name"]), tuple(map(int, index))

    def lines(self) -> list[str]:
        """The inputs, the function of the differentiated ones, and the vectors of the operator."""
        lines = [f"{name} = array({_text(one)})" for name, one in self.inputs.items()]
        if len(self.active) < len(self.inputs):
            call = f"    return of_all_inputs({', '.join(self.inputs)})"
            lines += ["of_all_inputs = f", "", "", f"def f({', '.join(self.active)}):", call, "", ""]
        if self.operator == THIRD:
            lines.append(f"slope = {'torch.func' if self.library.module == 'torch' else self.library.module}.grad(f)")
        lines.append(f"at = ({' '.join(f'{name},' for name in self.active)})")
        if self.vector:
            lines.append(f"v = {_tuple(self.vector)}  # a direction")
        if self.operator in OF_ONE_ENTRY:
            units = [np.zeros(np.shape(self.inputs[name])) for name in self.active]
            place, index = self.entry
            units[place][index] = 1.0
            lines.append(f"unit = {_tuple(units)}")
        return lines

    def number(self, computed: str) -> list[str]:
        """The lines that compute the number in question."""
        place, index = self.entry
        which = f"[{place}]" + (f"[{', '.join(map(str, index))}]" if index else "")
        which = "" if self.operator in OF_ONE_NUMBER else which
        return [f"got = {computed}", f"got = float(got{which}{'.detach()' * (self.library.module == 'torch')})"]


def of_finding(finding: Finding) -> str:
    """The script. It calls adbench for libraries whose arrays are adbench's, and functions that a library lacks."""
    library = LIBRARIES.get(finding.library)
    text = None if library is None else _of_library(finding, library)
    return _through_adbench(finding) if text is None else text


def _of_library(finding: Finding, library: ScriptLibrary) -> str | None:
    trial, operator = ProgramTrial(finding.program), finding.operator
    if finding.kind in ("crashes", "hangs"):
        operator = "gradient"
    if finding.place == "the value":
        operator = "value"
    text, helpers, has_all = in_library(finding.program.source(finding.library.partition("_")[0]), library)
    computed = library.computed(operator)
    if computed is None or not has_all:
        return None
    head = library.head_for(computed, finding.device)
    modules = {*re.findall(r"\b(numpy|scipy)\.", text), "numpy"}.difference(re.findall(r"(?m)^import (\w+)$", head))
    names = trial.program.names
    vector = tree.leaves(trial.vector) if definition(operator).vector else []
    inputs = dict(zip(names, trial.args, strict=True))
    at = ScriptPoint(library, operator, inputs, [names[k] for k in trial.wrt], vector, finding.place)
    lines = [
        f'"""{finding.title[:100]}."""', "", "import importlib.metadata", "import platform", "import sys", "",
        *(f"import {name}" for name in sorted({*modules, *INNER.findall(text)})), head, "", "",
        *(f"{helper}\n\n" for helper in helpers), f"{text}\n", *at.lines(), *at.number(computed), "",
        *([] if finding.expected.startswith("any value") else [f"expected = {_expected(finding)}"]),
        *_end(finding, library.module),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def of_fault(fault: Fault, expression: str, peer: str = "") -> str:
    """The script of an operation's fault; for a library that has none, the command that repeats its sweep.

    expression   of the library; "" for the definition of the table
    peer         another backend of the same library, whose number is printed too
    """
    library = LIBRARIES.get(fault.library)
    computed = None if library is None else library.computed(fault.operator)
    before, has_all = list[str](), True
    if library is not None and not expression and fault.operation in OPERATIONS:
        text, helpers = text_of(OPERATIONS[fault.operation])
        expression = PLACE.sub(lambda match: [*fault.point][int(match[1])], text)
        expression, before, has_all = in_library(f"{helpers}\n\n\n{expression}".strip(), library)
        helpers, _, expression = expression.rpartition("\n\n\n")
        before += filter(None, [helpers])
    if library is None or computed is None or not expression or not has_all:
        on = f" --device {fault.device}" if fault.device != PROCESSOR else ""
        return f"adbench conform -b {fault.library} --operation {fault.operation}{on}\n"
    at = ScriptPoint(library, fault.operator, fault.point, fault.active, fault.vector, fault.entry)
    body = f"{library.numpy}.sum(w * ({expression}))" if "w" in fault.point else expression
    lines = [f"import {name}" for name in sorted(set(INNER.findall(expression)))]
    lines += [_in_precision(library.head_for(computed, fault.device), fault.precision), "", ""]
    lines += [*(f"{text}\n\n" for text in before), f"def f({', '.join(fault.point)}):", f"    return {body}", "", ""]
    lines += at.lines()
    by_peer = LIBRARIES[peer].computed(fault.operator) if peer else None
    for title, by_form in (("got     ", computed), (peer, by_peer)):
        lines += [] if by_form is None else [*at.number(by_form), f'print("{title}", got)']
    lines.append(f'print("expected", "{fault.expected}")')
    return "\n".join(lines) + "\n"


def _in_precision(head: str, precision: str) -> str:
    """The head of torch or jax with arrays of another type than float64."""
    if precision == "float64":
        return head
    head = head.replace("torch.float64", f"torch.{precision}")
    head = head.replace('"jax_enable_x64", True', '"jax_enable_x64", False')
    if precision == "float32":  # on a device, jax's products of float32 would have 10 bits
        return head.replace(',cpu")', ',cpu")\njax.config.update("jax_default_matmul_precision", "highest")')
    return head.replace("array = jnp.array", f"def array(x):\n    return jnp.array(x, jnp.{precision})")


def _tuple(parts: Sequence[Any]) -> str:
    return f"({' '.join(f'array({_text(one)}),' for one in parts)})"


def _expected(finding: Finding) -> str:
    try:
        return _text(float(finding.expected))
    except ValueError:
        return "float('nan')" if finding.kind in ("wrong", "nan") else "0.0"


def _end(finding: Finding, name: str) -> list[str]:
    interval = re.match(r"any value in \[(.*), (.*)\]", finding.expected)
    words = f"any value in [{interval[1]}, {interval[2]}]" if interval else "{expected!r}"
    inside = f"{interval[1]} <= got <= {interval[2]}" if interval else f"abs(got - expected) <= {_tolerance(finding)!r}"
    if finding.of_nan:
        inside = "got != got"
    return [
        f'print(f"{finding.what} got {{got!r}}, expected {words}")',
        f'print("expected value from: {finding.where or "no derivative was returned"}")',
        f'print("{name}", importlib.metadata.version("{name}"), "numpy", numpy.__version__)',
        'print("Python", platform.python_version(), "on", platform.platform())',
        f"sys.exit(0 if {inside} else 1)  # NaN {'differs from itself' if finding.of_nan else 'agrees with nothing'}",
    ]


def _tolerance(finding: Finding) -> float:
    """A power of ten well below the error."""
    try:
        got, expected = float(finding.got), float(finding.expected)
    except ValueError:
        return 1e-9
    error = abs(got - expected)
    if not math.isfinite(error) or not error:
        return 1e-9 * (abs(expected) if math.isfinite(expected) and expected else 1.0)
    return 10.0 ** math.floor(math.log10(error / 2))


def _text(value: Any) -> str:
    """Numbers as Python text, which needs no import."""
    return re.sub(r"-?\b(nan|inf)\b", r"float('\g<0>')", repr(np.asarray(value, dtype=np.float64).tolist()))


def _through_adbench(finding: Finding) -> str:
    trial = ProgramTrial(finding.program)
    lines = [
        f'"""{finding.title[:100]}."""', "", "import platform", "import sys", "", "import numpy", "",
        "import adbench", "", "", finding.program.source(), "",
        f"inputs = [{', '.join(literal(one) for one in trial.args)}]",
        f"result = adbench.check(f, *inputs, backend={finding.library!r}, operator={finding.operator!r}, "
        f"wrt={list(trial.wrt)})",
        "print(result)",
        'print("numpy", numpy.__version__, "Python", platform.python_version(), platform.platform())',
        "sys.exit(1 if result.is_wrong else 0)",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def literal(one: Any) -> str:
    """A number or an array as Python text."""
    return _text(one) if isinstance(one, float) else f"numpy.array({_text(one)})"
