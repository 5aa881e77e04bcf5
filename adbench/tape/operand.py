"""Behaviour of every active value: Python's operators, numpy's methods, and numpy's functions.

Rules define all of it. The core leaves `Active` empty; importing this module adds all members of `Operand` to it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from adbench.tape import identities, linalg
from adbench.tape.core.rule import Active, TapeError, Value
from adbench.tape.numpy_names import METHODS, UFUNCS, call_function, call_ufunc, stand_for, stand_for_namesakes
from adbench.tape.rules import elementwise as e
from adbench.tape.rules import fourier, indexing, products, reductions, shapes
from adbench.tape.rules.predicates import compare
from adbench.tape.values import shape_of, value_of

REFLECTED = {np.add: "__radd__", np.subtract: "__rsub__", np.multiply: "__rmul__", np.divide: "__rtruediv__"}


def _reflected(rule: Callable[..., Value]) -> Callable[[Any, Any], Value]:
    return lambda self, other: rule(other, self)


def operator_of(rule: Callable[..., Value]) -> Callable[[Any, Any], Value]:
    """The operator that calls this rule."""
    return lambda self, other: rule(self, other)


def _times(self: Any, other: Any) -> Value:
    """self · other, where the square of a root is recognised as one."""
    if type(other) is type(self) and getattr(self, "origin", None) is not None:
        known = identities.product(self, other)
        return e.multiply(self, other) if known is None else known
    return e.multiply(self, other)


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Compare plain values: a branch has no derivative."""
    return lambda self, other: compare(function, self, other)


def _method(function: Callable[..., Value]) -> Callable[..., Value]:
    """A function as a method. (Rules are objects, which Python does not bind automatically.)"""

    def method(self: Any, *args: Any, **kw: Any) -> Value:
        return function(self, *args, **kw)

    method.__doc__ = function.__doc__
    return method


class ConstantError(TapeError, TypeError):
    """A conversion to a plain number would silently drop the derivative."""


class Operand(Active):
    """An active value that behaves like a number or a numpy array."""

    __slots__ = ()
    __array_priority__ = 1000.0
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Var({self.val!r})"

    def __pos__(self) -> Value:
        return self

    def __bool__(self) -> bool:
        return bool(compare(operator.ne, self, 0.0))

    reshape: Any  # one of numpy's methods, see below

    def _refuse(self, what: str) -> NoReturn:
        raise ConstantError(
            f"{what} of a value being differentiated would make it a constant; use functions of adbench.tape or numpy "
            f"instead of math, tape.stack to put numbers in an array, or .val for the plain value"
        )

    def __float__(self) -> float:
        self._refuse("float()")

    def __int__(self) -> int:
        self._refuse("int()")

    def __index__(self) -> int:  # noqa: PLE0305  # it always raises
        self._refuse("an index")

    def __complex__(self) -> complex:
        self._refuse("complex()")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self._refuse("a numpy array")

    # Shape
    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes; () for a scalar."""
        return tuple(np.shape(value_of(self)))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64, always."""
        return np.dtype(np.float64)

    @property
    def T(self) -> Value:  # noqa: N802  # numpy's name
        """The axes in reverse order."""
        return shapes.transpose(self)

    @property
    def mT(self) -> Value:  # noqa: N802  # numpy's name
        """Each matrix transposed."""
        return shapes.matrix_transpose(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a scalar")
        return self.shape[0]

    def __iter__(self) -> Iterator[Value]:
        if not self.shape:
            raise TypeError("iteration over a scalar")
        return (self[i] for i in range(self.shape[0]))

    # Elements
    def __getitem__(self, index: Any) -> Value:
        return indexing.read(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Rebind this variable to a new value with the elements replaced; the old value stays on the tape."""
        parts = [name for name in ("val", "cell", "tangent", "jacobians") if name in type(self).__slots__]
        if len(parts) != 2:
            raise TypeError(f"{type(self).__name__} does not support item assignment")
        new = indexing.set_at(self, value, index=indexing.normal_index(index))
        if type(new) is not type(self) or new.level != self.level:
            raise TypeError(
                "x[index] = v: v belongs to an inner derivative and x to an outer one; "
                "make the array inside, for example with tape.zeros_like(v)"
            )
        for name in parts:
            setattr(self, name, getattr(new, name))

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(value_of(self) == value_of(item)))

    def item(self) -> Value:
        """The single element, as a scalar."""
        return shapes.reshape(self, ())

    def tolist(self) -> list[Value]:
        """The slices along the first axis, as (nested) lists of scalars."""
        return [row.tolist() if row.ndim else row for row in self]

    def transpose(self, *axes: Any) -> Value:
        """The axes permuted; in reverse order if none are given."""
        if not axes or axes == (None,):
            return shapes.transpose(self)
        return shapes.transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)

    def astype(self, dtype: Any, **_options: Any) -> Value:
        """The value itself, for float64; any other type would lose the derivative."""
        if np.dtype(dtype) != np.float64:
            self._refuse(f"a {np.dtype(dtype)}")
        return self

    # numpy's functions
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and not options:
            if ufunc in REFLECTED and inputs[1] is self:  # array + self: the operator is quicker than the rule
                return getattr(self, REFLECTED[ufunc])(inputs[0])
            if ufunc in UFUNCS:
                return UFUNCS[ufunc](*inputs)
        return call_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function: Any, _types: Any, args: Any, options: Any) -> Any:
        return call_function(function, args, options)


for _name, _rule in {
    "add": e.add,
    "sub": e.subtract,
    "mul": e.multiply,
    "truediv": e.divide,
    "pow": e.power,
    "matmul": products.matmul,
    "floordiv": e.floor_divide,
    "mod": e.remainder,
}.items():
    setattr(Operand, f"__{_name}__", operator_of(_rule))
    setattr(Operand, f"__r{_name}__", _reflected(_rule))
for _name, _rule in {"neg": e.negative, "abs": e.absolute}.items():
    setattr(Operand, f"__{_name}__", _method(_rule))
for _name in ("__mul__",):
    setattr(Operand, _name, _times)
for _compare in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
    setattr(Operand, f"__{_compare.__name__}__", _comparison(_compare))
for _module, _names in (
    (reductions, "sum mean var std prod max min argmax argmin cumsum cumprod trace"),
    (shapes, "reshape ravel flatten squeeze swapaxes repeat copy"),
    (indexing, "take diagonal argsort"),
    (products, "dot"),
    (e, "clip"),
):
    for _name in _names.split():
        setattr(Operand, _name, _method(getattr(_module, _name)))
for _name, _member in list(vars(Operand).items()):
    if _name not in ("__module__", "__doc__", "__slots__", "__annotations__"):
        setattr(Active, _name, _member)


# numpy's functions whose signature differs from ours

stand_for_namesakes(vars(linalg), vars(linalg), np.linalg)
stand_for_namesakes(vars(fourier), vars(fourier), np.fft)
stand_for(linalg.cross, np.cross)
stand_for(shape_of, np.shape)
stand_for(lambda a: len(shape_of(a)), np.ndim)
stand_for(lambda a, axis=None: int(np.prod(shape_of(a))) if axis is None else shape_of(a)[axis], np.size)
stand_for(lambda a: not shape_of(a), np.isscalar)
stand_for(lambda m: shapes.flip(m, 1), np.fliplr)
stand_for(lambda m: shapes.flip(m, 0), np.flipud)
stand_for(lambda a, decimals=0: e.rint(a * 10.0**decimals) / 10.0**decimals, np.round)
stand_for(lambda a, b, **kw: np.allclose(value_of(a), value_of(b), **kw), np.allclose)
stand_for(lambda a, b, **kw: np.isclose(value_of(a), value_of(b), **kw), np.isclose)
stand_for(lambda a, b, **kw: np.array_equal(value_of(a), value_of(b), **kw), np.array_equal)


def _with_first_axis(function: Callable[..., Value]) -> Callable[..., Value]:
    """Methods of ufuncs run along the first axis by default."""
    return lambda x, axis=0, **options: function(x, axis, **options)


METHODS |= {
    (np.add, "reduce"): _with_first_axis(reductions.sum),
    (np.multiply, "reduce"): _with_first_axis(reductions.prod),
    (np.maximum, "reduce"): _with_first_axis(reductions.max),
    (np.minimum, "reduce"): _with_first_axis(reductions.min),
    (np.add, "accumulate"): _with_first_axis(reductions.cumsum),
    (np.multiply, "accumulate"): _with_first_axis(reductions.cumprod),
    (np.maximum, "accumulate"): _with_first_axis(indexing.cummax),
    (np.multiply, "outer"): lambda x, y: x[(...,) + (None,) * len(shape_of(y))] * y,
}
