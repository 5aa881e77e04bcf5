"""`@adbench.check_gradients(…)`: turns a function into a test of its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

from adbench.execution.python_check import assert_gradients
from adbench.model.errors import UsageError

FIRST = {"self", "xp"}
"""First parameters that are not given to the decorator: pytest passes `self`, `adbench.check` passes `xp`."""


def check_gradients(
    *args: Any,
    points: int = 5,
    modes: str | Sequence[str] = "all",
    backend: str | None = None,
    wrt: Any = None,
    allow_blind: bool = False,
    **kwargs: Any,
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Turn a function into a test of its derivatives, for pytest or direct calls.

        @adbench.check_gradients(np.array([0.3, 1.2]), points=5)
        def test_softplus(x):
            return jnp.sum(my_softplus(x))

    args, kwargs   the point: the first arguments of the function, and its keyword arguments
    points         number of points: this one, then others as for `adbench.check`
    modes          "all", or the names of modes, as for `adbench.check`
    backend, wrt, allow_blind   as for `adbench.assert_gradients`

    The function's other parameters become the test's: pytest fills them from `parametrize` or fixtures, and they are
    not active. The test raises WrongGradient with the table of `adbench.check`. Raises UsageError if the function does
    not take these arguments.
    """

    def decorate(f: Callable[..., Any]) -> Callable[..., None]:
        @wraps(f)
        def test(*owner: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True

            @wraps(f)
            def function(*inputs: Any, **named: Any) -> Any:
                return f(*owner, *inputs, **fixtures, **named)

            function.__signature__ = _without(f, {"self", *fixtures})  # type: ignore[attr-defined]
            options = {"points": points, "modes": modes, "backend": backend, "wrt": wrt, "allow_blind": allow_blind}
            assert_gradients(function, *args, **options, **kwargs)

        test.__signature__ = _of_the_test(f, args, kwargs)  # type: ignore[attr-defined]  # pytest reads it
        test.is_adbench_check = True  # type: ignore[attr-defined]  # for the plugin
        return test

    return decorate


def _of_the_test(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Signature:
    """The function's parameters without the given arguments."""
    parameters = list(signature(f).parameters.values())
    first = [p.name for p in parameters[:2] if p.name in FIRST]
    try:
        bound = signature(f).bind_partial(*first, *args, **kwargs).arguments
    except TypeError as error:
        raise UsageError(
            f"{f.__name__} does not take the arguments of check_gradients: {error}; change one of them"
        ) from None
    rest = [p for p in parameters if p.name not in bound and p.default is p.empty and p.kind not in VARIADIC]
    owner = [p for p in parameters[:1] if p.name == "self"]
    return Signature([*owner, *(p.replace(kind=Parameter.KEYWORD_ONLY) for p in rest)])


VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def _without(f: Callable[..., Any], names: set[str]) -> Signature:
    whole = signature(f)
    return whole.replace(parameters=[p for p in whole.parameters.values() if p.name not in names])
