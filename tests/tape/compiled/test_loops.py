"""Loops that stay loops are right in every mode, with rows, captures, nests and arrays; others are unrolled."""

import numpy as np
import pytest

from adbench import tape
from adbench.tape.compiled.lowering import module
from adbench.tape.compiled.runtime import program


@pytest.fixture(autouse=True, params=["whole", "in pieces"])
def pieces(request, monkeypatch):
    """Each test also runs with the program cut into functions, which is how long programs are compiled."""
    if request.param == "in pieces":
        monkeypatch.setattr(module, "PIECES", (30,) * 4)
        monkeypatch.setattr(program, "LONG_PROGRAM", 0)  # then no optimisation


def agrees(f, *args, wrt=None, rtol=1e-12, **options):
    """Check that compiled value and gradient equal the eager engine's, at the example and at another point."""
    compiled = tape.compile(f, *args, wrt=wrt, **options)
    positions = range(len(args)) if wrt is None else (wrt,) if isinstance(wrt, int) else wrt
    for scale in (1.0, 0.9):
        given = [a * scale if k in positions else a for k, a in enumerate(args)]

        def of_active(x, given=given):
            full = list(given)
            for k, part in zip(positions, x, strict=True):
                full[k] = part
            return f(*full)

        value, gradient = compiled(*given)
        if len(args) == 1 or isinstance(wrt, int):
            gradient = (gradient,)
        expected, slopes = tape.gradient(of_active, tuple(given[k] for k in positions))
        np.testing.assert_allclose(value, expected, rtol=rtol)
        for ours, theirs in zip(gradient, slopes, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-13)
    return compiled


def is_a_loop(compiled):
    """Whether nothing was unrolled: there are few nodes."""
    return all(p.nodes < 80 for s in compiled._signatures.values() for p in s.programs)


@pytest.mark.parametrize("n", [1, 5, 16, 17, 40, 100])
def test_a_recurrence_of_vectors_stays_a_loop(n):
    def f(x):
        s = tape.loop(lambda _, s: s + (x * x + 1) / s, tape.ones_like(x), 30)
        return tape.sum(4 * tape.cumsum(s) ** 2)

    assert is_a_loop(agrees(f, np.linspace(0.5, 2.0, n)))


def test_a_differential_equation_with_small_vectors_stays_a_loop():
    def f(theta, start):
        def slope(s):
            return tape.stack([s[0] * (theta[0] - theta[1] * s[1]), s[1] * (theta[3] * s[0] - theta[2])])

        def step(_, s):
            k1 = slope(s)
            k2 = slope(s + 0.05 * k1)
            return s + 0.1 * k2

        return tape.sum(tape.loop(step, start, 50))

    assert is_a_loop(agrees(f, np.array([0.7, 0.9, 1.1, 0.6]), np.array([1.2, 0.8])))


@pytest.mark.parametrize("wrt", [(0,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("n", [9, 30])
def test_a_loop_reads_rows_at_the_counter_and_captures(n, wrt):
    def f(y, mu, sigma):
        def add(i, total):
            z = (y[i] - mu) / sigma
            return total - 0.5 * z * z - tape.log(sigma)

        return tape.loop(add, 0.0, n)

    assert is_a_loop(agrees(f, np.linspace(-1.0, 2.0, n), 0.3, 1.4, wrt=wrt))


@pytest.mark.parametrize(
    "read", [lambda y, i: y[i + 2], lambda y, i: y[2 + i], lambda y, i: y[i + 1] + y[i] * y[i + 3]]
)
def test_a_long_loop_that_reads_ahead_of_the_counter_stays_a_loop(read):
    def f(y, mu):
        return tape.loop(lambda i, s: tape.sin(s * mu) + read(y, i) ** 2, 0.1, 997)

    assert is_a_loop(agrees(f, np.linspace(-1.0, 2.0, 1000), 0.3))


def test_a_short_loop_that_reads_ahead_or_behind_the_counter_is_right():
    def f(y):
        return tape.loop(lambda i, s: tape.sin(s) + y[i + 1] * y[i - 1] ** 2, 0.1, 11)

    agrees(f, np.linspace(-1.0, 2.0, 12))


def test_a_loop_that_reads_ahead_beyond_the_end_raises_as_it_does_eagerly():
    def f(y):
        return tape.loop(lambda i, s: s + y[i + 1] ** 2, 0.0, 900)

    with pytest.raises(IndexError):
        tape.compile(f, np.ones(900))(np.ones(900))


@pytest.mark.parametrize("first", [0.0, -np.inf])
def test_a_loop_of_logaddexp_is_compiled(first):
    """Its derivative at two infinities needs another formula, which the body of a loop cannot choose."""

    def f(x):
        return tape.loop(lambda i, total: tape.logaddexp(total, x[i]), -np.inf, 10)

    x = np.linspace(-1.0, 1.0, 10)
    x[:2] = first
    compiled = tape.compile(f, x)
    value, gradient = compiled(x)
    expected, slopes = tape.gradient(f, x)
    np.testing.assert_allclose([value, *gradient], [expected, *slopes], rtol=1e-13, atol=1e-16)
    if np.isfinite(first):
        (signature,) = compiled._signatures.values()
        assert not signature.eager_because
        assert is_a_loop(compiled)


def test_a_loop_takes_matrices_longer_than_itself_and_a_nest_of_states():
    def f(a, v):
        def step(i, s):
            return {"x": tape.tanh(a[i] @ s["x"] + 0.01 * i), "n": s["n"] + tape.sum(s["x"]) * v[0]}

        s = tape.loop(step, {"x": v, "n": 0.0}, 10)
        return s["n"] + tape.sum(s["x"] ** 2)

    rng = np.random.default_rng(0)
    assert is_a_loop(agrees(f, rng.normal(size=(12, 6, 6)) / 3, rng.normal(size=6)))


def test_large_matrices_can_be_the_state():
    def f(a):
        return tape.sum(tape.loop(lambda _, s: s @ a / 2.0 + a, a, 9))

    agrees(f, np.random.default_rng(0).normal(size=(7, 7)) / 3)


def test_a_loop_inside_a_loop_stays_a_loop():
    def f(x):
        inner = lambda i, s: tape.loop(lambda j, t: 0.9 * t + tape.sin(t * x) * (0.1 * i + 0.01 * j), s, 9)  # noqa: E731
        return tape.loop(inner, 1.0 + 0.0 * x, 11)

    assert is_a_loop(agrees(f, 0.7))


@pytest.mark.parametrize("n", [16, 30, 100, 101])
def test_a_checkpointed_loop_gives_the_same_result_in_less_memory(n):
    def f(x):
        return tape.sum(tape.loop(lambda i, s: s + 0.01 * tape.sin(s[::-1] * x) * i, x, n))

    x = np.linspace(0.2, 1.0, 40)
    stored, less = agrees(f, x), agrees(f, x, checkpointed=True)
    room = [max(p.lowered.work for s in c._signatures.values() for p in s.programs) for c in (stored, less)]
    assert n < 64 or room[1] < room[0] / 2


def workspace(compiled):
    """The numbers of memory of the largest recording."""
    return max(p.lowered.work for s in compiled._signatures.values() for p in s.programs)


def elementwise_steps(x):
    """Loops whose results depend, element by element, on x alone: name -> f(n)."""
    weights = np.linspace(0.5, 1.5, x.size).reshape(x.shape)
    g = x * x + 1.0
    return {
        "from x": lambda n: tape.loop(lambda i, s: s + 0.01 * tape.sin(s * x) * i, x, n),
        "from ones": lambda n: tape.loop(lambda _, s: s + g / s, tape.ones_like(x), n),
        "from a constant": lambda n: tape.loop(lambda _, s: s * 0.5 + tape.exp(-x) * weights, weights, n),
        "of a pair": lambda n: sum(tape.loop(lambda _, p: (p[1], tape.tanh(p[0] + p[1] / x)), (x, g), n)),
        "with a number": lambda n: tape.loop(lambda i, p: (0.5 * p[0] + i, p[1] / p[0] + x), (1.0, g), n)[1],
        "with branches": lambda n: tape.loop(lambda _, s: tape.where(s > 1.2, 0.5 * s, s * s + x), x, n),
    }


@pytest.mark.parametrize("shape", [(5,), (40,), (3, 30)])
@pytest.mark.parametrize("name", list(elementwise_steps(np.ones(3))))
def test_an_elementwise_loop_over_one_array_stores_no_states(name, shape):
    x = np.linspace(0.2, 1.0, np.prod(shape)).reshape(shape)
    short, long = (agrees(lambda x, n=n: tape.sum(elementwise_steps(x)[name](n) * x), x) for n in (20, 60))
    assert workspace(short) == workspace(long)
    assert is_a_loop(short)


def test_a_loop_over_two_arrays_or_across_elements_stores_its_states():
    x, y = np.linspace(0.2, 1.0, 40), np.linspace(0.7, 1.1, 40)
    steps = (lambda x, y: lambda _, s: s * x + y, lambda x, _y: lambda _, s: tape.sin(s[::-1] * x))
    for step in steps:
        short, long = (
            agrees(lambda x, y, n=n, step=step: tape.sum(tape.loop(step(x, y), x, n)), x, y) for n in (20, 60)
        )
        assert workspace(long) >= workspace(short) + 40 * 40


def test_a_zero_factor_wins_over_an_infinite_slope_in_an_elementwise_loop():
    x = np.linspace(0.0, 1.0, 30)  # the slope of the square root is infinite at 0
    agrees(lambda x: tape.sum(tape.loop(lambda _, s: 0.5 * s + x * tape.sqrt(x), x, 12)), x)


def test_the_jacobian_and_second_derivatives_of_an_elementwise_loop_are_those_of_the_eager_engine():
    def f(x):
        return tape.loop(lambda _, s: s + (x * x + 1.0) / s, tape.ones_like(x), 12)

    x = np.linspace(0.5, 2.0, 20)
    for operator, g in (("jacobian", f), ("hessian", lambda x: tape.sum(f(x) ** 2))):
        found = tape.compile(g, x, operator=operator)(x)
        for ours, theirs in zip(found, getattr(tape, operator)(g, x), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_a_number_may_become_an_array_in_the_first_iteration():
    agrees(lambda x: tape.sum(tape.loop(lambda _, s: s * 0.5 + x, 1.0, 10)), np.linspace(0.0, 1.0, 5))


def test_parts_of_the_state_may_swap():
    agrees(
        lambda x, y: tape.sum(tape.loop(lambda _, s: (s[1], 0.5 * s[0] + tape.sin(s[1])), (x, y), 11)[0]),
        *(np.linspace(0.0, 1.0, 20), np.linspace(1.0, 2.0, 20)),
    )


def test_a_body_with_a_branch_on_the_state_is_unrolled_and_right():
    def f(x):
        return tape.loop(lambda _, s: s * 0.9 if s > 1.0 else s + x, x, 12)

    agrees(f, 0.7)


def test_a_body_that_reads_a_list_is_unrolled_and_right():
    weights = list(np.linspace(0.1, 1.0, 12))
    agrees(lambda x: tape.loop(lambda i, s: s * weights[i] + x, x, 12), 0.7)


def test_a_step_with_side_effects_is_unrolled_and_right():
    def f(x):
        seen = []

        def step(i, s):
            seen.append(s)
            return tape.sin(s) + x

        return tape.loop(step, x, 10) + sum(seen)

    agrees(f, 0.7)


def test_loops_of_no_or_one_iteration_and_of_constants_are_right():
    agrees(lambda x: tape.loop(lambda _, s: s * s, x, 0), 3.0)
    agrees(lambda x: tape.loop(lambda _, s: s * s, x, 1), 3.0)
    agrees(lambda x: x * tape.loop(lambda i, s: s + i, 0.0, 20), 3.0)


def test_an_index_beyond_the_end_raises_as_it_does_eagerly():
    with pytest.raises(IndexError):
        tape.compile(lambda x: tape.loop(lambda i, s: s + x[i], 0.0, 12), np.ones(10))


def test_loops_have_forward_mode_and_second_derivatives():
    def f(p):
        x, y = p

        def step(i, s):
            return s + 0.1 * tape.sin(s * x) * y[i]

        return tape.sum(tape.loop(step, x, 12) ** 2)

    rng = np.random.default_rng(0)
    p, v = ((rng.normal(size=20), rng.normal(size=12)) for _ in range(2))
    for operator in ("jvp", "hvp"):
        value, result = tape.compile(f, p, v, operator=operator)(p, v)
        expected = getattr(tape, operator)(f, p, v)
        np.testing.assert_allclose(value, expected[0], rtol=1e-13)
        parts = (result, expected[1]) if operator == "jvp" else (np.concatenate(result), np.concatenate(expected[1]))
        np.testing.assert_allclose(*parts, rtol=1e-11, atol=1e-12)


def test_zero_times_infinity_is_zero_in_a_loop():
    f = lambda x: tape.loop(lambda _, s: s * tape.sqrt(s), x, 9)  # noqa: E731
    compiled = tape.compile(f, 1.0)
    assert compiled(0.0) == tape.gradient(f, 0.0) == (0.0, 0.0)
    assert compiled(1.2) == pytest.approx(tape.gradient(f, 1.2))


def test_a_careful_recording_of_a_loop_runs_natively():
    f = lambda x: tape.loop(lambda i, s: s + tape.sqrt(s * x) * i, x, 20)  # noqa: E731
    compiled = tape.compile(f, 1.0)
    for x in (0.0, 1.2):
        assert compiled(x) == pytest.approx(tape.gradient(f, x), rel=1e-12)
    assert "careful" in compiled.explain()
    assert "eager" not in compiled.explain()
