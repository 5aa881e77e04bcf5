"""Wrong rules of autograd's primitives."""

import autograd.numpy as anp
import autograd.scipy.special as asp
import numpy as np
import scipy.special
from autograd.extend import defvjp, primitive
from mpmath import mp, mpf

from tests.functions.campaign.row import elsewhere, rows, wrong
from tests.functions.campaign.truth import D, eigvalsh, exp, inv, softmax, solve
from tests.functions.campaign.wrapped import autograd_rule

A3 = [[2.0, 0.5, -1.0], [0.25, 1.5, 0.75], [1.0, -0.5, 3.0]]
S3 = [[3.0, 0.5, -1.0], [0.5, 2.0, 0.25], [-1.0, 0.25, 4.0]]
X4 = [0.75, -1.25, 3.0, 0.5]
P4 = [0.75, 1.25, 3.0, 0.5]


def of(f, *backs):
    """back(args, y, w) -> the adjoint of one argument."""
    ruled = primitive(lambda *args: f(*args))  # as in `autograd_rule`
    defvjp(ruled, *[(lambda y, *args, back=back: lambda w: back(args, y, w)) for back in backs])
    return ruled


def total(f, *weights):
    weight = np.array(weights) if weights else 1.0
    return lambda *args: anp.sum(weight * f(*args))


def each(slope):
    return lambda x: [slope(v) for v in x]


def root(y):
    """x + x⁵ = y by Newton's method."""
    x = y * 0 + 0.5
    for _ in range(60):
        x = x - (x + x**5 - y) / (1 + 5 * x**4)
    return x


def slope_of_root(y):
    return 1 / (1 + 5 * mp.findroot(lambda x: x + x**5 - y, 0.7) ** 4)


AUTOGRAD = rows(
    "fresh: planted in autograd",
    wrong("autograd", "a sine's sign", autograd_rule(np.sin, lambda x, y, w: -w * anp.cos(x)), 0.6, truth=mp.cos),
    wrong("autograd", "a factor of three halves", autograd_rule(np.sqrt, lambda x, y, w: 0.75 * w / y), 3.0,
          truth=lambda x: 1 / (2 * mp.sqrt(x))),
    wrong("autograd", "an error of 1e-3", autograd_rule(np.tanh, lambda x, y, w: w * (1 - y * y) * 0.999), 0.6,
          truth=lambda x: 1 / mp.cosh(x) ** 2),
    wrong("autograd", "an error of 1e-6", autograd_rule(np.log, lambda x, y, w: w / x * 1.000001), 0.6,
          truth=lambda x: 1 / x),
    wrong("autograd", "an error of 5e-9", autograd_rule(np.exp, lambda x, y, w: w * y * (1 + 5e-9)), 0.6, truth=mp.exp),
    wrong("autograd", "a Bessel function by its own value", autograd_rule(scipy.special.j0, lambda x, y, w: -w * y),
          1.5, truth=lambda x: -mp.besselj(1, x)),
    wrong("autograd", "a digamma function by an approximation", autograd_rule(scipy.special.gammaln, lambda x, y,
          w: w * (anp.log(x) - 0.5 / x)), 5.0, truth=lambda x: mp.psi(0, x)),
    wrong("autograd", "an error function's factor", autograd_rule(scipy.special.erf, lambda x, y,
          w: w * 1.128 * anp.exp(-x * x)), 0.5, truth=lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)),
    wrong("autograd", "a root's slope after half the rule", autograd_rule(root, lambda y, x, w: w / (1 + 4 * x**4)),
          1.5, truth=slope_of_root),
    wrong("autograd", "a root's slope at the argument", autograd_rule(root, lambda y, x, w: w / (1 + 5 * y**4)), 1.5,
          truth=slope_of_root),
    wrong("autograd", "a cotangent ignored", total(autograd_rule(np.sin, lambda x, y, w: anp.cos(x)), 2.0, -1.0, 1.0,
          0.5), X4, truth=lambda x: [k * mp.cos(v) for k, v in zip([2, -1, 1, 0.5], x, strict=True)]),
    wrong("autograd", "a cotangent's absolute value", total(autograd_rule(np.sin, lambda x, y,
          w: anp.abs(w) * anp.cos(x)), 2.0, -1.0, 1.0, 0.5), X4,
          truth=lambda x: [k * mp.cos(v) for k, v in zip([2, -1, 1, 0.5], x, strict=True)]),
    wrong("autograd", "a cotangent's mean", total(autograd_rule(np.sin, lambda x, y, w: anp.mean(w) * anp.cos(x)), 2.0,
          -1.0, 1.0, 0.5), X4,
          truth=lambda x: [k * mp.cos(v) for k, v in zip([2, -1, 1, 0.5], x, strict=True)]),
    wrong("autograd", "an entry by 1e-6", total(autograd_rule(np.exp, lambda x, y, w: w * y * np.array([1, 1, 1,
          1 + 1e-6]))), X4, truth=exp),
    wrong("autograd", "the largest entry by 1e-7", total(autograd_rule(np.exp, lambda x, y, w: w * anp.where(y > 10,
          y * (1 + 1e-7), y))), X4, truth=exp),
    wrong("autograd", "the order reversed", total(autograd_rule(np.exp, lambda x, y, w: (w * y)[::-1])), X4, truth=exp),
    wrong("autograd", "a branch by the other side's slope", total(autograd_rule(lambda x: np.where(x > 1, x**2, x),
          lambda x, y, w: w * anp.where(x > 0, 2 * x, 1.0))), X4,
          truth=each(lambda v: 2 * v if v > 1 else mpf(1))),
    wrong("autograd", "a magnitude's slope of one", total(autograd_rule(np.abs, lambda x, y, w: w)), X4,
          truth=each(mp.sign)),
    wrong("autograd", "a sum of squares without its two", autograd_rule(lambda x: np.sum(x**2), lambda x, y, w: w * x),
          X4, truth=lambda x: 2 * x),
    wrong("autograd", "a deviation without its root", autograd_rule(np.std, lambda x, y,
          w: w * 2 * (x - anp.mean(x)) / 4), X4, truth=D(lambda x: mp.sqrt(sum((x - sum(x) / 4) ** 2) / 4))),
    wrong("autograd", "a sum of exponentials without its sum", autograd_rule(lambda x: np.log(np.sum(np.exp(x))),
          lambda x, y, w: w * anp.exp(x)), X4, truth=softmax),
    wrong("autograd", "a polynomial's term forgotten", autograd_rule(lambda x: np.polyval([2.0, -1.0, 0.5, 1.0], x),
          lambda x, y, w: w * (6 * x**2 + 0.5)), 0.6, truth=lambda x: 6 * x**2 - 2 * x + mpf("0.5")),
    wrong("autograd", "a product's factors exchanged", of(np.multiply, lambda a, y, w: w * a[0], lambda a, y,
          w: w * a[1]), 0.6, 1.4, truth=lambda x, y: [y, x]),
    wrong("autograd", "an angle's second adjoint with a sign", of(np.arctan2, lambda a, y,
          w: w * a[1] / (a[0] ** 2 + a[1] ** 2), lambda a, y, w: w * a[0] / (a[0] ** 2 + a[1] ** 2)), 0.6, 1.4,
          truth=lambda y, x: [x / (x * x + y * y), -y / (x * x + y * y)]),
    wrong("autograd", "a power by 1e-6 in its exponent", of(np.power, lambda a, y, w: w * a[1] * a[0] ** (a[1] - 1),
          lambda a, y, w: w * y * anp.log(a[0]) * (1 + 1e-6)), 0.6, 1.4,
          truth=lambda x, y: [y * x ** (y - 1), x**y * mp.log(x)]),
    wrong("autograd", "a logarithmic sum by the other weight", of(np.logaddexp, lambda a, y, w: w * anp.exp(a[1] - y),
          lambda a, y, w: w * anp.exp(a[0] - y)), 0.6, 1.4,
          truth=lambda x, y: [1 / (1 + mp.exp(y - x)), 1 / (1 + mp.exp(x - y))]),
    wrong("autograd", "a broadcast scalar by one entry", lambda s, x: anp.sum(of(np.add, lambda a, y, w: w[0], lambda a,
          y, w: w)(s, x) ** 2), 0.6, X4, truth=D(lambda s, x: sum((s + x) ** 2))),
    wrong("autograd", "a matrix and a vector with the matrix transposed", lambda A, x: anp.sum(of(np.dot, lambda a, y,
          w: anp.outer(w, a[1]), lambda a, y, w: anp.dot(a[0], w))(A, x) ** 2), A3, [0.5, 1.0, -2.0],
          truth=D(lambda A, x: sum((A @ x) ** 2))),
    wrong("autograd", "an inverse without its sign", lambda A: of(np.linalg.inv, lambda a, y,
          w: anp.dot(anp.dot(y.T, w), y.T))(A)[1, 0], A3, truth=D(lambda A: inv(A)[1, 0])),
    wrong("autograd", "a solution by the matrix itself", lambda A, b: anp.sum(of(np.linalg.solve, lambda a, x,
          w: -anp.outer(anp.linalg.solve(a[0], w), x), lambda a, x, w: anp.linalg.solve(a[0].T, w))(A, b)), A3,
          [0.5, 1.0, -2.0], truth=D(lambda A, b: sum(solve(A, b)))),
    wrong("autograd", "an eigenvalue by the next vector", of(lambda A: np.linalg.eigvalsh((A + A.T) / 2)[0], lambda a,
          y, w: w * anp.outer(anp.linalg.eigh(a[0])[1][:, 1], anp.linalg.eigh(a[0])[1][:, 1])), S3,
          truth=D(lambda A: eigvalsh((A + A.T) / 2)[0])),
    wrong("autograd", "a cumulative sum forwards", total(of(np.cumsum, lambda a, y, w: anp.cumsum(w)), 1.0, 2.0, 3.0,
          4.0), X4, truth=lambda x: [10, 9, 7, 4]),
    wrong("autograd", "a sort by the places themselves", total(of(np.sort, lambda a, y, w: w[np.argsort(a[0])]), 1.0,
          2.0, 3.0, 4.0), [3.0, 0.75, -1.25, 0.5], truth=lambda x: [4, 3, 1, 2]),
    wrong("autograd", "a gather that writes the last", lambda x: anp.sum(of(lambda x: x[[0, 0, 3]], lambda a, y,
          w: np.array([w[1], 0, 0, w[2]]))(x)), X4, truth=lambda x: [2, 0, 0, 1]),
    wrong("autograd", "a difference without its first", total(of(np.diff, lambda a, y, w: anp.concatenate([w[:1],
          -anp.diff(w), w[-1:]])), 1.0, 2.0, 4.0), X4, truth=lambda x: [-1, -1, -2, 4]),
    wrong("autograd", "a table's slope of the next interval", autograd_rule(lambda x: np.interp(x, [0.0, 1.0, 2.0, 3.0],
          [0.0, 2.0, 1.0, 5.0]), lambda x, y, w: w * 4.0), 1.5, truth=lambda x: -1),
    wrong("autograd", "a quantile with the weights exchanged", of(lambda x: np.quantile(x, 0.25), lambda a, y,
          w: w * np.array([0.25, 0.25, 0.0, 0.5])), X4, truth=lambda x: [0, 0.25, 0, 0.75]),
    wrong("autograd", "a loop with a rule wrong by 1e-5", lambda x: looped(x), 0.6,
          truth=D(lambda x: mp.sin(mp.sin(mp.sin(mp.sin(x)))))),
    wrong("autograd", "a special function's second argument", of(scipy.special.xlogy, lambda a, y, w: w * anp.log(a[1]),
          lambda a, y, w: w / a[1]), 0.6, 1.4, truth=lambda x, y: [mp.log(y), x / y]),
    wrong("autograd", "a beta function without one part", of(scipy.special.betaln, lambda a, y, w: w * asp.psi(a[0]),
          lambda a, y, w: w * (asp.psi(a[1]) - asp.psi(a[0] + a[1]))), 0.6, 1.4,
          truth=lambda a, b: [mp.psi(0, a) - mp.psi(0, a + b), mp.psi(0, b) - mp.psi(0, a + b)]),
    elsewhere("autograd", "wrong for negative numbers", total(autograd_rule(lambda x: x**4, lambda x, y,
          w: w * 4 * anp.abs(x) ** 3)), [0.8, 1.1], truth=lambda x: 4 * x**3, points=8),
    elsewhere("autograd", "wrong far from zero", total(autograd_rule(np.sin, lambda x, y,
          w: w * anp.where(anp.abs(x) > 1.5, 1.0, anp.cos(x)))), [0.8, 1.1], truth=each(mp.cos), points=20),
)  # fmt: skip


def looped(x):
    sine = autograd_rule(np.sin, lambda x, y, w: w * anp.cos(x) * 1.00001)
    for _ in range(4):
        x = sine(x)
    return x


ROWS = AUTOGRAD
