"""numpy arrays of a library's numbers, for scalar libraries that run Python's loops and branches at every call.

numpy applies operators to objects entry by entry. `Objects` adds the library's functions, and a number that leaves
arrays to numpy.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adbench import Namespace, Unsupported

PLAIN = (float, int, np.floating, np.integer)
REAL = {"float", "int", "bool"}
COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


class Objects:
    """A library's numbers in numpy's arrays.

    library     its name, for messages
    is_number   whether an object is one of its numbers
    lifted      lifted(float, like) -> a constant of the type of the number `like`
    functions   numpy's name -> a function of numbers, where neither an operator nor a method of that name exists
    """

    def __init__(
        self,
        library: str,
        is_number: Callable[[Any], bool],
        lifted: Callable[[float, Any], Any],
        functions: Mapping[str, Callable[..., Any]],
    ) -> None:
        self.library, self.is_number, self.lifted_number = library, is_number, lifted
        own: dict[str, Callable[..., Any]] = {"absolute": absolute, "minimum": least, "maximum": largest, **functions}
        self.power = own.get("power", python.pow)
        self.functions = {name: np.frompyfunc(own[name], getattr(np, name).nin, 1) for name in own}
        self.number = type("Number", (ObjectNumber,), {"kind": self, "__slots__": ()})
        self.array = type("Array", (ObjectArray,), {"kind": self})

    def bare(self, x: Any) -> Any:
        """Unwrap to the library's numbers, alone or in plain arrays."""
        if isinstance(x, ObjectNumber):
            return x.bare
        if isinstance(x, np.ndarray):
            return x.view(np.ndarray)
        return type(x)(map(self.bare, x)) if type(x) in (list, tuple) else x

    def dressed(self, x: Any) -> Any:
        """Wrap numpy's result."""
        if isinstance(x, np.ndarray):
            return self.dressed(x[()]) if not x.ndim else x.view(self.array) if x.dtype == object else x
        return self.number(x) if self.is_number(x) else x

    def lifted(self, x: Any, like: Any) -> Any:
        """Convert the plain numbers of a mixed array, from `where` or `concat`, to the library's."""
        if like is None:
            return x.astype(np.float64)
        lift = np.frompyfunc(
            lambda entry: entry if self.is_number(entry) else self.lifted_number(float(entry), like), 1, 1
        )
        return lift(x)

    def applied(self, function: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Apply a numpy function entry by entry with the library's operators and functions."""
        if any(map(np.iscomplexobj, inputs)):
            raise Unsupported(f"{self.library} has no complex numbers")
        plain = [np.asarray(part, dtype=object) for part in map(self.bare, inputs)]
        options = {key: self.bare(option) for key, option in options.items()}
        if function.__name__ in COMPARISONS:
            return np.asarray(getattr(function, method)(*plain, **options), dtype=bool)[()]
        run = getattr(self.functions.get(function.__name__, function), method)
        try:
            return self.dressed(run(*plain, **options))
        except (TypeError, AttributeError):
            like = next((entry for part in plain for entry in part.ravel() if self.is_number(entry)), None)
        try:
            return self.dressed(run(*(self.lifted(part, like) for part in plain), **options))
        except (TypeError, AttributeError) as error:
            others = {
                type(entry).__name__ for part in plain for entry in part.ravel() if not self.is_number(entry)
            } - REAL
            raise Unsupported(" of ".join((f"{self.library} has no {function.__name__}", *sorted(others)))) from error

    def moved(self, function: Any, args: Any, options: Any) -> Any:
        """Apply a function that numpy writes in Python."""
        try:
            found = function(*map(self.bare, args), **{key: self.bare(option) for key, option in options.items()})
        except (TypeError, AttributeError) as error:  # numpy and Python raise these for a missing operation
            reason = f"{self.library} has no {function.__name__}, and numpy has none for objects"
            raise Unsupported(reason) from error
        return self.dressed(found)

    def reduction(self, name: str) -> Callable[..., Any]:
        """numpy's min or max, by the functions on numbers."""

        def reduced(x: Any, *, axis: int | None = None, keepdims: bool = False) -> Any:
            entries = np.asarray(self.bare(x), dtype=object)
            return self.dressed(self.functions[name].reduce(entries, axis=axis, keepdims=keepdims))

        return reduced

    def namespace(self, value: Callable[[Any], float], **more: Any) -> Namespace:
        """numpy's functions on the library's numbers; value(number) is the float in it."""

        def stop_gradient(x: Any) -> Any:
            plain = np.frompyfunc(lambda entry: value(entry) if self.is_number(entry) else entry, 1, 1)
            return np.asarray(plain(self.bare(x)), dtype=np.float64)[()]

        return Namespace(
            np,
            linalg={"vector_norm": vector_norm},
            min=self.reduction("minimum"),
            max=self.reduction("maximum"),
            asarray=lambda x: self.dressed(np.asarray(self.bare(x))),
            stop_gradient=stop_gradient,
            **more,
        )


def absolute(x: Any) -> Any:
    return -x if x < 0.0 else x


def least(x: Any, y: Any) -> Any:
    """The smaller one; numpy loses a NaN in arrays of objects."""
    return x if x <= y or x != x else y


def largest(x: Any, y: Any) -> Any:
    """The larger one, or NaN."""
    return x if x >= y or x != x else y


def vector_norm(x: Any, *, axis: int | None = None, ord: float = 2) -> Any:
    return np.sum(np.abs(x) ** ord, axis=axis) ** (1 / ord) if ord != 2 else np.sqrt(np.sum(x * x, axis=axis))


class ObjectNumber:
    """One number that leaves arrays to numpy; the library's would write into an array that it multiplies."""

    __slots__ = ("bare",)
    kind: Objects

    def __init__(self, bare: Any) -> None:
        self.bare = bare

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return self.kind.applied(function, method, inputs, options)

    def __array_function__(self, function: Any, _: Any, args: Any, options: Any) -> Any:
        return self.kind.moved(function, args, options)

    shape, ndim, size = (), 0, 1

    def __neg__(self) -> Any:
        return type(self)(-self.bare)

    def __bool__(self) -> bool:
        return bool(self.bare != 0.0)


def _arithmetic(name: str, function: np.ufunc, *, compares: bool) -> None:
    """Add an operator to ObjectNumber: direct for numbers, by numpy for arrays."""
    direct = getattr(python, f"__{name}__")

    def run(self: Any, x: Any, y: Any) -> Any:
        found = (self.kind.power if name == "pow" else direct)(x, y)
        return bool(found) if compares else type(self)(found)

    def forwards(self: Any, other: Any) -> Any:
        if isinstance(other, ObjectNumber):
            return run(self, self.bare, other.bare)
        return run(self, self.bare, float(other)) if isinstance(other, PLAIN) else function(self, other)

    def backwards(self: Any, other: Any) -> Any:
        return run(self, float(other), self.bare) if isinstance(other, PLAIN) else function(other, self)

    setattr(ObjectNumber, f"__{name}__", forwards)
    setattr(ObjectNumber, f"__r{name}__", backwards)


for _name, _function in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "pow": np.power, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}.items():  # fmt: skip
    _arithmetic(_name, _function, compares=_function.__name__ in COMPARISONS)


class ObjectArray(np.ndarray[Any, Any]):
    """An array of a library's numbers that returns entries as `ObjectNumber`."""

    kind: Objects

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        return self.kind.applied(ufunc, method, inputs, options)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self.kind.moved(func, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        return self.kind.dressed(super().__getitem__(index))

    def __iter__(self) -> Any:
        return map(self.kind.dressed, super().__iter__())
