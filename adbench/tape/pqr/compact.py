"""Compact Jacobians: an algebra of matrices that are sparse or structured.

A Jacobian J[i, j] = ∂y_i/∂x_j of arrays with n and m elements (counted row by row) has shape (n, m). For M**2 with a
1000 × 1000 matrix M it has 10¹² entries, but the 10⁶ numbers of its diagonal suffice. The forms:

    IdentityMultiple   c I                        a variable itself, -x, 3 * x
    Diagonal           diag(d)                    elementwise functions
    OneInRow           row i is c[i] at column j[i], or empty     x[index], broadcasting, x[index] = v
    OneInColumn        its transpose              sums along axes
    Scaled             diag(d) J                  3 * sin(f(x)): only d changes
    Kronecker          A ⊗ B                      matrix products: Y = A X Bᵀ
    Implicit           given by its products      any other function: its rule gives left and right products
    LazyProduct        Σ_k L_k J_k, not yet multiplied: a left product is then reverse mode
    Dense              all n × m numbers

All can be composed (`a @ b`), added (`a + b`), multiplied from the left (`a.left(w)` = w J) and the right (`a.right(v)`
= J v), and expanded (`a.dense()`). Composition and sum keep a compact form if one is closed under them (tables
`COMPOSED` and `SUMS`, filled in `compact_forms`). Otherwise the result is multiplied out if it takes no more memory
than the operands or than `DENSE_LIMIT` numbers, and else becomes a `LazyProduct`.

Entries may be values being differentiated at an outer level, so Jacobians can themselves be differentiated.
In products, 0 · inf is 0, as in the sweep. Source: R. M. Neal, "An automatic differentiation extension for R, and its
implementation in pqR" (slides, 2019), "Some compact gradient representations".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.core.rule import Value
from adbench.tape.fast.quick_sweep import zero_wins
from adbench.tape.rules.products import matmul
from adbench.tape.rules.shapes import reshape
from adbench.tape.values import has_nan, shape_of

DENSE_LIMIT = 1_000_000
"""Jacobians of at most this many numbers (8 MB) are multiplied out if no compact form is closed."""

Products = Callable[[Value], Value]


def times(a: Value, b: Value) -> Value:
    """a · b elementwise, with 0 · inf = 0 (see `sweep`)."""
    product = a * b
    return zero_wins(product, a, b) if has_nan(product) else product


def by_row(d: Value) -> Value:
    """One factor per row, shaped to multiply a matrix."""
    return reshape(d, (-1, 1)) if shape_of(d) else d


class CompactJacobian:
    """A linear map J[i, j] = ∂y_i/∂x_j of shape (n, m), in a form that need not store all entries.

    A form defines `_left` and `_right`, the products with matrices, and `numbers`, how many numbers it stores.
    """

    __slots__ = ("numbers", "shape")
    __array_ufunc__ = None  # so that `array @ jacobian` calls __rmatmul__

    numbers: int
    shape: tuple[int, int]

    def _left(self, w: Value) -> Value:
        """W J for a matrix W of shape (k, n): shape (k, m)."""
        raise NotImplementedError

    def _right(self, v: Value) -> Value:
        """J V for a matrix V of shape (m, k): shape (n, k)."""
        raise NotImplementedError

    def left(self, w: Value) -> Value:
        """w J: for a vector w of shape (n,) a vector (m,), for a matrix (k, n) a matrix (k, m)."""
        shape = self._checked(w, -1, self.shape[0], "left")
        return self._left(w) if len(shape) == 2 else reshape(self._left(reshape(w, (1, -1))), (-1,))

    def right(self, v: Value) -> Value:
        """J v: for a vector v of shape (m,) a vector (n,), for a matrix (m, k) a matrix (n, k)."""
        shape = self._checked(v, 0, self.shape[1], "right")
        return self._right(v) if len(shape) == 2 else reshape(self._right(reshape(v, (-1, 1))), (-1,))

    def _checked(self, factor: Value, axis: int, length: int, side: str) -> tuple[int, ...]:
        shape = shape_of(factor)
        if len(shape) not in (1, 2) or shape[axis] != length:
            raise ValueError(
                f"{type(self).__name__}.{side}: the Jacobian has shape {self.shape}; expected a factor of one or two "
                f"axes with length {length} along axis {axis}, got shape {shape}"
            )
        return shape

    def dense(self) -> Value:
        """All entries, an array of shape (n, m): by left products if n ≤ m, else by right products."""
        n, m = self.shape
        return self._left(np.eye(n)) if n <= m else self._right(np.eye(m))

    def __matmul__(self, other: Any) -> Any:
        return compose(self, other) if isinstance(other, CompactJacobian) else self.right(other)

    def __rmatmul__(self, other: Any) -> Any:
        return self.left(other)

    def __add__(self, other: CompactJacobian) -> CompactJacobian:
        return add(self, other)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.shape[0]} × {self.shape[1]}, {self.numbers} numbers>"


class IdentityMultiple(CompactJacobian):
    """c I, shape (n, n), for a number c."""

    __slots__ = ("entries",)

    def __init__(self, factor: Value, n: int) -> None:
        self.entries = factor
        self.shape, self.numbers = (n, n), 1

    def _left(self, w: Value) -> Value:
        return w if self.is_identity else times(w, self.entries)

    def _right(self, v: Value) -> Value:
        return self._left(v)

    @property
    def is_identity(self) -> bool:
        """Whether c is the plain number 1."""
        return type(self.entries) is float and self.entries == 1.0


class Dense(CompactJacobian):
    """All entries, shape (n, m)."""

    __slots__ = ("entries",)

    def __init__(self, entries: Value) -> None:
        self.entries = entries
        n, m = shape_of(entries)
        self.shape, self.numbers = (n, m), n * m

    def _left(self, w: Value) -> Value:
        return matmul(w, self.entries)

    def _right(self, v: Value) -> Value:
        return matmul(self.entries, v)

    def dense(self) -> Value:
        """The entries themselves."""
        return self.entries


_next_serial = itertools.count().__next__


class LazyProduct(CompactJacobian):
    """Σ_k L_k J_k, not yet multiplied. The J_k may be lazy too, and shared by several products.

    A product visits each of them once. A left product visits the newest first: reverse mode with a block of adjoints. A
    right product visits the oldest first: forward mode with a block of tangents.
    """

    __slots__ = ("serial", "terms")

    def __init__(self, terms: Sequence[tuple[CompactJacobian, CompactJacobian]]) -> None:
        self.terms = tuple(terms)
        self.serial = _next_serial()
        self.shape = (terms[0][0].shape[0], terms[0][1].shape[1])
        # Lazy J_k are shared and were counted where they were made.
        self.numbers = sum(a.numbers + (0 if isinstance(b, LazyProduct) else b.numbers) for a, b in terms)

    def _left(self, w: Value) -> Value:
        waiting: dict[int, Value] = {self.serial: w}
        total: Value = None
        for product in reversed(self._in_order()):
            adj = waiting.pop(product.serial)
            for first, rest in product.terms:
                part = first._left(adj)
                if isinstance(rest, LazyProduct):
                    waiting[rest.serial] = waiting[rest.serial] + part if rest.serial in waiting else part
                else:
                    part = rest._left(part)
                    total = part if total is None else total + part
        return total

    def _right(self, v: Value) -> Value:
        done: dict[int, Value] = {}
        for product in self._in_order():
            done[product.serial] = None
            for first, rest in product.terms:
                known = done[rest.serial] if isinstance(rest, LazyProduct) else rest._right(v)
                part, so_far = first._right(known), done[product.serial]
                done[product.serial] = part if so_far is None else so_far + part
        return done[self.serial]

    def _in_order(self) -> list[LazyProduct]:
        """All lazy products inside this one, each once, in order of creation."""
        by_serial: dict[int, LazyProduct] = {self.serial: self}
        waiting = [self]
        while waiting:
            for _, rest in waiting.pop().terms:
                if isinstance(rest, LazyProduct) and rest.serial not in by_serial:
                    by_serial[rest.serial] = rest
                    waiting.append(rest)
        return [by_serial[serial] for serial in sorted(by_serial)]


# The algebra

Form = Callable[[Any, Any], "CompactJacobian | None"]


COMPOSED: dict[tuple[type, type], Form] = {}
"""Compositions with a compact result; `CompactJacobian` means any form. A function returns None if it has none."""

SUMS: dict[tuple[type, type], Form] = {}
"""Sums with a compact result. A function returns None if it has none."""


def compose(a: CompactJacobian, b: CompactJacobian, *, lazy: bool = False) -> CompactJacobian:
    """A B, the chain rule: ∂z/∂x for A = ∂z/∂y and B = ∂y/∂x. With `lazy`, never multiply out."""
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"compose: shapes {a.shape} and {b.shape} do not match; expected (n, k) and (k, m)")
    for pair in ((type(a), type(b)), (CompactJacobian, type(b)), (type(a), CompactJacobian)):
        if pair in COMPOSED:
            closed = COMPOSED[pair](a, b)
            if closed is not None:
                return closed
    if not lazy:
        n, inner, m = a.shape[0], a.shape[1], b.shape[1]
        one_is_dense = isinstance(a, Dense) or isinstance(b, Dense)
        if n * m + (0 if one_is_dense else min(n, m) * inner) <= max(DENSE_LIMIT, a.numbers + b.numbers):
            if isinstance(b, Dense) or (m < n and not isinstance(a, Dense)):
                return Dense(a._right(b.dense()))
            return Dense(b._left(a.dense()))
    return LazyProduct([(a, b)])


def add(a: CompactJacobian, b: CompactJacobian, *, lazy: bool = False) -> CompactJacobian:
    """A + B, for two paths from x to y. With `lazy`, never multiply out."""
    if a.shape != b.shape:
        raise ValueError(f"add: shapes {a.shape} and {b.shape} do not match; they must be equal")
    closed = SUMS[type(a), type(b)](a, b) if (type(a), type(b)) in SUMS else None
    if closed is not None:
        return closed
    if not lazy and math.prod(a.shape) <= max(DENSE_LIMIT, a.numbers + b.numbers):
        return Dense(a.dense() + b.dense())
    identity = IdentityMultiple(1.0, a.shape[0])
    return LazyProduct([(identity, a), (identity, b)])


def identity(value: Value) -> IdentityMultiple:
    """∂x/∂x for a variable x."""
    return IdentityMultiple(1.0, math.prod(shape_of(value)))
