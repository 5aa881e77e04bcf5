"""`adbench.check` and `adbench.assert_gradients`: derivatives of a user's function, compared with a reference."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, Literal, get_args

import numpy as np

from adbench.catalog.discovery import load
from adbench.catalog.selection import installed, resolve
from adbench.execution.operators import fallback
from adbench.execution.operators.prepared_point import CasePoint, PointReferences, examined, point
from adbench.execution.operators.references import known_at, lost_digits_at
from adbench.execution.operators.relations import Setting, of_rules, sentences
from adbench.execution.operators.rounding_spread import Judge
from adbench.execution.precision.given import InGivenPrecision, Settings, in_numpy, lowest_of, places_of
from adbench.functions.derivative_table import CheckedMode, FunctionCheck
from adbench.functions.libraries import double_precision, own_settings, silent_callbacks
from adbench.functions.low_precision import lowest_inside
from adbench.functions.outputs import Output, listed
from adbench.functions.points import points_inside
from adbench.functions.recognition import takes_xp
from adbench.functions.user_arguments import Wrt, arguments_of, name_of
from adbench.functions.user_function import Constants, UserFunction, function_case, told
from adbench.model.backend import Backend, Call, from_module
from adbench.model.case import Case
from adbench.model.errors import BadFile, Unsupported, UsageError, UserExit, contained
from adbench.model.operator import EVERY_OPERATOR, OPERATORS, Operator, definition, needs_second_order
from adbench.oracle.evidence import DOUBLE
from adbench.oracle.leaves import WEIGHT_BITS, weights_of
from adbench.oracle.verdict import Verdict

ANY_MODE = tuple(name for name in OPERATORS if definition(name).order and not definition(name).mode)
"""Derivatives that several modes give; if a library's own way fails, they are computed from another operator."""

REFERENCE_SECONDS = 3.0  # approximate time limit of a reference
RELATIONS_SECONDS, PATIENCE = 1.0, 5.0  # no relation between calls starts later

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
"""How libraries report that they, or a custom rule, lack a mode, if the exception's type does not show it."""


class WrongGradient(AssertionError):
    """A derivative is wrong or blind; the message is the table of `FunctionCheck`."""


def check(
    f: Callable[..., Any],
    *args: Any,
    backend: str | None = None,
    modes: Sequence[str] | str | None = None,
    operator: str | None = None,
    points: int = 1,
    wrt: Wrt = None,
    seed: int = 0,
    output: Output = None,
    branchwise: bool = False,
    constants: Constants = "allow",
    precision: Literal["given", "float64"] = "given",
    definition: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> FunctionCheck:
    """Check a library's derivatives of your function ``f(*args, **kwargs)``.

        print(adbench.check(f, 1.0, np.array([0.3, 1.2])))

    f          returns a number or an array, or several in a tuple, a dict or a dataclass; written for jax, torch,
               autograd, adbench.tape or numpy, or with a first parameter `xp` for all of them. A torch.nn.Module counts
               with its parameters
    args       floats, lists, arrays of numpy, jax or torch, nested dicts, tuples, dataclasses and torch.nn.Module.
               Integers, strings and other objects are static. Of complex numbers, `z.real` and `z.imag` are arguments
    kwargs     keyword arguments of f. Pass those with names used below by `functools.partial(f, seed=3)`
    backend    a name, or the path of a backend's file; by default that of the function's library, and tape for numpy
               and `xp`
    modes      "gradient", "jacobian", "jvp", "vjp", "hvp", "hessian", "hvp_reverse_over_forward", ...; several of
               these; or "all", with relations between calls: a rule must not keep results of other inputs.
               By default the gradient, or the Jacobian if the value is an array
    operator   one mode
    points     the number of points: the given one, then mixed signs, zero and negative entries, and then special ones
               (zeros, ones, ...) and random ones in turns. Others replace those where the function has no value
    wrt        the active arguments: positions or names (`"x"`, `"params['w']"`); by default every
               floating-point one
    seed       chooses the random points
    output     of several results, the one to check: its position, its key, or a path such as `"['aux']['w']"`; by
               default every floating-point one
    branchwise   accept the derivative along the branches that the program takes. By default the values decide where
               they contradict it: a bisection has the derivative of the root, not 0
    constants  "forbid" makes a derivative wrong that leaves out numbers which the function declares constant, by
               `detach`, `no_grad`, `.item()`, `stop_gradient`, ...; "allow" names them in a note
    precision  "given": arguments of jax, torch and autograd keep their types and devices, and the table says how many
               units in the last place of that type each number is off; "float64": all arguments are converted
    definition   a function of numpy, torch or jax that computes what f does: f may then be a kernel that adbench
               cannot translate. The table has the value and the gradient of its sum with random weights, in the types
               of the arguments, next to the errors of the definition's library

    The reference recomputes your function with 50 digits, at exactly the given numbers, and is proved, if its
    operations are known. Otherwise it comes from differences of its values in float64. The lowest type of the arguments
    and on the way to the value sets the tolerance: what rounding in it explains.

    Raises UsageError with one line if the function or its arguments cannot be checked: it returns no number or array,
    is random, changes its arguments, raises, or the library cannot differentiate it.
    """
    if not callable(f):
        raise UsageError(f"{type(f).__name__} {f!r} is not callable; pass a function, then its arguments")
    if points < 1:
        raise UsageError(f"points is {points}; pass 1 or more")
    if constants not in get_args(Constants):
        raise UsageError(f"constants is {constants!r}; choose from {', '.join(get_args(Constants))}")
    if precision not in ("given", "float64"):
        raise UsageError(f"precision is {precision!r}; choose from given, float64")
    if operator is not None and modes is not None:
        raise UsageError(f"operator={operator!r} and modes={modes!r} conflict; leave operator out")
    meaning = {"output": output, "branchwise": branchwise, "constants": constants}
    others = {"backend": backend, "modes": modes, "operator": operator, "precision": precision}
    options = {"wrt": wrt, "seed": seed, "backend": backend, **meaning}
    try:
        with contained():
            if definition is not None:
                own = signature(check).parameters
                if ignored := [name for name, value in {**meaning, **others}.items() if value != own[name].default]:
                    raise UsageError(f"{ignored[0]} has no meaning with definition; leave it out")
                from adbench.execution.precision.kernel import KernelCheck  # few checks are of kernels

                return KernelCheck(f, definition, args, kwargs, wrt, seed, REFERENCE_SECONDS).table(points)
            settings = own_settings() if precision == "given" else None
            return _checked(f, args, kwargs, backend, operator or modes, points, options, settings)
    except UserExit as error:
        raise UsageError(f"{name_of(f)} raises {told(error)}; adbench needs its value") from error


def _checked(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    backend: str | None,
    modes: Sequence[str] | str | None,
    points: int,
    options: Mapping[str, Any],
    settings: Settings | None,
) -> FunctionCheck:
    """The check; options: of `function_case`; settings: of the user's libraries, None to compute in float64."""
    with double_precision():
        case = function_case(f, args, kwargs, **options)
        function = case.f
        assert isinstance(function, UserFunction)
        asked = _modes(case, modes)
        in_given = _in_given_precision(f, args, kwargs, options["wrt"], function, settings)
        used, version = _backend(backend or function.library.backend, function)
        used = in_given(used)
        related = modes == "all"
        results = _at_points(case, used, asked, points, related)
        if backend is None and function.library.second and results.is_nothing:
            other = in_given(_backend(function.library.second, function)[0])
            second = _at_points(case, other, asked, points, related)
            used, results = (used, results) if second.is_nothing else (other, second)
    if results.is_nothing:
        first, hint = results.rows[0], function.library.hint(used.name)
        raise UsageError(f"{used.name} cannot compute the {first.mode} of {function.__name__}: {first.reason}{hint}")
    is_library = function.library.name not in ("xp", "tape")
    return FunctionCheck.of(
        function,
        results.outside,
        results.notes,
        backend=used.name,
        library=function.library.title if is_library else " ".join(filter(None, (used.name, version))),
        rows=tuple(results.rows),
        values=tuple(results.values),
        missing=points - len(results.values),
    )


def _in_given_precision(
    f: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    wrt: Wrt,
    made: UserFunction,
    settings: Settings | None,
) -> Callable[[Backend], Backend]:
    """in_given(backend) -> the backend for arguments in their own types and strides, where they are; the backend itself
    if all are float64 in rows on the CPU."""
    if settings is None or not made.library.keeps_types:
        return lambda backend: backend
    given = arguments_of(f, args, kwargs, wrt, xp=takes_xp(f), double=False)
    low, places = lowest_of(given), places_of(given)
    strided = any(hasattr(one, "is_contiguous") and not one.is_contiguous() for one in given.given)
    if low is None and not places and not strided:
        return lambda backend: backend
    given = replace(given, outputs=made.arguments.outputs)

    def value() -> Any:
        with settings():
            found = given.call(given.given)
        return in_numpy(found)

    there = " ".join([*([f"in {low.name}"] if low else []), *(f"on {place}" for place in places)])
    if there and made.draws_otherwise(value, low.precision if low else DOUBLE):
        made.notes.append(f"checked in float64 on the CPU, because its random draws are others {there}")
        return lambda backend: backend
    made.keep_types(given, low)
    if made.library.name == "torch":
        with settings():
            inside = lowest_inside("torch", given.call, given.given)
        if inside and inside.precision.unit > made.precision.unit:
            before, made.low = made.low, inside
            made.notes = [*(note for note in made.notes if not before or note != before.told), inside.told]
    made.notes += [f"computed on {place}: {listed(names)}" for place, names in places.items()]
    return lambda backend: InGivenPrecision.of(backend, made.library, given, settings)


def assert_gradients(f: Callable[..., Any], *args: Any, allow_blind: bool = False, **options: Any) -> None:
    """Raise WrongGradient, with the table, if `check` finds a derivative wrong or blind. For tests.

    allow_blind   accept blind derivatives, where zero would pass too
    options       those of `check`, and the function's own keyword arguments

    A derivative that does not exist (`jvp` of a jax.custom_vjp) fails if `modes` or `operator` names it.
    """
    checked = check(f, *args, **options)
    named = options.get("modes", options.get("operator", "all")) != "all"
    if checked.is_wrong or (checked.word == "blind" and not allow_blind) or (named and checked.lacking):
        raise WrongGradient(f"{checked.backend}'s {checked.deciding.mode} of {checked.function}\n{checked}")


@dataclass(frozen=True)
class _PointResults:
    """The results of all points."""

    rows: list[CheckedMode]
    values: list[CheckedMode]
    outside: list[int]
    notes: list[str] = field(default_factory=list)
    calls: dict[Operator, Call] = field(default_factory=dict)  # the library's own ones, prepared at the given point

    @property
    def is_nothing(self) -> bool:
        """Whether there is no derivative at all."""
        return all(row.reason for row in self.rows)


def _at_points(case: Case, used: Backend, asked: Sequence[Operator], points: int, related: bool) -> _PointResults:
    """Check all points; with `related` also relations between calls at the first."""
    assert isinstance(case.f, UserFunction)
    bits = case.f.precision.bits if used.rounds_inputs else WEIGHT_BITS
    with case.f.silent(), weights_of(bits):
        numbers, outside = points_inside(case, 0, points)
        results = _PointResults([], [], outside)
        for number in numbers:
            known = _at_point(case, used, asked, number, case.f.point_name(number), results)
            first_order = (row for row in results.rows[-len(asked) :] if definition(row.mode).order == 1)
            if used.rounds_inputs and any(row.loses_digits for row in first_order):
                results.notes.extend(lost_digits_at(point(case, 1, number), known, REFERENCE_SECONDS))
            if related and not number:
                _relate(Setting(used, case, 1, number, known, patience=PATIENCE), results)
    return results


def _at_point(
    case: Case, used: Backend, asked: Sequence[Operator], number: int, where: str, results: _PointResults
) -> PointReferences:
    """Add the rows of one point. Returns its references."""
    at = point(case, 1, number, single=used.single)
    second = any(map(needs_second_order, asked))
    known = known_at(at, second_order=second, hessian="hessian" in asked, seconds=REFERENCE_SECONDS)
    results.values.append(_value(at, used, known, where))
    results.rows.extend(_row(at, used, mode, known, where, {} if number else results.calls) for mode in asked)
    return known


def _relate(setting: Setting, results: _PointResults) -> None:
    """Add a row for broken relations between calls, or a note that they hold."""
    with np.errstate(all="ignore"), silent_callbacks():
        relations = of_rules(setting, results.calls, RELATIONS_SECONDS)
    if broken := sentences(relations):
        results.rows.append(CheckedMode.wrong("relations", results.values[0].point, "; ".join(broken)))
    elif relations.held:
        results.notes.append(f"{relations.held} relations between calls hold")


def _value(at: CasePoint, used: Backend, known: PointReferences, where: str) -> CheckedMode:
    """The value from the function itself, or from the backend for a function with `xp`."""
    if isinstance(at.case.f, UserFunction) and at.case.f.library.name != "xp" and not used.rounds_inputs:
        with np.errstate(all="ignore"):
            value = np.asarray(at.plain(*at.args), dtype=np.float64)
        return CheckedMode("value", where, *examined(at, "value", value, known, None), how="native")
    return _row(at, used, "value", known, where, {})


def _row(
    at: CasePoint, used: Backend, mode: Operator, known: PointReferences, where: str, calls: dict[Operator, Call]
) -> CheckedMode:
    """One derivative at one point, or the reason why it does not exist; its call is added to `calls`."""
    try:
        with contained(), np.errstate(all="ignore"), silent_callbacks():
            first = _first_call(at, used, mode)
            result, prepared = used.numpy_result(first.result), first.prepared
    except UsageError:
        raise
    except (Unsupported, NotImplementedError) as refusal:
        return CheckedMode(mode, where, None, reason=str(refusal) or type(refusal).__name__)
    except Exception as error:  # raised by the library, or by the function in this mode
        wrong = Verdict("wrong", f"the {mode} raises {told(error)}", None, None, 1, 0, 1, 0, "", "")
        return CheckedMode(mode, where, None if _refuses(error, at.case) else wrong, reason=told(error))
    if prepared.how == fallback.NATIVE and mode in OPERATORS:
        calls[mode] = prepared.call
    verdict, entries = Judge(used, mode, prepared.call).examined(at, result, known)
    return CheckedMode(mode, where, verdict, entries, prepared.how)


def _first_call(at: CasePoint, used: Backend, mode: Operator) -> fallback.FirstCall:
    """The derivative and how it was prepared. Raises any exception of the library."""
    elsewhere, native = at.native(used, mode)
    f = used.function(at.case, at.names, at.size)

    def refusal(error: Exception, _: fallback.Prepared | None) -> Exception | None:
        # A function with a custom rule may have only one mode, while the library's default is the other.
        return error if mode in ANY_MODE and _refuses(error, at.case) else None

    return fallback.OperatorRequest(used, mode, f, elsewhere, at.wrt).first_call(native, refusal)


def _refuses(error: Exception, case: Case) -> bool:
    """Whether the exception means that the derivative does not exist, rather than that a derivative rule failed.

    If the exception's line also computes the value, the library cannot use this mode there.
    """
    if isinstance(error, Unsupported | NotImplementedError) or REFUSAL.search(str(error)) is not None:
        return True
    return isinstance(case.f, UserFunction) and case.f.is_of_value(error)


def _backend(name: str, function: UserFunction) -> tuple[Backend, str | None]:
    """The backend and the version of the library behind it.

    Raises UsageError if it does not exist, is not installed, or cannot differentiate the function's library.
    """
    chosen = resolve(backends=[name])
    names = installed(chosen)
    if len(names) > 1:
        raise UsageError(f"{name} matches {len(names)} backends: {', '.join(names)}; name one of them")
    source = chosen.catalog.backends[names[0]]
    function.library.refuse_backend(source.name, function.__name__)
    try:
        with double_precision():
            used = from_module(source.name, load(source))
    except UserExit as error:
        raise BadFile(f"{source.path}: cannot be imported: {told(error)}") from error
    return used, source.version


def _modes(case: Case, asked: Sequence[str] | str | None) -> tuple[Operator, ...]:
    """The operators to check. Raises UsageError for an unknown name."""
    if asked is None:
        return tuple(name for name in case.operators if name != "value")
    if asked == "all":
        return tuple(name for name in case.possible_operators if name != "value")
    names = (asked,) if isinstance(asked, str) else tuple(asked)
    if not names:
        raise UsageError(f"modes is empty; name some of {', '.join(EVERY_OPERATOR)}, or 'all'")
    return tuple(dict.fromkeys(definition(name).name for name in names))
