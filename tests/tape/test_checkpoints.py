"""A loop with checkpoints has the derivatives of the plain loop, with memory for a few steps."""

import tracemalloc

import numpy as np
import pytest

from adbench import tape

LENGTHS = (0, 1, 2, 3, 10, 99, 100, 101)


def drift(a, b):
    def step(i, s):
        position, speed = s
        return position + 0.01 * speed * a, speed - 0.01 * tape.sin(position) * b * (1 + i)

    return step


@pytest.mark.parametrize("n", LENGTHS)
def test_gradients_equal_those_of_the_plain_loop_in_state_and_captures(n):
    def by(loop):
        def f(p):
            start, a, b = p
            end, speed = loop(drift(a, b), (start, 0.5), n)
            return tape.sum(end * end) + tape.sum(speed)

        return f

    point = (np.array([0.3, -0.8]), 1.2, 0.7)
    value, gradient = tape.gradient(by(tape.loop), point)
    again, checkpointed = tape.gradient(by(tape.checkpointed_loop), point)
    assert again == value
    for got, expected in zip(checkpointed, gradient, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-13)


@pytest.mark.parametrize("n", LENGTHS[1:])
def test_a_state_may_start_constant_or_pass_through_unchanged(n):
    def by(loop):
        def f(x):
            total, same = loop(lambda i, s: (s[0] + x * (i + 1.0) * s[1], s[1]), (0.0, x), n)
            return total * same

        return f

    assert tape.gradient(by(tape.checkpointed_loop), 1.3) == pytest.approx(tape.gradient(by(tape.loop), 1.3))


def test_second_order_and_forward_mode_work():
    def by(loop):
        return lambda x: tape.sum(loop(lambda i, s: s + 0.1 * x * tape.sin(s), x, 20))

    x, v = np.array([0.4, 1.1]), np.array([1.0, -2.0])
    plain, kept = by(tape.loop), by(tape.checkpointed_loop)
    np.testing.assert_allclose(tape.jvp(kept, x, v)[1], tape.jvp(plain, x, v)[1], rtol=1e-13)
    np.testing.assert_allclose(tape.hvp(kept, x, v)[1], tape.hvp(plain, x, v)[1], rtol=1e-12)
    np.testing.assert_allclose(tape.hessian(kept, x)[2], tape.hessian(plain, x)[2], rtol=1e-12)


def test_a_loop_can_run_inside_a_loop():
    def by(loop):
        def inner(i, s):
            return loop(lambda j, t: t + 0.01 * tape.cos(t) * (i + j), s, 7)

        return lambda x: loop(inner, x, 12)

    assert tape.gradient(by(tape.checkpointed_loop), 0.2) == pytest.approx(tape.gradient(by(tape.loop), 0.2), rel=1e-13)


def test_a_step_may_assign_to_its_state():
    def step(i, s):
        s = tape.asarray(s) * 1.0
        s[0] = s[0] * s[1]
        return s

    def by(loop):
        return lambda x: tape.sum(loop(step, x, 9))

    x = np.array([0.9, 1.05])
    found, expected = (tape.gradient(by(loop), x)[1] for loop in (tape.checkpointed_loop, tape.loop))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_a_checkpointed_loop_works_in_the_direct_style():
    x = tape.Var(0.3)
    y = tape.checkpointed_loop(lambda i, s: s + x * s, x, 10)
    (slope,) = y.grad([x])
    tape.recover_memory()
    assert slope == pytest.approx(tape.gradient(lambda t: tape.loop(lambda i, s: s + t * s, t, 10), 0.3)[1])


def test_memory_grows_with_the_root_of_the_length():
    def peak(loop, n):
        tape.gradient(lambda s: loop(lambda i, s: s + 0.001 * s * (1.5 - s), s, 10), 0.3)
        tracemalloc.start()
        tape.gradient(lambda s: loop(lambda i, s: s + 0.001 * s * (1.5 - s), s, n), 0.3)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    short, long = (peak(tape.checkpointed_loop, n) for n in (400, 6_400))
    assert long < 6 * short  # about four times, compared with sixteen times without checkpoints
    assert long < peak(tape.loop, 6_400) / 10
