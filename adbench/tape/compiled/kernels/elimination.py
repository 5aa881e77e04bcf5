"""Generated code for factors and inverses of matrices so small that a call of LAPACK costs too much.

The layout is LAPACK's, so each can use the other's factors: the matrix M is the transpose of ours, and its columns are
stored like our rows. M = P L U by elimination with partial pivoting,

    for k:  exchange rows k and p, |M_pk| the largest from M_kk on
            M_ik ← M_ik / M_kk,  M_ij ← M_ij - M_ik M_kj  for i, j > k

(Golub and Van Loan, "Matrix Computations", algorithm 3.4.1). All loops run along columns, eight numbers at a time.
Columns are padded to a multiple of eight; the padding is never read as part of the matrix.
"""

from __future__ import annotations

from adbench.tape.compiled.kernels.simd import WIDTH, Name, Simd, literal
from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.storage import Buffer

LARGEST = 32
"""The largest order of matrices factored here; LAPACK, which works in blocks, factors larger ones."""


class Elimination:
    """Elimination in the columns of one matrix: `columns[j]` begins at `start` + j · `line`."""

    def __init__(self, emission: Emission, n: int) -> None:
        self.emission, self.code, self.n = emission, emission.code, n
        self.line = -(-n // WIDTH) * WIDTH
        self.many, self.one = Simd(self.code, WIDTH), Simd(self.code, 1)
        self.indices = "<i64 " + ", i64 ".join(map(str, range(WIDTH))) + ">"

    def allocate(self) -> Buffer:
        """Memory for a matrix whose column length is a multiple of eight."""
        whole = self.emission.allocate((self.n, self.line))
        return Buffer(whole.base, whole.offset, (self.line, 1), (self.n, self.n))

    def load(self, pointer: Name, i: Name) -> Name:
        """Entry i."""
        return self.code.load(self.code.element(pointer, i))

    def store(self, number: Name, pointer: Name, i: Name) -> None:
        """Write entry i."""
        self.code.store(number, self.code.element(pointer, i))

    def column(self, matrix: Name, j: Name) -> Name:
        """The address of column j."""
        return self.code.element(matrix, j, self.line)

    def factor(self, matrix: Buffer, pivots: Name) -> None:
        """Write P L U into the memory of M. As in LAPACK, `pivots` has the row exchanged with row k, counted from 1."""
        code, n, start = self.code, self.n, self.emission.pointer(matrix)
        largest, location = code.variable("double"), code.variable("i64")

        def step(k: Name) -> None:
            own = self.column(start, k)
            code.store(self.one.intrinsic("fabs", self.load(own, k)), largest)
            code.store(k, location, "i64")
            after = code.emit(f"add nuw nsw i64 {k}, 1")

            def compare(i: Name) -> None:
                size, best = self.one.intrinsic("fabs", self.load(own, i)), code.emit(f"load double, ptr {largest}")
                larger = self.one.compare("ogt", size, best)
                code.store(self.one.select(larger, size, best), largest)
                before = code.load(location, "i64")
                chosen = code.emit(f"select i1 {larger}, i64 {i}, i64 {before}")
                code.store(chosen, location, "i64")

            code.loop(n, compare, after)
            p = code.load(location, "i64")
            number = code.emit(f"trunc i64 {code.emit(f'add i64 {p}, 1')} to i32")
            code.do(
                f"store i32 {number}, ptr {code.emit(f'getelementptr inbounds i32, ptr {pivots}, i64 {k}')}, align 4"
            )
            self.exchange(start, k, p)
            pivot = self.load(own, k)
            code.leave_if(self.one.compare("oeq", pivot, literal(0.0)), self.emission.leave_on_error())
            self.divide(own, k, pivot)
            code.loop(n, lambda j: self.subtract(self.column(start, j), own, k, below=True), after)

        code.loop(n, step)

    def exchange(self, matrix: Name, k: Name, p: Name) -> None:
        """Exchange rows k and p of a matrix."""
        code, done = self.code, self.code.label()
        code.leave_if(code.emit(f"icmp eq i64 {k}, {p}"), done)

        def entry(j: Name) -> None:
            column = self.column(matrix, j)
            left, right = self.load(column, k), self.load(column, p)
            self.store(right, column, k)
            self.store(left, column, p)

        code.loop(self.n, entry)
        code.do(f"br label %{done}")
        code.begin(done)

    def blocks(self, k: Name, *, below: bool) -> tuple[Name, Name]:
        """The start and end of the vectors of eight with entries after k (`below`), or before k."""
        first = self.code.emit(f"and i64 {k}, {-WIDTH}")
        return (first, str(self.line)) if below else ("0", self.code.emit(f"add nuw nsw i64 {first}, {WIDTH}"))

    def chosen(self, i: Name, k: Name, *, below: bool) -> Name:
        """A mask of those entries i … i + 7 that are after k (`below`), or before k."""
        locations = self.many.integers("add", self.many.splat(i, "i64"), self.indices)
        condition = "sgt" if below else "slt"
        return self.code.emit(f"icmp {condition} {self.many.integer} {locations}, {self.many.splat(k, 'i64')}")

    def subtract(self, target: Name, column: Name, k: Name, *, below: bool) -> None:
        """target_i ← target_i - target_k column_i for the i after k (`below`), or before k."""
        code, many = self.code, self.many
        factor = many.splat(code.emit(f"fneg double {self.load(target, k)}"))
        first, end = self.blocks(k, below=below)

        def eight(i: Name) -> None:
            mine, theirs = code.element(target, i), code.element(column, i)
            before, other = (code.emit(f"load {many.real}, ptr {p}, align 8") for p in (mine, theirs))
            less = many.intrinsic("fmuladd", factor, other, before)
            after = many.select(self.chosen(i, k, below=below), less, before)
            code.do(f"store {many.real} {after}, ptr {mine}, align 8")

        code.loop(end, eight, first, WIDTH)

    def divide(self, column: Name, k: Name, by: Name) -> None:
        """column_i ← column_i / by for the i after k."""
        code, many = self.code, self.many
        divisor = many.splat(by)
        first, end = self.blocks(k, below=True)

        def eight(i: Name) -> None:
            location = code.element(column, i)
            before = code.emit(f"load {many.real}, ptr {location}, align 8")
            after = many.select(self.chosen(i, k, below=True), many.binary("fdiv", before, divisor), before)
            code.do(f"store {many.real} {after}, ptr {location}, align 8")

        code.loop(end, eight, first, WIDTH)

    def invert(self, factors: Buffer, pivots: Name) -> Buffer:
        """U⁻¹ L⁻¹ P in new memory, solving both triangles for all columns of P at once."""
        code, n, emission = self.code, self.n, self.emission
        inverse = self.allocate()
        start, triangles = emission.pointer(inverse), emission.pointer(factors)
        whole = Buffer(inverse.base, inverse.offset, (1,), (n * self.line,))
        emission.fill(whole, literal(0.0))
        code.loop(n, lambda j: self.store(literal(1.0), self.column(start, j), j))

        def permute(k: Name) -> None:
            row = code.load(code.emit(f"getelementptr inbounds i32, ptr {pivots}, i64 {k}"), "i32")
            self.exchange(start, k, code.emit(f"sub i64 {code.emit(f'zext i32 {row} to i64')}, 1"))

        code.loop(n, permute)

        def forward(k: Name) -> None:
            own = self.column(triangles, k)
            code.loop(n, lambda j: self.subtract(self.column(start, j), own, k, below=True))

        code.loop(n, forward)

        def backward(step: Name) -> None:
            k = code.emit(f"sub i64 {n - 1}, {step}")
            own = self.column(triangles, k)
            pivot = self.load(own, k)

            def solve(j: Name) -> None:
                column = self.column(start, j)
                self.store(self.one.binary("fdiv", self.load(column, k), pivot), column, k)
                self.subtract(column, own, k, below=False)

            code.loop(n, solve)

        code.loop(n, backward)
        return inverse
