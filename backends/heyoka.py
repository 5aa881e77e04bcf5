"""Symbolic numbers, differentiated in reverse by heyoka and compiled by LLVM."""

from collections.abc import Callable, Sequence
from typing import Any

import heyoka
import numpy as np

from adbench import Namespace, Operator, Unsupported

from ._symbols import Kind, Traced, derivatives, recorded

REQUIRES = ("heyoka",)
LICENCE = "MPL-2.0"

KNOWN: dict[str, str] = {}

MOST_NUMBERS = 8_000  # in a program: LLVM's time grows faster than their count


class Count:
    """Of the numbers made while tracing."""

    made = 0

    def check(self, number: Any) -> None:
        self.made += 1
        self.refuse(4 * self.made)

    def refuse(self, numbers: int) -> None:
        if numbers > MOST_NUMBERS:
            raise Unsupported(f"a program of more than {MOST_NUMBERS:,} scalar operations takes LLVM minutes")


COUNT = Count()


def of_expressions(function: Callable[..., Any]) -> Callable[..., Any]:
    """heyoka's functions take an expression first, where a case may have a number."""
    return lambda x, *more: function(expression(x), *more)


def expression(x: Any) -> Any:
    return x if isinstance(x, heyoka.expression) else heyoka.expression(float(x))


def choose(condition: Any, x: Any, y: Any) -> Any:
    return heyoka.select(expression(condition), expression(x), expression(y))


SAME = "sin cos tan sinh cosh tanh exp expm1 log log1p sqrt"
OTHER = {
    **{"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2"},
    **{"arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh"},
    **{"greater": "gt", "greater_equal": "gte", "less": "lt", "less_equal": "lte", "equal": "eq", "not_equal": "neq"},
}
RULES = {
    **{name: of_expressions(getattr(heyoka, name)) for name in SAME.split()},
    **{name: of_expressions(getattr(heyoka, its)) for name, its in OTHER.items()},
    "power": of_expressions(lambda x, y: x**y),
    "sum": lambda numbers: heyoka.sum([expression(number) for number in numbers]),
    "where": choose,
    "maximum": lambda x, y: choose(heyoka.gt(expression(x), y), x, y),
    "minimum": lambda x, y: choose(heyoka.lt(expression(x), y), x, y),
    "absolute": lambda x: choose(heyoka.lt(expression(x), 0.0), -x, x),
}
KIND = Kind("heyoka", RULES, COUNT.check)

xp = Namespace(np)


def new(n: int) -> list[Any]:
    names = [f"x{k}" for k in range(n)]
    return list(heyoka.make_vars(*names)) if n > 1 else [heyoka.make_vars(name) for name in names]


def gradient(value: Any, x: Sequence[Any]) -> list[Any]:
    """∂value/∂x, in reverse."""
    return list(heyoka.diff_tensors([expression(value)], list(x)).gradient) if x else []


def derive(operator: Operator, of: Traced) -> list[Any]:
    """A gradient of one value takes about four times its operations; a Hessian as many of these as there are inputs."""
    COUNT.refuse(4 * COUNT.made * {"hvp": 3, "hessian": len(of.active)}.get(operator, len(of.values)))
    return derivatives(gradient, operator, of)


def compiled(symbols: list[Any], expressions: list[Any]) -> Callable[[Any], Any]:
    if not expressions:
        return lambda numbers: np.zeros(0)
    function: Callable[[Any], Any] = heyoka.cfunc([expression(e) for e in expressions], symbols)
    return function


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    COUNT.made = 0
    return recorded(operator, f, args, wrt, KIND, new, derive, compiled)
