"""Colourings of random patterns are valid, and few."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from adbench.tape.compiled.sparse.matrix_colouring import _star_colours, colour_columns, colour_symmetric, places


def entries(matrix):
    return np.nonzero(matrix)


@st.composite
def patterns(draw, symmetric=False):
    n = draw(st.integers(1, 14))
    m = n if symmetric else draw(st.integers(1, 14))
    seed, density = draw(st.integers(0, 10**6)), draw(st.sampled_from([0.05, 0.15, 0.3, 0.7]))
    matrix = np.random.default_rng(seed).random((m, n)) < density
    return matrix | matrix.T if symmetric else matrix


@settings(max_examples=300, deadline=None)
@given(patterns())
def test_no_two_columns_of_one_colour_share_a_row(matrix):
    rows, columns = entries(matrix)
    colours = colour_columns(rows, columns, matrix.shape[1])
    assert colours.min(initial=0) == 0
    for row in matrix:
        mine = colours[row]
        assert len(set(mine.tolist())) == mine.size
    colour, place = places(rows, columns, colours)
    assert (colour == colours[columns]).all()
    assert (place == rows).all()


@settings(max_examples=300, deadline=None)
@given(patterns(symmetric=True))
def test_star_colourings_separate_neighbours_and_give_paths_of_four_three_colours(matrix):
    rows, columns = entries(matrix)
    n = len(matrix)
    colours = _star_colours(rows, columns, n)
    off = matrix & ~np.eye(n, dtype=bool)
    neighbours = [np.flatnonzero(row).tolist() for row in off]
    for b in range(n):
        for c in neighbours[b]:
            assert colours[b] != colours[c]
            for a in neighbours[b]:
                for d in neighbours[c]:
                    if len({a, b, c, d}) == 4:
                        assert len({colours[v] for v in (a, b, c, d)}) >= 3


@settings(max_examples=200, deadline=None)
@given(patterns(symmetric=True))
def test_every_entry_of_a_symmetric_matrix_can_be_read_from_the_products(matrix):
    rng = np.random.default_rng(0)
    values = np.where(matrix, rng.normal(size=matrix.shape), 0.0)
    values = values + values.T
    rows, columns = entries(matrix)
    colours = colour_symmetric(rows, columns, len(matrix))
    count = int(colours.max(initial=0)) + 1
    products = np.stack([values @ (colours == k) for k in range(count)])
    colour, place = places(rows, columns, colours, symmetric=True)
    np.testing.assert_allclose(products[colour, place], values[rows, columns], rtol=1e-12)


@pytest.mark.parametrize("n", [30, 3000])
def test_known_patterns_need_few_colours(n):
    i = np.arange(n)
    for width in (1, 3, 5):  # a band needs as many as its rows have entries
        offsets = np.arange(width) - width // 2
        rows, columns = np.repeat(i, width), (i[:, None] + offsets).ravel()
        inside = (columns >= 0) & (columns < n)
        assert colour_columns(rows[inside], columns[inside], n).max() == width - 1
    rows, columns = np.concatenate([i, i, 0 * i]), np.concatenate([i, 0 * i, i])  # an arrow
    rows, columns = np.divmod(np.unique(rows * n + columns), n)
    assert colour_symmetric(rows, columns, n).max() == 1
    assert colour_columns(rows, columns, n).max() == n - 1
    assert colour_columns(i, i, n).max() == 0


def test_an_invalid_colouring_is_refused():
    rows, columns = np.array([0, 0, 1]), np.array([0, 1, 1])
    with pytest.raises(AssertionError, match="two columns of one colour"):
        places(rows, columns, np.array([0, 0]))
    full = np.nonzero(np.ones((3, 3)))
    with pytest.raises(AssertionError, match="cannot be read"):
        places(*full, np.array([0, 0, 1]), symmetric=True)
