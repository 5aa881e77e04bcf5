"""Record Jacobians and Hessians as few products, with all their seeds in one program.

1. Record a product J v, wᵀ J or H v on a separate trace, on top of the function's trace. It is linear in the vector.
   Everything that does not depend on the vector lands on the function's trace, and is computed once for all products.
2. Find the pattern (`dependence`) and colour it (`matrix_colouring`). Jacobians take the side that needs fewer colours.
3. Record the product again for each colour, with zeros and ones for the vector: operation by operation if it is short,
   else as a loop over the colours. Read the entries from the results.

So a wrong pattern is impossible by construction: it comes from the very program that computes the products, and the
guards of the recording hold for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.tape.compiled.sparse.dependence import Dependence, Keys, TooManyEntriesError, distinct
from adbench.tape.compiled.sparse.matrix_colouring import colour_columns, colour_symmetric, places
from adbench.tape.compiled.trace.loop_rule import SCAN, live, packed, replay, run
from adbench.tape.compiled.trace.symbol import NUMBER, PREDICATES, TAKE, DependsOnDataError, Shape, Symbol
from adbench.tape.compiled.trace.trace import Trace, made_by
from adbench.tape.core.rule import Active, TapeError, Value
from adbench.tape.rules import products
from adbench.tape.rules.indexing import put
from adbench.tape.rules.shapes import concatenate, ravel, reshape, transpose
from adbench.tape.values import shape_of

FEW_OPERATIONS = 1_000
"""A program is recorded once per colour up to this number of operations, else as a loop over the colours."""

LARGE = 256
"""Matrices of at least this many elements are multiplied by the vectors of all colours at once."""

SMALL = 16
"""Arrays of up to this many elements are kept in registers. With larger ones, a loop is as fast."""


@dataclass(frozen=True)
class Pattern:
    """The positions of the entries of a matrix, row by row.

    full     whether every entry counts; then rows and columns may be empty
    opaque   names of rules whose results count as depending on all elements of their operands
    """

    shape: tuple[int, int]
    rows: Any
    columns: Any
    full: bool
    opaque: tuple[str, ...] = ()

    def __str__(self) -> str:
        count = math.prod(self.shape) if self.full else self.rows.size
        return f"{self.shape[0]} x {self.shape[1]} matrix with {count} entries"

    def listed(self) -> Pattern:
        """The pattern with all its positions."""
        if not self.full or self.rows.size == math.prod(self.shape):
            return self
        rows, columns = np.indices(self.shape).reshape(2, -1)
        return Pattern(self.shape, rows, columns, True, self.opaque)


@dataclass(frozen=True)
class Product:
    """A recorded product: `results` are linear in the symbols `seeds` of `trace`.

    is_transposed   whether the seeds are weights of the function's results, and the results rows of the matrix
    """

    trace: Trace
    seeds: tuple[Symbol, ...]
    results: tuple[Value, ...]
    is_transposed: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """The lengths of all results together and of all seeds together."""
        sizes = [[math.prod(shape_of(x)) for x in group] for group in (self.results, self.seeds)]
        return sum(sizes[0]), sum(sizes[1])

    def pattern(self, *, symmetric: bool = False) -> Pattern:
        """The pattern of the matrix."""
        rows, columns = self.shape
        full = np.empty(0, np.int64)
        dependence = Dependence(columns)
        try:
            keys = self._keys(dependence)
        except TooManyEntriesError:
            keys = None
        opaque = tuple(sorted(dependence.opaque))
        if self.is_transposed:
            if keys is not None:
                keys = np.sort(keys % dependence.columns * rows + keys // dependence.columns)
            rows, columns = columns, rows
        if keys is None or keys.size == rows * columns:
            return Pattern((rows, columns), full, full, True, opaque)
        if symmetric:
            keys = distinct(keys, keys % max(columns, 1) * columns + keys // max(columns, 1))
        row, column = np.divmod(keys, max(columns, 1))
        return Pattern((rows, columns), row, column, False, opaque)

    def _keys(self, dependence: Dependence) -> Keys:
        sizes = [math.prod(s.shape) for s in self.seeds]
        starts = np.cumsum([0, *sizes])[:-1]
        known = {
            id(s): np.arange(size) * (dependence.columns + 1) + start
            for s, size, start in zip(self.seeds, sizes, starts, strict=True)
        }
        patterns = dependence.of(self.trace, self.results, known)
        for k, y in enumerate(self.results):
            unknown = self._without_seeds(y)
            if unknown.any():  # such as an undefined derivative, NaN in all directions
                everything = np.flatnonzero(unknown)[:, None] * dependence.columns + np.arange(dependence.columns)
                patterns[k] = distinct(patterns[k], everything.ravel())
        return dependence.joined(patterns, [math.prod(shape_of(y)) for y in self.results])

    def _without_seeds(self, y: Value) -> Any:
        """Where a result is not zero although no seed reaches it."""
        if isinstance(y, Active):
            return np.full(math.prod(shape_of(y)), not (type(y) is Symbol and y.tape is self.trace))
        return np.ravel(np.asarray(y, float)) != 0.0

    def of_colours(self, colours: Any) -> Value:
        """The products for all colours of the seeds' elements, one after the other as a vector."""
        count = int(colours.max(initial=-1)) + 1
        sizes = [math.prod(s.shape) for s in self.seeds]
        cuts = np.split(colours, np.cumsum(sizes)[:-1])
        seeds = [c.reshape(s.shape).astype(float)[()] for c, s in zip(cuts, self.seeds, strict=True)]
        if count <= 1 or self.is_short(count):
            parts = [self.at([np.multiply(c == k, 1.0)[()] for c in seeds], {}) for k in range(count)]
            return concatenate(parts) if len(parts) > 1 else parts[0] if parts else np.zeros(0)
        return ravel(self.rows(self.results, seeds, count, self.products_of_matrices(seeds, count)))

    def rows(self, wanted: Sequence[Value], colours: Sequence[Any], count: int, known: dict[int, Value]) -> Value:
        """A matrix with these values of the product for each colour, by a loop.

        colours the colours of the seeds' elements
        known   matrices with the values of other symbols for each colour, by the id of the symbol
        """
        size = sum(math.prod(shape_of(x)) for x in wanted)

        def step(i: Value, _state: Sequence[Value]) -> list[Value]:
            seeds = [NUMBER(PREDICATES[np.equal](c, i)) for c in colours]
            return [self.at(seeds, {symbol: TAKE(matrix, i) for symbol, matrix in known.items()}, wanted)]

        return run(step, [np.zeros(size)], count, keep=(0, size))[1:]

    def products_of_matrices(self, every_colour: Sequence[Any], count: int) -> dict[int, Value]:
        """For each product A v or v A of a large matrix and a vector: its values for all colours, as rows of a matrix.

        So products with vectors become one product with the matrix of all these vectors, which is several times faster.
        If the vector is a seed and each of its elements has a separate colour, the rows are those of A.
        """
        values: dict[int, Value] = {}
        for n in live(self.trace, self.results):
            operation = made_by(self.trace[n])
            if operation is None or operation[0] is not products.matmul:
                continue
            a, b = operation[1]
            vector, matrix = (b, transpose(a)) if len(shape_of(a)) == 2 else (a, b)
            is_inner = [type(x) is Symbol and x.tape is self.trace for x in (vector, matrix)]
            if is_inner != [True, False] or len(vector.shape) != 1 or math.prod(shape_of(matrix)) < LARGE:
                continue
            colours = next((c for s, c in zip(self.seeds, every_colour, strict=True) if s is vector), None)
            if colours is not None and np.array_equal(colours, np.arange(count)):
                values[id(self.trace[n][1])] = matrix
            else:
                values[id(self.trace[n][1])] = products.matmul(self.rows([vector], every_colour, count, values), matrix)
        return values

    def at(self, seeds: Sequence[Value], known: dict[int, Value], wanted: Sequence[Value] | None = None) -> Value:
        """The values wanted, by default all results, for these seeds, as a vector."""
        seeds = [float(s) if isinstance(s, np.floating) else s for s in seeds]
        values = dict(zip(map(id, self.seeds), seeds, strict=True)) | known
        return packed(replay(self.trace, self.results if wanted is None else wanted, values))

    def is_short(self, count: int) -> bool:
        """Whether to record the product once per colour, and not as a loop."""
        numbers = live(self.trace, self.results)
        operations = [made_by(self.trace[n]) for n in numbers]
        if any(m is not None and m[0] is SCAN for m in operations):
            return False
        is_small = all(math.prod(self.trace[n][1].shape) <= SMALL for n in numbers)
        return is_small and count * len(numbers) <= FEW_OPERATIONS


@dataclass(frozen=True)
class Compressed:
    """A matrix by few products: `data` are the entries of `pattern`; `matrix` has all entries."""

    product: Product
    pattern: Pattern
    colours: Any
    symmetric: bool = False

    @property
    def count(self) -> int:
        """The number of colours, and of products."""
        return int(self.colours.max(initial=-1)) + 1

    def entries(self, rows: Sequence[Shape], columns: Sequence[Shape]) -> tuple[list[Pattern], list[Value]]:
        """The patterns of the blocks for values and inputs of these shapes, and their entries, row by row."""
        values, length = self.product.of_colours(self.colours), self.product.shape[0]
        pattern = self.pattern.listed()
        across, down = pattern.columns, pattern.rows
        if self.product.is_transposed:
            across, down = down, across
        colour, place = places(down, across, self.colours, symmetric=self.symmetric)
        source = colour * length + place
        patterns, parts = [], []
        for top, height in _spans(rows):
            for left, width in _spans(columns):
                row, column = pattern.rows - top, pattern.columns - left
                inside = np.flatnonzero((row >= 0) & (row < height) & (column >= 0) & (column < width))
                patterns.append(Pattern((height, width), row[inside], column[inside], inside.size == height * width))
                parts.append(_read(values, source[inside]))
        return patterns, parts

    def matrix(self) -> tuple[Value, Value]:
        """The dense matrix, and the values among its entries that may be NaN."""
        rows, columns = self.pattern.shape
        if rows * columns == 0:
            return np.zeros(self.pattern.shape), 0.0
        if self.pattern.full:  # each product is a column or a row
            values = self.product.of_colours(self.colours)
            if self.product.is_transposed:
                return reshape(values, (rows, columns)), values
            return transpose(reshape(values, (columns, rows))), values
        (data,) = self.entries([(rows,)], [(columns,)])[1]
        at = self.pattern.rows * columns + self.pattern.columns
        return reshape(put(data, index=at, shape=(rows * columns,)), (rows, columns)), data


def jacobian_of(rows: int, forward: Callable[[], Product], reverse: Callable[[], Product]) -> Compressed:
    """A Jacobian of so many rows, by products from the side that needs fewer colours; a single row is a gradient."""
    try:
        product = forward() if rows != 1 else reverse()
    except (TapeError, DependsOnDataError):  # part of it has reverse mode only, or forward mode needs its numbers
        product = reverse()
    pattern = product.pattern()
    rows, columns = pattern.shape
    if pattern.full:
        by_columns, by_rows = np.arange(columns), np.arange(rows)
    else:
        by_columns = colour_columns(pattern.rows, pattern.columns, columns)
        by_rows = colour_columns(pattern.columns, pattern.rows, rows)
    if product.is_transposed:
        return Compressed(product, pattern, by_rows)
    if by_columns.max(initial=-1) <= by_rows.max(initial=-1):
        return Compressed(product, pattern, by_columns)
    return Compressed(reverse(), pattern, by_rows)


def hessian_of(product: Product) -> Compressed:
    """A Hessian by its products."""
    pattern = product.pattern(symmetric=True)
    columns = pattern.shape[1]
    if pattern.full:
        return Compressed(product, pattern, np.arange(columns))
    return Compressed(product, pattern, colour_symmetric(pattern.rows, pattern.columns, columns), symmetric=True)


def blocks(matrix: Value, rows: Sequence[Shape], columns: Sequence[Shape]) -> list[Value]:
    """The parts of a matrix for values and inputs of these shapes, each of shape value + input, row by row."""
    if len(rows) == len(columns) == 1:
        return [reshape(matrix, (*rows[0], *columns[0]))]
    return [
        reshape(matrix[top : top + height, left : left + width], (*row, *column))
        for row, (top, height) in zip(rows, _spans(rows), strict=True)
        for column, (left, width) in zip(columns, _spans(columns), strict=True)
    ]


def _read(values: Value, places: Any) -> Value:
    """values[places], as a slice if they are one."""
    if not places.size:
        return np.zeros(0)
    start, stop = int(places[0]), int(places[0]) + places.size
    return values[start:stop] if np.array_equal(places, np.arange(start, stop)) else values[places]


def _spans(shapes: Sequence[Shape]) -> list[tuple[int, int]]:
    """The first place and the length of each of these arrays, one after the other."""
    sizes = [math.prod(s) for s in shapes]
    return list(zip(np.cumsum([0, *sizes]).tolist(), sizes, strict=False))
