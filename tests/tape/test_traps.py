"""Classical traps: points at which automatic differentiation often goes wrong."""

import numpy as np
import pytest

from adbench import tape


def gradient(f, x):
    return tape.gradient(f, x)[1]


def test_a_variable_used_twice_accumulates():
    assert gradient(lambda x: x * x + tape.sin(x), 0.7) == pytest.approx(2 * 0.7 + np.cos(0.7), rel=1e-15)


def test_the_second_row_of_a_jacobian_and_a_second_gradient_see_no_stale_adjoints():
    _, j = tape.jacobian(lambda x: tape.stack([x[0] * x[1], x[0] + x[1]]), np.array([2.0, 3.0]))
    np.testing.assert_array_equal(j, [[3.0, 2.0], [1.0, 1.0]])
    x = tape.Var(3.0)
    y = x * x
    assert (y.grad(x), y.grad(x)) == (6.0, 6.0)
    z = y * x
    assert (z.grad(x), y.grad(x)) == (27.0, 6.0)


@pytest.mark.parametrize("product", [lambda x, b: x * b, lambda x, b: b * x, tape.multiply, lambda x, b: x @ b])
def test_an_array_changed_after_its_use_counts_with_its_old_value(product):
    b = np.array([2.0, 3.0])

    def f(x):
        y = tape.sum(product(x, b))
        b[:] = 100.0
        return y

    np.testing.assert_array_equal(gradient(f, np.ones(2)), [2.0, 3.0])


def test_the_input_array_stays_unchanged_and_its_later_changes_have_no_effect():
    x = np.array([1.0, 2.0])
    v = tape.Var(x)
    x[0] = 50.0
    y = tape.sum(v * v)
    y.grad()
    np.testing.assert_array_equal(v.adj, [2.0, 4.0])


def test_two_inputs_that_share_an_adjoint_do_not_alias():
    def f(p):
        a, b = p
        s = a + b  # one adjoint array for both
        return tape.sum(s) + tape.sum(a * 2.0) + tape.sum(a * 3.0)

    ga, gb = gradient(f, (np.zeros(2), np.zeros(2)))
    np.testing.assert_array_equal(ga, [6.0, 6.0])
    np.testing.assert_array_equal(gb, [1.0, 1.0])
    ga += 1.0
    np.testing.assert_array_equal(gb, [1.0, 1.0])
    gx, gy = gradient(lambda p: tape.sum(p[0] + p[1]), (np.zeros(2), np.zeros(2)))
    gx += 1.0
    np.testing.assert_array_equal(gy, [1.0, 1.0])


def test_einsum_sums_the_adjoint_of_an_axis_of_length_one():
    ga, gb = gradient(lambda p: tape.einsum("i,i", *p), (np.array([1.0, 1.0]), np.array([2.0])))
    np.testing.assert_array_equal(ga, [2.0, 2.0])
    np.testing.assert_array_equal(gb, [2.0])


def test_a_repeated_gather_counts_every_reading():
    np.testing.assert_array_equal(gradient(lambda x: tape.sum(x[[0, 0, 2]] ** 2), np.array([1.0, 2.0, 3.0])), [4, 0, 6])


def test_the_last_write_of_a_repeated_scatter_wins():
    def f(v):
        y = tape.zeros_like(v, (2,))
        y[[0, 0, 1]] = v
        return tape.sum(y * np.array([1.0, 0.0]))

    np.testing.assert_array_equal(gradient(f, np.array([5.0, 6.0, 7.0])), [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(tape.jacobian(f, np.array([5.0, 6.0, 7.0]), "forward")[1], [0.0, 1.0, 0.0])


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")
@pytest.mark.parametrize("shape", [(), (2,)])
def test_a_branch_that_where_did_not_select_contributes_nothing(shape):
    def at(x):
        return np.full(shape, x) if shape else x

    np.testing.assert_array_equal(gradient(lambda x: tape.sum(tape.where(x > 0, tape.sqrt(x), 0.0)), at(-1.0)), at(0.0))
    np.testing.assert_array_equal(
        gradient(lambda x: tape.sum(tape.where(x > 0, x * tape.log(x), 0.0)), at(0.0)), at(0.0)
    )
    sinc = lambda x: tape.sum(tape.where(x == 0, 1.0, tape.sin(x) / x))  # noqa: E731
    np.testing.assert_array_equal(gradient(sinc, at(0.0)), at(0.0))
    np.testing.assert_array_equal(tape.jvp(sinc, at(0.0), at(1.0))[1], 0.0)


def test_every_call_chooses_its_branch_again():
    relu = lambda x: x if x > 0 else 0.0 * x  # noqa: E731
    assert (gradient(relu, -1.0), gradient(relu, 1.0)) == (0.0, 1.0)


@pytest.mark.parametrize("f", [lambda x: x * tape.sqrt(x), lambda x: tape.sqrt(x) * x, lambda x: x**1.0 * x**0.5])
def test_x_times_its_square_root_at_zero_has_derivative_zero(f):
    assert gradient(f, 0.0) == 0.0
    np.testing.assert_array_equal(gradient(lambda x: tape.sum(f(x)), np.zeros(2)), [0.0, 0.0])
    assert tape.jvp(f, 0.0, 1.0)[1] == 0.0
    np.testing.assert_array_equal(tape.jvp(f, np.zeros(2), np.ones(2))[1], [0.0, 0.0])


def test_zero_times_infinity_does_not_hide_other_nan():
    nan = float("nan")
    assert np.isnan(gradient(lambda x: x * nan, 1.0))
    assert np.isnan(gradient(lambda x: tape.sum(x * np.array([nan, 1.0])), np.ones(2))).tolist() == [True, False]
    assert gradient(tape.sqrt, 0.0) == np.inf


def test_kinks_follow_the_documented_convention():
    assert gradient(abs, 0.0) == 0.0
    assert gradient(lambda x: tape.maximum(x, 1.0), 1.0) == 0.5
    assert gradient(lambda x: tape.maximum(x, 2.0 - x), 1.0) == 0.0
    for reduce in (tape.max, tape.min):
        np.testing.assert_array_equal(gradient(reduce, np.array([2.0, 2.0])), [0.5, 0.5])
    np.testing.assert_array_equal(gradient(lambda x: tape.sort(x)[0], np.array([2.0, 2.0, 3.0])).sum(), 1.0)
    np.testing.assert_array_equal(gradient(lambda x: tape.cummax(x)[-1], np.array([2.0, 2.0])).sum(), 1.0)


def test_norms_and_the_deviation_of_a_constant_have_derivative_zero_at_their_kink():
    zero = np.zeros(3)
    np.testing.assert_array_equal(gradient(lambda x: 0.5 * tape.linalg.norm(x) ** 2, zero), zero)
    np.testing.assert_array_equal(gradient(tape.linalg.norm, zero), zero)
    np.testing.assert_array_equal(gradient(lambda x: tape.sqrt(tape.sum(x * x)), zero), zero)
    np.testing.assert_array_equal(gradient(tape.std, np.full(3, 7.0)), zero)
    assert tape.jvp(tape.std, np.full(3, 7.0), np.ones(3))[1] == 0.0
    assert gradient(lambda x: tape.hypot(x, 0.0 * x), 0.0) == 0.0


def test_powers_at_zero():
    assert gradient(lambda y: 0.0**y, 2.0) == 0.0
    np.testing.assert_array_equal(gradient(lambda y: tape.sum(0.0**y), np.array([2.0, 1.0])), [0.0, 0.0])
    assert gradient(lambda p: p[0] ** p[1], (0.0, 2.0)) == (0.0, 0.0)
    assert gradient(lambda x: x**0, 0.0) == 0.0
    assert gradient(lambda x: tape.power(x, np.array([0.0]))[0], 0.0) == 0.0
    first = lambda x: gradient(lambda t: tape.exp(-(t**2.0)), x)  # noqa: E731
    second = lambda x: gradient(first, x)  # noqa: E731
    assert gradient(second, 0.0) == 0.0
    assert second(0.0) == -2.0
    general = lambda t: tape.exp(-(t ** tape.stop_gradient(2.0 + 0.0 * t)))  # noqa: E731
    assert gradient(lambda x: gradient(lambda y: gradient(general, y), x), 0.0) == 0.0


def test_a_power_with_both_arguments_active_has_the_right_mixed_derivative_at_exponent_zero():
    h = tape.hessian(lambda v: v[0] ** v[1], np.array([2.0, 0.0]))[2]
    np.testing.assert_allclose(h, [[0.0, 0.5], [0.5, np.log(2.0) ** 2]], rtol=1e-15)


@pytest.mark.parametrize("cumulative", [False, True])
@pytest.mark.parametrize(
    "x",
    [
        *([0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [2.0, 0.0, 5.0], [2.0, 3.0, 4.0], [0.0, 0.0, 0.0]),
        *([1e-8, 1.0, 3.0], [2.0, 1e-9, -4.0], [-1e-12, 1e3, 1e-3]),
    ],
)
def test_products_with_zeros_or_of_numbers_that_differ_much_have_the_right_first_and_second_derivatives(x, cumulative):
    x = np.array(x)
    f = (lambda v: tape.sum(tape.cumprod(v) * np.array([1.0, 2.0, 5.0]))) if cumulative else tape.prod
    a, b, c = x
    if cumulative:
        g = [1 + 2 * b + 5 * b * c, 2 * a + 5 * a * c, 5 * a * b]
        h = [[0, 2 + 5 * c, 5 * b], [2 + 5 * c, 0, 5 * a], [5 * b, 5 * a, 0]]
    else:
        g, h = [b * c, a * c, a * b], [[0, c, b], [c, 0, a], [b, a, 0]]
    np.testing.assert_allclose(gradient(f, x), g, rtol=1e-15)
    np.testing.assert_allclose(tape.jacobian(f, x, "forward")[1], g, rtol=1e-15)
    np.testing.assert_allclose(tape.hessian(f, x)[2], h, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(tape.jacobian(lambda v: gradient(f, v), x, "forward")[1], h, rtol=1e-13, atol=1e-14)


def test_the_log_determinant_works_for_a_negative_determinant():
    np.testing.assert_array_equal(
        gradient(lambda a: tape.linalg.slogdet(a)[1], np.diag([-2.0, 1.0])), np.diag([-0.5, 1.0])
    )


def test_the_triangle_that_cholesky_ignores_has_derivative_zero():
    g = gradient(lambda a: tape.sum(tape.linalg.cholesky(a)), np.array([[4.0, 1.0], [1.0, 3.0]]))
    assert g[0, 1] == 0.0


def test_log_sum_exp_handles_minus_infinities_and_large_numbers():
    inf = float("inf")
    assert gradient(lambda x: tape.logsumexp(tape.stack([-inf, -inf + x])), 1.0) == 0.0
    assert gradient(lambda x: tape.logaddexp(-inf, -inf + x), 1.0) == 0.0
    assert gradient(lambda x: tape.logsumexp(tape.stack([0.0, x])), 800.0) == 1.0
    np.testing.assert_allclose(gradient(tape.logsumexp, np.array([1e4, 1e4 + 1])), [1 / (1 + np.e), np.e / (1 + np.e)])


def test_perturbations_of_nested_derivatives_are_not_confused():
    assert gradient(lambda x: x * gradient(lambda y: x + y, 1.0), 1.0) == 1.0
    assert gradient(lambda x: x * tape.jvp(lambda y: x + y, 1.0, 1.0)[1], 1.0) == 1.0
    assert tape.jvp(lambda x: x * tape.jvp(lambda y: x + y, 1.0, 1.0)[1], 1.0, 1.0)[1] == 1.0
    assert tape.jvp(lambda x: x * gradient(lambda y: x + y, 1.0), 1.0, 1.0)[1] == 1.0


def test_an_adjoint_of_value_zero_still_carries_an_outer_derivative():
    assert gradient(lambda x: gradient(lambda y: x * (y * 2.0), 3.0), 0.0) == 2.0
    assert tape.jvp(lambda x: gradient(lambda y: x * (y * 2.0), 3.0), 0.0, 1.0)[1] == 2.0
    point = np.array([1.0, 2.0])
    inner = lambda x: gradient(lambda y: tape.sum(x * (y * point)), point)  # noqa: E731
    np.testing.assert_array_equal(gradient(lambda x: tape.sum(inner(x)), np.zeros(2)), point)


def test_stop_gradient_is_a_constant_to_the_derivative():
    assert gradient(lambda x: x * tape.stop_gradient(x), 3.0) == 3.0


def test_integer_and_single_precision_inputs_are_promoted_and_complex_ones_refused():
    assert gradient(lambda x: x * x, 100) == 200.0
    g = gradient(lambda x: tape.sum(x**2), np.array([1, 2]))
    assert g.dtype == np.float64
    np.testing.assert_array_equal(g, [2.0, 4.0])
    assert gradient(lambda x: tape.sum(x * x), np.array([1.5], np.float32)).dtype == np.float64
    for bad in (1j, np.array([1j])):
        with pytest.raises(tape.ComplexError, match="gradient: x: expected real numbers"):
            gradient(lambda x: x, bad)
    with pytest.raises(tape.ComplexError, match="multiply"):
        gradient(lambda x: x * 1j, 1.0)


def test_a_loop_of_no_iterations_is_the_identity():
    assert gradient(lambda x: tape.loop(lambda _, s: s * s, x, 0), 3.0) == 1.0
    assert gradient(lambda x: tape.loop(lambda _, s: s * s, x, 3), 1.5) == pytest.approx(8 * 1.5**7, rel=1e-15)


def test_differences_reveal_a_custom_rule_that_ignores_its_cotangent():
    wrong = tape.function_gradients(np.sin, (lambda val, adj, x: tape.cos(x),), name="wrong")
    right = gradient(lambda x: 3.0 * tape.sin(x), 0.5)
    assert gradient(lambda x: 3.0 * wrong(x), 0.5) == pytest.approx(right / 3.0)
