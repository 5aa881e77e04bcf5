"""`xp` at high precision: the array API's names over numpy arrays of `Real`.

Indexing, shapes, broadcasting and operators are numpy's own; here is what numpy cannot do with objects. Reductions,
products of matrices and `xp.linalg` work on whole rows at once. Integers and booleans stay numpy's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import libmp
from numpy.typing import NDArray

from adbench.oracle.highprecision.arrays import Arrays, extreme
from adbench.oracle.highprecision.elementary import (
    BINARY,
    BINARY_ALIASES,
    FROM_CONTEXT,
    UNARY,
    UNARY_ALIASES,
    through_context,
)
from adbench.oracle.highprecision.linalg import Linalg
from adbench.oracle.highprecision.products import RealArray
from adbench.oracle.highprecision.real import (
    NAN,
    NEAREST,
    ZERO,
    Raw,
    Real,
    ieee,
    raw_of,
)

Objects = NDArray[np.object_]

FROM_NUMPY = (
    "add",
    "all",
    "any",
    "append",
    "argmax",
    "argmin",
    "argsort",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "count_nonzero",
    "cross",
    "diag",
    "diagonal",
    "diff",
    "divide",
    "einsum",
    "equal",
    "expand_dims",
    "flip",
    "floor_divide",
    "greater",
    "greater_equal",
    "hstack",
    "inner",
    "kron",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matrix_transpose",
    "meshgrid",
    "mod",
    "moveaxis",
    "multiply",
    "ndim",
    "negative",
    "nonzero",
    "not_equal",
    "outer",
    "permute_dims",
    "positive",
    "ravel",
    "remainder",
    "repeat",
    "reshape",
    "roll",
    "rot90",
    "searchsorted",
    "shape",
    "sort",
    "split",
    "squeeze",
    "subtract",
    "swapaxes",
    "take",
    "take_along_axis",
    "tensordot",
    "tile",
    "trace",
    "transpose",
    "tril",
    "triu",
    "unstack",
    "vstack",
)
"""Names under which numpy's own function already does the right thing for arrays of objects."""

ROUNDED = ("reciprocal", "sqrt", "square")
"""Functions that IEEE 754 wants correctly rounded."""

SAME = ("isdtype", "result_type", "can_cast", "finfo", "iinfo")


class TooSlow(Exception):
    """The text takes longer at high precision than the caller allows."""


class HighPrecision(Arrays):
    """The namespace for one type of numbers. ``deadline``: a time of `time.thread_time` after which it gives up."""

    pi, e, inf, nan, newaxis, euler_gamma = math.pi, math.e, math.inf, math.nan, None, 0.5772156649015329
    float64 = float32 = np.float64
    int64 = int32 = np.int64
    bool_ = np.bool_

    def __init__(self, real: type[Real], deadline: float = math.inf) -> None:
        self.real, self.deadline = real, deadline
        self.linalg = Linalg(self)
        self.special = self
        self.__dict__["bool"] = np.bool_  # in the class body it would hide the builtin from the annotations
        for name in (*FROM_NUMPY, *SAME):
            if (function := getattr(np, name, None)) is not None:
                setattr(self, name, function)
        for name, unary in UNARY.items():
            setattr(self, name, self._elementwise(self._unary(name, unary), 1))
        for name, binary in BINARY.items():
            setattr(self, name, self._elementwise(self._rounded(binary), 2))
        for alias, name in {**UNARY_ALIASES, **BINARY_ALIASES}.items():
            setattr(self, alias, getattr(self, name))
        for name in FROM_CONTEXT:
            setattr(self, name, self._special(name))
        self.maximum = self._elementwise(lambda a, b: extreme(a, b, libmp.mpf_gt), 2)
        self.minimum = self._elementwise(lambda a, b: extreme(a, b, libmp.mpf_lt), 2)
        self.isnan = self._test(lambda raw: raw == NAN)
        self.isinf = self._test(lambda raw: not raw[1] and raw not in (ZERO, NAN))
        self.isfinite = self._test(lambda raw: bool(raw[1]) or raw == ZERO)
        self.signbit = self._test(lambda raw: libmp.mpf_sign(raw) < 0)
        self.sign = self._elementwise(lambda a: libmp.from_int(libmp.mpf_sign(a)) if a != NAN else NAN, 1)
        self.floor = self._integral(libmp.mpf_floor)
        self.ceil = self._integral(libmp.mpf_ceil)
        self.round = self._integral(libmp.mpf_nint)
        self.copysign = self._elementwise(_copysign, 2)
        self.concatenate, self.pow, self.power = self.concat, self._power, self._power
        self.arange, self.amax, self.amin, self.absolute = self._arange, self.max, self.min, self.abs

    # Elementwise -----------------------------------------------------------------------------------------------

    def check_time(self) -> None:
        """Raises TooSlow once the deadline has passed."""
        if time.thread_time() > self.deadline:
            raise TooSlow

    def _elementwise(self, function: Callable[..., Raw], count: int) -> Callable[..., Any]:
        """A function of raw numbers as one of scalars, arrays and lists, broadcast by numpy. Exact results."""
        real = self.real

        def on_elements(*elements: Any) -> Real:
            return real(function(*map(raw_of, elements)))

        return self._broadcast(on_elements, count)

    def _broadcast(self, on_elements: Callable[..., Any], count: int) -> Callable[..., Any]:
        vectorised = np.frompyfunc(on_elements, count, 1)

        def apply(*arguments: Any) -> Any:
            self.check_time()
            return vectorised(*arguments)

        return apply

    def _unary(self, name: str, function: Callable[[Raw, int, str], Raw]) -> Callable[[Raw], Raw]:
        real, bits = self.real, self.real.bits
        finish = real.made if name in ROUNDED else real.looked_up

        def compute(x: Raw) -> Raw:
            x = real.operand(x)
            return finish(real.bent(name, x, ieee(function, x, bits=bits))).raw

        return compute

    def _rounded(self, function: Callable[..., Raw]) -> Callable[..., Raw]:
        real, bits = self.real, self.real.bits
        return lambda *raws: real.looked_up(ieee(function, *map(real.operand, raws), bits=bits)).raw

    def _special(self, name: str) -> Callable[..., Any]:
        real = self.real

        def apply(*arguments: Any) -> Any:
            def compute(*raws: Raw) -> Raw:
                return real.looked_up(through_context(name, tuple(map(real.operand, raws)), real.bits)).raw

            return self._elementwise(compute, len(arguments))(*arguments)

        return apply

    def _integral(self, function: Callable[..., Raw]) -> Callable[..., Any]:
        return self._elementwise(lambda x: function(x, self.real.bits, NEAREST) if x[1] else x, 1)

    def _test(self, function: Callable[[Raw], bool]) -> Callable[[Any], Any]:
        vectorised = np.frompyfunc(lambda element: function(raw_of(element)), 1, 1)

        def apply(x: Any) -> Any:
            result = vectorised(x)
            return result.astype(np.bool_) if isinstance(result, np.ndarray) else result

        return apply

    def abs(self, x: Any) -> Any:
        """|x|."""
        return self._elementwise(libmp.mpf_abs, 1)(x)

    fabs = abs

    def trunc(self, x: Any) -> Any:
        """The integer part, towards zero."""
        return self.where(np.asarray(x) < 0, self.ceil(x), self.floor(x))

    def _power(self, x: Any, y: Any) -> Any:
        return self.asarray(x) ** y

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """x where the condition holds, else y."""
        x, y = self.reals(x), self.reals(y)
        chosen = np.where(
            np.asarray(condition, dtype=np.bool_), np.asarray(x, dtype=object), np.asarray(y, dtype=object)
        )
        return chosen.view(RealArray) if chosen.ndim else chosen[()]

    def clip(self, x: Any, min: Any = None, max: Any = None) -> Any:
        """x held in [min, max]."""
        x = x if min is None else self.maximum(x, min)
        return x if max is None else self.minimum(x, max)

    def conj(self, x: Any) -> Any:
        """x: everything is real."""
        return x

    real_part = conj

    # Products and loops ----------------------------------------------------------------------------------------

    def matmul(self, a: Any, b: Any) -> Any:
        """The matrix product, as `a @ b` but with whole rows of integers: several times faster."""
        return self.linalg.matmul(a, b)

    def dot(self, a: Any, b: Any) -> Any:
        """The matrix product, or the product with a scalar."""
        return self.linalg.matmul(a, b) if np.ndim(a) and np.ndim(b) else self.reals(a) * b

    def vecdot(self, a: Any, b: Any, axis: int = -1) -> Any:
        """Σ a b along ``axis``."""
        return self.sum(self.reals(a) * b, axis)

    def loop(self, step: Callable[[int, Any], Any], state: Any, n: int) -> Any:
        """state ← step(i, state) for i = 0 .. n-1."""
        for i in range(n):
            if i % 16 == 0:
                self.check_time()
            state = step(i, state)
        return state

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the high-precision namespace has no {name}")


def _copysign(size: Raw, sign: Raw) -> Raw:
    size = libmp.mpf_abs(size)
    return libmp.mpf_neg(size) if libmp.mpf_sign(sign) < 0 else size


_MADE: dict[type[Real], HighPrecision] = {}


def namespace_of(real: type[Real]) -> HighPrecision:
    """The one namespace for a type of numbers: a hundred functions are not made anew for every reference."""
    if real not in _MADE:
        _MADE[real] = HighPrecision(real)
    return _MADE[real]


def lift_deadlines() -> None:
    """Lets every namespace take its time again: a deadline belongs to one reference."""
    for xp in _MADE.values():
        xp.deadline = math.inf
