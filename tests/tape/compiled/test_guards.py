"""Results are never stale: random programs with data-dependent branches and loops, at random points."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adbench import tape

UNARY = [tape.sin, tape.tanh, lambda x: x * x, lambda x: -x, lambda x: 1.0 / (1.0 + x * x), abs, tape.floor]
BINARY = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a - 0.5 * b,
    tape.maximum,
    lambda a, b: tape.where(a > b, a, b),
]
COMPARE = [lambda a, b: a > b, lambda a, b: a <= b, lambda a, b: (a < b) or (a > 1.0), lambda a, b: not a >= b]

instruction = st.one_of(
    st.tuples(st.just("unary"), st.integers(0, 6), st.integers(0, 9)),
    st.tuples(st.just("binary"), st.integers(0, 4), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("branch"), st.integers(0, 3), st.integers(0, 9), st.integers(0, 9), st.integers(0, 6)),
    st.tuples(st.just("while"), st.integers(0, 9)),
    st.tuples(st.just("times"), st.integers(0, 9)),
    st.tuples(st.just("loop"), st.integers(0, 9), st.integers(8, 12)),
)
programs = st.lists(instruction, min_size=1, max_size=8)
points = st.lists(
    st.tuples(*[st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.25, 0.7, 1.0, 3.1])] * 2), min_size=2, max_size=8
)


def program_of(code):
    """The Python function of a list of instructions."""

    def f(x, y):
        values = [x, y]
        at = lambda k: values[k % len(values)]  # noqa: E731
        for op, *rest in code:
            if op == "unary":
                values.append(UNARY[rest[0]](at(rest[1])))
            elif op == "binary":
                values.append(BINARY[rest[0]](at(rest[1]), at(rest[2])))
            elif op == "branch":
                a, b = at(rest[1]), at(rest[2])
                values.append(UNARY[rest[3]](a) if COMPARE[rest[0]](a, b) else 0.5 * b)
            elif op == "while":
                v, n = at(rest[0]), 0
                while v < 2.0 and n < 6:
                    v, n = v * 1.7 + 0.3, n + 1
                values.append(v)
            elif op == "times":  # a plain number from a value controls a loop
                v = at(rest[0])
                count = sum(1 for limit in (-1.0, 0.0, 0.5, 1.0) if v > limit)
                for _ in range(count):
                    v = tape.sin(v) + v
                values.append(v)
            else:
                start = at(rest[0])
                # The cosine keeps the loop from chaos, where rounding errors would decide the result.
                step = lambda i, s, x=start: 0.5 * s + tape.sin(s + 0.1 * i) * tape.cos(x)  # noqa: E731
                values.append(tape.loop(step, start, rest[1]))
        return sum(values[2:], 0.0 * values[0])

    return f


def same(ours, theirs):
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-11, atol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=25, deadline=None)
@given(programs, points)
def test_a_random_program_is_right_at_every_point_in_any_order(code, at):
    f = program_of(code)
    compiled = tape.compile(f, *at[0], wrt=(0, 1), level=0)
    for x, y in [*at, *reversed(at)]:
        same(compiled(x, y), tape.gradient(lambda v: f(*v), (x, y)))


@settings(max_examples=12, deadline=None)
@given(programs, points)
def test_random_programs_are_right_in_forward_mode_and_to_second_order(code, at):
    f = program_of(code)
    v = (0.3, -0.7)
    along = tape.compile(f, *at[0], v, wrt=(0, 1), operator="jvp", level=0)
    twice = tape.compile(f, *at[0], v, wrt=(0, 1), operator="hvp", level=0)
    for x, y in at:
        with np.errstate(all="ignore"):
            same(along(x, y, v), tape.jvp(lambda p: f(*p), (x, y), v))
            value, second = twice(x, y, v)
            expected = tape.hvp(lambda p: f(*p), (x, y), v)
            if any(abs in (UNARY[k] for k in op[1:] if k < len(UNARY)) for op in code):  # NaN at kinks, or the same
                second = np.where(np.isnan(second), expected[1], second)
            same((value, second), expected)


def test_each_path_is_recorded_once_and_kept():
    paths = []

    def f(x):
        paths.append(1)
        return x * x if x > 0 else tape.sin(x)

    compiled = tape.compile(f, 1.0)
    for x in (2.0, -1.0, 3.0, -2.0, 1.0) * 3:
        compiled(x)
    assert len(paths) == 2


def test_paths_beyond_the_limit_are_right_and_reported_as_eager():
    def f(x):
        y = x
        while y < 10.0:
            y = y * 1.1
        return y

    compiled = tape.compile(f, 5.0, recordings=3)
    for x in (5.0, 4.0, 3.0, 2.0, 1.0, 0.5, 2.0, 5.0):
        assert compiled(x) == pytest.approx(tape.gradient(f, x), rel=1e-14)
    assert "3 paths" in compiled.explain()


@pytest.mark.parametrize(
    "look",
    [
        lambda y: float(y),
        lambda y: float(int(y)),
        lambda y: float([10.0, 20.0, 30.0, 40.0][int(y)]),
        lambda y: math.floor(float(y)) * 1.0,
        lambda y: float(np.asarray(y)),
    ],
)
def test_a_number_taken_from_data_is_never_stale(look):
    f = lambda x, y: x * x * look(y)  # noqa: E731
    compiled = tape.compile(f, 2.0, 1.0, wrt=0)
    for y in (1.0, 2.0, 3.0, 1.0, 2.0):
        assert compiled(3.0, y) == tape.gradient(lambda x, y=y: f(x, y), 3.0)


def test_a_mask_or_an_order_taken_from_an_array_is_never_stale():
    def f(x):
        largest = x[np.argsort(x.val)[-2:]] if hasattr(x, "val") else x[np.argsort(x)[-2:]]
        return tape.sum(largest**2) + tape.sum(x[x > 0.5]) + x[np.argmax(x)] + tape.sort(x)[0]

    compiled = tape.compile(f, np.arange(4.0))
    rng = np.random.default_rng(0)
    for _ in range(12):
        x = rng.permutation([0.1, 0.4, 0.8, 1.5])
        value, g = compiled(x)
        expected = tape.gradient(f, x)
        assert value == pytest.approx(expected[0])
        np.testing.assert_allclose(g, expected[1])


def test_new_shapes_types_and_settings_are_new_recordings():
    f = lambda x, n: tape.sum(x) * n  # noqa: E731
    compiled = tape.compile(f, 1.5, 2, wrt=0)
    assert compiled(2.0, 2) == (4.0, 2.0)
    assert compiled(2.0, 3) == (6.0, 3.0)
    value, g = compiled(np.ones(3), 2)
    assert value == 6.0
    assert g.tolist() == [2.0] * 3
    value, g = compiled(np.ones((2, 20), np.float32), 2)
    assert value == 80.0
    assert (g.shape, g.dtype) == ((2, 20), np.float64)
    value, g = compiled(np.ones((20, 2)).T, 2)
    assert value == 80.0
    assert g.tolist() == [[2.0] * 20] * 2
    assert compiled(7, 2) == (14.0, 2.0)
    assert compiled(np.float64(7.0), 2) == (14.0, 2.0)


def test_data_are_inputs_and_not_constants():
    f = lambda x, y, labels: tape.sum(x * y * labels)  # noqa: E731
    labels = np.array([1, 0, 1])
    compiled = tape.compile(f, np.ones(3), np.ones(3), labels, wrt=0)
    y = np.array([1.0, 2.0, 3.0])
    assert compiled(np.ones(3), y, labels)[1].tolist() == [1.0, 0.0, 3.0]
    assert compiled(np.ones(3), y, 1 - labels)[1].tolist() == [0.0, 2.0, 0.0]
    assert compiled(np.ones(3), y, labels == 1)[1].tolist() == [1.0, 0.0, 3.0]
    assert compiled(np.ones(3), y, labels == 0)[1].tolist() == [0.0, 2.0, 0.0]
    y[0] = 10.0
    assert compiled(np.ones(3), y, labels)[1].tolist() == [10.0, 0.0, 3.0]


def test_a_choice_between_conditions_is_a_condition():
    def f(x):
        either = np.logical_or(tape.where(x > 0, True, False), np.where(x > 2, x < 3, np.zeros(5, bool)))
        return tape.sum(tape.where(np.logical_not(either), x * x, x))

    x = np.array([-1.0, 0.5, 2.5, 3.5, -2.0])
    compiled = tape.compile(f, x)
    value, gradient = compiled(x)
    assert "eager" not in compiled.explain()
    assert value == 1.0 + 0.5 + 2.5 + 3.5 + 4.0
    assert gradient.tolist() == [-2.0, 1.0, 1.0, 1.0, -4.0]
