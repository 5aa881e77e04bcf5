"""Arrays of `Real` whose matrix products run on whole rows of integers: several times faster than entry by entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mpmath import libmp
from numpy.typing import NDArray

from adbench.oracle.highprecision.factorizations import dot
from adbench.oracle.highprecision.real import NEAREST, Raw, Real, common_integers, exact_dot

Objects = NDArray[np.object_]
Row = tuple[list[int], int] | list[Raw]
"""Integers and their common exponent; raw numbers where there are infinities or NaN."""


class RealArray(np.ndarray[Any, np.dtype[np.object_]]):
    """A numpy array of `Real`; only `@` is not numpy's own."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: Any = False) -> Any:
        # A reduction to one number is that number, as it is for plain arrays.
        return array.view(RealArray) if array.ndim else array[()]

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(other, self)


def objects(elements: Sequence[Any], shape: tuple[int, ...]) -> RealArray:
    """An array of these elements, whatever numpy would make of them."""
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array.reshape(shape).view(RealArray)


def _product(a: Any, b: Any) -> Any:
    left, right = np.asarray(a), np.asarray(b)
    kinds = {type(element) for array in (left, right) for element in array.flat if isinstance(element, Real)}
    if len(kinds) != 1 or not left.ndim or not right.ndim:
        return np.matmul(left, right)
    (real,) = kinds
    lift = np.frompyfunc(lambda element: element if isinstance(element, Real) else real.of(element), 1, 1)
    return matmul(real, lift(left), lift(right))


def matmul(real: type[Real], a: Any, b: Any) -> Any:
    """a @ b: (…, m, k) × (…, k, n) -> (…, m, n), vectors as numpy has it; all entries of type ``real``."""
    left, right = np.asarray(a, dtype=object), np.asarray(b, dtype=object)
    rows = left[None, :] if left.ndim == 1 else left
    columns = np.swapaxes(right[:, None] if right.ndim == 1 else right, -1, -2)
    if rows.shape[-1] != columns.shape[-1]:
        raise ValueError(f"matmul: the shapes {left.shape} and {right.shape} do not fit")
    batch = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    rows = np.broadcast_to(rows, batch + rows.shape[-2:])
    columns = np.broadcast_to(columns, batch + columns.shape[-2:])
    product = np.empty((*batch, rows.shape[-2], columns.shape[-2]), dtype=object)
    for place in np.ndindex(*batch):
        scaled = [_scaled(real, column) for column in columns[place]]
        for i, row in enumerate(rows[place]):
            product[place][i] = _row_times(real, _scaled(real, row), scaled)
    if left.ndim == 1:
        product = product[..., 0, :]
    found = product[..., 0] if right.ndim == 1 else product
    return found.view(RealArray) if found.ndim else found[()]


def _scaled(real: type[Real], row: Any) -> Row:
    raws = [element.raw for element in row]
    whole = common_integers(raws)
    if whole is None:
        return raws
    factors = real.term_factors(len(raws))
    if factors is None:
        return whole
    return [m * f for m, f in zip(whole[0], factors[0], strict=True)], whole[1] - factors[1]


def _row_times(real: type[Real], row: Row, columns: Sequence[Row]) -> list[Real]:
    found = []
    for column in columns:
        if isinstance(row, tuple) and isinstance(column, tuple):
            exact = exact_dot(row[0], column[0])
            found.append(real.made(libmp.from_man_exp(exact, row[1] + column[1], real.bits, NEAREST)))
        else:
            found.append(real(dot(_raws(row), _raws(column), real.bits)))
    return found


def _raws(row: Row) -> list[Raw]:
    if isinstance(row, tuple):
        return [libmp.from_man_exp(m, row[1]) for m in row[0]]
    return row
