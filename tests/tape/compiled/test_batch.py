"""compile(..., batch=True): N points in one call give the bits of N calls."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adbench import tape
from adbench.tape.trees import tree_flatten
from tests.tape.compiled.test_guards import points as pairs
from tests.tape.compiled.test_guards import program_of, programs

SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, -1e-310, 1e-20, 0.5, 709.0, -745.0, 1e15, 1e300, math.inf, -math.inf, math.nan]

UNARY = [
    "sin",
    "cos",
    "tan",
    "exp",
    "expm1",
    "log",
    "log1p",
    "tanh",
    "sinh",
    "cosh",
    "arcsin",
    "arccos",
    "arctan",
    "sqrt",
]
UNARY += ["cbrt", "erf", "floor", "abs", "sign", "expit"]


def bits(x):
    """The bits of numbers; all NaN are the same."""
    x = np.array(x, dtype=float)
    x[np.isnan(x)] = math.nan
    return x.view(np.int64)


def assert_same(f, *batch, shared=(), **options):
    """The batch's result has the bits of single calls; returns the batched function."""
    many = tape.compile(f, *batch, batch=True, shared=shared, **options)
    fixed = {shared} if isinstance(shared, int) else set(shared)

    def point(i):
        def of(x):
            return tape_map(x, lambda leaf: float(leaf[i]) if leaf.ndim == 1 else leaf[i])

        return [x if k in fixed else of(x) for k, x in enumerate(batch)]

    count = next(len(tree_flatten(x)[0][0]) for k, x in enumerate(batch) if k not in fixed)
    one = tape.compile(f, *point(0), **options)
    for result in (many(*batch), many(*batch)):
        for i in range(count):
            expected = tree_flatten(one(*point(i)))[0]
            found = [leaf[i] for leaf in tree_flatten(result)[0]]
            assert [np.shape(x) for x in found] == [np.shape(x) for x in expected]
            for a, b in zip(found, expected, strict=True):
                assert np.array_equal(bits(a), bits(b)), (i, a, b)
    return many


def tape_map(x, of):
    """The same nest with other leaves."""
    if isinstance(x, np.ndarray):
        return of(x)
    if isinstance(x, dict):
        return {k: tape_map(v, of) for k, v in x.items()}
    return type(x)(tape_map(v, of) for v in x) if isinstance(x, (list, tuple)) else x


def points(count, *shape, seed=0):
    return np.random.default_rng(seed).normal(size=(count, *shape))


# The same bits


@pytest.mark.parametrize("name", UNARY)
def test_functions_at_random_and_special_points(name):
    f = getattr(tape, name)
    x = np.concatenate([SPECIAL, 10 * points(50)])
    assert "8 points run at once" in assert_same(f, x).explain()


@pytest.mark.parametrize(
    "name", ["power", "arctan2", "maximum", "minimum", "hypot", "logaddexp", "remainder", "copysign"]
)
def test_functions_of_two_numbers_at_special_points(name):
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    assert "8 points run at once" in assert_same(getattr(tape, name), x, y).explain()


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 16, 37])
def test_any_number_of_points(count):
    assert_same(lambda x, y: x * tape.sin(y) + y / x, points(count), points(count, seed=1))


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 16, 17, 24, 40])
def test_arrays_element_by_element(size):
    def f(x):
        return sum(x[i] * tape.exp(x[size - 1 - i]) for i in range(size))

    assert_same(f, points(21, size))


@pytest.mark.parametrize("size", [3, 16])
def test_small_arrays_run_in_lanes(size):
    def f(x, y):
        z = tape.stack([y, y * y, tape.where(y > 0, y, -y)])
        return tape.sum(x * tape.sin(x)) * tape.sum(z) + tape.max(x[::-1]) + tape.cumsum(x)[-1]

    many = assert_same(f, points(13, size), points(13))
    assert "8 points run at once" in many.explain()


def test_loops_over_arrays_run_point_after_point():
    many = assert_same(lambda x, y: tape.sum(tape.exp(x) * y), points(11, 40), points(11))
    assert "one after the other in machine code, because of loops over arrays" in many.explain()


def test_factorisations_and_products():
    a = points(5, 6, 6) + 8 * np.eye(6)

    def f(a, b):
        return tape.sum(tape.linalg.solve(a, b) ** 2) + tape.linalg.slogdet(a)[1] + tape.sum((a @ a) ** 2)

    many = assert_same(f, a, points(5, 6))
    assert "one after the other" in many.explain()


def test_a_recorded_loop():
    def f(x, y):
        return tape.loop(lambda _, s: s * 0.5 + tape.sin(x) / s, y, 30)

    many = assert_same(f, points(9), 2.0 + points(9, seed=2) ** 2)
    assert "one after the other" in many.explain()


def test_calls_into_python():
    many = assert_same(lambda x, y: tape.erfinv(x * 0.1) * y, 1 + points(10) ** 2, points(10))
    assert "because of erfinv" in many.explain()
    assert "erfinv: has no native form" in many.explain()


def test_long_programs_in_pieces_with_guards():
    def f(x, y):
        s = x
        for k in range(300):
            s = s + (x * x + 1) / (s + k) if s > 0 else s * y - 1.0
        return s

    many = assert_same(f, points(12), np.linspace(-1, 1, 12))
    assert many.nodes() > 5_000
    assert "eager" not in many.explain()


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_every_level_of_optimisation(level):
    def f(x):
        return tape.where(x > 0, tape.log1p(x) * x, tape.sin(x) - x**3) / (1.5 + x * x)

    assert_same(f, np.concatenate([SPECIAL, points(30)]), level=level)


# Branches


def branches(x):
    """Four paths."""
    if x > 1:
        return tape.sin(x)
    if x > 0:
        return x * x
    return tape.exp(x) if x < -1 else -x


def test_each_branch_is_recorded_once():
    x = np.concatenate([points(400), [1.0, 0.0, -1.0, math.nan]])
    many = assert_same(branches, x)
    assert many.explain().count("recording of") == 4


@settings(max_examples=12, deadline=None)
@given(programs, pairs, st.integers(1, 20))
def test_random_programs(code, at, count):
    x, y = (np.resize([p[k] for p in at], count) for k in (0, 1))
    assert_same(program_of(code), x, y, level=0)


def test_a_new_branch_in_a_later_call():
    many = tape.compile(branches, np.full(10, 2.0), batch=True)
    x = np.array([2.0, 0.5, -3.0, -0.5, 3.0])
    value, slope = many(x)
    assert np.array_equal(value, [tape.compile(branches, t)(t)[0] for t in x])
    assert np.array_equal(slope, [tape.compile(branches, t)(t)[1] for t in x])
    assert many.explain().count("recording of") == 4


def test_more_branches_than_recordings():
    def f(x):
        s = 0.0 * x
        for k in range(12):
            if x > k:
                s = s + x * k
        return s

    many = assert_same(f, np.linspace(-1, 13, 50), recordings=3)
    assert any("paths through the function" in note for note in many.notes)


def test_a_derivative_that_needs_the_careful_program():
    def f(x):
        return tape.where(x > 0, tape.sqrt(x), 0.0) + x

    x = np.array([1.0, 0.0, -1.0, 4.0, 0.0, 9.0, 2.0, 3.0, 0.0])
    many = assert_same(f, x)
    assert "careful recording" in many.explain()


def test_functions_that_cannot_be_recorded_run_as_single_calls():
    def f(x):
        tape.reverse_pass_callback(lambda: None)
        return tape.Var(x.val * x.val) * 0.0 + x * x

    many = assert_same(f, points(6))
    assert "runs in the eager engine" in many.explain()


# Arguments and results


def test_shared_arguments():
    data = points(30)

    def f(x, y, p):
        return tape.sum((y - p[0] * x) ** 2) * tape.exp(p[1])

    assert_same(f, points(9), data, points(9, 2), shared=1, wrt=(0, 2))
    assert_same(f, 1.5, data, points(9, 2), shared=(0, 1))
    assert_same(lambda x, w: x * w[0] + tape.sin(w[1] * x), points(9), points(2), shared=1)


def test_settings_and_nests():
    def f(p, n, name):
        return p["a"] ** n * tape.sum(p["b"]) if name == "power" else p["a"]

    assert_same(f, {"a": points(10), "b": points(10, 3)}, 3, "power", shared=(1, 2))
    many = tape.compile(f, {"a": points(10), "b": points(10, 3)}, 3, "power", batch=True)
    assert many({"a": points(4), "b": points(4, 3)}, 3, "power")[0].shape == (4,)


def test_integers_of_each_point_are_settings():
    x, n = points(6), np.array([1, 2, 3, 1, 2, 3])
    many = tape.compile(lambda x, n: x**n, x, n, batch=True, wrt=0)
    value, slope = many(x, n)
    assert np.allclose(value, x**n, rtol=1e-14)
    assert np.allclose(slope, n * x ** (n - 1), rtol=1e-14)
    assert "argument 1: integers are settings" in many.notes[0]


@pytest.mark.parametrize("operator", ["value", "gradient", "value_and_gradient", "jacobian", "hessian"])
def test_operators(operator):
    assert_same(lambda x, y: x[0] * y + tape.sin(x[1]) * x[0], points(11, 2), points(11), operator=operator)


def test_operators_with_a_vector():
    def f(x, y):
        return x[0] * y + tape.sin(x[1]) * x[0]

    x, y, w = points(11, 2), points(11), points(11, seed=3)
    assert_same(f, x, y, w, operator="vjp")
    for operator in ("jvp", "hvp"):
        assert_same(f, x, y, (points(11, 2, seed=4), w), operator=operator)
        assert_same(f, x, y, (w, points(11, 2, seed=4)), operator=operator, wrt=(1, 0))


def test_results_in_a_nest():
    def f(x):
        return {"a": x * x, "b": [tape.stack([x, x * 2.0]), 3.0]}

    assert_same(f, points(10), operator="value")
    assert_same(lambda x: tape.stack([x[0], x[1] * x[2]]), points(10, 3), operator="jacobian")


def test_no_points():
    many = tape.compile(lambda x, y: (x * x).sum() * y, points(0, 3), points(0), batch=True)
    value, (dx, dy) = many(points(0, 3), points(0))
    assert value.shape == (0,)
    assert dx.shape == (0, 3)
    assert dy.shape == (0,)
    assert many(points(4, 3), points(4))[0].shape == (4,)
    assert many(points(0, 3), points(0))[1][0].shape == (0, 3)


def test_results_are_new_arrays_and_arguments_unchanged():
    x = points(20)
    before = x.copy()
    many = tape.compile(lambda x: x * x, x, batch=True)
    first = many(x)
    kept = [a.copy() for a in first]
    many(x + 1)
    assert np.array_equal(first, kept)
    assert np.array_equal(x, before)


def test_arrays_in_any_layout():
    x = points(20, 6)
    many = tape.compile(lambda x: tape.sum(x * x), x[:, :3].copy(), batch=True)
    expected = many(x[:, :3].copy())
    for other in (x[:, :3], np.asfortranarray(x[:, :3])):
        assert np.array_equal(many(other)[1], expected[1])
    assert many(x[:, :3].astype(np.float32))[1].dtype == np.float64


# Errors


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        ((points(3), points(4)), {}, r"f: argument 1: expected 3 points on the leading axis, .* got shape \(4,\)"),
        ((points(3), 1.0), {}, "f: argument 1: expected an array with a leading axis of points, got one number"),
        ((1.0, 1.0), {"shared": (0, 1)}, "f: expected an argument with a leading axis of points, got none"),
        ((points(3), 1.0), {"shared": 2}, "compile: shared: expected positions from 0 to 1, got 2"),
        ((points(3), points(3)), {"sparse": True, "operator": "hessian"}, "sparse results have no leading axis"),
        ((1.0, 1.0), {"shared": 1, "batch": False}, "compile: shared: expected batch=True"),
    ],
)
def test_wrong_arguments_give_one_line(args, options, message):
    def f(x, y):
        return x * y

    with pytest.raises(ValueError, match=message) as error:
        tape.compile(f, *args, **{"batch": True, **options})
    assert "\n" not in str(error.value)


def test_a_wrong_call_after_a_right_one():
    many = tape.compile(lambda x, y: x * y, points(3), points(3), batch=True)
    with pytest.raises(ValueError, match="expected 3 points"):
        many(points(3), points(2))
    with pytest.raises(TypeError, match="by position"):
        many(points(3), y=points(3))
    with pytest.raises(TypeError, match="expected 2 arguments"):
        many(points(3))


def test_errors_of_the_function_at_a_point():
    a = np.stack([np.eye(20), np.zeros((20, 20)), np.eye(20)])
    many = tape.compile(lambda a: tape.sum(tape.linalg.inv(a)), a[:1], batch=True)
    with pytest.raises(np.linalg.LinAlgError):
        many(a)
    assert many(a[:1])[0][0] == 20.0


def test_shapes_that_differ_between_points():
    def f(x):
        return tape.stack([x, x]) if x > 0 else tape.stack([x, x, x])

    with pytest.raises(ValueError, match="expected results of one shape at all points"):
        tape.compile(f, np.array([1.0, -1.0]), batch=True, operator="value")
