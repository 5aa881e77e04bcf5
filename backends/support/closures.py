"""Reverse mode by closures: every scalar operation pushes a function on a stack, and the sweep calls them.

Arrays hold single numbers. This minimal engine shows how much a flat tape saves.

Carpenter (2018), "Lambda-based closures for automatic differentiation".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adbench import Namespace, Operator, Unsupported, on_active
from adbench.model import tree

MOST_NUMBERS = 50_000

Back = Callable[[list[float], float], None]


def _elementary(function: Callable[[float], float], slope: Callable[[float, float], float]) -> Callable[[Any], Any]:
    """Make a method for y = function(x) with the derivative slope(x, y)."""

    def method(self: Any) -> Any:
        y = function(self.value)
        return self._of_one(y, slope(self.value, y))

    return method


class ClosureNumber:
    """A value and the stack position of the function that propagates its adjoint to the operands."""

    __slots__ = ("place", "stack", "value")

    def __init__(self, value: float, stack: list[Back | None], back: Back | None = None) -> None:
        self.value, self.stack, self.place = value, stack, len(stack)
        stack.append(back)

    def _of_one(self, value: float, slope: float) -> ClosureNumber:
        i = self.place

        def back(adjoints: list[float], g: float) -> None:
            adjoints[i] += g * slope

        return ClosureNumber(value, self.stack, back)

    def _of_two(self, other: ClosureNumber, value: float, by_self: float, by_other: float) -> ClosureNumber:
        i, j = self.place, other.place

        def back(adjoints: list[float], g: float) -> None:
            adjoints[i] += g * by_self
            adjoints[j] += g * by_other

        return ClosureNumber(value, self.stack, back)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, ClosureNumber):
            return self._of_two(other, self.value + other.value, 1.0, 1.0)
        return self._of_one(self.value + other, 1.0) if _plain(other) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, ClosureNumber):
            return self._of_two(other, self.value - other.value, 1.0, -1.0)
        return self._of_one(self.value - other, 1.0) if _plain(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, ClosureNumber):
            return self._of_two(other, self.value * other.value, other.value, self.value)
        return self._of_one(self.value * other, float(other)) if _plain(other) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, ClosureNumber):
            quotient = self.value / other.value
            return self._of_two(other, quotient, 1 / other.value, -quotient / other.value)
        return self._of_one(self.value / other, 1 / other) if _plain(other) else NotImplemented

    def __pow__(self, other: Any) -> Any:
        x = self.value
        if isinstance(other, ClosureNumber):
            power = x**other.value
            return self._of_two(other, power, other.value * x ** (other.value - 1), power * math.log(x))
        return self._of_one(x**other, other * x ** (other - 1) if other else 0.0) if _plain(other) else NotImplemented

    __radd__ = __add__

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __rsub__(self, other: Any) -> Any:
        return self._of_one(other - self.value, -1.0) if _plain(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return self._of_one(other / self.value, -other / self.value**2) if _plain(other) else NotImplemented

    def __rpow__(self, other: Any) -> Any:
        power = other**self.value
        return self._of_one(power, power * math.log(other)) if _plain(other) else NotImplemented

    def __neg__(self) -> ClosureNumber:
        return self._of_one(-self.value, -1.0)

    def __abs__(self) -> ClosureNumber:
        return self._of_one(abs(self.value), math.copysign(1.0, self.value) if self.value else 0.0)

    # numpy calls these for each entry of an array of objects.
    exp = _elementary(math.exp, lambda x, y: y)
    log = _elementary(math.log, lambda x, y: 1 / x)
    log1p = _elementary(math.log1p, lambda x, y: 1 / (1 + x))
    sqrt = _elementary(math.sqrt, lambda x, y: 0.5 / y)
    sin = _elementary(math.sin, lambda x, y: math.cos(x))
    cos = _elementary(math.cos, lambda x, y: -math.sin(x))
    tanh = _elementary(math.tanh, lambda x, y: 1 - y * y)

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < _value(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.value <= _value(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > _value(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.value >= _value(other))


def _plain(value: Any) -> bool:
    return isinstance(value, (float, int, np.generic))


def _value(other: Any) -> Any:
    return other.value if isinstance(other, ClosureNumber) else other


xp = Namespace(np)  # arrays of objects already have arithmetic, sums, products and indexing


def value_and_gradient(g: Callable[..., Any], x: Any) -> tuple[float, Any]:
    stack: list[Back | None] = []
    places: list[Any] = []

    def introduced(leaf: Any) -> Any:
        if np.ndim(leaf) == 0:
            made: Any = ClosureNumber(float(leaf), stack)
            places.append(made.place)
            return made
        numbers: Any = np.empty(np.shape(leaf), dtype=object)
        where = np.empty(np.shape(leaf), dtype=np.intp)
        for index in np.ndindex(numbers.shape):
            numbers[index] = ClosureNumber(float(leaf[index]), stack)
            where[index] = numbers[index].place
        places.append(where)
        return numbers

    result = g(tree.map_leaves(introduced, x))
    if isinstance(result, np.ndarray) and result.ndim == 0:
        result = result.item()
    if isinstance(result, np.ndarray):
        raise Unsupported("tape_closures needs a scalar function; use tape")
    adjoints = [0.0] * len(stack)
    if isinstance(result, ClosureNumber):
        adjoints[result.place] = 1.0
    for k in range(len(stack) - 1, -1, -1):
        back = stack[k]
        if back is not None:
            back(adjoints, adjoints[k])
    every, order = np.array(adjoints), iter(places)
    return float(_value(result)), tree.map_leaves(lambda _: _float_or_array(every[next(order)]), x)


def _float_or_array(found: Any) -> Any:
    return found if np.ndim(found) else float(found)


NESTED = "a reverse sweep over Python's floats returns floats, which cannot be differentiated again"

OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": lambda g, x: value_and_gradient(g, x)[1],
    "value_and_gradient": value_and_gradient,
}


def refusing(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a call to turn numpy's errors about arrays of objects into Unsupported."""

    def honest(*args: Any) -> Any:
        try:
            return call(*args)
        except (TypeError, AttributeError) as error:
            raise Unsupported(f"numpy lacks this function for objects: {error}") from error
        except (ValueError, ArithmeticError) as error:
            raise Unsupported(f"Python's math raises here instead of returning infinity: {error}") from error

    return honest


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if (numbers := sum(np.size(leaf) for leaf in tree.leaves(args) if not tree.is_static(leaf))) > MOST_NUMBERS:
        raise Unsupported(f"{numbers:,} numbers, more than {MOST_NUMBERS:,}, take minutes as Python objects; use tape")
    if operator not in OPERATIONS:
        raise Unsupported(f"tape_closures has gradients only, no {operator}; use tape")
    return refusing(on_active(OPERATIONS[operator], operator, f, wrt))
