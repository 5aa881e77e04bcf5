"""numpy arrays of symbolic numbers, for scalar libraries: trace once, call with numbers.

numpy applies operators to objects entry by entry. A `Kind` adds the library's functions, and comparisons whose result
is a symbol. Arrays without axes stay arrays, so numbers and arrays behave alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adbench import Namespace, Operator, Unsupported, phase
from adbench.model.backend import WITH_VECTOR

from .flat import Leaves, result

OPERATORS = frozenset({"add", "subtract", "multiply", "divide", "negative", "matmul", "square"})
"""Functions that numpy builds from Python's operators."""

ORDERING = frozenset({"sort", "argsort", "argmax", "argmin", "median", "quantile", "unique", "searchsorted"})


@dataclass(frozen=True)
class Kind:
    """The symbolic numbers of a library.

    functions    numpy's name -> the library's scalar function; also `where`, and `sum` of a list
    check        called with each new number; raises Unsupported if it grows too large
    """

    library: str
    functions: Mapping[str, Callable[..., Any]]
    check: Callable[[Any], None] = lambda number: None
    ufuncs: dict[str, np.ufunc] = field(default_factory=dict)

    def ufunc(self, name: str, arguments: int) -> np.ufunc:
        """The library's function on arrays. Raises Unsupported if it is missing."""
        if name not in self.functions:
            raise Unsupported(f"{self.library} has no {name}")
        return self.ufuncs.setdefault(name, np.frompyfunc(self.functions[name], arguments, 1))

    def array(self, entries: Any) -> Symbols:
        """Wrap an array of objects, or one number."""
        if not isinstance(entries, np.ndarray):
            number = np.empty((), dtype=object)
            number[()] = entries
            entries = number
        found: Symbols = entries.view(Symbols)
        found.kind = self
        return found


class Symbols(np.ndarray[Any, Any]):
    """An array of a library's numbers."""

    kind: Kind

    def __array_finalize__(self, of: Any) -> None:
        """Keep the kind in views, slices and copies."""
        self.kind = getattr(of, "kind", None)  # type: ignore[assignment]  # `Kind.array` sets it

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply a numpy function with the library's function or operators."""
        function, kind = ufunc, self.kind
        if any(map(np.iscomplexobj, inputs)):
            raise Unsupported(f"{kind.library} has no complex numbers")
        if out := options.pop("out", None):  # for example x += y
            out[0].view(np.ndarray)[...] = getattr(function, method)(*inputs, **options).view(np.ndarray)
            return out[0]
        name = function.__name__
        if name not in OPERATORS or name in kind.functions:
            function = kind.ufunc(name, function.nin)
        plain = [np.asarray(x.view(np.ndarray) if isinstance(x, Symbols) else x, dtype=object) for x in inputs]
        if (name, method) == ("add", "reduce") and "sum" in kind.functions:
            return kind.array(_summed(kind.functions["sum"], plain[0], options.get("axis"), options.get("keepdims")))
        found = np.asarray(getattr(function, method)(*plain, **options), dtype=object)
        for number in found.ravel():
            kind.check(number)
        return kind.array(found)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """Apply a function that numpy writes in Python."""
        name, module = function.__name__, function.__module__
        if name == "where":
            plain = [np.asarray(x.view(np.ndarray) if isinstance(x, Symbols) else x, dtype=object) for x in args]
            return self.kind.array(np.asarray(self.kind.ufunc("where", 3)(*plain), dtype=object))
        if module.startswith(("numpy.linalg", "numpy.fft")) or name in ORDERING:
            raise Unsupported(f"{self.kind.library} has no {name}")
        found = super().__array_function__(function, types, args, options)
        return self.kind.array(found) if isinstance(found, np.ndarray) and found.dtype == object else found

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return found if isinstance(found, Symbols) else self.kind.array(found)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __bool__(self) -> bool:
        raise Unsupported(f"{self.kind.library} traces once for all data, but a Python loop or branch depends on data")

    __float__ = __int__ = __index__ = __bool__


def _summed(total: Callable[[list[Any]], Any], x: Any, axis: Any, keepdims: bool | None) -> Any:
    """np.sum from a function that sums a list."""
    axes = tuple(range(x.ndim)) if axis is None else tuple(np.arange(x.ndim)[np.ravel(axis)])
    rest = tuple(k for k in range(x.ndim) if k not in axes)
    rows = x.transpose(*rest, *axes).reshape(int(np.prod([x.shape[k] for k in rest], dtype=int)), -1)
    found = np.empty(len(rows), dtype=object)
    found[:] = [total(row.tolist()) for row in rows]
    return found.reshape(
        [1 if k in axes else x.shape[k] for k in range(x.ndim)] if keepdims else [x.shape[k] for k in rest]
    )


@dataclass(frozen=True)
class Traced:
    """A traced function: the symbols of all arguments, of active inputs and of the vector, and the values."""

    every: list[Any]
    active: list[Any]
    vector: list[Any]
    values: list[Any]


def recorded(
    operator: Operator,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: tuple[int, ...],
    kind: Kind,
    new: Callable[[int], list[Any]],
    derive: Callable[[Operator, Traced], Any],
    compiled: Callable[[list[Any], list[Any]], Callable[[Any], Any]],
) -> Callable[..., Any]:
    """`prepare` for a library of symbolic numbers.

    new        n -> n symbols
    derive     the operator's result as an array of expressions
    compiled   compiled(symbols, expressions) -> function(numbers) -> numbers
    """
    count = len(args) - (operator in WITH_VECTOR)
    given, x = Leaves(args), Leaves(tuple(args[i] for i in wrt))
    with phase("trace"):
        symbols = new(given.size)
        inputs = given.nested(symbols, kind.array)
        value = f(*inputs[:count])
        shape = np.shape(value)
        traced = Traced(
            symbols,
            Leaves(tuple(inputs[i] for i in wrt)).entries(),
            Leaves(inputs[count:]).entries(),
            list(np.ravel(np.asarray(value, dtype=object))),
        )
        expressions = np.asarray(derive(operator, traced), dtype=object)
    with phase("compile"):
        function = compiled(symbols, expressions.ravel().tolist())

    def call(*args: Any) -> Any:
        numbers = np.asarray(function(given.flat(args)), dtype=np.float64)
        if operator == "value_and_gradient":
            return result(operator, (numbers[0], numbers[1:]), x, shape)
        return result(operator, numbers, x, shape)

    return call


def derivatives(gradient: Callable[[Any, Sequence[Any]], list[Any]], operator: Operator, of: Traced) -> list[Any]:
    """The operator's result as a flat list of expressions; `gradient` differentiates one expression in all symbols."""
    x, v = of.active, of.vector

    def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
        return sum((p * q for p, q in zip(a, b, strict=True)), 0.0)

    if operator == "value":
        return of.values
    rows = [gradient(value, x) for value in of.values]
    if operator == "jvp":
        return [dot(row, v) for row in rows]
    if operator == "vjp":
        return [dot(column, v) for column in zip(*rows, strict=True)]
    if operator == "hvp":
        return gradient(dot(rows[0], v), x)
    if operator == "hessian":
        return [entry for slope in rows[0] for entry in gradient(slope, x)]
    return [*(of.values if operator == "value_and_gradient" else ()), *(entry for row in rows for entry in row)]


def namespace(
    kind: Kind,
    fresh: Callable[[int], list[Any]],
    gradient: Callable[[Any, Sequence[Any]], list[Any]],
    replaced: Callable[[list[Any], list[Any], list[Any]], list[Any]],
) -> Namespace:
    """numpy's functions on the library's numbers, and derivatives inside a function.

    fresh      n -> n new symbols
    gradient   differentiates one expression in all symbols
    replaced   replaced(expressions, symbols, by) -> the expressions with each symbol replaced
    """

    def derivative(g: Callable[[Any], Any], x: Any) -> Any:
        """∇g(x) of a scalar function g: evaluate g on new symbols, differentiate, then substitute x."""
        at = np.asarray(x, dtype=object)
        entries, symbols = at.ravel().tolist(), fresh(at.size)
        inner, slopes = np.empty(at.size, dtype=object), np.empty(at.size, dtype=object)
        inner[:] = symbols
        value = np.asarray(g(kind.array(inner.reshape(at.shape))), dtype=object).item()
        slopes[:] = replaced(gradient(value, symbols), symbols, entries)
        return kind.array(slopes.reshape(at.shape))

    def stop_gradient(_: Any) -> Any:
        raise Unsupported(f"{kind.library} has no stop_gradient")

    return Namespace(np, derivative=derivative, stop_gradient=stop_gradient)
