"""Plain numpy functions on the oracle's numbers: numpy asks its arguments first, and these answer (NEP 13 and 18).

A number of the oracle becomes a `Number`, an array of them `Numbers`. Both act like a float64 number or array; numpy's
and scipy's functions of them come from the tables of this package. Conversion to a float raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from typing import Any, ClassVar, NoReturn

import numpy as np

from adbench.functions.from_numpy.array_functions import ACCUMULATIONS, BY_AXIS, REDUCTIONS
from adbench.functions.from_numpy.name_table import ELEMENTWISE, FUNCTIONS
from adbench.functions.low_precision import WIDENS
from adbench.model.errors import Unsupported
from adbench.oracle.enclosures.enclosed_namespace import Enclosures
from adbench.oracle.enclosures.recorded import ARRANGING, ORDERING, EnclosedArray
from adbench.oracle.series import ball
from adbench.oracle.series.arrays import RealArray
from adbench.oracle.series.namespace import namespace_of
from adbench.oracle.series.number import ComplexNumber, LostPrecision, Real
from adbench.vocabulary import CANONICAL, words

FLOAT64 = np.dtype(np.float64)
IGNORED = ("casting", "order", "subok", "copy", "like", "device", "overwrite_a", "overwrite_b", "check_finite")
"""Options without influence on exact numbers."""

LESS = frozenset("efF")
"""Characters of numpy's types with less than double precision."""

NARROW = (np.float32, np.float16, np.complex64, "float32", "float16", "complex64", "f4", "f2", "single", "half")
"""The ways a program may request one of them."""

OF_FLOATS = ("numpy.average", "numpy.gradient")
"""Functions whose own code asks for the type of its arguments; that of others makes arrays of the same type."""

METHODS = words(
    "all any argmax argmin argsort astype clip copy cumprod cumsum dot fill flatten item max mean min nonzero prod "
    "ptp ravel repeat reshape round squeeze std sum take tolist trace transpose var view"
)
"""Methods that numpy's numbers also have."""


class Calls:
    """numpy's functions for one type of numbers, with matching `number`, `array` and namespace `xp`."""

    def __init__(self, real: type[Real]) -> None:
        made: Any = type(f"Number{real.__name__}", (Number, real), {"__slots__": (), "calls": self})
        self.number: type[Real] = made
        self.array: Any = type(f"Numbers{real.__name__}", (Numbers,), {"calls": self})
        self.xp = namespace_of(self.number)

    # Numbers and arrays, in and out ----------------------------------------------------------------------------

    def entered(self, leaf: Any) -> Any:
        """An argument of the text for the function. Arrays are new, because the function may write into them."""
        if isinstance(leaf, Real):
            return self.number(leaf.ball)
        if isinstance(leaf, np.ndarray) and leaf.dtype == object:
            return self.dressed(np.frompyfunc(self.number.of, 1, 1)(np.asarray(leaf)))
        return leaf.copy() if isinstance(leaf, np.ndarray) else leaf

    def dressed(self, found: Any) -> Any:
        """A result in numpy's form: arrays of numbers as `Numbers`, zero-dimensional ones as their entry."""
        if isinstance(found, np.ndarray):
            if found.dtype != object:
                return found.view(np.ndarray) if type(found) is not np.ndarray else found
            if not found.ndim:
                return self.dressed(found[()])
            return found.view(self.array)
        if isinstance(found, tuple | list):
            parts = [self.dressed(part) for part in found]
            return type(found)(*parts) if hasattr(found, "_fields") else type(found)(parts)
        return found

    def arrays(self, value: Any) -> Any:
        """Numbers as arrays of shape (), also in lists, for numpy's own code."""
        if isinstance(value, Number):
            array = np.empty((), dtype=object)
            array[()] = value
            return array.view(self.array)
        return type(value)(map(self.arrays, value)) if type(value) in (list, tuple) else value

    def complete(self, found: Any) -> Any:
        """The same, with floats in an array converted to numbers, because 1 / 0.0 is an error in Python."""
        if isinstance(found, np.ndarray) and found.dtype == object:
            known = all(isinstance(element, Real | ComplexNumber) for element in found.flat)
            return found if known else self.xp.reals(found)
        return [self.complete(part) for part in found] if type(found) is list else found

    # numpy's protocols -----------------------------------------------------------------------------------------

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
        """``ufunc.method(*inputs, **options)``. Raises Unsupported for a function that the oracle lacks."""
        self.xp.check_time()
        out = _only(options.pop("out", None))
        chosen = options.pop("where", True) if method != "reduce" else True
        options = _cleaned(ufunc.__name__, options)
        _refuse_single(ufunc.__name__, inputs)
        found = self._of_ufunc(ufunc, method, bare(self.arrays(list(inputs))), options)
        if chosen is not True:
            if out is None:
                raise Unsupported(f"numpy.{ufunc.__name__} with where= needs out=: because other entries have no value")
            found = self.xp.where(chosen, found, bare(out))
        return self.dressed(found) if out is None else self._stored(found, out)

    def _of_ufunc(self, ufunc: Any, method: str, inputs: list[Any], options: dict[str, Any]) -> Any:
        name, xp = ufunc.__name__, self.xp
        if method == "__call__":
            return self._elementwise(ufunc, inputs, options)
        if method in ("reduce", "accumulate"):
            table = REDUCTIONS if method == "reduce" else ACCUMULATIONS
            if name not in table:
                raise Unsupported(f"numpy.{name}.{method} has no translation to the oracle's numbers")
            return self._handled(f"numpy.{name}.{method}", table[name], inputs, {"axis": 0, **options})
        if method == "outer":
            a, b = (np.asarray(xp.reals(part)) for part in inputs)
            return self._elementwise(ufunc, [a.reshape(a.shape + (1,) * b.ndim), b], options)
        if np.asarray(inputs[0]).dtype != object:
            raise LostPrecision("the function writes an active number into a float64 array")
        return getattr(ufunc, method)(*inputs, **options)

    def _elementwise(self, ufunc: Any, inputs: list[Any], options: dict[str, Any]) -> Any:
        name = ufunc.__name__
        if name in ELEMENTWISE:
            return self._handled(name, ELEMENTWISE[name], inputs, options)
        if ufunc is np.power or set("".join(ufunc.types)) <= set("O->"):  # the operator; or made by frompyfunc
            return ufunc(*inputs, **options)
        if (function := getattr(self.xp, name, None)) is not None:
            return function(*inputs, **options)
        module = "numpy" if getattr(np, name, None) is ufunc else "scipy.special"
        raise Unsupported(f"{module}.{name} has no translation to the oracle's numbers")

    def function(self, path: str, function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """``function(*args, **options)`` by the function's full name. Raises Unsupported for an unknown function."""
        self.xp.check_time()
        if path in BY_AXIS and len(args) > 2:
            options |= zip(list(signature(function).parameters)[2:], args[2:], strict=False)
            args = args[:2]
        out = _only(options.pop("out", None))
        args = tuple(map(partial(_double_type, path), args))
        if path in FUNCTIONS:
            options = _cleaned(path, options)
            args, options = bare(tuple(args)), {name: bare(value) for name, value in options.items()}
            found = self._handled(path, FUNCTIONS[path], args, options)
        elif path.startswith("numpy.") and hasattr(function, "_implementation") and path.count(".") == 1:
            as_arrays = self.arrays if path in OF_FLOATS else lambda value: bare(self.arrays(value))
            options = {name: as_arrays(value) for name, value in options.items()}
            found = self.complete(function._implementation(*as_arrays(args), **options))
        else:
            raise Unsupported(f"{path} has no translation to the oracle's numbers")
        return self.dressed(found) if out is None else self._stored(found, out)

    def _handled(self, name: str, handler: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> Any:
        try:
            return handler(self.xp, *args, **options)
        except TypeError as error:
            if "argument" in str(error) and handler.__name__ in str(error):
                told = str(error).partition(") ")[2]
                raise Unsupported(f"{name} {told or error}: it has no translation with these options") from error
            raise

    def _stored(self, found: Any, out: Any) -> Any:
        """The result written into an array of the program."""
        if not isinstance(out, Numbers) and out.dtype != object and np.asarray(found).dtype == object:
            raise LostPrecision("the function writes an active number into a float64 array")
        out[...] = found
        return out


_MADE: dict[type[Real], Calls] = {}


def calls_of(real: type[Real]) -> Calls:
    """The `Calls` of a number type."""
    if real not in _MADE:
        _MADE[real] = Calls(real)
    return _MADE[real]


class EnclosedCalls(Calls):
    """numpy's functions for arrays of enclosures."""

    def __init__(self, xp: Enclosures) -> None:
        self.array = type("EnclosedNumbers", (Answering, EnclosedArray), {"calls": self})
        self.xp: Any = Enclosures(xp.arithmetic, self.array, xp.shifts)

    def entered(self, leaf: Any) -> Any:
        """An argument of the text for the function."""
        if isinstance(leaf, EnclosedArray):
            return self.array(leaf.value, [(leaf, lambda g: g)])
        return super().entered(leaf)

    def arrays(self, value: Any) -> Any:
        """As they are."""
        return value

    dressed = complete = arrays  # type: ignore[assignment]  # other names of the argument

    def function(self, path: str, function: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """``function(*args, **options)`` by the table, or by what enclosures know."""
        name = path.removeprefix("numpy.")
        if name in ARRANGING or name in ORDERING:
            return EnclosedArray.__array_function__(args[0], function, (), args, options)
        if path not in FUNCTIONS and hasattr(Enclosures, name):
            return getattr(self.xp, name)(*args, **options)
        return super().function(path, function, args, options)


def _only(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) and len(out) == 1 else out


def bare(value: Any) -> Any:
    """Arrays of numbers as plain arrays of objects, also in lists."""
    if isinstance(value, Numbers):
        return value.view(np.ndarray)
    return type(value)(map(bare, value)) if type(value) in (list, tuple) else value


def _cleaned(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options that matter. Raises Unsupported for types of lower precision."""
    kept = {}
    for key, value in options.items():
        if key in IGNORED or value is np._NoValue or (key in ("dtype", "where", "initial") and value is None):
            continue
        if key == "where" and value is True:
            continue
        if key == "dtype" and is_double(name, value):
            continue
        kept[key] = value
    return kept


def _refuse_single(name: str, inputs: Sequence[Any]) -> None:
    """Raise Unsupported for a number and a float32, because numpy computes in float32 with Python numbers."""
    if not WIDENS.get() and any(isinstance(part, Number) for part in inputs):
        for part in inputs:
            if isinstance(part, np.ndarray | np.generic) and part.dtype.char in LESS:
                raise Unsupported(f"the function computes in {part.dtype} inside: {name} of {part.dtype} and a number")


def _double_type(name: str, arg: Any) -> Any:
    """An argument; float64 for a type of lower precision. Raises Unsupported if such types are refused."""
    if not (isinstance(arg, type | np.dtype | str) and arg in NARROW):
        return arg
    is_double(name, arg)
    return np.float64


def is_double(name: str, dtype: Any) -> bool:
    """Whether a type is float64; False for integers and booleans. Raises Unsupported for others."""
    kind = np.dtype(dtype)
    if kind.char in LESS and WIDENS.get():
        return bool(kind.kind == "f")
    if kind.char in LESS:
        raise Unsupported(f"the function computes in {kind} inside: {name} with dtype={kind}")
    return kind.kind in "fO"


class Answering:
    """A mixin: numpy's functions of it are those of its `calls`."""

    __slots__ = ()
    calls: ClassVar[Calls]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return self.calls.ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, _types: Any, args: Any, options: Any) -> Any:
        return self.calls.function(f"{function.__module__}.{function.__name__}", function, args, dict(options))


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: Answering, *args: Any, **options: Any) -> Any:
        return self.calls.function(f"numpy.{name}", function, (self, *args), options)

    return method


for _name in words("all any clip cumprod cumsum dot max mean min prod round std sum var"):
    setattr(Answering, _name, _method(_name))


class Number(Answering):
    """A mixin for a type of `Real`, with the protocols of numpy's float64."""

    __slots__ = ()
    ball: Any
    dtype: ClassVar[Any] = FLOAT64
    itemsize: ClassVar[int] = 8

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """A float for `isinstance`, so that a function with such tests takes the same branch."""
        return np.float64

    def __float__(self) -> float:
        _refuse()

    def __hash__(self) -> int:
        """Refused, because a cached value of one evaluation must not enter another one."""
        raise TypeError("an active number cannot be a key of a dict or a cache")

    def __round__(self, digits: int | None = None) -> Any:
        found = self.calls.xp.round(self)
        if digits is None:
            return int(found)
        return self.calls.function("numpy.round", np.round, (self, digits), {})

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __format__(self, spec: str) -> str:
        return format(self._shown(), spec)

    def __repr__(self) -> str:
        return repr(self._shown())

    __str__ = __repr__

    def _shown(self) -> float:
        """For a message or a print."""
        return ball.nearest(self.ball)


def _of_array(name: str) -> Callable[..., Any]:
    """A method of numpy's arrays as a method of a number."""

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return getattr(self.calls.arrays(self), name)(*args, **options)

    return method


def _of_number(name: str) -> Callable[..., Any]:
    """A function of a number as a method, which numpy calls on the elements of object arrays."""
    return lambda self, *others: self.calls.ufunc(getattr(np, name), "__call__", (self, *others), {})


for _name in METHODS:
    setattr(Number, _name, _of_array(_name))
for _name in CANONICAL:  # numpy calls these on the elements of an array of objects
    if isinstance(getattr(np, _name, None), np.ufunc) and not hasattr(Real, _name):
        setattr(Number, _name, _of_number(_name))


def _refuse() -> NoReturn:
    raise LostPrecision("the function converts an active number to a float: float(), math, or a float64 array")


class Numbers(Answering, RealArray):
    """An array of `Number`s that looks like a float64 array to the program."""

    def __array_finalize__(self, source: Any) -> None:
        """No attributes to copy."""

    def __matmul__(self, other: Any) -> Any:
        return self.calls.ufunc(np.matmul, "__call__", (self, other), {})

    def __rmatmul__(self, other: Any) -> Any:
        return self.calls.ufunc(np.matmul, "__call__", (other, self), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        numbers = value if isinstance(value, Number) else self.calls.xp.reals(bare(value))
        super().__setitem__(index, numbers)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return found if isinstance(found, Number) or found.ndim else self.calls.dressed(found)

    @property
    def dtype(self) -> Any:
        """float64 for the program."""
        return FLOAT64

    @property  # type: ignore[misc]
    def real(self) -> Any:
        """The real parts."""
        return self.calls.dressed(self.calls.xp.real(bare(self)))

    @property  # type: ignore[misc]
    def imag(self) -> Any:
        """The imaginary parts."""
        return self.calls.dressed(self.calls.xp.imag(bare(self)))

    def astype(self, dtype: Any, *_: Any, **__: Any) -> Any:
        """Itself for float64, integers by truncation. Raises Unsupported for types of lower precision."""
        if is_double("astype", dtype):
            return self.copy()
        return self.calls.dressed(self.calls.xp.astype(bare(self), dtype))

    def copy(self, *_: Any, **__: Any) -> Any:
        """Other memory."""
        return self.calls.dressed(np.array(bare(self), dtype=object))

    def tobytes(self, *_: Any, **__: Any) -> bytes:
        """Refused, because the bytes of objects are addresses and useless as a cache key."""
        _refuse()

    def item(self, *place: Any) -> Any:
        """One entry."""
        return self.view(np.ndarray).item(*place)
