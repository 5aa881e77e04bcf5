"""BLAS and LAPACK through the C pointers that scipy publishes for Cython; eigenvalues, singular values and Q R by them.

Results have the packed layouts of `adbench.tape.linalg`. A packed array lies column by column, as LAPACK stores
matrices, so most factors are written where they stay.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from scipy.linalg import cython_blas, cython_lapack

from adbench.tape.compiled.lowering.emission import Emission, KernelOperation
from adbench.tape.compiled.lowering.storage import Buffer, Location, view_of
from adbench.tape.machine.simd import Name, Simd, literal

_known: set[str] = set()


def address_of(name: str) -> int:
    """The address of a function of BLAS or LAPACK in this process."""
    module: Any = cython_blas if name in cython_blas.__pyx_capi__ else cython_lapack
    capsule = module.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    pointer = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    return int(pointer)


def symbol_of(name: str) -> str:
    """The name by which native code calls the function."""
    symbol = f"adbench_{name}"
    if name not in _known:
        llvm.add_symbol(symbol, address_of(name))
        _known.add(name)
    return symbol


def call_lapack(emission: Emission, name: str, *arguments: str | int | Name) -> None:
    """Write a call with all arguments passed by address, as in Fortran.

    An integer is a constant of four bytes, a single letter a character, a text starting with 0x a double, and any other
    name a pointer. "info" is LAPACK's error number: if it is not 0, the function returns.
    """
    code, module = emission.code, emission.module
    pointers, info = [], None
    for argument in arguments:
        if isinstance(argument, int):
            pointers.append(module.constant(f"i32 {argument}"))
        elif argument == "info":
            info = code.variable("i32")
            code.store("0", info, "i32")
            pointers.append(info)
        elif len(argument) == 1:
            pointers.append(module.constant(f"i8 {ord(argument)}"))
        elif argument.startswith("0x"):
            pointers.append(module.constant(f"double {argument}"))
        else:
            pointers.append(argument)
    kinds = ", ".join(["ptr"] * len(pointers))
    function = module.declare(symbol_of(name), f"void {{}}({kinds})")
    code.do(f"call void {function}({', '.join(f'ptr {p}' for p in pointers)})")
    if info is not None:
        code.leave_if(code.emit(f"icmp ne i32 {code.load(info, 'i32')}, 0"), emission.leave_on_error())


def oriented(emission: Emission, location: Location) -> tuple[Buffer, bool, int]:
    """A matrix in BLAS's terms: (array, whether its rows are BLAS's rows, leading dimension)."""
    array = emission.in_memory(location)
    orientation_of = orientation(array)
    if orientation_of is None:
        return emission.contiguous(array), False, max(array.shape[1], 1)
    return array, *orientation_of


def orientation(array: Buffer) -> tuple[bool, int] | None:
    """Whether the rows of a matrix, or of each in a stack, are BLAS's rows, and the leading dimension.

    None if BLAS cannot read it.
    """
    (rows, columns), (m, n) = array.strides[-2:], array.shape[-2:]
    if columns == 1 and (rows >= n or m == 1):
        return False, max(rows, n)
    if rows == 1 and (columns >= m or n == 1):
        return True, max(columns, m)
    return None


BLOCK = 64
"""Columns that LAPACK reduces together: this many times n numbers are enough for its workspace."""


def _columns(emission: Emission, rows: int, columns: int) -> Buffer:
    """New memory for a matrix, column by column."""
    block = emission.allocate((columns, rows))
    return Buffer(block.base, block.offset, (1, rows), (rows, columns))


def copy_triangle(emission: Emission, source: Buffer, target: Buffer) -> None:
    """Copy the lower triangle of a matrix."""
    code = emission.code

    def row(i: Name) -> None:
        left = code.element(emission.pointer(source), i, source.strides[0])
        right = code.element(emission.pointer(target), i, target.strides[0])

        def entry(j: Name) -> None:
            number = code.load(code.element(left, j, source.strides[1]))
            code.store(number, code.element(right, j, target.strides[1]))

        code.loop(code.emit(f"add i64 {i}, 1"), entry)

    code.loop(target.shape[0], row)


def shared(emission: Emission, name: str, make: Callable[[], Any]) -> Any:
    """The factors of the operation's first operand, computed once."""
    key = (name, id(emission.reading[0]))  # not by location, because the memory may hold another matrix later
    if key not in emission.computed:
        emission.computed[key] = make()
    return emission.computed[key]


def _values(
    operation: KernelOperation, name: str, place: int, call: Callable[[Location, Buffer], None]
) -> Location | None:
    """Only the values: row `place` of factors that are there already, or what `call` writes for the matrix."""
    (a,), emission = operation.operands, operation.emission
    out, known = operation.output(), emission.computed.get((name, id(emission.reading[0])))
    if known is None:
        values = emission.allocate(out.shape)
        call(a, values)
        emission.copy(values, out)
    else:
        emission.copy(view_of(known, lambda x: x[place]), out)
    return emission.result(out)


def _dsyevd(emission: Emission, vectors: Buffer, values: Buffer, *, job: str) -> None:
    n = vectors.shape[0]
    size, whole = 1 + 6 * n + 2 * n * n + BLOCK * n, 3 + 5 * n
    work, integers = emission.allocate((size,)), emission.allocate((whole,))
    matrix = emission.pointer(vectors), vectors.strides[1]
    space = emission.pointer(work), size, emission.pointer(integers), whole
    call_lapack(emission, "dsyevd", job, "L", n, *matrix, emission.pointer(values), *space, "info")


def eigh(operation: KernelOperation) -> Location | None:
    """The eigenvalues of a symmetric matrix above its eigenvectors, from its lower triangle."""
    (a,), emission = operation.operands, operation.emission
    if operation.params["basis"] is not None:
        return None
    n = a.shape[0]

    def make() -> Buffer:
        packed, values = _columns(emission, 1 + n, n), emission.allocate((n,))
        vectors = view_of(packed, lambda x: x[1:])
        emission.copy(a, vectors)
        _dsyevd(emission, vectors, values, job="V")
        emission.copy(values, view_of(packed, lambda x: x[0]))
        emission.retain(packed)
        return packed

    return emission.result(shared(emission, "eigh", make))


def eigvalsh(operation: KernelOperation) -> Location | None:
    """The eigenvalues of a symmetric matrix."""
    emission = operation.emission

    def call(a: Location, values: Buffer) -> None:
        matrix = _columns(emission, *a.shape)
        emission.copy(a, matrix)
        _dsyevd(emission, matrix, values, job="N")

    return _values(operation, "eigh", 0, call)


def _dgesdd(emission: Emission, a: Location, values: Buffer, u: Buffer, vt: Buffer, *, job: str) -> None:
    m, n = a.shape
    k = min(m, n)
    matrix = _columns(emission, m, n)
    emission.copy(a, matrix)
    size = 4 * k * k + 7 * k + max(m, n) + BLOCK * (m + n)
    work, integers = emission.allocate((size,)), emission.allocate((8 * k,))
    factors = emission.pointer(u), u.strides[1], emission.pointer(vt), vt.strides[1]
    space = emission.pointer(work), size, emission.pointer(integers)
    call_lapack(
        emission, "dgesdd", job, m, n, emission.pointer(matrix), m, emission.pointer(values), *factors, *space, "info"
    )


def svd(operation: KernelOperation) -> Location | None:
    """U, the singular values and V, one above the other."""
    (a,), emission = operation.operands, operation.emission
    m, n = a.shape
    k = min(m, n)

    def make() -> Buffer:
        packed, values, vt = _columns(emission, m + 1 + n, k), emission.allocate((k,)), _columns(emission, k, n)
        _dgesdd(emission, a, values, view_of(packed, lambda x: x[:m]), vt, job="S")
        emission.copy(values, view_of(packed, lambda x: x[m]))
        emission.copy(view_of(vt, lambda x: x.T), view_of(packed, lambda x: x[m + 1 :]))
        emission.retain(packed)
        return packed

    return emission.result(shared(emission, "svd", make))


def svdvals(operation: KernelOperation) -> Location | None:
    """The singular values."""
    unused = _columns(operation.emission, 1, 1)
    rows = operation.operands[0].shape[-2]
    return _values(
        operation, "svd", rows, lambda a, values: _dgesdd(operation.emission, a, values, unused, unused, job="N")
    )


def pinv(operation: KernelOperation) -> Location | None:
    """V S⁺ Uᵀ, where 1 / s counts for singular values over `rcond` times the largest."""
    (a,), emission, code = operation.operands, operation.emission, operation.emission.code
    m, n = a.shape
    k, out, one = min(m, n), operation.output(), Simd(code, 1)
    u, vt, values = _columns(emission, m, k), _columns(emission, k, n), emission.allocate((k,))
    _dgesdd(emission, a, values, u, vt, job="S")
    numbers, rows = emission.pointer(values), emission.pointer(vt)
    least = one.binary("fmul", code.load(numbers), literal(operation.params["rcond"]))

    def scale(j: Name) -> None:
        """Row j of Vᵀ over its singular value."""
        s, row = code.load(code.element(numbers, j)), code.element(rows, j)
        factor = one.select(one.compare("ogt", s, least), one.binary("fdiv", literal(1.0), s), literal(0.0))

        def number(i: Name) -> None:
            place = code.element(row, i, k)
            code.store(one.binary("fmul", code.load(place), factor), place)

        code.loop(n, number)

    code.loop(k, scale)
    sizes, place = ("N", "N", m, n, k), emission.pointer(out)  # the columns of U S⁺ Vᵀ are the rows of its transpose
    call_lapack(emission, "dgemm", *sizes, literal(1.0), emission.pointer(u), m, rows, k, literal(0.0), place, m)
    return emission.result(out)


def qr(operation: KernelOperation) -> Location | None:
    """Q above Rᵀ."""
    (a,), emission = operation.operands, operation.emission
    if a.shape[0] < a.shape[1]:
        return None
    m, n = a.shape
    packed, factors, work = _columns(emission, m + n, n), emission.allocate((n,)), emission.allocate((BLOCK * n,))
    q, r = view_of(packed, lambda x: x[:m]), view_of(packed, lambda x: x[m:])
    emission.copy(a, q)
    matrix, line = emission.pointer(q), q.strides[1]
    space = emission.pointer(factors), emission.pointer(work), BLOCK * n, "info"
    call_lapack(emission, "dgeqrf", m, n, matrix, line, *space)
    emission.fill(r, literal(0.0))
    copy_triangle(emission, view_of(q, lambda x: x[:n].T), r)
    call_lapack(emission, "dorgqr", m, n, n, matrix, line, *space)
    return emission.result(packed)
