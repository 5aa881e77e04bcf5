"""Checks from Python, in this process: one cell again, or a function of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from adbench.catalog.discovery import load, select
from adbench.catalog.selection import resolve
from adbench.execution.operators import fallback
from adbench.execution.operators.prepared_point import judged, known_at, needs_second_order, operator_named, point
from adbench.execution.operators.relations import Setting, violations
from adbench.execution.planning.plan import RELATIONS
from adbench.model.backend import Backend, from_module
from adbench.model.case import Case
from adbench.model.errors import UnknownName, UsageError
from adbench.model.namespace import Namespace
from adbench.oracle import Verdict

SECONDS = 3.0  # about how long a reference may take


class WrongGradient(AssertionError):
    """A derivative is wrong; the text is the verdict's sentence."""


def check_cell(case: str, size: int, backend: str, operator: str = "gradient", *, seed: int = 0) -> str:
    """Check one cell of a run again, in this process: its verdict in a sentence.

    case      a built-in case's name, or a user's file with the case's name behind a colon
    backend   a built-in backend's name, or a user's file

    Raises UsageError for what does not exist, and whatever the library raises.
    """
    file, _, name = case.rpartition(":")
    chosen = resolve(cases=[file] if file else [], backends=[backend])
    (which,) = select("case", chosen.catalog.cases, [name])
    (where,) = chosen.backends
    used = from_module(where, load(chosen.catalog.backends[where]))
    made = chosen.catalog.cases[which]
    if operator == RELATIONS:
        first = known_at(point(made, size, seed), second_order=False, seconds=SECONDS).first
        return "; ".join(violations(Setting(used, made, size, seed, first))) or "every relation holds"
    return str(_verdict(made, size, used, operator, seed).sentence)


def check(
    f: Callable[..., Any], *args: Any, backend: str = "tape", operator: str = "gradient", wrt: tuple[int, ...] = (0,)
) -> Verdict:
    """Check the derivative that a backend takes of a function of the user's own, at the given arguments.

    f         f(*args) -> a number, written for the backend's library; or f(xp, *args), on any
    args      floats, float64 arrays, or nested dicts, lists and tuples of them
    backend   a name, or the path of a backend's file
    wrt       the positions of the arguments to differentiate in

    Where `f` takes `xp`, the truth is known to fifty digits; else it comes from differences of `f`, which tell less.
    """
    case, size = case_of(f, args, wrt), 1
    chosen = resolve(backends=[backend])
    if not chosen.backends or chosen.backends[0] not in chosen.catalog.backends:
        raise UnknownName("backend", backend, chosen.catalog.backends)
    used = from_module(chosen.backends[0], load(chosen.catalog.backends[chosen.backends[0]]))
    return _verdict(case, size, used, operator, 0)


def assert_gradients(f: Callable[..., Any], *args: Any, backend: str = "tape", wrt: tuple[int, ...] = (0,)) -> None:
    """For tests: raises WrongGradient, with the entry and its digits, where `check` finds a derivative wrong."""
    verdict = check(f, *args, backend=backend, wrt=wrt)
    if verdict.word == "wrong":
        name = getattr(f, "__name__", "f")
        raise WrongGradient(f"{backend}'s gradient of {name}: {verdict.sentence}")


def case_of(f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Case:
    """A case of one size from a function and its arguments. Raises UsageError for positions that there are not."""
    from inspect import signature

    if not args or not all(0 <= i < len(args) for i in wrt):
        raise UsageError(f"wrt is {wrt}, but there are {len(args)} arguments")
    arguments = tuple(np.asarray(a, dtype=np.float64) if isinstance(a, list) else a for a in args)
    try:
        takes_xp = next(iter(signature(f).parameters), "") == "xp"
    except (TypeError, ValueError):  # written in C: it tells nothing about its arguments
        takes_xp = False

    def text(xp: Any, **inputs: Any) -> Any:
        return f(xp, *inputs.values()) if takes_xp else f(*inputs.values())

    named = {f"x{i}": float(a) if isinstance(a, int) and i in wrt else a for i, a in enumerate(arguments)}
    made = Case(f=text, inputs=lambda n, rng: named, wrt=tuple(f"x{i}" for i in wrt), sizes=(1,))
    return replace(made, operators=("value", "jacobian")) if _is_array(text, named) else made


def _is_array(text: Callable[..., Any], inputs: dict[str, Any]) -> bool:
    """Whether the value is an array, by the text on plain numpy; not, where it does not run there."""
    try:
        with np.errstate(all="ignore"):
            return bool(np.shape(text(Namespace(np), **inputs)))
    except Exception:  # written for its backend's library only
        return False


def _verdict(case: Case, size: int, backend: Backend, operator: str, seed: int) -> Verdict:
    asked, at = operator_named(operator), point(case, size, seed)
    known = known_at(at, second_order=needs_second_order(operator), seconds=SECONDS)
    elsewhere, native = at.native(backend, operator)
    made = fallback.prepare(backend, asked, backend.function(case, at.names, size), elsewhere, at.wrt)
    return judged(at, operator, backend.numpy_result(made.call(*native)), known, backend.claimed_relative_error)
