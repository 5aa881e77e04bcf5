"""A finding as a script that imports only the library and numpy, prints both numbers, and exits with 1.

The program's source is the same as everywhere, with the library's own names instead of `xp` (`script_libraries`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from adbench.findings.finding import Finding
from adbench.findings.programs.judging import ProgramTrial
from adbench.findings.script_libraries import INNER, LIBRARIES, OF_ONE_ENTRY, OF_ONE_NUMBER, ScriptLibrary, in_library
from adbench.model import tree
from adbench.model.operator import definition

INDENT = "    "


def script(finding: Finding) -> str:
    """The script. It calls adbench for libraries whose arrays are adbench's, and functions that a library lacks."""
    library = LIBRARIES.get(finding.library)
    text = None if library is None else _own(finding, library)
    return _through_adbench(finding) if text is None else text


def _own(finding: Finding, library: ScriptLibrary) -> str | None:
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
    lines = [
        f'"""{finding.title[:100]}."""', "", "import importlib.metadata", "import platform", "import sys", "",
        *(f"import {name}" for name in sorted({*modules, *INNER.findall(text)})), head, "", "",
        *(f"{helper}\n\n" for helper in helpers), f"{text}\n", *_point(finding, trial, operator),
        f"got = {computed}", *_entry(finding, trial, operator, library), "",
        *([] if finding.expected.startswith("any value") else [f"expected = {_expected(finding)}"]),
        *_end(finding, library.module),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _point(finding: Finding, trial: ProgramTrial, operator: str) -> list[str]:
    """The inputs, the function of the differentiated inputs, and the vectors of the operator."""
    every, active = trial.program.names, [trial.program.names[k] for k in trial.wrt]
    lines = [f"{name} = array({_text(one)})" for name, one in zip(every, trial.args, strict=True)]
    if len(active) < len(every):
        head, call = f"def f({', '.join(active)}):", f"{INDENT}return of_all_inputs({', '.join(every)})"
        lines += ["of_all_inputs = f", "", "", head, call, "", ""]
    lines.append(f"at = {_tuple(active)}")
    if definition(operator).vector:
        lines.append(f"v = {_tuple([f'array({_text(one)})' for one in tree.leaves(trial.vector)])}  # a direction")
    if operator in OF_ONE_ENTRY:
        place, index = _place(finding, trial)
        units = [np.zeros(np.shape(one)) for one in tree.leaves(trial.vector)]
        units[place][index] = 1.0
        lines.append(f"unit = {_tuple([f'array({_text(one)})' for one in units])}")
    return lines


def _tuple(parts: Sequence[str]) -> str:
    return f"({' '.join(f'{one},' for one in parts)})"


def _entry(finding: Finding, trial: ProgramTrial, operator: str, library: ScriptLibrary) -> list[str]:
    """The lines that take the number in question from the result."""
    detach = ".detach()" if library.module == "torch" else ""
    if operator in OF_ONE_NUMBER:
        return [f"got = float(got{detach})"]
    place, index = _place(finding, trial)
    entry = f"[{', '.join(map(str, index))}]" if index else ""
    return [f"got = float(got[{place}]{entry}{detach})"]


def _place(finding: Finding, trial: ProgramTrial) -> tuple[int, tuple[int, ...]]:
    """The active input and the index that the finding is about."""
    match = re.match(r"(x\d+)(?:\[([\d, ]+)\])?$", finding.place)
    names = [trial.program.names[k] for k in trial.wrt]
    if match is None or match[1] not in names:
        shape = np.shape(trial.point.leaves[0].values)
        return 0, (0,) * len(shape)
    return names.index(match[1]), tuple(int(k) for k in match[2].split(",")) if match[2] else ()


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
