"""The programs of the seed documents."""

import math

import numpy as np
import pytest

from adbench import tape
from adbench.tape import function_gradients, make_callback_var, reverse_pass_callback

from . import truth

Y, MU, SIGMA = 1.3, 0.5, 1.2


def normal_log(y, mu, sigma):
    return -0.5 * ((y - mu) / sigma) ** 2 - tape.log(sigma) - 0.5 * math.log(2 * math.pi)


def exact_normal_log(v):
    y, mu, sigma = v
    return -((y - mu) ** 2) / (2 * sigma**2) - truth.mp.log(sigma)


EXACT = truth.jacobian(exact_normal_log, [Y, MU, SIGMA])


def test_the_normal_log_density_in_the_direct_style():
    mu, sigma = tape.Var(MU), tape.Var(SIGMA)
    lp = tape.Var(0.0)
    lp += -0.5 * ((Y - mu) / sigma) ** 2
    lp -= tape.log(sigma)
    lp -= 0.5 * math.log(2 * math.pi)
    lp.grad()
    assert lp.val == pytest.approx(-0.5 * ((Y - MU) / SIGMA) ** 2 - math.log(SIGMA) - 0.5 * math.log(2 * math.pi))
    np.testing.assert_allclose([mu.adj, sigma.adj], EXACT[1:], rtol=1e-15)
    assert lp.grad([mu, sigma]) == [mu.adj, sigma.adj]
    tape.set_zero_all_adjoints()
    assert (mu.adj, sigma.adj) == (0.0, 0.0)


@pytest.mark.parametrize("active", range(1, 8))
def test_any_mix_of_constants_and_variables_gives_the_derivatives_of_the_variables(active):
    values = [Y, MU, SIGMA]
    chosen = [i for i in range(3) if active >> i & 1]
    with tape.nested() as recorded:
        args = [tape.Var(v) if i in chosen else v for i, v in enumerate(values)]
        lp = normal_log(*args)
        np.testing.assert_allclose(lp.grad([args[i] for i in chosen]), EXACT[chosen], rtol=1e-15)
        # y - mu, / sigma, ** 2, * -0.5, log sigma, -, - constant: two edges where both arguments are active.
        difference = [(0 in chosen) + (1 in chosen)]
        quotient = [bool(difference[0]) + (2 in chosen)]
        tail = [bool(quotient[0])] * 2 + [2 in chosen] + [bool(quotient[0]) + (2 in chosen)] + [True]
        assert recorded.edges() == sum(map(int, difference + quotient + tail))


def test_a_callable_object_that_holds_its_data_is_differentiated_as_a_function():
    class NormalLogLikelihood:
        def __init__(self, y):
            self.y = y

        def __call__(self, theta):
            lp = 0.0
            for y in self.y:
                lp += normal_log(y, theta[0], theta[1])
            return lp

    y = np.array([1.3, 2.7, -1.9])
    theta = np.array([1.3, 2.9])
    fx, g = tape.gradient(NormalLogLikelihood(y), theta)
    exact = truth.jacobian(lambda t: sum(exact_normal_log((v, t[0], t[1])) for v in y), theta)
    np.testing.assert_allclose(g, exact, rtol=1e-14)
    assert fx == pytest.approx(float(sum(normal_log(v, 1.3, 2.9) for v in y)))


def test_a_jacobian_directly_and_as_a_functional():
    def f(x):
        return [x[0] * x[1], tape.sin(x[1]), x[0] ** 3]

    point = np.array([0.7, 1.9])
    x = [tape.Var(v) for v in point]
    outputs = f(x)
    j = np.zeros((3, 2))
    for i, y in enumerate(outputs):
        if i > 0:
            tape.set_zero_all_adjoints()
        y.grad()
        j[i] = [v.adj for v in x]
    np.testing.assert_array_equal(tape.jacobian(f, point)[1], j)
    np.testing.assert_allclose(j, [[1.9, 0.7], [0, np.cos(1.9)], [3 * 0.7**2, 0]], rtol=1e-15)


def test_reverse_pass_callback_passes_adjoints_on():
    def add(a, b):
        y = tape.Var(a.val + b.val)

        def chain():
            a.adj += y.adj
            b.adj += y.adj

        reverse_pass_callback(chain)
        return y

    for point in ((10.0, 12.0), (np.array([1.0, 2.0]), np.array([3.0, 4.0]))):
        fx, g = tape.gradient(lambda p: tape.sum(add(p[0] * 2.0, p[1]) * p[1]), point)
        a, b = map(np.asarray, point)
        assert fx == np.sum((2 * a + b) * b)
        np.testing.assert_array_equal(g[0], 2 * b)
        np.testing.assert_array_equal(g[1], 2 * a + 2 * b)


def test_make_callback_var_is_a_value_and_its_callback_in_one_node():
    def inverse(a):
        def chain(vi):
            a.adj += -vi.val.T @ vi.adj @ vi.val.T

        return make_callback_var(np.linalg.inv(a.val), chain)

    a = np.array([[2.0, 1.0], [0.5, 3.0]])
    weights = np.array([[1.0, -2.0], [0.3, 4.0]])
    ours = tape.gradient(lambda m: tape.sum(inverse(m * 2.0) * weights), a)[1]
    np.testing.assert_allclose(
        ours, tape.gradient(lambda m: tape.sum(tape.linalg.inv(m * 2.0) * weights), a)[1], rtol=1e-14
    )
    with tape.nested() as recorded:
        m = tape.Var(a)
        before = len(recorded)
        inverse(m)
        assert len(recorded) == before + 1


def test_a_callback_in_forward_mode_is_an_error_and_not_a_constant():
    def f(x):
        return make_callback_var(np.sin(tape.value_of(x)), lambda vi: None)

    with pytest.raises(tape.ForwardModeError, match="forward mode"):
        tape.jvp(f, 1.0, 1.0)


hypot = function_gradients(
    np.hypot,
    (lambda val, adj, x, y: adj * (x / val), lambda val, adj, x, y: adj * (y / val)),
    name="my_hypot",
)
inverse = function_gradients(
    np.linalg.inv,
    reverse=(lambda c, adj, a: -c.T @ adj @ c.T,),
    forward=(lambda c, tan, a: -c @ tan @ c,),
    name="my_inverse",
)


def test_one_set_of_gradients_serves_both_modes_and_higher_orders():
    exact = truth.jacobian(lambda v: truth.mp.hypot(v[0], v[1]), [3.0, 4.5])
    np.testing.assert_allclose(tape.gradient(lambda v: hypot(*v), (3.0, 4.5))[1], exact, rtol=1e-15)
    np.testing.assert_allclose(tape.jvp(lambda v: hypot(*v), (3.0, 4.5), (1.0, 0.0))[1], exact[0], rtol=1e-15)
    x = np.array([3.0, 4.5])
    ours, built_in = (tape.hessian(lambda v, h=h: h(v[0], v[1]), x)[2] for h in (hypot, tape.hypot))
    np.testing.assert_allclose(ours, built_in, rtol=1e-15)
    column, row = np.ones((3, 1)), np.arange(1.0, 5.0)
    g = tape.gradient(lambda v: tape.sum(hypot(*v)), (column, row))[1]
    assert [a.shape for a in g] == [(3, 1), (4,)]


def test_separate_gradients_for_the_two_modes_of_a_matrix_function():
    a = np.array([[2.0, 1.0], [0.5, 3.0]])
    for mode in ("reverse", "forward"):
        np.testing.assert_allclose(
            tape.jacobian(inverse, a, mode)[1], tape.jacobian(tape.linalg.inv, a, mode)[1], rtol=1e-14
        )
    loss = lambda f: lambda m: tape.sum(f(m) ** 2)  # noqa: E731
    np.testing.assert_allclose(tape.hessian(loss(inverse), a)[2], tape.hessian(loss(tape.linalg.inv), a)[2], rtol=1e-12)


def test_gradient_functions_are_called_for_active_arguments_only():
    asked = []
    noted = function_gradients(
        lambda x, y: x * y,
        (lambda val, adj, x, y: asked.append("x") or adj * y, lambda val, adj, x, y: asked.append("y") or adj * x),
        name="noted",
    )
    tape.gradient(lambda v: noted(v, 2.0), 3.0)
    tape.jvp(lambda v: noted(np.ones(2), v), np.ones(2), np.ones(2))
    assert asked == ["x", "y"]
    tape.gradient(lambda v: v * tape.value_of(noted(v, v)), 3.0)
    assert asked == ["x", "y"], "lazy: an unused value computes no partial"


def test_nested_gradients_give_the_third_derivative_of_a_cube():
    d = lambda f: lambda x: tape.gradient(f, x)[1]  # noqa: E731
    assert d(d(lambda a: a**3))(7.0) == 42.0
    assert d(d(d(lambda a: a**3)))(7.0) == 6.0
    assert tape.jvp(lambda a: tape.jvp(lambda b: b**3, a, 1.0)[1], 7.0, 1.0)[1] == 42.0
