"""Operations with code of their own: BLAS and LAPACK, running sums, rows at a loop's counter, and calls into Python.

BLAS and LAPACK are those that scipy brings, called through its C pointers. Their matrices lie column by column, which
is the transpose of ours: A B is asked for as Bᵀ Aᵀ. Each entry of `KERNELS` writes the code and says where the result
is, or gives None if it has none for these shapes; the rule is then called in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import factorisations, products, reductions, solving
from ..rule import Rule
from .emission import Emission
from .lanes import Name, literal
from .lapack import call_lapack
from .nests import SUM, Fold, Nest, Step, loop, moved_by
from .places import SMALL, Big, Place, Shape, Small, Uniform, row_by_row, size_of, viewed
from .predicates import PUT, TAKE

Kernel = Callable[[Emission, Sequence[Any], "dict[str, Any]", Shape, "Big | None"], "Place | None"]


def _result(emission: Emission, array: Big) -> Place:
    """A result in memory, in registers if it is small."""
    return Small(emission.elements(array), array.shape) if size_of(array.shape) <= SMALL else array


def _home(emission: Emission, shape: Shape, target: Big | None) -> Big:
    return target if target is not None and target.is_contiguous else emission.room(shape)


# Products of matrices


def _matmul(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], shape: Shape, target: Big | None
) -> Place | None:
    a, b = places
    if len(a.shape) > 2 or len(b.shape) > 2:
        return None
    if size_of(a.shape) <= SMALL and size_of(b.shape) <= SMALL and size_of(shape) <= SMALL:
        return _small_product(emission, a, b, shape)
    if a.shape[-1] == 0 or size_of(shape) == 0:
        home = _home(emission, shape, target)
        emission.fill(Big(home.base, home.offset, (1,), (size_of(shape),)), literal(0.0))
        return _result(emission, home)
    home = _home(emission, shape, target)
    if len(a.shape) == 1 == len(b.shape):
        return _dot(emission, a, b)
    if len(a.shape) == 2 == len(b.shape):
        _gemm(emission, a, b, home)
    else:
        matrix, vector = (a, b) if len(a.shape) == 2 else (b, a)
        _gemv(emission, matrix, vector, home, transposed=len(a.shape) == 1)
    return _result(emission, home)


def _small_product(emission: Emission, a: Place, b: Place, shape: Shape) -> Place:
    """Element by element, in registers."""
    left, right = emission.elements(a), emission.elements(b)
    inner = a.shape[-1]
    rows, columns = size_of(a.shape) // max(inner, 1) if len(a.shape) > 1 else 1, b.shape[1] if len(b.shape) > 1 else 1
    names = []
    for i in range(rows):
        for j in range(columns):
            total: Name = literal(0.0)
            for k in range(inner):
                term = emission.code.emit(
                    f"fmul{emission.module.flags} double {left[i * inner + k]}, {right[k * columns + j]}"
                )
                total = term if k == 0 else emission.code.emit(f"fadd{emission.module.flags} double {total}, {term}")
            names.append(total)
    return Small(tuple(names), shape)


def _dot(emission: Emission, a: Place, b: Place) -> Place:
    total = emission.code.variable("[1 x double]")
    emission.code.do(f"store double {literal(0.0)}, ptr {total}, align 8")
    nest = Nest(emission.code, a.shape)
    operands: list[int | Place] = [p if isinstance(p, Uniform) else emission.in_memory(p) for p in (a, b)]
    nest.steps.append(Step(0, lambda k, x, y: k.binary("fmul", x, y), operands, False))
    nest.folds.append(Fold(SUM, 0, Big(total, 0, (0,), a.shape)))
    nest.emit()
    return Small((emission.code.emit(f"load double, ptr {total}, align 8"),), ())


def _oriented(emission: Emission, place: Place) -> tuple[Big, bool, int]:
    """A matrix as BLAS takes it: (array, whether its rows are BLAS's rows, distance of its lines)."""
    array = emission.in_memory(place)
    rows, columns = array.strides
    m, n = array.shape
    if columns == 1 and (rows >= n or m == 1):
        return array, False, max(rows, n)
    if rows == 1 and (columns >= m or n == 1):
        return array, True, max(columns, m)
    array = emission.contiguous(array)
    return array, False, max(n, 1)


def _at(emission: Emission, array: Big) -> Name:
    if array.offset == 0:
        return array.base
    return emission.code.emit(f"getelementptr inbounds double, ptr {array.base}, i64 {array.offset}")


def _gemm(emission: Emission, a: Place, b: Place, home: Big) -> None:
    """home = a b, as BLAS's columns: homeᵀ = bᵀ aᵀ."""
    (left, left_t, left_line), (right, right_t, right_line) = _oriented(emission, a), _oriented(emission, b)
    m, inner = a.shape
    n = b.shape[1]
    one, zero = literal(1.0), literal(0.0)
    letters = ["T" if right_t else "N", "T" if left_t else "N"]
    call_lapack(
        emission, "dgemm",
        [*letters, n, m, inner, one, _at(emission, right), right_line, _at(emission, left), left_line, zero,
         _at(emission, home), n],
    )  # fmt: skip


def _gemv(emission: Emission, matrix: Place, vector: Place, home: Big, *, transposed: bool) -> None:
    """home = matrix vector, or matrixᵀ vector."""
    array, is_columns, line = _oriented(emission, matrix)
    x = emission.in_memory(vector)
    m, n = array.shape
    rows, columns = (m, n) if is_columns else (n, m)
    letter = "N" if is_columns != transposed else "T"
    step = x.strides[0]
    if step <= 0:
        x = emission.contiguous(x)
        step = 1
    one, zero = literal(1.0), literal(0.0)
    call_lapack(
        emission, "dgemv",
        [letter, rows, columns, one, _at(emission, array), line, _at(emission, x), step, zero, _at(emission, home), 1],
    )  # fmt: skip


# Factorisations


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
        lu = _copied(emission, place)
        pivots = emission.room((n,))  # integers of four bytes: half of it
        call_lapack(emission, "dgetrf", [n, n, _at(emission, lu), n, _at(emission, pivots), "info"])
        known = emission.computed[key] = (lu, _at(emission, pivots))
    return known


def _is_matrix(place: Place) -> bool:
    return len(place.shape) == 2 and place.shape[0] > 0


def _inverse(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], shape: Shape, target: Big | None
) -> Place | None:
    if not _is_matrix(places[0]):
        return None
    n = shape[0]
    lu, pivots = _factored(emission, places[0])
    home = _home(emission, shape, target)
    emission.copy(lu, home)
    work = emission.room((max(n * 64, 1),))
    call_lapack(emission, "dgetri", [n, _at(emission, home), n, pivots, _at(emission, work), n * 64, "info"])
    return _result(emission, home)


def _log_abs_det(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], _shape: Shape, _target: Big | None
) -> Place | None:
    if not _is_matrix(places[0]):
        return None
    lu, _ = _factored(emission, places[0])
    diagonal = _diagonal(lu)
    total = emission.code.variable("[1 x double]")
    emission.code.do(f"store double {literal(0.0)}, ptr {total}, align 8")
    from .natives import log

    nest = Nest(emission.code, diagonal.shape)
    nest.steps.append(Step(0, lambda k, x: log(k, k.intrinsic("fabs", x)), [diagonal], False))
    nest.folds.append(Fold(SUM, 0, Big(total, 0, (0,), diagonal.shape)))
    nest.emit()
    return Small((emission.code.emit(f"load double, ptr {total}, align 8"),), ())


def _sign_of_det(
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
        value = code.emit(
            f"load double, ptr {moved_by(code, _at(emission, diagonal), i, diagonal.strides[0])}, align 8"
        )
        turns = code.emit(f"xor i1 {moved}, {code.emit(f'fcmp olt double {value}, {literal(0.0)}')}")
        sign = code.emit(f"load double, ptr {total}, align 8")
        turned = code.emit(f"select i1 {turns}, double {code.emit(f'fneg double {sign}')}, double {sign}")
        code.do(f"store double {turned}, ptr {total}, align 8")

    loop(code, "0", str(diagonal.shape[0]), 1, step)
    return Small((code.emit(f"load double, ptr {total}, align 8"),), ())


def _diagonal(matrix: Big) -> Big:
    return Big(matrix.base, matrix.offset, (sum(matrix.strides),), matrix.shape[:1])


def _solve(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], shape: Shape, target: Big | None
) -> Place | None:
    a, b = places
    if not _is_matrix(a) or len(b.shape) > 2 or size_of(shape) == 0:
        return None
    n = a.shape[0]
    lu, pivots = _factored(emission, a)
    if len(b.shape) == 1:
        home = _home(emission, shape, target)
        emission.copy(b, home)
        call_lapack(emission, "dgetrs", ["T", n, 1, _at(emission, lu), n, pivots, _at(emission, home), n, "info"])
        return _result(emission, home)
    columns = b.shape[1]
    turned = emission.room((columns, n))  # LAPACK's columns
    emission.copy(b, viewed(turned, np.transpose))
    call_lapack(emission, "dgetrs", ["T", n, columns, _at(emission, lu), n, pivots, _at(emission, turned), n, "info"])
    return _turned_back(emission, turned, shape)


def _turned_back(emission: Emission, turned: Big, shape: Shape) -> Place:
    view = viewed(turned, np.transpose)
    return Small(emission.elements(view), shape) if size_of(shape) <= SMALL else view


def _triangular(
    emission: Emission, places: Sequence[Place], params: dict[str, Any], shape: Shape, _target: Big | None
) -> Place | None:
    a, b = places
    if not _is_matrix(a) or len(b.shape) > 2 or size_of(shape) == 0:
        return None
    n, columns = a.shape[0], 1 if len(b.shape) == 1 else b.shape[1]
    array, is_columns, line = _oriented(emission, a)
    turned = emission.room((columns, n))
    emission.copy(
        b, Big(turned.base, turned.offset, (1,), b.shape) if len(b.shape) == 1 else viewed(turned, np.transpose)
    )
    upper = "L" if params["lower"] == is_columns else "U"
    letter = "N" if is_columns != params["transposed"] else "T"
    call_lapack(
        emission, "dtrtrs",
        [upper, letter, "N", n, columns, _at(emission, array), line, _at(emission, turned), n, "info"],
    )  # fmt: skip
    if len(b.shape) == 1:
        flat = Big(turned.base, turned.offset, (1,), shape)
        return Small(emission.elements(flat), shape) if size_of(shape) <= SMALL else flat
    return _turned_back(emission, turned, shape)


def _cholesky(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], shape: Shape, target: Big | None
) -> Place | None:
    if not _is_matrix(places[0]):
        return None
    n = shape[0]
    home = _home(emission, shape, target)
    emission.fill(Big(home.base, home.offset, (1,), (n * n,)), literal(0.0))
    code, source = emission.code, emission.in_memory(places[0])

    def row(i: Name) -> None:
        stop = code.emit(f"add i64 {i}, 1")
        left = moved_by(code, _at(emission, source), i, source.strides[0])
        right = moved_by(code, _at(emission, home), i, n)

        def element(j: Name) -> None:
            value = code.emit(f"load double, ptr {moved_by(code, left, j, source.strides[1])}, align 8")
            code.do(f"store double {value}, ptr {moved_by(code, right, j, 1)}, align 8")

        loop(code, "0", stop, 1, element)

    loop(code, "0", str(n), 1, row)
    call_lapack(emission, "dpotrf", ["U", n, _at(emission, home), n, "info"])
    return _result(emission, home)


# Others


def _running(op: str, start: float) -> Kernel:
    """A cumulative sum or product."""

    def write(
        emission: Emission, places: Sequence[Place], params: dict[str, Any], shape: Shape, target: Big | None
    ) -> Place | None:
        return _run_along(emission, places[0], params["axis"], shape, target, op, start)

    return write


def _run_along(
    emission: Emission, place: Place, axis: int, shape: Shape, target: Big | None, op: str, start: float
) -> Place | None:
    code = emission.code
    source, home = emission.in_memory(place), _home(emission, shape, target)
    others = [a for a in range(len(shape)) if a != axis]

    def along(depth: int, left: Name, right: Name) -> None:
        if depth < len(others):
            a = others[depth]
            loop(
                code, "0", str(shape[a]), 1,
                lambda i: along(
                    depth + 1, moved_by(code, left, i, source.strides[a]), moved_by(code, right, i, home.strides[a])
                ),
            )  # fmt: skip
            return
        total = code.variable("double")
        code.do(f"store double {literal(start)}, ptr {total}, align 8")

        def step(i: Name) -> None:
            value = code.emit(f"load double, ptr {moved_by(code, left, i, source.strides[axis])}, align 8")
            so_far = code.emit(f"{op} double {code.emit(f'load double, ptr {total}, align 8')}, {value}")
            code.do(f"store double {so_far}, ptr {total}, align 8")
            code.do(f"store double {so_far}, ptr {moved_by(code, right, i, home.strides[axis])}, align 8")

        loop(code, "0", str(shape[axis]), 1, step)

    along(0, _at(emission, source), _at(emission, home))
    return _result(emission, home)


def counter_of(emission: Emission, place: Place) -> Name:
    """A loop's counter, which is kept as a number, as an integer."""
    return emission.code.emit(f"fptosi double {emission.elements(place)[0]} to i64")


def row_of(emission: Emission, array: Big, i: Name) -> Place:
    """array[i] for a counter."""
    base = moved_by(emission.code, _at(emission, array), i, array.strides[0])
    row = Big(base, 0, array.strides[1:], array.shape[1:], array.boolean)
    return Small(emission.elements(row), row.shape, row.boolean) if size_of(row.shape) <= SMALL else row


def _take(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], shape: Shape, _target: Big | None
) -> Place | None:
    x, i = places
    if isinstance(x, Uniform):
        return Small((x.element,) * size_of(shape), shape) if size_of(shape) <= SMALL else Uniform(x.element, shape)
    return row_of(emission, emission.in_memory(x), counter_of(emission, i))


def _put(
    emission: Emission, places: Sequence[Place], _params: dict[str, Any], shape: Shape, _target: Big | None
) -> Place | None:
    row, i = places
    home = emission.room(shape) if size_of(shape) > SMALL else emission.in_memory(
        Small((literal(0.0),) * size_of(shape), shape)
    )  # fmt: skip
    emission.fill(Big(home.base, home.offset, (1,), (size_of(shape),)), literal(0.0))
    base = moved_by(emission.code, _at(emission, home), counter_of(emission, i), home.strides[0])
    emission.copy(row, Big(base, 0, home.strides[1:], home.shape[1:]))
    return _result(emission, home)


KERNELS: dict[Rule, Kernel] = {
    products.matmul: _matmul,
    solving._inv: _inverse,
    solving._solve: _solve,
    solving.triangular: _triangular,
    solving._log_abs_det: _log_abs_det,
    factorisations._cholesky: _cholesky,
    reductions._cumsum: _running("fadd", -0.0),
    reductions._cumprod: _running("fmul", 1.0),
    solving._sign_of_det: _sign_of_det,
    TAKE: _take,
    PUT: _put,
}


# Calls into Python


def called_in_python(
    emission: Emission,
    rule: Rule,
    places: Sequence[Place | None],
    params: dict[str, Any],
    shape: Shape,
    boolean: bool = False,
) -> Place:
    """A node whose value is computed by the rule's own function, on arrays that look at the operands' memory."""
    code, module = emission.code, emission.module
    arrays = [None if p is None else emission.contiguous(p) for p in places]
    home = emission.room(shape, boolean)
    emission.python_calls.append(rule.name)
    count = len(arrays) + 1
    table = code.variable(f"[{count} x ptr]")
    for k, array in enumerate([*arrays, home]):
        slot = code.emit(f"getelementptr inbounds ptr, ptr {table}, i64 {k}")
        code.do(f"store ptr {'null' if array is None else _at(emission, array)}, ptr {slot}, align 8")
    call = PythonCall(rule, params, tuple(None if p is None else (p.shape, p.boolean) for p in places), shape)
    function = module.outside(code, id(call), call)
    to_int = module.declare("PyLong_FromVoidPtr", "ptr {}(ptr)")
    to_call = module.declare("PyObject_CallOneArg", "ptr {}(ptr, ptr)")
    drop = module.declare("Py_DecRef", "void {}(ptr)")
    where = code.emit(f"call ptr {to_int}(ptr {table})")
    answer = code.emit(f"call ptr {to_call}(ptr {function}, ptr {where})")
    code.do(f"call void {drop}(ptr {where})")
    failed, went_well, bad = code.emit(f"icmp eq ptr {answer}, null"), code.label(), emission.leave_on_error()
    code.do(f"br i1 {failed}, label %{bad}, label %{went_well}")
    code.begin(went_well)
    code.do(f"call void {drop}(ptr {answer})")
    return Small(emission.elements(home), shape, boolean) if size_of(shape) <= SMALL else home


class PythonCall:
    """What native code calls: address of a table of pointers -> the rule's value, written into the last of them."""

    def __init__(self, rule: Rule, params: dict[str, Any], given: Sequence[Any], shape: Shape) -> None:
        self.rule = rule
        self.params = params
        self.given = given
        self.shape = shape

    def __call__(self, table: int) -> None:
        """Raises what the rule raises."""
        import ctypes

        pointers = (ctypes.c_void_p * (len(self.given) + 1)).from_address(table)
        inputs = [
            None if about is None else _look(pointer, about[0], about[1])
            for pointer, about in zip(pointers, self.given, strict=False)
        ]
        with np.errstate(all="ignore"):
            value = self.rule.value(*inputs, **self.params)
        _array_at(pointers[len(self.given)], self.shape)[...] = np.asarray(value, np.float64)


def _array_at(pointer: int | None, shape: Shape) -> Any:
    import ctypes

    count = max(size_of(shape), 1)
    memory = (ctypes.c_double * count).from_address(pointer or 0)
    every = np.ctypeslib.as_array(memory)
    return every[: size_of(shape)].reshape(shape)


def _look(pointer: int | None, shape: Shape, boolean: bool) -> Any:
    array = _array_at(pointer, shape)
    if boolean:
        array = array != 0.0
    return array.copy() if shape else (bool(array[()]) if boolean else float(array[()]))


__all__ = ["KERNELS", "PythonCall", "called_in_python", "counter_of", "row_by_row", "row_of"]
