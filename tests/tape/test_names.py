"""Truth values and new arrays: the array API's names and plain results."""

import numpy as np
import pytest

from adbench import tape

X = np.array([1.0, -2.0, 0.0, np.nan])


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"])
def test_comparisons_match_numpy_on_plain_values(name):
    wanted = getattr(np, name)(X, 0.0)
    with tape.nested():
        x = tape.Var(X)
        for got in (getattr(tape, name)(x, 0.0), getattr(np, name)(x, 0.0), getattr(tape, name)(X, 0.0)):
            assert got.dtype == bool
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "signbit", "logical_not"])
def test_predicates_of_one_number_match_numpy_on_plain_values(name):
    wanted = getattr(np, name)(X)
    with tape.nested():
        for x in (tape.Var(X), X):
            np.testing.assert_array_equal(getattr(tape, name)(x), wanted)
            np.testing.assert_array_equal(getattr(np, name)(x), wanted)


def test_logic_takes_conditions_and_numbers():
    with tape.nested():
        x = tape.Var(np.array([1.0, 0.0]))
        np.testing.assert_array_equal(tape.logical_and(x, x > -1.0), [True, False])
        np.testing.assert_array_equal(tape.logical_or(x, np.array([False, True])), [True, True])
        np.testing.assert_array_equal(tape.logical_xor(x, x), [False, False])
        assert (tape.any(x), tape.all(x), tape.count_nonzero(x)) == (True, False, 1)
        np.testing.assert_array_equal(tape.any(x > 0.5, axis=0, keepdims=True), [True])
        np.testing.assert_array_equal(tape.nonzero(x)[0], [0])
        assert np.any(x)
        assert not np.all(x)


def test_comparisons_read_the_plain_values_on_either_side():
    c = np.array([0.0, 2.0])
    with tape.nested():
        x, s = tape.Var(np.ones(2)), tape.Var(1.0)
        for truths, wanted in [
            (c < x, [True, False]),
            (x < c, [False, True]),
            (np.float64(2.0) >= s, True),
            (s <= 2.0, True),
            (tape.not_equal(x, s), [False, False]),
            (tape.greater([0.0, 2.0], x), [False, True]),
            (bool(s), True),
            (tape.isnan(x), [False, False]),
            (tape.isnan([np.nan, 1.0]), [True, False]),
        ]:
            assert not isinstance(truths, tape.Active)
            np.testing.assert_array_equal(truths, wanted)


def test_a_branch_inside_nested_derivatives_takes_the_plain_value():
    with tape.nested():
        s = tape.Var(2.0)
        assert tape.gradient(lambda x: x * x if x > 1.0 else x, s)[1].val == 4.0
        assert tape.jvp(lambda x: x * x if x > 1.0 else x, s, 1.0)[1].val == 4.0


def test_new_arrays_are_plain():
    for got, wanted in [
        (tape.zeros((2, 3)), np.zeros((2, 3))),
        (tape.ones(2), np.ones(2)),
        (tape.empty(2), np.zeros(2)),
        (tape.full((2,), 3), np.full(2, 3.0)),
        (tape.eye(2, 3, k=1), np.eye(2, 3, 1)),
        (tape.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 5)),
        (tape.linspace(0.0, 1.0, 5, endpoint=False), np.linspace(0.0, 1.0, 5, endpoint=False)),
        (tape.arange(3), np.arange(3)),
        (tape.arange(1, 7, 2), np.arange(1, 7, 2)),
        (tape.ones_like(X), np.ones(4)),
        (tape.full_like(X, 2.0), np.full(4, 2.0)),
    ]:
        assert type(got) is np.ndarray
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)
    assert tape.astype(np.array([1.5]), int)[0] == 1


def test_arrays_made_like_an_active_array_accept_assignments():
    def f(x):
        y = tape.ones_like(x)
        y[1] = x[0] * x[0]
        return tape.sum(y * tape.full_like(x, x[1]))  # (1 + x0²) x1

    np.testing.assert_allclose(tape.gradient(f, np.array([3.0, 4.0]))[1], [24.0, 10.0])
    assert tape.gradient(lambda a: tape.sum(tape.full((2, 3), a)), 1.0)[1] == 6.0
    assert tape.gradient(lambda a: tape.sum(tape.linspace(a, 1.0, 3)), 0.0)[1] == 1.5
    assert tape.gradient(lambda a: tape.astype(a, float), 2.0)[1] == 1.0
    with pytest.raises(TypeError, match="int"):
        tape.gradient(lambda a: tape.astype(a, int), 2.0)


def test_grids_and_stacks_can_be_differentiated():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0])
    for indexing in ("xy", "ij"):
        for got, wanted in zip(
            tape.meshgrid(x, y, indexing=indexing), np.meshgrid(x, y, indexing=indexing), strict=True
        ):
            np.testing.assert_array_equal(got, wanted)
    g = tape.gradient(lambda v: tape.sum(tape.meshgrid(v, y)[0]), x)[1]
    np.testing.assert_array_equal(g, [2.0, 2.0, 2.0])
    g = tape.gradient(lambda v: tape.sum(tape.vstack([v, 2.0 * v]) * np.arange(6.0).reshape(2, 3)), x)[1]
    np.testing.assert_array_equal(g, [6.0, 9.0, 12.0])
    g = tape.gradient(lambda v: tape.sum(tape.hstack([v, 2.0 * v]) * np.arange(6.0)), x)[1]
    np.testing.assert_array_equal(g, [6.0, 9.0, 12.0])
    assert tape.searchsorted(x, 2.5) == 2


def test_copysign_has_slope_minus_one_if_it_changes_the_sign():
    x, sign = np.array([-2.0, 3.0, -4.0]), np.array([1.0, -0.0, -1.0])
    np.testing.assert_array_equal(tape.gradient(lambda v: tape.sum(tape.copysign(v, sign)), x)[1], [-1.0, -1.0, 1.0])


def test_a_loop_passes_the_iteration_number_to_its_step():
    assert tape.loop(lambda i, s: s + i, 0, 5) == 10
    assert tape.gradient(lambda x: tape.loop(lambda i, s: s * x + i, 1.0, 3), 2.0) == (12.0, 13.0)
