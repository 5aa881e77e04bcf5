"""Every function at special points, alone and within small programs, in all compositions of its derivatives.

The elementwise functions come from the engine's own table, so a new function is tested as soon as it has a row (and
fails until `truth` knows it). A slow test takes all points and shapes of the functions of one argument.
"""

import itertools
import math

import mpmath as m
import numpy as np
import pytest

from adbench import tape
from adbench.tape.numpy_names import ROWS

from . import sweep, truth
from .test_density_digits import CONTINUOUS, DISCRETE

JUMPS = {"sign", "floor", "ceil", "trunc", "rint", "floor_divide", "remainder", "stop_gradient"}
"""Constant between jumps, or (`remainder`) continuous between them: by convention, the slope at a jump is that next to
it. `stop_gradient` has the derivative 0 by definition."""

UNARY = sorted(row.name for row in ROWS if len(row.reverse) == 1 and row.name not in JUMPS)
BINARY = sorted(row.name for row in ROWS if len(row.reverse) == 2 and row.name not in JUMPS)
SLOW_TRUTH = {"gammaln", "erfinv", "inv_Phi", "lbeta", "digamma_rise"}
"""At 1e150, high precision takes too long or has no value."""

POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e8, -1e8, 1e-150, -1e-150, 1e150, -1e150]
FEW = [0.0, 1.0, -1.0]
SHAPES = {
    "f": lambda y, x: y,
    "f²": lambda y, x: y**2,
    "f · f": lambda y, x: y * y,
    "x f": lambda y, x: x * y,
}


def report(found):
    return "\n".join(f"{what}, {way}: {fault}" for what, ways in found.items() for way, fault in ways.items())


def swept(cases):
    """The faults of (what, f, exact, x, v, honest, machine), and the number of judged derivatives."""
    found, total = {}, {"right": 0, "unknown": 0}
    for what, f, exact, x, v, honest, machine in cases:
        faults, counts = sweep.faults(f, exact, x, v, honest=honest, machine=machine)
        if faults:
            found[what] = faults
        total = {key: total[key] + counts[key] for key in total}
    print(total, sum(map(len, found.values())), "wrong")
    assert found or sum(total.values())
    return found


def unary(name, points, shapes, machine=False):
    f, exact = getattr(tape, name), getattr(truth.mp, name)
    for x in points:
        if name in SLOW_TRUTH and (abs(x) > 1e9 or 0.0 < abs(x) < 1e-9):
            continue
        honest = not sweep.truth(exact, x, 1.0).is_smooth()
        for shape in shapes:
            of = SHAPES[shape]
            yield f"{name} {shape} at {x}", _of_one(of, f), _of_one(of, exact), x, 1.0, honest, machine


def _of_one(shape, f):
    return lambda x: shape(f(x), x)


def _of_two(shape, f):
    return lambda x: shape(f(x[0], x[1]), x[0])


def binary(name, points, shapes, machine=False):
    f, exact = getattr(tape, name), getattr(truth.mp, name)
    for x in itertools.product(points, repeat=2):
        if (name in SLOW_TRUTH and max(x) > 1e9) or _has_no_truth(name, *x):
            continue
        for v in ([1.0, 0.0], [0.0, 1.0], [1.0, 2.0]):
            honest = not sweep.truth(_of_two(SHAPES["f"], exact), x, v).is_smooth()
            for shape in shapes:
                of = SHAPES[shape]
                yield f"{name} {shape} at {x} along {v}", _of_two(of, f), _of_two(of, exact), x, v, honest, machine


def _has_no_truth(name, x, y):
    """Points that mpmath, which has no -0, reads differently, and exponents that absorb 1."""
    if name in ("copysign", "arctan2"):
        return y == 0.0 or (x == 0.0 and math.copysign(1.0, x) < 0.0)
    return name == "power" and not 1e-9 < abs(y) < 1e9 and y != 0.0


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_argument_is_right_at_special_points_in_all_compositions(name):
    assert not (found := swept(unary(name, FEW, ["f", "f²", "x f"]))), report(found)


@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_arguments_is_right_at_special_points_in_all_compositions(name):
    assert not (found := swept(binary(name, FEW[:2], ["f", "f²"]))), report(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_argument_is_right_everywhere(name):
    found = swept(unary(name, POINTS, SHAPES))
    assert not found, report(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in BINARY if name not in SLOW_TRUTH])
def test_a_function_of_two_arguments_is_right_everywhere(name):
    points = [0.0, 1.0, -1.0, 0.5, 2.0, 1e-150, -1e-150, 1e8, -1e8]
    assert not (found := swept(binary(name, points, ["f", "x f"]))), report(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_a_compiled_function_is_right_at_special_points(name):
    assert not (found := swept(unary(name, FEW, ["f", "f²", "x f"], machine=True))), report(found)


# Branches not taken


@pytest.mark.parametrize("name", UNARY)
def test_a_branch_that_was_not_taken_adds_nothing_to_any_derivative(name):
    f, exact = getattr(tape, name), getattr(truth.mp, name)
    inside = 0.5 if name not in ("arccosh", "log1m_exp") else {"arccosh": 2.0, "log1m_exp": -0.5}[name]

    def masked(x):
        return tape.where(np.array([False, True]), f(x), 0.0)

    def alone(x):
        return tape.where(x > 1e9, f(x), 0.0) ** 2 + 3.0 * x

    def cases():
        for x in (0.0, 1.0, -1.0):
            yield f"alone at {x}", alone, lambda x: 3 * x, x, 1.0, False, False
            for what, of in (("", lambda y: y), (" squared", lambda y: y**2)):
                yield (
                    *(f"masked{what} at {x}", lambda x, of=of: tape.sum(of(masked(x)))),
                    *(lambda x, of=of: of(exact(x[1])), [x, inside], [1.0, 2.0], False, False),
                )

    assert not (found := swept(cases())), report(found)


# Reductions and matrices


def _squares(x):
    return sum(t * t for t in np.ravel(x))


def _variance(x, axis=None):
    x = np.asarray(x, object)
    centred = x - (x.sum(axis, keepdims=True) / (x.size if axis is None else x.shape[axis]))
    return (centred * centred).sum(axis) / (x.size if axis is None else x.shape[axis])


def _norm(x):
    return m.sqrt(_squares(x))


def _matrix(f):
    return lambda x: f(m.matrix(x.tolist()))


def _spectrum(of):
    """Σ of(λ) of the symmetric matrix in the lower triangle, by the trace of a function of it."""

    def exact(x):
        lower = np.tril(x) + np.tril(x, -1).T
        return of(m.matrix(lower.tolist()))

    return exact


def _trace(a):
    return sum(a[i, i] for i in range(a.rows))


def _sum_of_roots_squared(x):
    return sum(m.sqrt(t) ** 2 for t in x)


def _largest(count, root=m.sqrt):
    """Σ root(λ) of the largest eigenvalues λ of AᵀA."""

    def exact(x):
        return sum(map(root, sorted(_gram(x))[-count:]))

    return exact


def _gram(x):
    a = m.matrix(x.tolist())
    return m.eigsy(a.T * a, eigvals_only=True)


def _nuclear(x):
    """Of a matrix of two columns: (s₁ + s₂)² = Σ x² + 2 s₁ s₂."""
    a = m.matrix(x.tolist())
    return m.sqrt(_squares(x) + 2 * m.sqrt(m.det(a.T * a)))


ZERO, CONSTANT = np.zeros(3), np.full(3, 7.0)
EYE, NOTHING, RANK_ONE = np.eye(2), np.zeros((2, 2)), np.array([[1.0, 0.0], [0.0, 0.0]])
EQUAL_ROWS, TALL = np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
LOW_RANK = [RANK_ONE, EQUAL_ROWS, np.diag([3.0, 0.0, 0.0]), np.diag([3.0, 1.0, 0.0])]
LOW_RANK += [np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]), np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])]
L = tape.linalg
KNOWN = {
    "½ norm²": (lambda x: 0.5 * L.norm(x) ** 2, lambda x: _squares(x) / 2, [ZERO, np.array([0.0, -0.0]), CONSTANT]),
    "norm · norm, computed once": (lambda x: (lambda n: n * n)(L.norm(x)), _squares, [ZERO, CONSTANT]),
    "norm²": (lambda x: L.norm(x) * L.norm(x), _squares, [CONSTANT]),
    "norm⁴": (lambda x: (L.norm(x) ** 2) ** 2, lambda x: _squares(x) ** 2, [ZERO, CONSTANT]),
    "norm of rows²": (lambda x: tape.sum(L.norm(x, axis=1) ** 2), _squares, [NOTHING, RANK_ONE, EQUAL_ROWS]),
    "matrix_norm²": (lambda x: L.matrix_norm(x) ** 2, _squares, [NOTHING, RANK_ONE, EYE]),
    "sqrt(Σx²)²": (lambda x: tape.sqrt(tape.sum(x * x)) ** 2, _squares, [ZERO, CONSTANT]),
    "std²": (lambda x: tape.std(x) ** 2, _variance, [CONSTANT, ZERO, np.array([1.0, 1.0, 2.0])]),
    "std² of rows": (
        lambda x: tape.sum(tape.std(x, 1) ** 2),
        lambda x: _variance(x, 1).sum(),
        [np.full((2, 3), 7.0), np.array([[1.0, 1.0], [1.0, 2.0]])],
    ),
    "std of one": (lambda x: tape.cosh(tape.std(x)), lambda x: x[0] * 0 + 1, [np.zeros(1), np.full(1, 3.7)]),
    "std of rows of one": (lambda x: tape.sum(tape.std(x, 1)), lambda x: x[0, 0] * 0, [np.zeros((2, 1))]),
    "√var of one": (lambda x: tape.sqrt(tape.var(x)), lambda x: x[0] * 0, [np.zeros(1)]),
    "x^sign x": (lambda x: x ** tape.sign(x), lambda x: x ** m.sign(x), [-1.0, 1.0, -2.0]),
    "Σ x^sign x": (lambda x: tape.sum(x ** tape.sign(x)), lambda x: sum(t ** m.sign(t) for t in x), [-CONSTANT]),
    "√(least of constants)": (
        lambda x: tape.sqrt(tape.min(tape.triu(x))),
        lambda x: x[0, 0] * 0,
        [np.ones((2, 1))],
    ),
    "std of constants": (lambda x: tape.std(tape.maximum(x, 1.0)), lambda x: x[0] * 0, [np.array([0.5, -1.0])]),
    "std of x / x": (lambda x: tape.std(x / x), lambda x: x[0] * 0, [np.array([0.1, 3.0, 49.0])]),
    "√(x - x)": (lambda x: tape.sqrt(x - x), lambda x: x * 0, [1.0]),
    "var": (tape.var, _variance, [CONSTANT, np.array([1e8, 1e8])]),
    "hypot²": (lambda x: tape.hypot(x[0], x[1]) ** 2, _squares, [np.zeros(2), np.array([0.0, 1.0])]),
    "|x|²": (lambda x: tape.sum(abs(x) ** 2), _squares, [ZERO, np.array([0.0, 1.0, -0.0])]),
    "|x|⁴": (lambda x: tape.sum(abs(x) ** 4), lambda x: sum(t**4 for t in x), [ZERO, np.array([0.0, 1.0, -1.0])]),
    "|x|³": (
        lambda x: tape.sum(abs(x) ** 3),
        lambda x: sum(abs(t) ** 3 for t in x),
        [np.array([1.0, -1.0]), np.array([0.0, 2.0])],
    ),
    "|x|³ of a number": (lambda x: abs(x) ** 3, lambda x: abs(x) ** 3, [0.0, 2.0]),
    "3-norm": (
        lambda x: tape.sum(abs(x) ** 3) ** (1 / 3),
        lambda x: sum(abs(t) ** 3 for t in x) ** (m.mpf(1) / 3),
        [np.array([0.0, 0.98]), np.array([-1.0, 1e-9])],
    ),
    "cosh ∛x³": (lambda x: tape.cosh(tape.cbrt(x**3)), m.cosh, [0.0]),
    "x √max(x, 0)": (lambda x: x * tape.sqrt(tape.maximum(x, 0.0)), lambda x: x * 0, [-1.0]),
    "Σ x √max(x, 0)": (
        lambda x: tape.sum(x * tape.sqrt(tape.maximum(x, 0.0))),
        lambda x: x[1] * m.sqrt(x[1]),
        [np.array([-1.0, 2.0])],
    ),
    "√x⁴": (lambda x: tape.sum(tape.sqrt(x**4)), _squares, [ZERO, np.array([0.0, 1.0, -1.0])]),
    "√x²⁴": (lambda x: tape.sum(tape.sqrt(x**24)), lambda x: sum(t**12 for t in x), [np.array([0.0, 1.0])]),
    "|rfft|²": (
        lambda x: tape.sum(abs(tape.fft.rfft(x)) ** 2),
        lambda x: (
            (x[0] + x[1] + x[2] + x[3]) ** 2
            + (x[0] - x[2]) ** 2
            + (x[1] - x[3]) ** 2
            + (x[0] - x[1] + x[2] - x[3]) ** 2
        ),
        [np.ones(4), np.zeros(4), np.array([1.0, 0.0, 0.0, 0.0])],
    ),
    "Σ svdvals²": (lambda x: tape.sum(L.svdvals(x) ** 2), _squares, [NOTHING, RANK_ONE, EQUAL_ROWS]),
    "Σ svdvals³ of a wide matrix": (
        lambda x: tape.sum(L.svdvals(x) ** 3),
        lambda x: sum(m.sqrt(e) ** 3 for e in _eigenvalues_of_two(m.matrix(x.tolist()) * m.matrix(x.tolist()).T)),
        [np.array([[1.0, 2.0, 0.5], [0.0, 1.0, -1.0]])],
    ),
    "2-norm": (lambda x: L.norm(x, 2), _largest(1), [*LOW_RANK, np.diag([2.0, 1.0])]),
    "2-norm²": (lambda x: L.norm(x, 2) ** 2, _largest(1, lambda e: e), LOW_RANK[:2]),
    "Σ 2-norm³ of matrices": (
        lambda x: tape.sum(L.matrix_norm(tape.reshape(x, (2, 2, 2)), ord=2) ** 3),
        lambda x: _largest(1)(x[:2]) ** 3 + _largest(1)(x[2:]) ** 3,
        [np.array([[1.0, 2.0], [2.0, 4.0], [1.0, 0.0], [0.0, 0.5]])],
    ),
    "smallest of three": (lambda x: L.norm(x, -2), lambda x: m.sqrt(min(_gram(x))), [np.diag([3.0, 3.0, 1.0])]),
    "nuclear norm": (lambda x: L.norm(x, "nuc"), _nuclear, [EYE, -EYE, EYE[::-1], TALL]),
    "exp nuclear norm": (lambda x: tape.exp(L.norm(x, "nuc")), lambda x: m.exp(_nuclear(x)), [EYE, TALL]),
    "x · nuclear norm": (lambda x: x[0, 0] * L.norm(x, "nuc"), lambda x: x[0, 0] * _nuclear(x), [EYE]),
    "two largest of three": (
        lambda x: tape.sum(L.svdvals(x)[:2]),
        _largest(2),
        [np.diag([3.0, 3.0, 0.0]), np.diag([3.0, 3.0, 1.0])],
    ),
    "largest eigenvalue": (
        lambda x: tape.max(L.eigvalsh(x)),
        _spectrum(lambda a: max(m.eigsy(a, eigvals_only=True))),
        [np.diag([3.0, 0.0, 0.0]), np.diag([3.0, -1.0, -1.0])],
    ),
    "two largest eigenvalues": (
        lambda x: tape.sum(L.eigvalsh(x)[1:]) * x[0, 0],
        _spectrum(lambda a: sum(sorted(m.eigsy(a, eigvals_only=True))[1:]) * a[0, 0]),
        [np.diag([1.0, 3.0, 3.0])],
    ),
    "Σ eigvalsh": (lambda x: tape.sum(L.eigvalsh(x)) ** 2, lambda x: (x[0, 0] + x[1, 1]) ** 2, [EYE, NOTHING]),
    "largest |x|": (lambda x: tape.max(abs(x)), lambda x: max(map(abs, x)), [np.array([1.0, 0.0, -0.5])]),
    "∞-norm": (lambda x: L.norm(x, np.inf) ** 2, lambda x: x[2] ** 2, [np.array([0.0, 1.0, -2.0])]),
    "∞-norm of a matrix": (
        lambda x: L.norm(x, np.inf),
        lambda x: abs(x[0, 0]) + abs(x[0, 1]),
        [np.array([[1.0, -2.0], [0.0, 0.5]])],
    ),
    "smallest |x|": (lambda x: tape.min(abs(x)), lambda x: min(map(abs, x)), [np.array([1.0, 0.5, -2.0])]),
    "3-norm of 0": (lambda x: L.vector_norm(x, ord=3), lambda x: m.cbrt(sum(abs(t) ** 3 for t in x)), [[1.0, 0.0]]),
    "x^y": (lambda x: x[0] ** x[1], lambda x: x[0] ** x[1], [[1e-200, 2.0], [1e-100, 3.0], [1e-200, 1.5], [0.0, 3.0]]),
    "x^(2 + 0x)": (lambda x: x ** (2.0 + 0.0 * x), lambda x: x * x, [1e-200, 0.5]),
    "exp(x)⁻²": (lambda x: tape.exp(x) ** -2, lambda x: m.exp(-2 * x), [800.0, 400.0, -1.0]),
    "Σ exp(x)⁻²": (
        lambda x: tape.sum(tape.exp(x) ** -2),
        lambda x: sum(m.exp(-2 * t) for t in x),
        [np.array([800.0, 1.0])],
    ),
    "x / exp x": (lambda x: x / tape.exp(x), lambda x: x / m.exp(x), [800.0, 2.0]),
    "1 / exp": (lambda x: tape.reciprocal(tape.exp(x)), lambda x: m.exp(-x), [800.0, 2.0]),
    "expm": (lambda x: tape.sum(L.expm(x)), _matrix(lambda a: sum(m.expm(a))), [EYE, NOTHING, EQUAL_ROWS]),
    "det": (L.det, _matrix(m.det), [EYE, NOTHING, RANK_ONE, EQUAL_ROWS, np.diag([1e150, 1e-150])]),
    "det of tiny matrices": (
        lambda x: 1e300 * L.det(x),
        _matrix(lambda a: 1e300 * m.det(a)),
        [np.array([[2e-300, 1e-300, 0.0], [0.0, 3e-300, 1e-300], [1e-300, 0.0, 1e-300]])],
    ),
    "log_determinant": (L.log_determinant, _matrix(lambda a: m.log(m.det(a))), [EYE, np.diag([1e8, 1e-8])]),
    "inv": (lambda x: L.inv(x)[0, 0], _matrix(lambda a: (a**-1)[0, 0]), [EYE, np.diag([1e8, 1.0])]),
    "solve": (
        lambda x: tape.sum(L.solve(x, np.ones(2))),
        _matrix(lambda a: sum(m.lu_solve(a, m.matrix([1, 1])))),
        [EYE, np.array([[0.0, 1.0], [1.0, 0.0]])],
    ),
    "cholesky": (
        lambda x: tape.sum(L.cholesky(x)),
        _spectrum(lambda a: sum(m.cholesky(a))),
        [EYE, np.diag([1e8, 1.0])],
    ),
    "matrix_power": (
        lambda x: tape.sum(L.matrix_power(x, 3)),
        _matrix(lambda a: sum(a**3)),
        [EYE, NOTHING, EQUAL_ROWS],
    ),
    "quad_form": (lambda x: L.quad_form(EYE, x), _squares, [np.zeros(2), np.ones(2)]),
    "prod": (
        tape.prod,
        lambda x: x[0] * x[1] * x[2],
        [ZERO, np.array([0.0, 2.0, 0.0]), np.array([1e150, 1e-150, 1.0])],
    ),
    "cumprod": (
        lambda x: tape.sum(tape.cumprod(x)),
        lambda x: x[0] + x[0] * x[1] + x[0] * x[1] * x[2],
        [ZERO, np.array([0.0, 2.0, 0.0])],
    ),
    "logsumexp": (
        tape.logsumexp,
        lambda x: m.log(sum(m.exp(t) for t in x)),
        [ZERO, np.array([1e8, 1e8]), np.array([-1e8, 0.0]), np.array([1.0, -1.0])],
    ),
    "softmax": (
        lambda x: tape.softmax(x)[0],
        lambda x: m.exp(x[0]) / sum(m.exp(t) for t in x),
        [ZERO, np.full(2, 1e8)],
    ),
    "softmax, with max": (
        lambda x: (lambda e: e[0] / tape.sum(e))(tape.exp(x - tape.max(x))),
        lambda x: m.exp(x[0]) / sum(m.exp(t) for t in x),
        [ZERO, CONSTANT],
    ),
    "mean": (lambda x: tape.mean(x) ** 2, lambda x: (sum(x) / 3) ** 2, [ZERO, CONSTANT]),
    "x where x ≠ 2": (lambda x: tape.where(x == 2.0, 4.0, 2.0 * x), lambda x: 2 * x, [2.0, 1.0]),
    "2x where x ≠ 2": (lambda x: tape.where(x != 2.0, x * x, 4.0), lambda x: x * x, [2.0, 1.0]),
    "x² where x ≠ 0": (
        lambda x: tape.sum(tape.where(x == 0.0, 0.0, x * x)),
        _squares,
        [ZERO, np.array([0.0, 1.0, 2.0])],
    ),
    "(√x)²": (
        lambda x: tape.sum(tape.sqrt(x) ** 2),
        lambda x: sum(m.sqrt(t) ** 2 for t in x),
        [ZERO, np.array([0.0, 1])],
    ),
    "(x^½)²": (lambda x: (x**0.5) ** 2, lambda x: m.sqrt(x) ** 2, [0.0, 1.0]),
    "√x · √x": (lambda x: tape.sqrt(x) * tape.sqrt(x), lambda x: m.sqrt(x) ** 2, [0.0, 1.0]),
    "arccos²": (lambda x: tape.arccos(x) ** 2, lambda x: m.acos(x) ** 2, [1.0, 0.5, 0.999, -0.9, 0.4999999]),
    "arccosh²": (lambda x: tape.arccosh(x) ** 2, lambda x: m.acosh(x) ** 2, [1.0, 1.001, 2.0, 1e8, 1e150]),
    "log1p(exp)": (lambda x: tape.log1p(tape.exp(x)), lambda x: m.log1p(m.exp(x)), [800.0, 0.0]),
    "1 / (1 + exp)": (lambda x: 1.0 / (1.0 + tape.exp(x)), lambda x: 1 / (1 + m.exp(x)), [0.0, 100.0]),
    "clip - clip": (lambda x: tape.clip(x, 0.0, 1.0) - tape.clip(-x, 0.0, 1.0), lambda x: x, [0.0]),
    "sinc": (tape.sinc, truth.mp.sinc, [0.0, 1.0, 1e8, -1e8, 12345678.3, 0.5, 1e-150, 1.3e-309]),
}
"""Program -> (function, exact function, points at which all derivatives exist). NaN would be a fault."""

UNKNOWN = {
    "Σ svdvals² of equal ones": (lambda x: tape.sum(L.svdvals(x) ** 2), _squares, [EYE, TALL, TALL.T]),
    "Σ eigvalsh²": (
        lambda x: tape.sum(L.eigvalsh(x) ** 2),
        _spectrum(lambda a: _trace(a * a)),
        [EYE, NOTHING, RANK_ONE],
    ),
    "Σ exp eigvalsh": (
        lambda x: tape.sum(tape.exp(L.eigvalsh(x))),
        _spectrum(lambda a: _trace(m.expm(a))),
        [EYE, NOTHING, RANK_ONE],
    ),
    "norm": (L.norm, _norm, [ZERO]),
    "norm · norm": (lambda x: L.norm(x) * L.norm(x), _squares, [ZERO]),
    "norm³": (lambda x: L.norm(x) ** 3, lambda x: _norm(x) ** 3, [ZERO]),
    "norm · x": (lambda x: L.norm(x) * x[0], lambda x: _norm(x) * x[0], [ZERO]),
    "std": (tape.std, lambda x: m.sqrt(_variance(x)), [CONSTANT]),
    "hypot": (lambda x: tape.hypot(x[0], x[1]), _norm, [np.zeros(2)]),
    "cosh |x|": (lambda x: tape.cosh(abs(x)), m.cosh, [0.0]),
    "Σ cosh |x|": (lambda x: tape.sum(tape.cosh(abs(x))), lambda x: sum(map(m.cosh, x)), [ZERO, np.array([0.0, 1.0])]),
    "arctan |x|, masked": (lambda x: tape.arctan(abs(x))[0], lambda x: m.atan(abs(x[0])), [np.array([1.0, 0.0])]),
    "max sin |x|": (lambda x: tape.max(tape.sin(abs(x))), lambda x: m.sin(abs(x[0])), [np.array([1.0, 0.0])]),
    "of roots: cosh √x²": (lambda x: tape.cosh(tape.sqrt(x * x)), m.cosh, [0.0]),
    "of roots: cosh √√x⁴": (lambda x: tape.cosh(tape.sqrt(tape.sqrt(x * x * x * x))), m.cosh, [0.0]),
    "of roots: cosh √Σx²": (lambda x: tape.cosh(tape.sqrt(tape.sum(x * x))), lambda x: m.cosh(_norm(x)), [ZERO]),
    "of roots: cosh √(x² + y²)": (
        lambda x: tape.cosh(tape.sqrt(x[0] ** 2 + x[1] ** 2)),
        lambda x: m.cosh(_norm(x)),
        [ZERO[:2]],
    ),
    "of roots: cosh √(2x² + y²)": (
        lambda x: tape.cosh(tape.sqrt(2.0 * x[0] * x[0] + x[1] * x[1])),
        lambda x: m.cosh(m.sqrt(2 * x[0] ** 2 + x[1] ** 2)),
        [ZERO[:2]],
    ),
    "of roots: cosh ∛(x x x)": (lambda x: tape.cosh(tape.cbrt(x * x * x)), m.cosh, [0.0]),
    "of roots: cosh (x² x)^⅓ of numbers": (
        lambda x: tape.cosh(tape.cbrt(x[0] ** 2 * x[0]) * tape.cbrt(x[1] * x[1] * x[1])),
        lambda x: m.cosh(x[0] * x[1]),
        [np.array([0.0, 2.0])],
    ),
    "of roots: cosh (x⁴)^¼": (lambda x: tape.cosh((x * x * x * x) ** 0.25), m.cosh, [0.0]),
    "of roots: Σ cosh √x²": (lambda x: tape.sum(tape.cosh(tape.sqrt(x**2))), lambda x: sum(map(m.cosh, x)), [ZERO]),
    "cosh norm": (lambda x: tape.cosh(L.norm(x)), lambda x: m.cosh(_norm(x)), [ZERO]),
    "cosh of centred norm": (
        lambda x: tape.cosh(L.norm(x - tape.mean(x))),
        lambda x: m.cosh(_norm(x - np.mean(x))),
        [CONSTANT],
    ),
    "Σ cosh norm of rows": (
        lambda x: tape.sum(tape.cosh(L.norm(x, axis=1))),
        lambda x: m.cosh(_norm(x[0])) + m.cosh(_norm(x[1])),
        [NOTHING, RANK_ONE],
    ),
    "cosh std": (lambda x: tape.cosh(tape.std(x)), lambda x: m.cosh(m.sqrt(_variance(x))), [CONSTANT, np.ones(2)]),
    "std of rows³": (
        lambda x: tape.sum(tape.std(x, 1) ** 3),
        lambda x: sum(m.sqrt(t) ** 3 for t in _variance(x, 1)),
        [np.array([[1.0, 1.0], [1.0, 2.0]])],
    ),
    "hypot of a column and a matrix": (
        lambda x: (lambda y: tape.sum(tape.hypot(y, y @ y.T)))(tape.where(x > 0.0, tape.sqrt(x), 0.0)[[0, 0]]),
        lambda x: x[0, 0] * 0,
        [np.array([[-1.0]])],
    ),
    "|x| x": (lambda x: abs(x) * x, lambda x: abs(x) * x, [0.0]),
    "exp |x|": (lambda x: tape.exp(abs(x)), lambda x: m.exp(abs(x)), [0.0]),
    "log(1 + exp -|x|) + max(x, 0)": (
        lambda x: tape.log1p(tape.exp(-abs(x))) + tape.maximum(x, 0.0),
        lambda x: m.log1p(m.exp(x)),
        [0.0],
    ),
    "x √x": (lambda x: x * tape.sqrt(x), lambda x: x * m.sqrt(x), [0.0]),
    "√(x x x x)": (lambda x: tape.sqrt(x * x * x * x), lambda x: x * x, [0.0]),
    "Σ svdvals": (
        lambda x: tape.sum(L.svdvals(x)),
        _matrix(lambda a: sum(m.sqrt(e) for e in _eigenvalues_of_two(a.T * a))),
        [EYE],
    ),
    "Σ exp svdvals": (
        lambda x: tape.sum(tape.exp(L.svdvals(x))),
        _matrix(lambda a: sum(m.exp(m.sqrt(e)) for e in _eigenvalues_of_two(a.T * a))),
        [EYE, TALL],
    ),
    "max": (lambda x: tape.max(x), lambda x: max(x), [ZERO]),
    "max |x|": (lambda x: tape.max(abs(x)), lambda x: max(map(abs, x)), [ZERO, np.array([1.0, -1.0, 0.0])]),
    "∞-norm": (lambda x: L.norm(x, np.inf), lambda x: max(map(abs, x)), [ZERO]),
    "Σ x |x|": (lambda x: tape.sum(x * abs(x)), lambda x: sum(t * abs(t) for t in x), [np.array([1.0, 0.0, -2.0])]),
    "2-norm": (lambda x: L.norm(x, 2), _largest(1), [EYE, NOTHING]),
    "nuclear norm": (lambda x: L.norm(x, "nuc"), _nuclear, [RANK_ONE, EQUAL_ROWS]),
    "svdvals, Σ cosh": (
        lambda x: tape.sum(tape.cosh(L.svdvals(x))),
        lambda x: sum(m.cosh(m.sqrt(abs(e))) for e in _gram(x)),
        [EYE, RANK_ONE],
    ),
    "relu²": (lambda x: tape.maximum(x, 0.0) ** 2, lambda x: max(x, 0) ** 2, [0.0]),
}
"""Programs and points without a derivative, or with one unknown to the engine: NaN is honest there."""


def _eigenvalues_of_two(a):
    half, square = _trace(a) / 2, m.sqrt(((a[0, 0] - a[1, 1]) / 2) ** 2 + a[0, 1] * a[1, 0])
    return [half + square, half - square]


def programs(table, honest, machine):
    for name, (f, exact, points) in table.items():
        for x in points:
            shape = np.shape(x)
            v = np.random.default_rng(1).normal(size=shape) if shape else 1.0
            yield f"{name} at {np.asarray(x).tolist()}", f, exact, x, v, honest, machine


@pytest.mark.parametrize("name", KNOWN)
def test_a_program_whose_derivatives_exist_has_them_in_all_compositions(name):
    assert not (found := swept(programs({name: KNOWN[name]}, honest=False, machine=False))), report(found)


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_derivative_is_nan_or_right_in_all_compositions(name):
    assert not (found := swept(programs({name: UNKNOWN[name]}, honest=True, machine=False))), report(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", KNOWN)
def test_a_compiled_program_whose_derivatives_exist_has_them(name):
    found = swept(programs({name: KNOWN[name]}, honest=False, machine=True))
    if name == "Σ exp(x)⁻²":  # NaN is allowed: compiled reverse over reverse does not see that the 0 stays 0
        found = {what: ways for what, ways in found.items() if set(ways) != {"compiled reverse∘reverse"}}
    assert not found, report(found)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("name", ["2-norm", "nuclear norm", "∞-norm", "largest |x|", "exp(x)⁻²"])
def test_a_compiled_product_with_the_hessian_is_that_of_the_eager_engine(name):
    f, _, points = KNOWN[name]
    for x in points:
        x = np.asarray(x)[()]
        v = np.random.default_rng(2).normal(size=np.shape(x)) if np.shape(x) else 0.7
        expected = tape.hvp(f, x, v)[1]
        assert np.isfinite(expected).all()
        assert np.allclose(tape.compile(f, x, v, operator="hvp")(x, v)[1], expected, rtol=1e-13, atol=1e-15)


def _both(f, x, first, second):
    """D_first D_second f by forward over forward, eager and compiled."""
    inner = lambda p: tape.jvp(f, p, second)[1]  # noqa: E731
    return tape.jvp(inner, x, first)[1], tape.compile(inner, x, first, operator="jvp")(x, first)[1]


OTHERS = {
    "Σ x |x|": (lambda x: tape.sum(x * abs(x)), [1.0, 0.0, -2.0], 2.0),
    "norm of the others": (lambda x: L.norm(x[1:]) + x[0] ** 3, [1.0, 0.0, 0.0], 6.0),
    "hypot of the others": (lambda x: tape.hypot(x[1], x[2]) + x[0] ** 3, [1.0, 0.0, 0.0], 6.0),
    "copysign": (lambda x: tape.copysign(x[1], 1.0) + x[0] ** 3, [1.0, 0.0, 0.0], 6.0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_kink_of_other_elements_leaves_a_second_derivative_alone(name):
    f, x, expected = OTHERS[name]
    x, along_one, across = np.array(x), np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.5, -0.25])
    assert _both(f, x, along_one, across) == (expected, expected)
    for product in (tape.hvp(f, x, across)[1], tape.compile(f, x, across, operator="hvp")(x, across)[1]):
        assert product[0] == expected
    by_rows = tape.gradient(lambda p: tape.jvp(f, p, across)[1], x)[1]
    assert by_rows[0] == expected
    assert np.isnan(by_rows[1])


def test_only_the_entry_of_the_kink_is_missing_in_the_hessian():
    expected = np.diag([2.0, np.nan, -2.0])
    f, x = OTHERS["Σ x |x|"][0], np.array([1.0, 0.0, -2.0])
    for found in (tape.hessian(f, x)[2], tape.compile(f, x, operator="hessian")(x)[2]):
        assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("point", [(1e-200, 2.0), (1e-300, 1.2), (1e-100, 3.0), (0.3, -1.7)])
def test_the_second_derivatives_of_a_power_keep_their_digits_where_it_underflows(point):
    x, y = point
    with m.workdps(50):
        base = m.mpf(x)
        mixed = base ** (y - 1) * (1 + y * m.log(base))
        expected = [float(m.mpf(y) * (y - 1) * base ** (m.mpf(y) - 2)), float(mixed), float(base**y * m.log(base) ** 2)]
    H = tape.hessian(lambda p: p[0] ** p[1], np.array(point))[2]
    compiled = tape.compile(lambda p: p[0] ** p[1], np.array(point), operator="hessian")(np.array(point))[2]
    by_tuple = [row[i] for row, i in zip(tape.hessian(lambda p: p[0] ** p[1], point)[2], (0, 1), strict=True)]
    assert by_tuple == pytest.approx(expected[::2], rel=1e-13, abs=0.0)
    for found in (H, compiled):
        assert [found[0, 0], found[0, 1], found[1, 1]] == pytest.approx(expected, rel=1e-13, abs=0.0)
        assert found[1, 0] == pytest.approx(expected[1], rel=1e-13, abs=0.0)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_power_of_a_negative_base_has_derivatives_in_the_base_alone():
    x, v = np.array([-1.5, 3.0]), np.array([1.0, 0.0])

    def f(p):
        return p[0] ** p[1]

    for g in (tape.gradient(f, x)[1], tape.compile(f, x)(x)[1], tape.jacobian(f, x, "forward")[1]):
        assert g[0] == 6.75
        assert np.isnan(g[1])
    for product in (tape.hvp(f, x, v)[1], tape.compile(f, x, v, operator="hvp")(x, v)[1]):
        assert product[0] == -9.0
        assert np.isnan(product[1])
    assert _both(f, x, v, v) == (-9.0, -9.0)
    assert tape.hessian(f, x)[2][0, 0] == -9.0


CONSTANT_ROOTS = {
    "x - x": (lambda x: tape.sqrt(x - x), 1.0),
    "x - x, arrays": (lambda x: tape.sum(tape.sqrt(x - x)), np.zeros(2)),
    "least of masked": (lambda x: tape.sqrt(tape.min(tape.triu(x))), np.ones((2, 1))),
    "product of zeros": (lambda x: tape.sqrt(tape.prod(x)), np.zeros(2)),
}


@pytest.mark.parametrize("name", CONSTANT_ROOTS)
def test_compiled_roots_of_constants_have_the_gradient_zero(name):
    f, x = CONSTANT_ROOTS[name]
    for g in (tape.gradient(f, x)[1], tape.compile(f, x)(x)[1]):
        assert np.array_equal(g, np.zeros(np.shape(x)))


def test_a_difference_of_equal_numbers_is_constant_in_second_order():
    assert tape.hvp(lambda x: (lambda y: tape.sqrt(y - y))(tape.square(x)), 0.0, 0.7)[1] == 0.0


def test_a_root_of_a_constant_deviation_has_the_gradient_zero():
    constant = np.array([0.5, -1.0])
    assert tape.gradient(lambda x: tape.sqrt(tape.std(tape.maximum(x, 1.0))), constant)[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("f", "slope"), [(tape.arcsin, 1.0), (tape.arccos, -1.0), (tape.arctanh, 2.0)])
def test_the_second_derivative_of_an_inverse_function_keeps_its_digits_at_small_numbers(f, slope):
    for x in (1.3e-8, 1.3e-12, 1.3e-20):
        for second in (tape.hvp(f, x, 1.0)[1], tape.hessian(f, x)[2]):
            assert second == pytest.approx(slope * x, rel=1e-14, abs=0.0)


@pytest.mark.parametrize(
    ("f", "v"),
    [
        (lambda x: abs(x[0]) * x[1], [1.0, 2.0]),
        (lambda x: abs(x[0]) * x[0], [1.0, 0.0]),
        (lambda x: abs(x[0]) * abs(x[1]), [1.0, 2.0]),
        (lambda x: tape.linalg.norm(tape.stack(list(x))) * x[0], [1.0, 2.0]),
    ],
)
def test_a_directional_derivative_of_a_gradient_that_is_not_linear_is_no_second_derivative(f, v):
    v = np.array(v)
    assert np.isnan(tape.hvp(f, np.zeros(2), v)[1][v != 0.0]).all()
    assert np.isnan(tape.hvp(lambda x: f(x), (0.0, 0.0), tuple(v))[1][0])
    assert np.isnan(tape.hessian(f, np.zeros(2))[2]).any()


OF_ROOTS = [one for one in UNKNOWN if one.startswith("of roots")]
BY_DIRECTION = [
    *(one for one in UNKNOWN if one.startswith(("Σ svd", "Σ exp svd", "cosh", "Σ cosh", "arctan", "std of"))),
    *(one for one in OF_ROOTS if "2x²" not in one and "√√" not in one),
]


@pytest.mark.parametrize("name", BY_DIRECTION)
def test_forward_over_reverse_knows_second_derivatives_that_need_a_direction(name):
    f, exact, points = UNKNOWN[name]
    for x in points:
        v = np.random.default_rng(2).normal(size=np.shape(x)) if np.shape(x) else 0.7
        expected = float(sweep.truth(exact, x, v).right[1])
        for hv in (tape.hvp(f, x, v)[1], np.tensordot(tape.hessian(f, x)[2], v, np.ndim(x))):
            assert np.vdot(v, hv) == pytest.approx(expected, rel=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "name", [*(one for one in BY_DIRECTION if "svd" in one or "|" in one), *OF_ROOTS, "|x| x", "exp |x|"]
)
def test_a_compiled_second_derivative_is_that_of_the_eager_engine_or_nan(name):
    f, _, points = UNKNOWN[name]
    for x in points:
        v = np.random.default_rng(2).normal(size=np.shape(x)) if np.shape(x) else 0.7
        expected = tape.hvp(f, x, v)[1]
        found = tape.compile(f, x, v, operator="hvp")(x, v)[1]
        assert np.allclose(np.where(np.isnan(found), expected, found), expected, rtol=1e-12, equal_nan=True)


MASKED_ROOTS = {
    "x √max(x, 0)": lambda x: x * tape.sqrt(tape.where(x > 0.0, x, 0.0)),
    "x² √x": lambda x: x * x * tape.sqrt(x),
    "√(x - x)": lambda x: x * tape.sqrt(x - x),
    "√ of a masked square": lambda x: x * tape.sqrt(tape.where(x > 0.0, x * x, 0.0)),
}


@pytest.mark.parametrize("name", MASKED_ROOTS)
def test_a_compiled_root_that_does_not_bend_keeps_its_second_derivative(name):
    x, v = np.array([0.0 if name == "x² √x" else -1.0, 1.0]), np.array([1.0, 2.0])

    def f(x):
        return tape.sum(MASKED_ROOTS[name](x))

    expected = tape.hvp(f, x, v)[1]
    assert np.isfinite(expected).all()
    assert np.allclose(tape.compile(f, x, v, operator="hvp")(x, v)[1], expected, rtol=1e-14, atol=0.0)


# Densities


def densities():
    for name, (exact, points) in CONTINUOUS.items():
        for point in points:
            yield name, exact, point, tuple(range(len(point)))
    for name, (exact, points) in DISCRETE.items():
        partials = getattr(tape, name).partials
        for point in points:
            yield name, exact, point, tuple(i for i, partial in enumerate(partials) if partial is not None)
    yield "normal_lpdf", CONTINUOUS["normal_lpdf"][0], (1.0, 1.0, 1.0), (0, 1, 2)
    yield "cauchy_lpdf", CONTINUOUS["cauchy_lpdf"][0], (1.0, 1.0, 1.0), (0, 1, 2)
    yield "student_t_lpdf", CONTINUOUS["student_t_lpdf"][0], (1.0, 3.0, 1.0, 1.0), (0, 1, 2, 3)


@pytest.mark.parametrize(("name", "exact", "point", "active"), list(densities()))
def test_a_density_is_right_in_all_compositions(name, exact, point, active):
    density = getattr(tape, name)

    def within(f):
        def of_active(x):
            every = list(point)
            for k, i in enumerate(active):
                every[i] = x[k]
            return f(*every)

        return of_active

    x = np.array([point[i] for i in active], float)
    sizes = np.log10(np.abs(x[x != 0.0]))
    if sizes.max(initial=0.0) - sizes.min(initial=0.0) > 60:
        pytest.skip("mpmath's gamma function takes minutes at the precision that this point needs")
    directions = [*np.eye(len(active)), np.array([1.0, -0.5, 0.25, 2.0][: len(active)])]
    cases = [(f"along {v}", within(density), within(exact), x, v * np.abs(x), False, False) for v in directions]
    assert not (found := swept(cases)), report(found)


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero):RuntimeWarning")
def test_zero_divided_by_zero_is_nan_in_every_composition_of_modes():
    modes = [lambda f: lambda x: tape.gradient(f, x)[1], lambda f: lambda x: tape.jvp(f, x, 1.0)[1]]
    for outer in modes:
        for inner in modes:
            assert np.isnan(outer(inner(lambda x: tape.sum(np.zeros((1, 1)) / (x - 1.0))))(1.0))
            assert np.isnan(outer(inner(lambda x: (x - 1.0) / (x - 1.0)))(1.0))
