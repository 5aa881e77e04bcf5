"""Arrays of casadi expressions under the array API's names.

casadi's matrices have two axes and store columns. An array here is one casadi column with the entries in numpy's order,
and a shape. So casadi never reshapes, and every numpy index selects entries. This works for scalar expressions (SX)
and matrix expressions (MX).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import casadi
import numpy as np

from adbench import Namespace, Unsupported

MOST_NODES = 50_000  # scalar nodes from one operation: recording more takes too long


def places(shape: Sequence[int]) -> Any:
    """The column index of each entry."""
    return np.arange(math.prod(shape)).reshape(shape)


def column_of(x: Any) -> Any:
    """The entries of an array or of numbers as a casadi column."""
    if isinstance(x, CasadiArray):
        return x.column
    if np.iscomplexobj(x):
        raise Unsupported("casadi has no complex numbers")
    return casadi.DM(np.ravel(np.asarray(x, dtype=np.float64)))


def shape_of(x: Any) -> tuple[int, ...]:
    return x.shape if isinstance(x, CasadiArray) else np.shape(x)


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """The column of x, broadcast to the shape as in numpy. casadi itself broadcasts single numbers."""
    column, own = column_of(x), shape_of(x)
    if own == shape or math.prod(own) == 1 == column.numel():
        return column
    return column[np.broadcast_to(places(own), shape).ravel().tolist()]


def elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """Extend a casadi function to arrays with broadcasting."""

    def on_arrays(*args: Any) -> Any:
        shape = np.broadcast_shapes(*map(shape_of, args))
        size = math.prod(shape)
        found = function(*(spread(arg, shape) for arg in args)) if size else casadi.DM.zeros(0, 1)
        return CasadiArray(found if found.numel() == size else casadi.repmat(found, size, 1), shape)

    return on_arrays


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    on_arrays = elementwise(function)
    return lambda self, other: on_arrays(other, self)


class CasadiArray:
    """A casadi column with the entries in numpy's order, and a shape."""

    __array_ufunc__ = None  # numpy arrays defer to this class's operators
    __hash__ = object.__hash__
    dtype = np.dtype(np.float64)

    def __init__(self, column: Any, shape: Sequence[int]) -> None:
        self.shape = tuple(shape)
        self.ndim, self.size = len(self.shape), math.prod(self.shape)
        self.column = column if self.size or column.shape == (0, 1) else casadi.DM.zeros(0, 1)

    __add__, __radd__ = elementwise(casadi.plus), _reflected(casadi.plus)
    __sub__, __rsub__ = elementwise(casadi.minus), _reflected(casadi.minus)
    __mul__, __rmul__ = elementwise(casadi.times), _reflected(casadi.times)
    __truediv__, __rtruediv__ = elementwise(casadi.rdivide), _reflected(casadi.rdivide)
    __pow__, __rpow__ = elementwise(casadi.power), _reflected(casadi.power)
    __lt__, __le__ = elementwise(casadi.lt), elementwise(casadi.le)
    __gt__, __ge__ = elementwise(casadi.gt), elementwise(casadi.ge)
    __eq__, __ne__ = elementwise(casadi.eq), elementwise(casadi.ne)  # entry by entry, as in numpy
    __abs__ = elementwise(casadi.fabs)
    __neg__ = elementwise(lambda x: -x)

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self)

    def __getitem__(self, index: Any) -> CasadiArray:
        chosen = places(self.shape)[index]
        return CasadiArray(self.column[np.ravel(chosen).tolist()], np.shape(chosen))

    def __setitem__(self, index: Any, value: Any) -> None:
        chosen = places(self.shape)[index]
        column = spread(value, chosen.shape)
        kind = type(column) if isinstance(self.column, casadi.DM) else type(self.column)
        self.column = kind(self.column)  # a copy: another array may share the column
        for k, place in enumerate(chosen.ravel().tolist()):  # the last write to an entry counts
            self.column[place] = column[k if column.numel() > 1 else 0]

    def __iter__(self) -> Any:
        return (self[k] for k in range(self.shape[0]))

    def __len__(self) -> int:
        return self.shape[0]

    def __bool__(self) -> bool:
        raise Unsupported("casadi builds one graph for all data, but a Python loop or branch depends on data")

    __float__ = __int__ = __index__ = __bool__

    @property
    def T(self) -> CasadiArray:  # noqa: N802 - numpy's name
        """The array with its axes in reverse order."""
        return self.transpose(range(self.ndim)[::-1])

    def transpose(self, axes: Sequence[int]) -> CasadiArray:
        """As numpy's."""
        order = places(self.shape).transpose(axes)
        return CasadiArray(self.column[order.ravel().tolist()], order.shape)

    def reshape(self, *shape: Any) -> CasadiArray:
        """As numpy's."""
        return CasadiArray(self.column, places(self.shape).reshape(*shape).shape)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        """As numpy's."""
        return total(self, axis=axis, keepdims=keepdims)


def matrix_of(x: Any) -> Any:
    """The transpose of a matrix for casadi, without moving entries: its columns are the rows."""
    return casadi.reshape(column_of(x), shape_of(x)[1], shape_of(x)[0])


def from_matrix(transposed: Any) -> CasadiArray:
    """The inverse of `matrix_of`."""
    return CasadiArray(casadi.vec(casadi.densify(transposed)), (transposed.size2(), transposed.size1()))


def matmul(a: Any, b: Any) -> Any:
    left, right = shape_of(a), shape_of(b)
    if len(left) > 2 or len(right) > 2:  # matrix by matrix
        batch = np.broadcast_shapes(left[:-2], right[:-2])
        firsts, seconds = (spread_matrices(x, batch) for x in (a, b))
        found = [matmul(p, q) for p, q in zip(firsts, seconds, strict=True)]
        return FUNCTIONS["reshape"](FUNCTIONS["stack"](found), (*batch, *found[0].shape))
    rows, columns = left if len(left) == 2 else (1, *left), right if len(right) == 2 else (*right, 1)
    within_reach(rows[0] * rows[1] * columns[1], a, b)
    # (A B)ᵀ = Bᵀ Aᵀ keeps all three in numpy's order.
    second, first = (casadi.reshape(column_of(x), s[1], s[0]) for x, s in ((b, columns), (a, rows)))
    shape = (*left[:-1], *right[1:])
    return CasadiArray(casadi.vec(casadi.densify(casadi.mtimes(second, first))), shape)


def spread_matrices(x: Any, batch: tuple[int, ...]) -> list[CasadiArray]:
    """The matrices of a batch, broadcast to its shape."""
    shape = shape_of(x)
    order = np.broadcast_to(places(shape), (*batch, *shape[-2:])).reshape(-1, *shape[-2:])
    return [CasadiArray(column_of(x)[matrix.ravel().tolist()], matrix.shape) for matrix in order]


def within_reach(nodes: int, *arrays: Any) -> None:
    """Raise Unsupported if an operation would create too many scalar nodes."""
    if nodes > MOST_NODES and any(isinstance(column_of(x), casadi.SX) for x in arrays):
        raise Unsupported(f"one operation needs {nodes:,} scalar nodes, more than {MOST_NODES:,}; use casadi_mx")


def reduction(of_columns: Callable[[Any], Any]) -> Callable[..., Any]:
    """Extend a function that reduces each column of a matrix to a reduction along any axes."""

    def reduced(x: Any, axis: Any = None, keepdims: bool = False) -> CasadiArray:
        shape, ndim = shape_of(x), len(shape_of(x))
        along = range(ndim) if axis is None else np.arange(ndim)[np.ravel(axis)].tolist()
        rest = [k for k in range(ndim) if k not in along]
        order = places(shape).transpose(*rest, *along).ravel()
        length = math.prod(shape[k] for k in along)
        width = math.prod(shape[k] for k in rest)
        row = of_columns(casadi.reshape(column_of(x)[order.tolist()], length, width))
        left = [1 if k in along else shape[k] for k in range(ndim)] if keepdims else [shape[k] for k in rest]
        return CasadiArray(casadi.vec(casadi.densify(row)), left)

    return reduced


def folded(function: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """function(function(row 0, row 1), row 2), …"""
    return lambda matrix: functools.reduce(function, casadi.vertsplit(matrix))


def running(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The partial results of a fold along one axis."""

    def run(x: Any, axis: int | None = None) -> CasadiArray:
        if axis is None and len(shape_of(x)) > 1:
            raise ValueError("pass axis: the array has more than one")
        moved = np.moveaxis(places(shape_of(x)), axis or 0, 0)
        flat = moved.reshape(moved.shape[0], -1)
        rows = itertools.accumulate((column_of(x)[row.tolist()] for row in flat), function)
        back = np.argsort(moved.ravel())
        return CasadiArray(casadi.vertcat(*rows)[back.tolist()], shape_of(x))

    return run


def together(join: Callable[..., Any]) -> Callable[..., Any]:
    """Apply a joining numpy function (concatenate, stack) to entry positions."""

    def joined(arrays: Sequence[Any], axis: int = 0) -> CasadiArray:
        starts = np.cumsum([0, *(math.prod(shape_of(x)) for x in arrays)]).tolist()
        moved = join([places(shape_of(x)) + k for x, k in zip(arrays, starts, strict=False)], axis=axis)
        return CasadiArray(casadi.vertcat(*map(column_of, arrays))[moved.ravel().tolist()], moved.shape)

    return joined


def moving(move: Callable[..., Any]) -> Callable[..., Any]:
    """Apply a numpy function that selects and moves entries."""

    def moved(x: Any, *args: Any, **options: Any) -> CasadiArray:
        order = move(places(shape_of(x)), *args, **options)
        return CasadiArray(column_of(x)[order.ravel().tolist()], order.shape)

    return moved


def filled(value: float) -> Callable[..., Any]:
    return lambda x: CasadiArray(casadi.DM.ones(math.prod(shape_of(x)), 1) * value, shape_of(x))


total, product = reduction(casadi.sum1), reduction(folded(casadi.times))


def mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    found = total(x, axis=axis, keepdims=keepdims)
    return found / (math.prod(shape_of(x)) / found.size)


def var(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return mean((x - mean(x, axis, keepdims=True)) ** 2, axis, keepdims)


def square(x: Any, what: str) -> Any:
    """The matrix of an array of shape (n, n)."""
    if len(shape_of(x)) != 2:
        raise Unsupported(f"casadi has no {what} of an array of shape {shape_of(x)}")
    return matrix_of(x).T


def det(x: Any) -> CasadiArray:
    matrix = square(x, "determinant")
    if isinstance(matrix, casadi.SX) and matrix.size1() > 4:
        raise Unsupported("casadi sums a scalar determinant over permutations, too long for n > 4; use casadi_mx")
    return CasadiArray(casadi.det(matrix), ())


def slogdet(x: Any) -> tuple[CasadiArray, CasadiArray]:
    found = det(x)
    return elementwise(casadi.sign)(found), elementwise(lambda d: casadi.log(casadi.fabs(d)))(found)


def cholesky(x: Any, *, upper: bool = False) -> CasadiArray:
    matrix = square(x, "Cholesky factor")
    if isinstance(matrix, casadi.MX):
        raise Unsupported("casadi has no Cholesky factor of matrix expressions (MX); use casadi")
    factor = casadi.chol(matrix if upper else matrix.T)  # upper triangular, from the upper half
    return from_matrix(factor.T if upper else factor)


def solve(a: Any, b: Any) -> CasadiArray:
    right = column_of(b) if len(shape_of(b)) == 1 else matrix_of(b).T
    found = casadi.solve(square(a, "solution of equations"), right)
    return CasadiArray(found, shape_of(b)) if len(shape_of(b)) == 1 else from_matrix(found.T)


def vector_norm(x: Any, ord: float = 2) -> CasadiArray:
    if ord != 2:
        raise Unsupported(f"casadi has no norm of order {ord}")
    return CasadiArray(casadi.norm_2(column_of(x)), ())


def logaddexp(x: Any, y: Any) -> CasadiArray:
    """casadi's logsumexp, pair by pair."""
    shape = np.broadcast_shapes(shape_of(x), shape_of(y))
    first, second = (spread(z, shape) for z in (x, y))
    pairs = [
        casadi.logsumexp(casadi.vertcat(*(z[k if z.numel() > 1 else 0] for z in (first, second))))
        for k in range(math.prod(shape))
    ]
    return CasadiArray(casadi.vertcat(*pairs), shape)


def stop_gradient(x: Any) -> Any:
    if isinstance(column_of(x), casadi.SX):
        raise Unsupported("casadi has no stop_gradient of scalar expressions (SX); use casadi_mx")
    return CasadiArray(casadi.no_grad(column_of(x)), shape_of(x))


def derivative(g: Callable[[Any], Any], x: Any) -> CasadiArray:
    """∇g(x) of a scalar function g: evaluate g on a new symbol, differentiate, then substitute x."""
    shape, at = shape_of(x), spread(x, shape_of(x))
    symbol = type(at).sym("inner", math.prod(shape))
    slope = casadi.gradient(column_of(g(CasadiArray(symbol, shape))), symbol)
    return CasadiArray(casadi.substitute(slope, symbol, at), shape)


SAME_NAME = """
    sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp expm1 log log1p log10 sqrt floor ceil sign atan2
    hypot
"""
MOVING = "reshape broadcast_to squeeze expand_dims flip roll moveaxis"

ELEMENTWISE = {
    **{name: getattr(casadi, name) for name in SAME_NAME.split()},
    "abs": casadi.fabs,
    "clip": lambda x, low, high: casadi.fmin(casadi.fmax(x, low), high),
    "maximum": casadi.fmax,
    "minimum": casadi.fmin,
    "pow": casadi.power,
    "remainder": lambda x, y: x - y * casadi.floor(x / y),  # casadi rounds to nearest (casadi/casadi#2767)
    "square": lambda x: x * x,
    "where": casadi.if_else,
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: elementwise(function) for name, function in ELEMENTWISE.items()},
    "logaddexp": logaddexp,
    "sum": total,
    "prod": product,
    "mean": mean,
    "var": var,
    "matmul": matmul,
    "max": reduction(folded(casadi.fmax)),
    "min": reduction(folded(casadi.fmin)),
    "std": lambda x, axis=None, keepdims=False: var(x, axis, keepdims) ** 0.5,
    "cumulative_sum": running(casadi.plus),
    "cumulative_prod": running(casadi.times),
    "concat": together(np.concatenate),
    "stack": together(np.stack),
    **{name: moving(getattr(np, name)) for name in MOVING.split()},
    "permute_dims": moving(np.transpose),
    "matrix_transpose": moving(lambda x: np.swapaxes(x, -1, -2)),
    "zeros_like": filled(0.0),
    "ones_like": filled(1.0),
}

LINALG: dict[str, Callable[..., Any]] = {
    "det": det,
    "slogdet": slogdet,
    "cholesky": cholesky,
    "solve": solve,
    "vector_norm": vector_norm,
    "inv": lambda x: from_matrix(casadi.inv(square(x, "inverse")).T),
    "diagonal": moving(lambda x: np.diagonal(x, axis1=-2, axis2=-1)),
    "matmul": matmul,
    "matrix_transpose": FUNCTIONS["matrix_transpose"],
}


def holds_array(x: Any) -> bool:
    return any(map(holds_array, x)) if isinstance(x, list | tuple) else isinstance(x, CasadiArray)


def on_both(name: str, function: Callable[..., Any], numpys: Any) -> Callable[..., Any]:
    """The function on arrays of expressions, numpy's function on plain numbers."""

    def either(*args: Any, **options: Any) -> Any:
        return (function if any(map(holds_array, args)) else getattr(numpys, name))(*args, **options)

    return either


PLAIN = {name: getattr(np, name) for name in ("asarray", "zeros", "ones", "full", "eye", "arange", "linspace")}

xp = Namespace(
    SimpleNamespace(
        __name__="casadi",
        linalg=SimpleNamespace(**{name: on_both(name, f, np.linalg) for name, f in LINALG.items()}),
        **{name: on_both(name, f, np) for name, f in FUNCTIONS.items()},
        **PLAIN,
    ),
    derivative=derivative,
    stop_gradient=stop_gradient,
)
