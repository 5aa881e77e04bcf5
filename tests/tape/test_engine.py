"""The tape, nesting, threads, errors, and results as callers see them."""

import gc
import threading
import weakref

import numpy as np
import pytest

from adbench import tape


def test_nested_parameters_give_gradients_of_the_same_structure():
    params = {"w": np.array([1.0, 2.0]), "b": 0.5, "layers": [np.ones((2, 2)), (3, np.array(2.0))]}

    def f(p):
        return tape.sum(p["layers"][0] @ p["w"]) * p["b"] + p["layers"][1][0] * p["layers"][1][1]

    fx, g = tape.gradient(f, params)
    assert fx == 9.0
    np.testing.assert_array_equal(g["w"], [1.0, 1.0])
    np.testing.assert_array_equal(g["layers"][0], [[0.5, 1.0], [0.5, 1.0]])
    assert (g["b"], g["layers"][1]) == (6.0, (2.0, 3.0))
    assert tape.jvp(f, params, g)[1] == pytest.approx(2.0 + 2.5 + 36.0 + 13.0)


def test_jacobians_of_structured_inputs_and_outputs_have_one_block_per_pair():
    def f(p):
        return {"product": p[0] * p[1], "total": tape.sum(p[1])}

    x = (2.0, np.array([3.0, 4.0, 5.0]))
    for mode in ("reverse", "forward"):
        fx, j = tape.jacobian(f, x, mode)
        np.testing.assert_array_equal(fx["product"], [6.0, 8.0, 10.0])
        np.testing.assert_array_equal(j["product"][0], [3.0, 4.0, 5.0])
        np.testing.assert_array_equal(j["product"][1], 2.0 * np.eye(3))
        assert j["total"][0] == 0.0
        np.testing.assert_array_equal(j["total"][1], np.ones(3))
    _, _, h = tape.hessian(lambda p: p[0] * tape.sum(p[1] * p[1]), x)
    np.testing.assert_array_equal(h[0][1], [6.0, 8.0, 10.0])
    np.testing.assert_array_equal(h[1][0], [6.0, 8.0, 10.0])
    np.testing.assert_array_equal(h[1][1], 4.0 * np.eye(3))


@pytest.mark.parametrize("x", [2.0, np.array([2.0]), np.zeros(0), np.ones((2, 0)), np.array(2.0), np.float64(2.0)])
def test_results_have_the_shapes_and_types_of_plain_numbers(x):
    fx, g = tape.gradient(lambda v: tape.sum(v * v), x)
    assert type(fx) is float
    assert np.shape(g) == np.shape(x)
    assert type(g) is (np.ndarray if np.ndim(x) else float)
    _, j = tape.jacobian(lambda v: v * 3.0, x)
    assert np.shape(j) == 2 * np.shape(x)
    _, _, h = tape.hessian(lambda v: tape.sum(v**3), x)
    assert np.shape(h) == 2 * np.shape(x)


def test_gradients_belong_to_the_caller_and_can_be_written_to():
    weights = np.array([1.0, 2.0])
    for f in (tape.sum, lambda v: tape.sum(v + 1.0), lambda v: v @ weights, lambda v: tape.sum(v.reshape(2, 1))):
        g = tape.gradient(f, np.zeros(2))[1]
        g += 1.0
    np.testing.assert_array_equal(weights, [1.0, 2.0])


def test_a_function_that_ignores_its_input_has_gradient_zero():
    assert tape.gradient(lambda x: 3, 2.0) == (3.0, 0.0)
    np.testing.assert_array_equal(tape.gradient(lambda x: 3.0, np.ones(2))[1], [0.0, 0.0])
    assert tape.jvp(lambda x: 3.0, 2.0, 1.0) == (3.0, 0.0)
    np.testing.assert_array_equal(tape.jacobian(lambda x: np.ones(3), np.ones(2))[1], np.zeros((3, 2)))
    assert tape.hessian(lambda x: 3.0 * x, 2.0) == (6.0, 3.0, 0.0)


def test_products_with_a_jacobian_agree_with_the_jacobian_in_both_modes():
    f = lambda x: tape.stack([x[0] * x[1], tape.sin(x[2]), x[0], x[1] * x[1] * x[2]])  # noqa: E731
    x, v, w = np.array([0.4, 1.2, -0.7]), np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.7, -1.1, 2.0])
    j = tape.jacobian(f, x)[1]
    assert j.shape == (4, 3)
    np.testing.assert_allclose(tape.jacobian(f, x, "reverse")[1], tape.jacobian(f, x, "forward")[1], rtol=1e-15)
    np.testing.assert_allclose(tape.jvp(f, x, v)[1], j @ v, rtol=1e-14)
    np.testing.assert_allclose(tape.vjp(f, x, w)[1], w @ j, rtol=1e-14)


def test_every_order_of_nesting_gives_the_same_third_derivative():
    f = lambda x: tape.exp(x * x) / (1.0 + x)  # noqa: E731
    modes = [lambda g: lambda x: tape.gradient(g, x)[1], lambda g: lambda x: tape.jvp(g, x, 1.0)[1]]
    values = [a(b(c(f)))(0.3) for a in modes for b in modes for c in modes]
    np.testing.assert_allclose(values, values[0], rtol=1e-12)


def test_a_gradient_inside_a_loop_on_the_outer_tape_is_differentiated_through():
    def step_length(rate):
        x = np.array([1.0, -2.0])
        for _ in range(3):
            x = x - rate * tape.gradient(lambda v: tape.sum(v**4) / 4.0, x)[1]
        return tape.sum(x)

    exact = (step_length(0.05 + 1e-6) - step_length(0.05 - 1e-6)) / 2e-6
    assert tape.gradient(step_length, 0.05)[1] == pytest.approx(exact, rel=1e-8)


def test_assignment_rebinds_the_variable_and_leaves_earlier_results_alone():
    x = tape.Var(np.array([1.0, 2.0, 3.0]))
    before = tape.sum(x * x)
    x[0] = x[1] * 5.0
    after = tape.sum(x * x)
    np.testing.assert_array_equal(x.val, [10.0, 2.0, 3.0])
    assert (before.val, after.val) == (14.0, 113.0)

    def f(v):
        early = v[0] * 100.0
        v[0] = v[1] * v[2]
        v[1:] *= 2.0
        return early + tape.sum(v)

    point = np.array([1.0, 2.0, 3.0])
    for mode in ("reverse", "forward"):
        np.testing.assert_array_equal(tape.jacobian(f, point, mode)[1], [100.0, 5.0, 4.0])
    np.testing.assert_array_equal(point, [1.0, 2.0, 3.0])


def test_reading_every_element_takes_linear_time():
    def steps(n):
        with tape.nested():
            x = tape.Var(np.ones(n))
            total = tape.Var(0.0)
            for i in range(n):
                total = total + x[i] * x[i]
            total.grad()
            owned = x.cell.adj
            total.grad()
            return x.cell.own, owned.size

    assert steps(1000) == (True, 1000)  # one buffer, added to in place


def test_nested_blocks_free_their_memory_even_after_an_exception():
    outer = tape.current_tape()
    with tape.nested() as inner:
        x = tape.Var(2.0)
        y = x * x
        y.grad()
        assert (tape.current_tape(), x.adj) == (inner, 4.0)
    assert tape.current_tape() is outer
    assert len(inner) == 0
    with pytest.raises(tape.ClosedTapeError, match="multiply"):
        _ = y * x
    with pytest.raises(ZeroDivisionError), tape.nested():
        tape.Var(1.0 / 0)
    assert tape.current_tape() is outer

    def fails(v):
        raise RuntimeError("inside")

    for functional in (tape.gradient, tape.hessian, tape.jacobian, lambda f, v: tape.jvp(f, v, 1.0)):
        with pytest.raises(RuntimeError, match="inside"):
            functional(fails, 1.0)
        with pytest.raises(RuntimeError, match="inside"):
            functional(lambda v: tape.gradient(fails, v)[1], 1.0)
    assert tape.current_tape() is outer
    assert tape.gradient(lambda v: v * v, 3.0) == (9.0, 6.0)


def test_a_gradient_leaves_no_objects_behind():
    kept = []

    def f(x):
        y = x * 2.0
        kept.append(weakref.ref(y.tape))
        return tape.sum(y)

    gc.disable()
    try:
        tape.gradient(f, np.ones(3))
        assert kept[0]() is None, "freed without the garbage collector"
    finally:
        gc.enable()


def test_memory_of_the_direct_style_is_freed_on_request():
    x = tape.Var(2.0)
    y = x * x
    assert len(tape.current_tape()) > 0
    tape.recover_memory()
    assert len(tape.current_tape()) == 0
    assert (x.val, y.val) == (2.0, 4.0)
    with pytest.raises(tape.ClosedTapeError):
        _ = x * y


def test_two_threads_have_two_tapes():
    results, barrier = {}, threading.Barrier(2)

    def work(name, x):
        v = tape.Var(x)
        barrier.wait()
        y = v * v
        barrier.wait()
        y.grad()
        g = [tape.gradient(lambda u: tape.sum(tape.exp(u) * u), np.full(4, x))[1] for _ in range(50)]
        results[name] = (v.adj, g, id(tape.current_tape()))

    threads = [threading.Thread(target=work, args=(i, float(i + 1))) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results[0][2] != results[1][2]
    for i in range(2):
        x = float(i + 1)
        assert results[i][0] == 2 * x
        np.testing.assert_allclose(results[i][1], np.exp(x) * (1 + x))


def test_a_variable_behaves_like_a_number_but_refuses_to_become_a_constant():
    x, a = tape.Var(2.5), tape.Var([[1, 2, 3], [4, 5, 6]])
    assert isinstance(x, tape.Var)
    assert isinstance(x * x, tape.Var)
    assert not isinstance(2.5, tape.Var)
    assert (a.shape, a.ndim, a.size, len(a), a.dtype) == ((2, 3), 2, 6, 2, np.float64)
    assert a.T.shape == (3, 2)
    assert (x > 2, x < 2, x == 2.5, x != 2.5, bool(x), x <= 3.0) == (True, False, True, False, True, True)
    assert (a > 2).tolist() == [[False, False, True], [True, True, True]]
    assert np.isfinite(a).all()
    assert "2.5" in repr(x)
    for convert in (float, int, complex, np.asarray, lambda v: np.array([v, v]), lambda v: np.zeros(3)[v]):
        with pytest.raises((TypeError, IndexError), match=r"\.val|valid indices"):
            convert(x)
    with pytest.raises(ValueError, match="sequence") as raised:
        np.zeros(2)[0] = x
    assert "tape.stack" in str(raised.value.__cause__)
    with pytest.raises(TypeError, match="scalar"):
        len(x)
    with pytest.raises(TypeError, match="scalar"):
        list(x)


def test_a_method_equals_the_function_of_its_name():
    x = np.array([[0.5, 2.0], [1.5, -1.0]])
    for name, args in {
        "sum": (0,), "mean": (), "var": (), "std": (1,), "prod": (), "max": (), "min": (1,),
        "cumsum": (0,), "cumprod": (),
        "trace": (), "ravel": (), "flatten": (), "reshape": (4,), "squeeze": (), "transpose": (1, 0), "dot": (x,),
        "swapaxes": (0, 1), "repeat": (2,), "copy": (), "take": ([1, 0],), "diagonal": (), "clip": (-0.5, 1.6),
    }.items():  # fmt: skip
        fx, j = tape.jacobian(lambda v, n=name, a=args: getattr(v, n)(*a), x)
        np.testing.assert_allclose(fx, getattr(x, name)(*args), rtol=1e-15, err_msg=name)
        assert j.shape == np.shape(fx) + x.shape
    assert tape.Var(x).argmax() == 1
    assert tape.Var(x).argsort().tolist() == [[0, 1], [1, 0]]


def test_an_unsupported_numpy_function_raises_an_error_that_names_it():
    x = tape.Var(np.ones(3))
    for call, name in [
        (lambda: np.i0(x), "i0|no array"),
        (lambda: np.nextafter(x, 1.0), "nextafter"),
        (lambda: np.convolve(x, x), "convolve"),
        (lambda: np.linalg.eigvals(x), "eigvals"),
        (lambda: np.add.at(x, [0], 1.0), "add.at"),
        (lambda: np.add(x, 1.0, out=np.zeros(3)), "out"),
        (lambda: np.sum(x, dtype=int), "sum"),
    ]:
        with pytest.raises(tape.UnsupportedError, match=name):
            call()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tape.gradient(lambda x: x * 2.0, np.ones(3)), tape.NotScalarError, r"shape \(3,\)"),
        (lambda: tape.gradient(lambda x: x * 2.0, np.ones(1)), tape.NotScalarError, r"shape \(1,\)"),
        (lambda: tape.gradient(lambda x: None, 1.0), tape.NotScalarError, "None"),
        (lambda: tape.gradient(lambda x: x, "word"), TypeError, "gradient: x"),
        (lambda: tape.gradient(lambda x: x, np.array([True])), TypeError, "booleans"),
        (lambda: tape.jvp(lambda x: x, np.ones(3), np.ones(2)), ValueError, r"expected shape \(3,\), got \(2,\)"),
        (lambda: tape.vjp(lambda x: x, np.ones(3), np.ones(2)), ValueError, r"expected shape \(3,\), got \(2,\)"),
        (lambda: tape.jacobian(lambda x: x, 1.0, "sideways"), ValueError, "sideways"),
        (lambda: tape.gradient(lambda x: x @ np.ones(4), np.ones(3)), ValueError, r"matmul of shapes \(3,\), \(4,\)"),
        (
            lambda: tape.gradient(lambda x: tape.sum(x + np.ones(4)), np.ones(3)),
            ValueError,
            r"add of shapes \(3,\), \(4,\)",
        ),
        (lambda: tape.Var(np.ones(3)).grad(), tape.TapeError, r"shape \(3,\)"),
        (lambda: tape.Var(1.0).grad(3.0), tape.TapeError, "wrt must hold variables of the result's tape, got 3.0"),
        (lambda: tape.gradient(lambda x: x + "a", 1.0), TypeError, "add: argument 1"),
        (lambda: tape.gradient(lambda x: x + np.ones(1) * 1j, 1.0), tape.ComplexError, "add: argument 1"),
        (lambda: tape.gradient(lambda x: tape.polygamma(2.0, x), 1.0), TypeError, r"\.val"),
    ],
)
def test_bad_input_raises_an_error_with_the_expected_and_the_found_value(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_rule_that_returns_a_wrong_shape_raises_an_error_that_names_it():
    wrong = tape.function_gradients(
        lambda a: a * 1.0, reverse=(lambda v, adj, a: adj[:1],), forward=(lambda v, tan, a: tan[:1],), name="halve"
    )
    with pytest.raises(tape.RuleError, match=r"halve.*argument 0.*expected \(3,\), got \(1,\)"):
        tape.gradient(lambda x: tape.sum(wrong(x)), np.ones(3))
    with pytest.raises(tape.RuleError, match=r"halve.*expected \(3,\), got \(1,\)"):
        tape.jvp(wrong, np.ones(3), np.ones(3))
    one_way = tape.function_gradients(np.sin, reverse=(lambda v, adj, x: adj * np.cos(x),), name="one_way")
    with pytest.raises(tape.RuleError, match=r"one_way.*forward"):
        tape.jvp(one_way, 1.0, 1.0)
    tall = tape.jacobian(lambda x: tape.stack([one_way(x), x]), 0.5)[1]
    np.testing.assert_allclose(tall, [np.cos(0.5), 1.0])
    unary = tape.function_gradients(lambda x, y: x * y, (lambda v, adj, x, y: adj * y,), name="unary")
    with pytest.raises(tape.RuleError, match="unary: called with 2 arguments, but the rule has 1"):
        tape.gradient(lambda x: unary(x, 2.0), 1.0)


def test_public_names_exist_and_are_documented():
    for name in tape.__all__:
        thing = getattr(tape, name)
        assert isinstance(thing, tape.Rule) or thing is tape.newaxis or thing.__doc__, name
