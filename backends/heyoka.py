"""heyoka: differentiate scalar expressions in reverse and compile them with LLVM."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import heyoka
import numpy as np

from adbench import Operator, Unsupported
from adbench.vocabulary import of_numpy

from .support.symbols import Kind, Traced, derivatives, namespace, recorded

REQUIRES = ("heyoka",)
LICENCE = "MPL-2.0"

MOST_NUMBERS = 8_000  # in a program: LLVM's time grows faster than linearly


class OperationCount:
    """Count of scalar operations while tracing."""

    made = 0

    def check(self, number: Any) -> None:
        """Count one more; its gradient takes about four."""
        self.made += 1
        self.refuse(4 * self.made)

    def refuse(self, numbers: int) -> None:
        """Raise Unsupported if a program has too many."""
        if numbers > MOST_NUMBERS:
            raise Unsupported(f"more than {MOST_NUMBERS:,} scalar operations take LLVM minutes; use a smaller size")


COUNT = OperationCount()


def of_expressions(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a heyoka function, which needs an expression as its first argument; a case may pass a number."""
    return lambda x, *more: function(expression(x), *more)


def expression(x: Any) -> Any:
    return x if isinstance(x, heyoka.expression) else heyoka.expression(float(x))


def choose(condition: Any, x: Any, y: Any) -> Any:
    return heyoka.select(expression(condition), expression(x), expression(y))


def extremum(before: Callable[..., Any], x: Any, y: Any) -> Any:
    """x if before(x, y), else y; NaN if either is NaN, as in numpy."""
    x, y = expression(x), expression(y)
    return choose(before(x, y), x, choose(heyoka.eq(y, y), choose(heyoka.eq(x, x), y, x), y))


SAME = "sin cos tan sinh cosh tanh exp expm1 log log1p sqrt acos acosh asin asinh atan atan2 atanh"
OTHER = {
    "equal": "eq",
    "greater": "gt",
    "greater_equal": "gte",
    "less": "lt",
    "less_equal": "lte",
    "not_equal": "neq",
}
RULES: dict[str, Callable[..., Any]] = {
    **{name: of_expressions(getattr(heyoka, its)) for name, its in {**of_numpy(SAME.split()), **OTHER}.items()},
    "power": of_expressions(lambda x, y: x**y),
    "sum": lambda numbers: heyoka.sum([expression(number) for number in numbers]),
    "where": choose,
    "maximum": lambda x, y: extremum(heyoka.gt, x, y),
    "minimum": lambda x, y: extremum(heyoka.lt, x, y),
    "absolute": lambda x: choose(heyoka.lt(expression(x), 0.0), -x, x),
}
KIND = Kind("heyoka", RULES, COUNT.check)


def new(n: int) -> list[Any]:
    names = [f"x{k}" for k in range(n)]
    return list(heyoka.make_vars(*names)) if n > 1 else [heyoka.make_vars(name) for name in names]


def gradient(value: Any, x: Sequence[Any]) -> list[Any]:
    """∂value/∂x, in reverse."""
    return list(heyoka.diff_tensors([expression(value)], list(x)).gradient) if x else []


FRESH = count()


def fresh(n: int) -> list[Any]:
    return [heyoka.expression(f"y{next(FRESH)}") for _ in range(n)]


def replaced(expressions: list[Any], symbols: list[Any], by: list[Any]) -> list[Any]:
    return list(heyoka.subs(expressions, dict(zip(symbols, map(expression, by), strict=True))))


xp = namespace(KIND, fresh, gradient, replaced)
NESTED = "heyoka differentiates formulas, so it has no forward or reverse mode to compose"


def derive(operator: Operator, of: Traced) -> list[Any]:
    """Derive, with a limit: a gradient takes about four times the operations, a Hessian that many per input."""
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
