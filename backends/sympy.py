"""SymPy: differentiate formulas and write them out as one Python function of floats."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy
from sympy.codegen import cfunctions, numpy_nodes

from adbench import Operator, Unsupported
from adbench.vocabulary import of_numpy

from .support.symbols import Kind, Traced, derivatives, namespace, recorded

REQUIRES = ("sympy",)
LICENCE = "BSD-3-Clause"

# sympy traverses expressions as trees and visits shared parts repeatedly: a loop doubles the tree in each iteration.
MOST_SYMBOLS = 1_000
MOST_NODES = 200
MOST_COMPARED = 8
MOST_WORK = 2_000  # nodes times active inputs


@functools.cache
def nodes(expression: Any) -> int:
    """The size of an expression written out."""
    return 1 + sum(map(nodes, expression.args))


def check(number: Any) -> None:
    if isinstance(number, sympy.Basic) and nodes(number) > MOST_NODES:
        raise Unsupported(f"a formula of more than {MOST_NODES:,} nodes takes sympy too long; use a smaller size")


def logarithm_of_sum(x: float, y: float) -> float:
    return float(np.logaddexp(x, y))


SAME = "sin cos tan sinh cosh tanh exp log sqrt floor acos acosh asin asinh atan atan2 atanh"
OTHER = {
    "equal": "Eq",
    "greater": "Gt",
    "greater_equal": "Ge",
    "less": "Lt",
    "less_equal": "Le",
    "not_equal": "Ne",
    "power": "Pow",
}


def choose(condition: Any, x: Any, y: Any) -> Any:
    truth = sympy.sympify(condition)
    if isinstance(truth, sympy.Expr):  # a number is true unless it is 0
        truth = sympy.Ne(truth, 0)
    return sympy.Piecewise((x, truth), (y, True))


def extremum(which: Any, x: Any, y: Any) -> Any:
    """Max or Min. sympy tries to prove which formula is greater, which takes seconds for long ones."""
    if nodes(sympy.sympify(x)) + nodes(sympy.sympify(y)) > MOST_COMPARED:
        raise Unsupported(f"max or min of formulas with more than {MOST_COMPARED} nodes takes sympy too long")
    return which(x, y)


RULES = {
    **{name: getattr(sympy, its) for name, its in {**of_numpy(SAME.split()), **OTHER}.items()},
    **{name: getattr(cfunctions, name) for name in ("expm1", "log1p", "log2", "log10", "hypot")},
    "logaddexp": numpy_nodes.logaddexp,
    "absolute": lambda x: choose(x < 0, -x, x),  # Abs and its derivatives are complex
    "sign": lambda x: choose(x < 0, -1.0, choose(x > 0, 1.0, 0.0)),
    "where": choose,
    "remainder": lambda x, y: sympy.Mod(x, y),
    "sum": lambda numbers: sympy.Add(*numbers),
    "maximum": lambda x, y: extremum(sympy.Max, x, y),
    "minimum": lambda x, y: extremum(sympy.Min, x, y),
}
KIND = Kind("sympy", RULES, check)


def new(n: int) -> list[Any]:
    if n > MOST_SYMBOLS:
        raise Unsupported(f"{n:,} inputs, more than {MOST_SYMBOLS:,}, take sympy too long; use a smaller size")
    return list(sympy.symbols(f"x:{n}", real=True))


def gradient(value: Any, x: Sequence[Any]) -> list[Any]:
    return [sympy.diff(value, symbol) for symbol in x]


def fresh(n: int) -> list[Any]:
    return [sympy.Dummy("y", real=True) for _ in range(n)]


def replaced(expressions: list[Any], symbols: list[Any], by: list[Any]) -> list[Any]:
    return [expression.subs(dict(zip(symbols, by, strict=True))) for expression in expressions]


xp = namespace(KIND, fresh, gradient, replaced)
NESTED = "sympy differentiates formulas, so it has no forward or reverse mode to compose"


def derive(operator: Operator, of: Traced) -> list[Any]:
    second = len(of.active) if operator in ("hvp", "hessian") else 1
    work = sum(map(nodes, map(sympy.sympify, of.values))) * len(of.active) * second
    if operator != "value" and work > MOST_WORK:
        raise Unsupported(f"sympy would differentiate {work:,} nodes, more than {MOST_WORK:,}; use a smaller size")
    found = derivatives(gradient, operator, of)
    for expression in map(sympy.sympify, found):
        for left in expression.atoms(sympy.Derivative, sympy.DiracDelta, sympy.Subs, type(sympy.I)):
            raise Unsupported(f"sympy's formula contains {type(left).__name__}, which has no real value")
    return found


def compiled(symbols: list[Any], expressions: list[Any]) -> Callable[[Any], Any]:
    """One function of a list of Python's floats that computes common subexpressions once."""
    modules = [{"logaddexp": logarithm_of_sum}, "math"]
    function = sympy.lambdify([symbols], expressions, modules=modules, cse=True)
    return lambda numbers: function(numbers.tolist())


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return recorded(operator, f, args, wrt, KIND, new, derive, compiled)
