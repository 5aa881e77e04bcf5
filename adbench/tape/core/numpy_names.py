"""numpy's functions and the ones of this package that take their place on an active value.

`__array_ufunc__` and `__array_function__` look here. A function that is not listed raises `UnsupportedError`: it never
runs on a silent constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.special

from adbench.tape import linalg
from adbench.tape.core.rule import Rule, TapeError, Value
from adbench.tape.core.values import shape_of, value_of
from adbench.tape.rules import (
    compound,
    creation,
    elementwise,
    fourier,
    gammas,
    indexing,
    predicates,
    products,
    reductions,
    shapes,
    special,
)


class UnsupportedError(TapeError, TypeError):
    """A numpy function that has no derivative here was called on an active value."""


UFUNCS: dict[Any, Callable[..., Value]] = {
    rule.value: rule
    for rule in vars(elementwise).values()
    if isinstance(rule, Rule) and isinstance(rule.value, np.ufunc)
}
UFUNCS |= {rule.value: rule for rule in (special.erf, special.erfc, special.gammaln)}
UFUNCS |= {scipy.special.digamma: special.digamma}
UFUNCS |= {
    getattr(scipy.special, name): rule
    for name, rule in [
        *(("logit", compound.logit), ("log_expit", compound.log_inv_logit), ("log_ndtr", compound.std_normal_lcdf)),
        *(("ndtr", compound.Phi), ("ndtri", compound.inv_Phi), ("erfinv", compound.erfinv), ("betaln", gammas.lbeta)),
        *(("xlogy", compound.xlogy), ("xlog1py", compound.xlog1py)),
    ]
}
UFUNCS |= {np.logaddexp: elementwise.logaddexp, scipy.special.expit: elementwise.expit}
UFUNCS |= {np.positive: elementwise.positive, np.matmul: products.matmul, np.fabs: elementwise.absolute}
UFUNCS |= {np.deg2rad: elementwise.radians, np.rad2deg: elementwise.degrees, np.vecdot: products.vecdot}

METHODS: dict[tuple[Any, str], Callable[..., Value]] = {
    (np.add, "reduce"): lambda x, axis=0, keepdims=False: reductions.sum(x, axis, keepdims),
    (np.multiply, "reduce"): lambda x, axis=0, keepdims=False: reductions.prod(x, axis, keepdims),
    (np.maximum, "reduce"): lambda x, axis=0, keepdims=False: reductions.max(x, axis, keepdims),
    (np.minimum, "reduce"): lambda x, axis=0, keepdims=False: reductions.min(x, axis, keepdims),
    (np.add, "accumulate"): lambda x, axis=0: reductions.cumsum(x, axis),
    (np.multiply, "accumulate"): lambda x, axis=0: reductions.cumprod(x, axis),
    (np.maximum, "accumulate"): lambda x, axis=0: indexing.cummax(x, axis),
    (np.multiply, "outer"): lambda x, y: x[(...,) + (None,) * len(shape_of(y))] * y,
}
"""What a ufunc's methods mean."""


def _named(module: Any, source: Any, names: str) -> Iterable[tuple[Any, Any]]:
    return ((getattr(source, name), getattr(module, name)) for name in names.split())


FUNCTIONS: dict[Any, Callable[..., Any]] = dict(
    [
        *_named(reductions, np, "sum mean var std max min prod cumsum cumprod trace argmax argmin diff"),
        *_named(shapes, np, "broadcast_to broadcast_arrays reshape ravel transpose swapaxes matrix_transpose moveaxis"),
        *_named(shapes, np, "expand_dims squeeze flip roll tril triu repeat tile concatenate stack split unstack pad"),
        *_named(shapes, np, "atleast_1d atleast_2d vstack hstack copy"),
        *_named(indexing, np, "take take_along_axis diagonal diag argsort sort searchsorted"),
        *_named(products, np, "dot inner outer vdot tensordot kron einsum"),
        *_named(elementwise, np, "where clip"),
        *_named(linalg, np.linalg, "cholesky det inv pinv solve slogdet eigh eigvalsh svd svdvals qr norm vector_norm"),
        *_named(linalg, np.linalg, "matrix_norm matrix_power matrix_rank matrix_transpose matmul multi_dot outer"),
        *_named(linalg, np.linalg, "tensordot vecdot trace diagonal cross"),
        (np.cross, linalg.cross),
        *_named(fourier, np.fft, "fft ifft rfft irfft"),
        (np.sinc, compound.sinc),
        (np.shape, shape_of),
        (np.ndim, lambda a: len(shape_of(a))),
        (np.size, lambda a, axis=None: int(np.prod(shape_of(a))) if axis is None else shape_of(a)[axis]),
        (np.fliplr, lambda m: shapes.flip(m, 1)),
        (np.flipud, lambda m: shapes.flip(m, 0)),
        *_named(creation, np, "full linspace meshgrid"),
        *_named(predicates, np, "any all count_nonzero nonzero"),
        (np.zeros_like, lambda a, shape=None: shapes.zeros_like(a, shape)),
        (np.ones_like, lambda a, shape=None: creation.ones_like(a, shape)),
        (np.empty_like, lambda a, shape=None: creation.empty_like(a, shape)),
        (np.full_like, lambda a, fill_value, shape=None: creation.full_like(a, fill_value, shape)),
        (np.allclose, lambda a, b, **kw: np.allclose(value_of(a), value_of(b), **kw)),
        (np.isclose, lambda a, b, **kw: np.isclose(value_of(a), value_of(b), **kw)),
        (np.array_equal, lambda a, b, **kw: np.array_equal(value_of(a), value_of(b), **kw)),
        (np.round, lambda a, decimals=0: elementwise.rint(a * 10.0**decimals) / 10.0**decimals),
        (np.isscalar, lambda a: not shape_of(a)),
    ]
)  # fmt: skip


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Value:
    """What `ufunc.method(*inputs, **options)` is on active values."""
    if options.get("out") is not None or "where" in options or options.get("dtype") is not None:
        given = sorted(k for k, v in options.items() if v is not None)
        raise UnsupportedError(f"numpy.{ufunc.__name__}: options {given} are not differentiable; leave them out")
    options = {k: v for k, v in options.items() if k in ("axis", "keepdims")}
    if method == "__call__":
        if ufunc in UFUNCS:
            return UFUNCS[ufunc](*inputs, **options)
        if ufunc in predicates.BY_UFUNC:
            return predicates.BY_UFUNC[ufunc](*inputs)
    elif (ufunc, method) in METHODS:
        return METHODS[ufunc, method](*inputs, **options)
    name = ufunc.__name__ + ("" if method == "__call__" else f".{method}")
    raise UnsupportedError(_advice(f"numpy.{name}"))


def call_function(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What `function(*args, **options)` is on active values."""
    if function not in FUNCTIONS:
        raise UnsupportedError(_advice(f"{function.__module__}.{function.__name__}"))
    options = {k: v for k, v in options.items() if v is not None and v is not np._NoValue}
    try:
        return FUNCTIONS[function](*args, **options)
    except TypeError as error:
        if "unexpected keyword" in str(error) or "positional argument" in str(error):
            raise UnsupportedError(
                f"numpy.{function.__name__}: {error}; not differentiable with these options"
            ) from None
        raise


def _advice(name: str) -> str:
    return (
        f"{name} has no derivative here. Write it with the functions of adbench.tape, give its derivative with "
        f"function_gradients, or take the plain number with .val if it is meant to be a constant"
    )
