"""The operations of a function at a point, each as a function that can be checked by itself.

    operations(f, [0.3, 1.2], ["x", "y"], active=[0, 1])      # f(xp, x, y) in array-API names

The function runs once on plain numpy, on values that note every operation with the numbers it was given. These decide
comparisons and branches, and a loop is noted turn by turn.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import optree
from numpy.lib.mixins import NDArrayOperatorsMixin

from adbench.model import tree
from adbench.model.errors import MissingFunction
from adbench.model.namespace import Namespace, loop

PLAIN = Namespace(np)
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
METHODS = ("sum", "mean", "prod", "max", "min")
OF_UFUNCS = {
    "subtract": "sub", "multiply": "mul", "divide": "truediv", "true_divide": "truediv", "floor_divide": "floordiv",
    "remainder": "mod", "power": "pow", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    "equal": "eq", "not_equal": "ne", "absolute": "abs",
}  # fmt: skip
PLACE = re.compile(r"\{(\d+)\}")
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@"}


@dataclass(frozen=True)
class NotedOperation:
    """One operation.

    text       text(xp, *operands, *constants): the operation on any namespace
    operands   the numbers and arrays it was given that depend on the inputs
    constants  other arrays of floats, and of booleans as 1.0 and 0.0
    name       of its result: "v3"; written: the operation, as "exp(v1)"; form: without names, as "exp(·)"
    value      its result on numpy
    given      the names of the operands
    source     the operation as Python text of `xp` and these names
    """

    text: Callable[..., Any]
    operands: tuple[Any, ...]
    constants: tuple[Any, ...]
    name: str
    written: str
    form: str
    value: Any
    given: tuple[str, ...]
    source: str


class _Noted(NDArrayOperatorsMixin):
    """A value that notes the operations on it: operators, which are numpy's functions, and others of them."""

    __hash__ = None  # type: ignore[assignment]  # it compares by value

    def __init__(self, value: Any, name: str, notes: list[NotedOperation]) -> None:
        self._value, self._name, self._notes = value, name, notes

    def __getattr__(self, name: str) -> Any:
        if name == "T":
            return _note(self._notes, "transpose", lambda _xp, x: x.T, [self], "{0}.T")
        if name in METHODS:
            return partial(getattr(_NotingNamespace(self._notes), name), self)
        if name in ("shape", "ndim", "size", "dtype"):
            return getattr(self._value, name)
        raise AttributeError(f"a case's values have no .{name}; use a function of xp")

    def __getitem__(self, index: Any) -> Any:
        return _note(self._notes, "getitem", lambda _xp, x: x[index], [self], f"{{0}}[{_literal(index)}]")

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        name = OF_UFUNCS.get(ufunc.__name__, ufunc.__name__)
        in_place = options == {"out": given[:1]}  # x += y, which makes another value here
        if method != "__call__" or (options and not in_place):
            return NotImplemented
        if name in COMPARISONS:
            return getattr(operator, name)(*(x._value if isinstance(x, _Noted) else x for x in given))
        if name == "negative":
            return _note(self._notes, name, lambda _xp, x: -x, given, "-{0}")
        if name in SYMBOLS:
            compute = getattr(operator, name)
            return _note(self._notes, name, lambda _xp, *x: compute(*x), given, f"{{0}} {SYMBOLS[name]} {{1}}")
        return getattr(_NotingNamespace(self._notes), name)(*given)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        path = ("linalg",) if function.__module__ == "numpy.linalg" else ()
        return getattr(_NotingNamespace(self._notes, path), function.__name__)(*args, **options)


class _NotingNamespace:
    """`xp` that notes calls with noted values."""

    def __init__(self, notes: list[NotedOperation], path: tuple[str, ...] = ()) -> None:
        self._notes, self._path = notes, path

    def __getattr__(self, name: str) -> Any:
        if name == "linalg":
            return _NotingNamespace(self._notes, (name,))
        if name == "loop":
            return loop
        if name == "derivative":
            raise MissingFunction("the function takes a derivative, whose operations are not noted")
        path = (*self._path, name)
        plain = reduce(getattr, path, PLAIN)
        if not callable(plain):
            return plain

        def called(*args: Any, **keywords: Any) -> Any:
            leaves, structure = optree.tree_flatten((args, keywords), none_is_leaf=True)  # type: ignore[arg-type, var-annotated]  # any objects

            def compute(xp: Any, *given: Any) -> Any:
                positional, named = optree.tree_unflatten(structure, given)
                return reduce(getattr, path, xp)(*positional, **named)

            places = [_Place(f"{{{k}}}") for k in range(len(leaves))]
            positional, named = optree.tree_unflatten(structure, list[Any](places))
            passed = [*map(repr, positional), *(f"{word}={value!r}" for word, value in named.items())]
            return _note(self._notes, name, compute, leaves, f"xp.{'.'.join(path)}({', '.join(passed)})")

        return called


class _Place(str):
    """A place in a source text, within any container."""

    __repr__ = str.__str__


def _literal(value: Any) -> str:
    """Python text of a constant."""
    if isinstance(value, _Noted):
        return value._name
    if isinstance(value, np.ndarray | np.generic):
        return f"numpy.array({value.tolist()!r})"
    return f"({value!r})" if isinstance(value, int | float) and value < 0 else repr(value)


def _note(
    notes: list[NotedOperation], name: str, compute: Callable[..., Any], given: Sequence[Any], source: str
) -> Any:
    """Run an operation on numpy, and note it if it has a noted operand and a real result.

    source   its text, with {0}, {1} for what is given
    """
    noted = list({id(x): x for x in given if isinstance(x, _Noted)}.values())
    fixed = list({id(x): x for x in given if isinstance(x, np.ndarray) and x.ndim and x.dtype.kind in "fb"}.values())
    every = [*noted, *fixed]
    places = [next((k for k, x in enumerate(every) if x is y), None) for y in given]

    def text(xp: Any, *numbers: Any) -> Any:
        found = (y if k is None else _as_given(y, numbers[k]) for y, k in zip(given, places, strict=True))
        return compute(xp, *found)

    constants = tuple(x.astype(np.float64) for x in fixed)
    value = text(PLAIN, *(x._value for x in noted), *constants)
    if not noted:
        return value
    symbol = SYMBOLS.get(name)

    def written(shown: Callable[[_Noted], str]) -> str:
        names = [shown(y) if isinstance(y, _Noted) else _shown(y) for y in given]
        return f" {symbol} ".join(names) if symbol else f"{name}({', '.join(names)})"

    def result(value: Any, text: Callable[..., Any], end: str = "") -> Any:
        if np.asarray(value).dtype.kind != "f":
            return value
        found = _Noted(value, f"v{len(notes) + 1}", notes)
        texts = written(lambda x: x._name) + end, written(lambda x: "·") + end
        names = tuple(x._name for x in noted)
        called = PLACE.sub(lambda match: _literal(given[int(match[1])]), source) + end
        operands = tuple(x._value for x in noted)
        notes.append(NotedOperation(text, operands, constants, found._name, *texts, value, names, called))
        return found

    if isinstance(value, tuple):
        parts = [result(part, _part(text, k), f"[{k}]") for k, part in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return result(value, text)


def _as_given(given: Any, number: Any) -> Any:
    """The number or array for an argument; a boolean array for a condition."""
    return number > 0.5 if getattr(given, "dtype", None) == np.bool_ else number


def _part(text: Callable[..., Any], k: int) -> Callable[..., Any]:
    return lambda xp, *numbers: text(xp, *numbers)[k]


def _shown(constant: Any) -> str:
    """A constant in a few characters."""
    return repr(constant) if isinstance(constant, (int, float, str, bool)) or constant is None else "…"


def operations(
    f: Callable[..., Any], args: Sequence[Any], names: Sequence[str], active: Sequence[int]
) -> list[NotedOperation]:
    """The operations of f(xp, *args) on its active arguments, in order. Raises whatever f raises on numpy here."""
    notes: list[NotedOperation] = []
    given = list(args)
    for k in active:
        leaves = iter(range(len(tree.leaves(args[k]))))
        whole = isinstance(args[k], (float, np.ndarray))

        def noted(leaf: Any, name: str = names[k], whole: bool = whole, leaves: Iterator[int] = leaves) -> Any:
            place = next(leaves)
            if not tree.is_active(leaf):
                return leaf
            return _Noted(leaf, name if whole else f"{name}.{place}", notes)

        given[k] = tree.map_leaves(noted, args[k])
    with np.errstate(all="ignore"):
        f(_NotingNamespace(notes), *given)
    return notes
