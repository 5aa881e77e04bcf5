"""Generated code for factors and inverses of matrices so small that a call of LAPACK costs too much.

The layout is LAPACK's, so each can use the other's factors: the matrix M is the transpose of ours, and its columns are
stored like our rows. M = P L U by elimination with partial pivoting,

    for k:  exchange rows k and p, |M_pk| the largest from M_kk on
            M_ik ← M_ik / M_kk,  M_ij ← M_ij - M_ik M_kj  for i, j > k

(Golub and Van Loan, "Matrix Computations", algorithm 3.4.1). Loops run along columns, eight numbers at a time, four
columns together. The inverse is solved from both triangles by tiles of rows in registers. Columns are padded to a
multiple of eight; the padding is never read as part of the matrix.
"""

from __future__ import annotations

from adbench.tape.compiled.kernels.small_matrices import has_registers
from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.storage import Buffer
from adbench.tape.machine.simd import WIDTH, Name, Simd, literal

LARGEST, LARGEST_ELSEWHERE = 256, 32
"""The largest order of matrices factored here; LAPACK, which works in blocks, factors larger ones. The second holds
without optimisation, and for processors without registers for the tiles."""

UNROLLED = 4
"""The largest order of matrices that are factored in registers, without loops."""

LINES = 4
"""The number of columns that elimination changes at a time."""

ROWS, VECTORS = 8, 2
"""The size of a tile that stays in registers: rows, and vectors of eight columns."""


def is_generated(emission: Emission, n: int) -> bool:
    """Whether generated code factors a matrix of this order."""
    return n <= (LARGEST if emission.level > 0 and has_registers() else LARGEST_ELSEWHERE)


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
        if n <= UNROLLED:
            self.factor_in_registers(start, pivots)
            return
        factors = code.variable(f"[{self.line} x double]")

        def step(k: Name) -> None:
            own = self.column(start, k)
            p = self.largest(own, k)
            self.keep_pivot(pivots, k, p)
            self.exchange(start, k, p)
            pivot = self.load(own, k)
            code.leave_if(self.one.compare("oeq", pivot, literal(0.0)), self.emission.leave_on_error())
            self.divide(own, k, pivot, factors)
            after = code.emit(f"add nuw nsw i64 {k}, 1")
            count = code.emit(f"and i64 {code.emit(f'sub i64 {n}, {after}')}, {-LINES}")
            whole = code.emit(f"add i64 {after}, {count}")
            code.loop(whole, lambda j: self.subtract(start, j, LINES, factors, k), after, LINES)
            code.loop(n, lambda j: self.subtract(start, j, 1, factors, k), whole)

        code.loop(n, step)

    def keep_pivot(self, pivots: Name, k: Name, p: Name) -> None:
        """Write that row k was exchanged with row p."""
        number = self.code.emit(f"trunc i64 {self.code.emit(f'add i64 {p}, 1')} to i32")
        self.code.store(number, self.code.emit(f"getelementptr inbounds i32, ptr {pivots}, i64 {k}"), "i32")

    def factor_in_registers(self, start: Name, pivots: Name) -> None:
        """Factor the matrix in registers, with selections for exchanges, so that no jump depends on the data."""
        code, one, every = self.code, self.one, range(self.n)
        places = {(i, j): code.element(start, str(i + j * self.line)) for j in every for i in every}
        m = {place: code.load(address) for place, address in places.items()}
        for k in every:
            p, best = str(k), one.intrinsic("fabs", m[k, k])
            for i in range(k + 1, self.n):
                size = one.intrinsic("fabs", m[i, k])
                larger = one.compare("ogt", size, best)
                best = one.select(larger, size, best)
                p = code.emit(f"select i1 {larger}, i64 {i}, i64 {p}")
            self.keep_pivot(pivots, str(k), p)
            above = {j: m[k, j] for j in every}
            for i in range(k + 1, self.n):
                is_pivot = code.emit(f"icmp eq i64 {p}, {i}")
                for j in every:
                    m[k, j], m[i, j] = one.select(is_pivot, m[i, j], m[k, j]), one.select(is_pivot, above[j], m[i, j])
            code.leave_if(one.compare("oeq", m[k, k], literal(0.0)), self.emission.leave_on_error())
            for i in range(k + 1, self.n):
                m[i, k] = one.binary("fdiv", m[i, k], m[k, k])
                for j in range(k + 1, self.n):
                    negative = code.emit(f"fneg double {m[k, j]}")
                    m[i, j] = one.intrinsic("fmuladd", negative, m[i, k], m[i, j])
        for place, address in places.items():
            code.store(m[place], address)

    def largest(self, column: Name, k: Name) -> Name:
        """The first position of the largest |entry| of a column from k on; NaN counts as small."""
        code = self.code
        best, where = code.variable("double"), code.variable("i64")
        code.store(self.one.intrinsic("fabs", self.load(column, k)), best)
        code.store(k, where, "i64")

        def compare(i: Name) -> None:
            size, before = self.one.intrinsic("fabs", self.load(column, i)), code.load(best)
            larger = self.one.compare("ogt", size, before)
            code.store(self.one.select(larger, size, before), best)
            chosen = code.emit(f"select i1 {larger}, i64 {i}, i64 {code.load(where, 'i64')}")
            code.store(chosen, where, "i64")

        code.loop(self.n, compare, code.emit(f"add nuw nsw i64 {k}, 1"))
        return code.load(where, "i64")

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

    def subtract(self, matrix: Name, j: Name, lines: int, factors: Name, k: Name) -> None:
        """M_ij ← M_ij - f_i M_kj for some columns from j on; f_i is 0 for the i up to k."""
        code, many = self.code, self.many
        targets = [self.column(matrix, code.emit(f"add i64 {j}, {q}")) for q in range(lines)]
        entries = [many.splat(code.emit(f"fneg double {self.load(target, k)}")) for target in targets]

        def eight(i: Name) -> None:
            other = many.load(code.element(factors, i))
            for target, entry in zip(targets, entries, strict=True):
                place = code.element(target, i)
                many.store(many.intrinsic("fmuladd", entry, other, many.load(place)), place)

        code.loop(str(self.line), eight, code.emit(f"and i64 {k}, {-WIDTH}"), WIDTH)

    def divide(self, column: Name, k: Name, by: Name, factors: Name) -> None:
        """f_i = M_ik ← M_ik / by for the i after k, and f_i = 0 for others next to them."""
        code, many = self.code, self.many
        divisor = many.splat(by)

        def eight(i: Name) -> None:
            place = code.element(column, i)
            before = many.load(place)
            locations = many.integers("add", many.splat(i, "i64"), self.indices)
            is_after = code.emit(f"icmp sgt {many.integer} {locations}, {many.splat(k, 'i64')}")
            quotient = many.binary("fdiv", before, divisor)
            many.store(many.select(is_after, quotient, before), place)
            many.store(many.select(is_after, quotient, many.constant(0.0)), code.element(factors, i))

        code.loop(str(self.line), eight, code.emit(f"and i64 {k}, {-WIDTH}"), WIDTH)

    def invert(self, factors: Buffer, pivots: Name) -> Buffer:
        """M⁻¹ = U⁻¹ L⁻¹ P in new memory, row after row (the factors are column after column), as a transposed view."""
        code, n, emission = self.code, self.n, self.emission
        whole = emission.allocate((n, self.line))
        start, triangles = emission.pointer(whole), emission.pointer(factors)
        emission.fill(whole.flat(), literal(0.0))
        order = code.variable(f"[{n} x i64]")

        def place(k: Name) -> Name:
            return code.emit(f"getelementptr inbounds i64, ptr {order}, i64 {k}")

        code.loop(n, lambda k: code.store(k, place(k), "i64"))

        def permute(k: Name) -> None:
            row = code.load(code.emit(f"getelementptr inbounds i32, ptr {pivots}, i64 {k}"), "i32")
            p = code.emit(f"sub i64 {code.emit(f'zext i32 {row} to i64')}, 1")
            left, right = code.load(place(k), "i64"), code.load(place(p), "i64")
            code.store(right, place(k), "i64")
            code.store(left, place(p), "i64")

        code.loop(n, permute)
        code.loop(n, lambda i: self.store(literal(1.0), self.column(start, i), code.load(place(i), "i64")))
        blocks, rest = divmod(n, ROWS)
        code.loop(blocks * ROWS, lambda i: self.solve(start, triangles, i, ROWS, upper=False), step=ROWS)
        if rest:
            self.solve(start, triangles, str(blocks * ROWS), rest, upper=False)
            self.solve(start, triangles, str(blocks * ROWS), rest, upper=True)

        def backward(step: Name) -> None:
            self.solve(start, triangles, code.emit(f"sub i64 {(blocks - 1) * ROWS}, {step}"), ROWS, upper=True)

        code.loop(blocks * ROWS, backward, step=ROWS)
        return Buffer(whole.base, whole.offset, (1, self.line), (n, n))

    def solve(self, start: Name, triangles: Name, i: Name, rows: int, *, upper: bool) -> None:
        """Solve rows i … i + rows - 1 of L X = B or U X = B in place; the rows before, or for U after them, are solved.

        x_r ← b_r - Σ_k T_rk x_k first over the other blocks, then over this one. Tiles of the rows stay in registers.
        """
        code, width = self.code, VECTORS * WIDTH
        diagonal = code.element(self.column(triangles, i), i)  # T_rk is at r + k · line
        inverses = []
        for r in range(rows) if upper else ():
            pivot = self.load(diagonal, str(r * (self.line + 1)))
            inverses.append(self.many.splat(self.one.binary("fdiv", literal(1.0), pivot)))
        whole = self.line // width * width

        def tile(j: Name, vectors: int) -> None:
            self.tile(code.element(start, j), code.element(triangles, i), diagonal, i, rows, vectors, inverses)

        code.loop(whole, lambda j: tile(j, VECTORS), step=width)
        if self.line > whole:
            tile(str(whole), (self.line - whole) // WIDTH)

    def tile(self, x: Name, left: Name, diagonal: Name, i: Name, rows: int, vectors: int, inverses: list[Name]) -> None:
        """Solve some vectors of eight columns; with `inverses` of its diagonal, T is the upper triangle."""
        code, many = self.code, self.many
        own = self.column(x, i)
        order = list(range(rows))
        places = [[code.element(own, str(r * self.line + c * WIDTH)) for c in range(vectors)] for r in order]
        sums = [[code.variable(many.real) for _ in range(vectors)] for _ in order]
        for r in order:
            for sum_, place in zip(sums[r], places[r], strict=True):
                code.do(f"store {many.real} {many.load(place)}, ptr {sum_}, align 64")

        def step(k: Name) -> None:
            column, solved = self.column(left, k), self.column(x, k)
            others = [many.load(code.element(solved, str(c * WIDTH))) for c in range(vectors)]
            for r in order:
                factor = many.splat(code.emit(f"fneg double {self.load(column, str(r))}"))
                for sum_, other in zip(sums[r], others, strict=True):
                    before = code.emit(f"load {many.real}, ptr {sum_}, align 64")
                    after = many.intrinsic("fmuladd", factor, other, before)
                    code.do(f"store {many.real} {after}, ptr {sum_}, align 64")

        if inverses:
            code.loop(self.n, step, code.emit(f"add i64 {i}, {rows}"))
        else:
            code.loop(i, step)
        tile = [[code.emit(f"load {many.real}, ptr {sum_}, align 64") for sum_ in row] for row in sums]
        for q in reversed(order) if inverses else order:
            if inverses:
                tile[q] = [many.binary("fmul", x, inverses[q]) for x in tile[q]]
            for r in order[:q] if inverses else order[q + 1 :]:
                entry = self.load(diagonal, str(q * self.line + r))
                factor = many.splat(code.emit(f"fneg double {entry}"))
                tile[r] = [many.intrinsic("fmuladd", factor, y, x) for x, y in zip(tile[r], tile[q], strict=True)]
        for r in order:
            for number, place in zip(tile[r], places[r], strict=True):
                many.store(number, place)
