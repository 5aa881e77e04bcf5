"""Is a finding one of the backend's known faults?

They are of traps, small functions with one fault each. A finding is explained by a trap if its smallest program calls
only functions that the trap calls too, among them its matrix functions, in the same order of derivative and with the
same outcome. This is a guess, and it is printed as one: such a finding is shown and not counted as new.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence

import numpy as np

from adbench.findings.finding import AT_ONE, AT_ZERO, VERTICAL, VERTICAL_AT_ZERO, Finding
from adbench.findings.programs.generation import evaluated
from adbench.model.backend import KnownBug, known_bug
from adbench.model.case import Case

CALLS = re.compile(r"xp\.(?:linalg\.)?(\w+)")
MATRIX_CALLS = re.compile(r"xp\.linalg\.(\w+)")
OPERATORS = {"**": "pow", "/": "divide", "@": "matmul"}
NEUTRAL = frozenset({"sum", "asarray", "reshape", "mean"})
"""Linear, and in nearly every program."""


OUTCOMES = ("wrong", "nan", "raises")
VERTICAL_TRAPS = ("trap_half_square_root", "trap_x_sqrt_x", "trap_square_of_sqrt")


def is_vertical(finding: Finding) -> bool:
    """Whether the program has an operation at a point where its own derivative is infinite: 0 · inf is NaN."""
    for step, operands, value in evaluated(finding.program):
        if step.name in AT_ONE and (np.abs(operands[0]) == 1).any():
            return True
        if not np.isfinite(operands[0]).all():  # a result of 0 at infinity has slope 0
            continue
        if step.name in AT_ZERO | VERTICAL_AT_ZERO and (operands[0] == 0).any():
            return True
        if step.name in VERTICAL_AT_ZERO and not value.any():
            return True
    return False


def trap_outcome(outcome: str) -> frozenset[str]:
    """The kinds of findings that the outcome of a known fault allows: "0 or nan" is wrong, or NaN."""
    kinds = {"nan"} if "nan" in outcome else set()
    kinds |= {"raises", "nan"} if outcome.startswith("raises") else set()  # another composition returns NaN
    return frozenset(kinds | ({"wrong"} if not kinds or " or " in outcome else set()))


def calls(text: str) -> frozenset[str]:
    """The functions and operators of a program's text that may be at fault."""
    names = set(CALLS.findall(text)) - {"linalg"}
    names |= {name for sign, name in OPERATORS.items() if sign in re.sub(r'""".*?"""', "", text, flags=re.DOTALL)}
    return frozenset(names) - NEUTRAL


def explanation(finding: Finding, known: Sequence[KnownBug], traps: Mapping[str, Case]) -> str:
    """The known bug that may explain it, as "trap_x_sqrt_x: nan (owner/repository#7)", or ""."""
    if finding.kind not in OUTCOMES:
        return ""
    text = finding.program.source()
    here, matrices = calls(text), set(MATRIX_CALLS.findall(text))
    vertical = finding.kind == "nan" and is_vertical(finding)
    if vertical:  # the other functions only pass the NaN on
        here = here & VERTICAL or here
    for name in dict.fromkeys(bug.trap for bug in known):
        bug = known_bug(known, name, finding.operator)
        if bug is None or name not in traps or not here:
            continue
        theirs = _text(traps[name])
        is_same = here <= calls(theirs) and matrices >= set(MATRIX_CALLS.findall(theirs))
        if is_same and finding.kind in trap_outcome(bug.got):
            return f"{name}: {bug.text}"
    if vertical:
        for name in VERTICAL_TRAPS:
            if name in traps and (bug := known_bug(known, name, finding.operator)) is not None:
                return f"as {name}: {bug.text}"
    return ""


def _text(case: Case) -> str:
    try:
        return inspect.getsource(case.f)
    except (OSError, TypeError):  # made at run time
        return ""
