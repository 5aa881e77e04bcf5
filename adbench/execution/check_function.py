"""`adbench.check` and `adbench.assert_gradients`: a user's function, its derivatives and the truth, in this process."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adbench.catalog.discovery import load
from adbench.catalog.selection import resolve
from adbench.execution.operators import fallback
from adbench.execution.operators.prepared_point import (
    Known,
    Point,
    examined,
    known_at,
    needs_second_order,
    operator_named,
    point,
)
from adbench.functions.function_check import CheckedMode, FunctionCheck
from adbench.functions.libraries import OWN_BACKENDS, double_precision, import_library, library_of
from adbench.functions.user_arguments import Wrt
from adbench.functions.user_function import UserFunction, function_case, point_name, told
from adbench.model.backend import Backend, from_module
from adbench.model.case import Case
from adbench.model.errors import AdbenchError, UnknownName, Unsupported, UsageError
from adbench.model.operator import EVERY_OPERATOR, Operator
from adbench.oracle import Verdict

ANY_MODE = ("gradient", "value_and_gradient", "jacobian")
"""Derivatives that either mode gives: where a library's own way fails, they are made from another operator."""

REFERENCE_SECONDS = 3.0  # about how long a reference may take

REFUSAL = re.compile(
    "|".join(
        (
            "can't apply forward-mode autodiff",  # jax.custom_vjp
            "Reverse-mode differentiation does not work",  # jax's while_loop
            "callbacks do not support JVP",
            "functorch|vmap|is not implemented|once_differentiable",  # torch
            "has no derivative in argument|has no reverse mode",  # adbench.tape
        )
    )
)
"""How libraries say that they, or a custom rule, lack a mode, where the type of the exception does not."""


class WrongGradient(AssertionError):
    """A derivative is wrong or blind; the text is the table of `FunctionCheck`."""


def check(
    f: Callable[..., Any],
    *args: Any,
    backend: str | None = None,
    modes: Sequence[str] | str | None = None,
    operator: str | None = None,
    points: int = 1,
    wrt: Wrt = None,
    seed: int = 0,
    **kwargs: Any,
) -> FunctionCheck:
    """Check the derivatives that a library takes of your function ``f(*args, **kwargs)``.

        print(adbench.check(f, 1.0, np.array([0.3, 1.2])))

    f          returns a number or an array; written for jax, torch, autograd, adbench.tape or numpy, or with a first
               parameter `xp` for all of them. A torch.nn.Module counts with its parameters
    args       floats, lists, arrays of numpy, jax or torch, nested dicts, tuples, dataclasses and torch.nn.Module.
               Whole numbers, texts and other objects are static
    kwargs     keyword arguments of f. Those with the names of the ones below go in by `functools.partial(f, seed=3)`
    backend    a name, or the path of a backend's file; by default that of the function's library, and the tape for
               numpy and `xp`
    modes      "gradient", "jacobian", "jvp", "vjp", "hvp", "hessian", "hvp_reverse_over_forward", ...; several of
               these; or "all". By default the gradient, or the Jacobian if the value is an array
    operator   one mode
    points     how many points: the given one, then random ones around it and special ones (zeros, ones, ...)
    wrt        the arguments to differentiate in: positions or names (`"x"`, `"params['w']"`); by default every
               floating-point one
    seed       chooses the random points

    The truth comes from the function itself, recomputed with 50 digits where its operations are known, and then it is
    proved; else from differences of its values in float64. Everything runs in float64.

    Raises UsageError, in one line, if the function or its arguments cannot be checked: it returns no number or array,
    it is random, it changes its arguments, it raises, or the library cannot differentiate it.
    """
    if not callable(f):
        raise UsageError(f"{type(f).__name__} {f!r} cannot be called; pass a function, then its arguments")
    if points < 1:
        raise UsageError(f"points is {points}; it must be at least 1")
    import_library(library_of(f, args, kwargs))
    with double_precision():
        case = function_case(f, args, kwargs, wrt, seed=seed)
        made = case.f
        assert isinstance(made, UserFunction)
        asked = _modes(case, modes, operator)
        used, version = _backend(backend or made.library.backend, made)
        found = _at_points(case, used, asked, points)
        if backend is None and made.library.second and found.is_nothing:
            other, _ = _backend(made.library.second, made)
            second = _at_points(case, other, asked, points)
            used, found = (used, found) if second.is_nothing else (other, second)
    if found.is_nothing:
        raise UsageError(_nothing(made, used, found.rows))
    return FunctionCheck(
        function=made.__name__,
        backend=used.name,
        library=made.library.title if made.library.name not in ("xp", "tape") else _titled(used, version),
        rows=tuple(found.rows),
        values=tuple(found.values),
        outside=tuple(found.outside),
        notes=(*made.notes, *_undefined(found.values[0])),
    )


def assert_gradients(f: Callable[..., Any], *args: Any, allow_blind: bool = False, **options: Any) -> None:
    """For tests: raises WrongGradient, with the table, if `check` finds a derivative wrong or blind.

    allow_blind   accept blind derivatives, where zero would pass too
    options       those of `check`, and the function's own keyword arguments

    A derivative that does not exist (`jvp` of a jax.custom_vjp) fails if `modes` or `operator` names it.
    """
    found = check(f, *args, **options)
    named = options.get("modes", options.get("operator", "all")) != "all"
    if found.is_wrong or (found.word == "blind" and not allow_blind) or (named and found.lacking):
        raise WrongGradient(f"{found.backend}'s {found.deciding.mode} of {found.function}\n{found}")


@dataclass(frozen=True)
class _Found:
    """What the points gave."""

    rows: list[CheckedMode]
    values: list[CheckedMode]
    outside: list[str]

    @property
    def is_nothing(self) -> bool:
        """Whether there is no derivative at all."""
        return all(row.reason for row in self.rows)


def _at_points(case: Case, used: Backend, asked: Sequence[Operator], points: int) -> _Found:
    """The rows of all points."""
    found = _Found([], [], [])
    with case.f.silent() if isinstance(case.f, UserFunction) else nullcontext():
        for number in range(points):
            _at_point(case, used, asked, number, found)
    return found


def _at_point(case: Case, used: Backend, asked: Sequence[Operator], number: int, found: _Found) -> None:
    """Adds the rows of one point."""
    at, where = point(case, 1, number, single=used.single), point_name(number)
    if number and not is_inside(at):
        found.outside.append(where)
        return
    second = any(map(needs_second_order, asked))
    known = known_at(at, second_order=second, hessian="hessian" in asked, seconds=REFERENCE_SECONDS)
    found.values.append(_value(at, used, known, where))
    found.rows.extend(_row(at, used, mode, known, where) for mode in asked)


def is_inside(at: Point) -> bool:
    """Whether the function has a finite value at the point."""
    try:
        with np.errstate(all="ignore"):
            return bool(np.isfinite(at.plain(*at.args)).all())
    except (AdbenchError, MemoryError):
        raise
    except Exception:  # it refuses such numbers
        return False


def _value(at: Point, used: Backend, known: Known, where: str) -> CheckedMode:
    """The value: the function's own, or the backend's of a function for all libraries."""
    if isinstance(at.case.f, UserFunction) and at.case.f.library.name != "xp":
        with np.errstate(all="ignore"):
            value = np.asarray(at.plain(*at.args), dtype=np.float64)
        return CheckedMode("value", where, *examined(at, "value", value, known, None), how="native")
    return _row(at, used, "value", known, where)


def _row(at: Point, used: Backend, mode: Operator, known: Known, where: str) -> CheckedMode:
    """One derivative at one point, or the reason why it does not exist."""
    try:
        with np.errstate(all="ignore"):
            result, how = _taken(at, used, mode)
    except UsageError:
        raise
    except (Unsupported, NotImplementedError) as refusal:
        return CheckedMode(mode, where, None, reason=str(refusal) or type(refusal).__name__)
    except Exception as error:  # a library's, or the function's own in this mode
        refused = _refuses(error, at.case)
        return CheckedMode(mode, where, None if refused else _raised(mode, error), reason=told(error))
    verdict, entries = examined(at, mode, result, known, used.claimed_relative_error)
    return CheckedMode(mode, where, verdict, entries, how)


def _taken(at: Point, used: Backend, mode: Operator) -> tuple[Any, str]:
    """The derivative in numpy, and how it was made. Raises whatever the library raises."""
    elsewhere, native = at.native(used, mode)
    f = used.function(at.case, at.names, at.size)
    try:
        prepared = fallback.prepare(used, mode, f, elsewhere, at.wrt)
        return used.numpy_result(used.waited(prepared.call(*native))), prepared.how
    except Exception as error:
        if mode not in ANY_MODE or not _refuses(error, at.case):
            raise
        # A function with a custom rule may have one mode only, and the library takes the other by default.
        try:
            prepared = fallback.instead(replace(used, prepare=_tried(used)), mode, f, elsewhere, at.wrt, error)
        except Exception:
            raise error from None
        return used.numpy_result(used.waited(prepared.call(*native))), prepared.how


def _tried(used: Backend) -> Callable[..., Any]:
    """The backend's `prepare`, which raises Unsupported where the first call fails."""

    def prepare(operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Any:
        try:
            call = used.prepare(operator, f, args, wrt)
            used.waited(call(*args))
        except Exception as error:
            raise Unsupported(told(error)) from error
        return call

    return prepare


def _refuses(error: Exception, case: Case) -> bool:
    """Whether the exception says that the derivative does not exist; else it is the fault of a rule for derivatives.

    An exception from a line that computes the value, too, is one of the library: it cannot take this mode there.
    """
    if isinstance(error, Unsupported | NotImplementedError) or REFUSAL.search(str(error)) is not None:
        return True
    return isinstance(case.f, UserFunction) and case.f.is_of_value(error)


def _raised(mode: Operator, error: Exception) -> Verdict:
    """A rule that raises in a mode which it has is wrong there."""
    return Verdict("wrong", f"the {mode} raises {told(error)}", None, None, 1, 0, 1, 0, "", "")


def _backend(name: str, made: UserFunction) -> tuple[Backend, str | None]:
    """The backend and the version of the library behind it.

    Raises UsageError where it does not exist, is not installed, or cannot differentiate the function's library.
    """
    chosen = resolve(backends=[name])
    if not chosen.backends or chosen.backends[0] not in chosen.catalog.backends:
        raise UnknownName("backend", name, chosen.catalog.backends)
    source = chosen.catalog.backends[chosen.backends[0]]
    if source.missing:
        missing = " ".join(source.missing)
        raise UsageError(f"the backend {name} needs {missing}, which is not installed; pip install {missing}")
    refuse_another_library(chosen.backends[0], made)
    with double_precision():
        used = from_module(chosen.backends[0], load(source))
    return used, source.version


def refuse_another_library(backend: str, made: UserFunction) -> None:
    """Raises UsageError where the function is of one library and the backend of another."""
    own, family = made.library.name, backend.partition("_")[0]
    if own in OWN_BACKENDS and family in OWN_BACKENDS and family not in OWN_BACKENDS[own]:
        raise UsageError(
            f"{made.__name__} is written for {own}, and the backend {backend} cannot differentiate that; leave backend "
            f"out, or write the function with a first parameter xp for all libraries"
        )


def _modes(case: Case, modes: Sequence[str] | str | None, operator: str | None) -> tuple[Operator, ...]:
    """The operators to check. Raises UsageError for an unknown name."""
    if operator is not None and modes is not None:
        raise UsageError(f"operator={operator!r} and modes={modes!r} ask for two things; leave operator out")
    asked = operator if operator is not None else modes
    if asked is None:
        return ("jacobian",) if case.is_array_valued else ("gradient",)
    if asked == "all":
        return tuple(name for name in case.possible_operators if name != "value")
    names = (asked,) if isinstance(asked, str) else tuple(asked)
    if not names:
        raise UsageError(f"modes is empty; name some of {', '.join(EVERY_OPERATOR)}, or 'all'")
    return tuple(dict.fromkeys(operator_named(name) for name in names))


def _nothing(made: UserFunction, used: Backend, rows: Sequence[CheckedMode]) -> str:
    """Why no derivative could be checked."""
    hint = hint_of(used.name, made)
    return f"{used.name} cannot take the {rows[0].mode} of {made.__name__}: {rows[0].reason}{hint}"


def hint_of(backend: str, made: UserFunction) -> str:
    """What to do if a backend cannot differentiate the function, to be added to the reason; "" for nothing."""
    family = backend.partition("_")[0]
    if made.library.name == "numpy" and family in OWN_BACKENDS and family != "tape":
        return f"; the function calls numpy: leave {backend} out, or write the function for {family}"
    return ""


def _undefined(value: CheckedMode) -> list[str]:
    """A note where the function has no finite value at the given point."""
    strange = [entry for entry in value.entries if not math.isfinite(entry.got)]
    return [f"the function has no finite value here: {strange[0].place} is {strange[0].got}"] if strange else []


def _titled(used: Backend, version: str | None) -> str:
    return f"{used.name} {version}" if version else used.name
