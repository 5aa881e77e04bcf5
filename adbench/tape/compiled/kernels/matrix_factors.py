"""Factorisations of matrices, and what follows from them: LAPACK's, or in its layout, in memory of the workspace.

LAPACK's matrices lie column by column: what it factors is the transpose of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adbench.tape.compiled.kernels.elimination import LARGEST, Elimination
from adbench.tape.compiled.kernels.lapack import at, call_lapack, home_for, oriented, result_of
from adbench.tape.compiled.kernels.natives import log
from adbench.tape.compiled.kernels.simd import Name, literal
from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.loop_fusion import SUM, Fold, Nest, Step, loop, moved_by
from adbench.tape.compiled.lowering.storage import SMALL, Big, Place, Shape, Small, size_of, viewed


def _copied(emission: Emission, place: Place, shape: Shape | None = None) -> Big:
    copy = emission.room(shape or place.shape)
    emission.copy(place, copy)
    return copy


def _factored(emission: Emission, place: Place) -> tuple[Big, Name]:
    """L U of Aᵀ (our rows are LAPACK's columns) and the rows exchanged; once for each A."""
    key = ("lu", id(emission.reading[0]))  # not its place: the same memory may hold another matrix later
    known = emission.computed.get(key)
    if known is None:
        n = place.shape[0]
        pivots = at(emission, emission.room((n,)))  # integers of four bytes: half of it
        if n <= LARGEST:
            here = Elimination(emission, n)
            lu = here.room()
            emission.copy(place, lu)
            here.factor(lu, pivots)
        else:
            lu = _copied(emission, place)
            call_lapack(emission, "dgetrf", [n, n, at(emission, lu), n, pivots, "info"])
        known = emission.computed[key] = (lu, pivots)
    return known


def _is_matrix(place: Place) -> bool:
    return len(place.shape) == 2 and place.shape[0] > 0


def inverse(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], shape: Shape, target: Big | None
) -> Place | None:
    """A⁻¹, from the factors of A."""
    if not _is_matrix(places[0]):
        return None
    n = shape[0]
    lu, pivots = _factored(emission, places[0])
    home = home_for(emission, shape, target)
    if n <= LARGEST:
        emission.copy(Elimination(emission, n).invert(lu, pivots), home)
        return result_of(emission, home)
    emission.copy(lu, home)
    work = emission.room((max(n * 64, 1),))
    call_lapack(emission, "dgetri", [n, at(emission, home), n, pivots, at(emission, work), n * 64, "info"])
    return result_of(emission, home)


def log_abs_det(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], _shape: Shape, _target: Big | None
) -> Place | None:
    """The sum of log |u| over the diagonal of U."""
    if not _is_matrix(places[0]):
        return None
    lu, _ = _factored(emission, places[0])
    diagonal = _diagonal(lu)
    total = emission.code.variable("[1 x double]")
    emission.code.do(f"store double {literal(0.0)}, ptr {total}, align 8")
    nest = Nest(emission.code, diagonal.shape)
    nest.steps.append(Step(0, lambda k, x: log(k, k.intrinsic("fabs", x)), [diagonal], False))
    nest.folds.append(Fold(SUM, 0, Big(total, 0, (0,), diagonal.shape)))
    nest.emit()
    return Small((emission.code.emit(f"load double, ptr {total}, align 8"),), ())


def sign_of_det(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], _shape: Shape, _target: Big | None
) -> Place | None:
    """One change of sign for each row exchanged, one for each negative entry of the diagonal."""
    if not _is_matrix(places[0]):
        return None
    code = emission.code
    lu, pivots = _factored(emission, places[0])
    diagonal, total = _diagonal(lu), code.variable("double")
    code.do(f"store double {literal(1.0)}, ptr {total}, align 8")

    def step(i: Name) -> None:
        pivot = code.emit(f"load i32, ptr {code.emit(f'getelementptr inbounds i32, ptr {pivots}, i64 {i}')}, align 4")
        own = code.emit(f"trunc i64 {code.emit(f'add i64 {i}, 1')} to i32")
        moved = code.emit(f"icmp ne i32 {pivot}, {own}")
        value = code.emit(f"load double, ptr {moved_by(code, at(emission, diagonal), i, diagonal.strides[0])}, align 8")
        turns = code.emit(f"xor i1 {moved}, {code.emit(f'fcmp olt double {value}, {literal(0.0)}')}")
        sign = code.emit(f"load double, ptr {total}, align 8")
        turned = code.emit(f"select i1 {turns}, double {code.emit(f'fneg double {sign}')}, double {sign}")
        code.do(f"store double {turned}, ptr {total}, align 8")

    loop(code, "0", str(diagonal.shape[0]), 1, step)
    return Small((code.emit(f"load double, ptr {total}, align 8"),), ())


def _diagonal(matrix: Big) -> Big:
    return Big(matrix.base, matrix.offset, (sum(matrix.strides),), matrix.shape[:1])


def solve(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], shape: Shape, target: Big | None
) -> Place | None:
    """A⁻¹ B, from the factors of A."""
    a, b = places
    if not _is_matrix(a) or len(b.shape) > 2 or size_of(shape) == 0:
        return None
    n = a.shape[0]
    lu, pivots = _factored(emission, a)
    if len(b.shape) == 1:
        home = home_for(emission, shape, target)
        emission.copy(b, home)
        call_lapack(
            emission, "dgetrs", ["T", n, 1, at(emission, lu), lu.strides[0], pivots, at(emission, home), n, "info"]
        )
        return result_of(emission, home)
    columns = b.shape[1]
    turned = emission.room((columns, n))  # LAPACK's columns
    emission.copy(b, viewed(turned, np.transpose))
    call_lapack(
        emission, "dgetrs", ["T", n, columns, at(emission, lu), lu.strides[0], pivots, at(emission, turned), n, "info"]
    )
    return _turned_back(emission, turned, shape)


def _turned_back(emission: Emission, turned: Big, shape: Shape) -> Place:
    view = viewed(turned, np.transpose)
    return Small(emission.elements(view), shape) if size_of(shape) <= SMALL else view


def triangular(
    emission: Emission, places: Sequence[Place], params: dict[str, Any], shape: Shape, _target: Big | None
) -> Place | None:
    """T⁻¹ B for a triangle of A."""
    a, b = places
    if not _is_matrix(a) or len(b.shape) > 2 or size_of(shape) == 0:
        return None
    n, columns = a.shape[0], 1 if len(b.shape) == 1 else b.shape[1]
    array, is_columns, line = oriented(emission, a)
    turned = emission.room((columns, n))
    emission.copy(
        b, Big(turned.base, turned.offset, (1,), b.shape) if len(b.shape) == 1 else viewed(turned, np.transpose)
    )
    upper = "L" if params["lower"] == is_columns else "U"
    letter = "N" if is_columns != params["transposed"] else "T"
    call_lapack(
        emission, "dtrtrs",
        [upper, letter, "N", n, columns, at(emission, array), line, at(emission, turned), n, "info"],
    )  # fmt: skip
    if len(b.shape) == 1:
        flat = Big(turned.base, turned.offset, (1,), shape)
        return Small(emission.elements(flat), shape) if size_of(shape) <= SMALL else flat
    return _turned_back(emission, turned, shape)


def cholesky(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], shape: Shape, target: Big | None
) -> Place | None:
    """The lower triangle L with A = L Lᵀ."""
    if not _is_matrix(places[0]):
        return None
    n = shape[0]
    home = home_for(emission, shape, target)
    emission.fill(Big(home.base, home.offset, (1,), (n * n,)), literal(0.0))
    code, source = emission.code, emission.in_memory(places[0])

    def row(i: Name) -> None:
        stop = code.emit(f"add i64 {i}, 1")
        left = moved_by(code, at(emission, source), i, source.strides[0])
        right = moved_by(code, at(emission, home), i, n)

        def element(j: Name) -> None:
            value = code.emit(f"load double, ptr {moved_by(code, left, j, source.strides[1])}, align 8")
            code.do(f"store double {value}, ptr {moved_by(code, right, j, 1)}, align 8")

        loop(code, "0", stop, 1, element)

    loop(code, "0", str(n), 1, row)
    call_lapack(emission, "dpotrf", ["U", n, at(emission, home), n, "info"])
    return result_of(emission, home)
