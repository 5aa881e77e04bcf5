"""Symbolic expressions, differentiated as formulas and written out as one Python function of floats."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy

from adbench import Namespace, Operator, Unsupported

from ._symbols import Kind, Traced, derivatives, recorded

REQUIRES = ("sympy",)
LICENCE = "BSD-3-Clause"

KNOWN: dict[str, str] = {}

# sympy goes through an expression as a tree, where what is used twice counts twice: a loop doubles it at each trip.
MOST_NODES = 500
MOST_WORK = 5_000  # nodes times inputs to derive by


@functools.cache
def nodes(expression: Any) -> int:
    """The size of an expression written out."""
    return 1 + sum(map(nodes, expression.args))


def check(number: Any) -> None:
    if isinstance(number, sympy.Basic) and (size := nodes(number)) > MOST_NODES:
        raise Unsupported(f"a formula of more than {MOST_NODES:,} parts, and sympy goes through each: formulas swell")


SAME = "sin cos tan sinh cosh tanh exp log sqrt floor sign"
OTHER = {
    **{"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "absolute": "Abs", "power": "Pow"},
    **{"arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "maximum": "Max", "minimum": "Min"},
    **{"greater": "Gt", "greater_equal": "Ge", "less": "Lt", "less_equal": "Le", "equal": "Eq", "not_equal": "Ne"},
}
RULES = {
    **{name: getattr(sympy, name) for name in SAME.split()},
    **{name: getattr(sympy, its) for name, its in OTHER.items()},
    "where": lambda condition, x, y: sympy.Piecewise((x, condition), (y, True)),
    "remainder": lambda x, y: sympy.Mod(x, y),
    "sum": lambda numbers: sympy.Add(*numbers),
}
KIND = Kind("sympy", RULES, check)


def derivative(g: Callable[[Any], Any], x: Any) -> Any:
    """∇g(x) of a scalar function g: new symbols go through g, and give way to x."""
    entries = np.asarray(x, dtype=object).ravel().tolist()
    symbols = [sympy.Dummy("y", real=True) for _ in entries]
    inner = np.empty(len(symbols), dtype=object)
    inner[:] = symbols
    value = np.asarray(g(KIND.array(inner.reshape(np.shape(x)))), dtype=object).item()
    slopes = [slope.subs(dict(zip(symbols, entries, strict=True))) for slope in gradient(value, symbols)]
    found = np.empty(len(slopes), dtype=object)
    found[:] = slopes
    return KIND.array(found.reshape(np.shape(x)))


xp = Namespace(np, derivative=derivative)


def new(n: int) -> list[Any]:
    return list(sympy.symbols(f"x:{n}", real=True))


def gradient(value: Any, x: Sequence[Any]) -> list[Any]:
    return [sympy.diff(value, symbol) for symbol in x]


def derive(operator: Operator, of: Traced) -> list[Any]:
    second = len(of.active) if operator in ("hvp", "hessian") else 1
    work = sum(map(nodes, map(sympy.sympify, of.values))) * len(of.active) * second
    if operator != "value" and work > MOST_WORK:
        raise Unsupported(f"formulas times inputs have {work:,} parts, and sympy goes through each: formulas swell")
    return derivatives(gradient, operator, of)


def compiled(symbols: list[Any], expressions: list[Any]) -> Callable[[Any], Any]:
    """One function of a list, what is common computed once; on Python's floats, for they are numbers."""
    function = sympy.lambdify([symbols], expressions, modules="math", cse=True)
    return lambda numbers: function(numbers.tolist())


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return recorded(operator, f, args, wrt, KIND, new, derive, compiled)
