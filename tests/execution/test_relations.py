"""Each relation catches the backend that breaks it, and only that relation does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adbench import Case, Namespace, Unsupported
from adbench.execution.operators.relations import RELATIONS, Setting, violations
from adbench.model.backend import WITH_VECTOR, Backend, Operator
from adbench.model.case import function_of
from adbench.oracle import reference


def f(xp: Any, x: Any, b: Any, c: Any) -> Any:
    return xp.sum(xp.sin(x) * c) * b


CASE = Case(
    f=f,
    inputs=lambda n, rng: {"x": rng.normal(size=n), "b": float(rng.uniform(1, 2)), "c": rng.uniform(1, 2, n)},
    wrt=("x", "b"),
    sizes=(3,),
)


def gradient(x: Any, b: Any, c: Any, wrt: tuple[int, ...] = (0, 1)) -> tuple[Any, ...]:
    parts = (np.cos(x) * c * b, np.float64(np.sum(np.sin(x) * c)))
    return tuple(parts[i] for i in wrt)


def backend(gradient_call: Callable[..., Callable[..., Any]], **more: Any) -> Backend:
    """A library whose gradient is what `gradient_call(args, wrt)` returns at `prepare`; all else is right."""

    def prepare(operator: Operator, f: Any, args: Any, wrt: Any) -> Any:
        inputs = args[:-1] if operator in WITH_VECTOR else args
        if operator == "gradient":
            return gradient_call(inputs, wrt)
        if operator == "value":
            return more.get("value", f)
        if operator == "jvp":
            scale = more.get("jvp", 1.0)
            return lambda *a: scale * sum(np.sum(g * v) for g, v in zip(gradient(*a[:-1]), a[-1], strict=True))
        if operator == "vjp":
            return lambda *a: tuple(a[-1] * g for g in gradient(*a[:-1]))
        raise Unsupported(operator)

    to_native = more.get("to_native", lambda leaf: np.array(leaf) if np.ndim(leaf) else leaf)
    return Backend("some", Namespace(np), prepare, to_native, np.asarray, None, None)


def setting(of: Backend) -> Setting:
    names, args, wrt = CASE.bind(3, 0)
    plain = function_of(CASE, names, Namespace(np))
    known = reference(plain, args, wrt, xp_function=lambda xp, *a: function_of(CASE, names, xp)(*a), names=names)
    return Setting(of, CASE, 3, 0, known)


def right(args: Any, wrt: Any) -> Any:
    return lambda *a: gradient(*a, wrt=wrt)


def frozen(args: Any, wrt: Any) -> Any:
    """Records at `prepare`, and returns that gradient for ever."""
    result = gradient(*map(np.copy, args), wrt=wrt)
    return lambda *a: result if np.array_equal(a[0], args[0]) else tuple(map(np.copy, result))


def stale(args: Any, wrt: Any) -> Any:
    """Accumulates adjoints from call to call."""
    total: list[Any] = []

    def call(*a: Any) -> Any:
        now = gradient(*a, wrt=wrt)
        total[:] = [g + t for g, t in zip(now, total, strict=True)] if total else list(now)
        return tuple(map(np.copy, total))

    return call


def writing(args: Any, wrt: Any) -> Any:
    """Works in the caller's arrays."""

    def call(*a: Any) -> Any:
        result = gradient(*a, wrt=wrt)
        a[2][...] = np.sqrt(a[2]) ** 2 + 1e-3
        return result

    return call


def keeping(args: Any, wrt: Any) -> Any:
    """Keeps the constant that it saw at `prepare` by reference."""
    return lambda x, b, c: gradient(x, b, args[2], wrt=wrt)


def buffered(args: Any, wrt: Any) -> Any:
    """Returns the same buffer each time, and reads it again."""
    buffer = np.zeros(3)
    scratch = np.ones(3)

    def call(*a: Any) -> Any:
        result = gradient(*a, wrt=wrt)
        if wrt[0] == 0:
            buffer[...] = result[0] + (buffer * 0.0 if np.isnan(buffer).any() else 0.0) + 0.0 * scratch
            result = (buffer, *result[1:])
        return result

    return call


def only_all(args: Any, wrt: Any) -> Any:
    """Forgets that the rest is constant: right for all active inputs, not for some."""
    return lambda *a: gradient(*a, wrt=wrt) if len(wrt) == 2 else tuple(2.0 * g for g in gradient(*a, wrt=wrt))


BROKEN: dict[str, tuple[Backend, str]] = {
    "frozen": (backend(frozen), "elsewhere"),
    "stale": (backend(stale), "twice"),
    "writing": (backend(writing), "untouched"),
    "keeping": (backend(keeping, to_native=lambda leaf: leaf), "overwritten"),
    "buffered": (backend(buffered), "own"),
    "only_all": (backend(only_all), "subsets"),
    "one-sided": (backend(right, jvp=1.001), "modes"),
    "swallowing": (backend(right, value=lambda x, b, c: np.nansum(np.sin(x) * c) * b), "NaN"),
}


def test_a_right_backend_breaks_no_relation() -> None:
    assert violations(setting(backend(right))) == []


@pytest.mark.parametrize("name", BROKEN)
def test_each_relation_catches_who_breaks_it(name: str) -> None:
    broken, relation = BROKEN[name]
    found = violations(setting(broken))
    assert relation in {text.partition(":")[0] for text in found}, found


def test_every_relation_is_shown_to_catch_something() -> None:
    assert {relation for _, relation in BROKEN.values()} == set(RELATIONS)


def test_what_raises_in_a_relation_is_said_and_the_others_go_on() -> None:
    def second_call_fails(args: Any, wrt: Any) -> Any:
        calls: list[int] = []

        def call(*a: Any) -> Any:
            calls.append(1)
            if len(calls) > 1:
                raise RuntimeError("the tape is gone\nand more")
            return gradient(*a, wrt=wrt)

        return call

    found = violations(setting(backend(second_call_fails)))
    assert "twice: RuntimeError: the tape is gone" in found


def test_no_gradient_at_all_is_unsupported_not_a_violation() -> None:
    def refuse(args: Any, wrt: Any) -> Any:
        raise Unsupported("no gradient here")

    with pytest.raises(Unsupported, match="no gradient here"):
        violations(setting(backend(refuse)))
