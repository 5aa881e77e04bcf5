"""Loops, solvers, steps of differential equations, branches, densities and likelihoods."""

import autograd.numpy as anp
import autograd.scipy.stats as astats
import jax
import jax.numpy as jnp
import jax.scipy.stats as jstats
import numpy as np
import torch
from mpmath import mp, mpf
from torch.nn import functional

from tests.functions.campaign.row import right, rows
from tests.functions.campaign.truth import D, det, exp, inv, log, lse, softplus, solve

A3 = [[2.0, 0.5, -1.0], [0.25, 1.5, 0.75], [1.0, -0.5, 3.0]]
S3 = [[3.0, 0.5, -1.0], [0.5, 2.0, 0.25], [-1.0, 0.25, 4.0]]
B3 = [1.0, -0.5, 2.0]
M23 = [[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]]
X6 = [0.75, -1.25, 3.0, 0.5, -2.0, 1.5]
LABELS = np.array([1, 0])


def newton(f, slope, steps):
    """A function that solves f(x, a) = 0 by Newton's method from one."""

    def solved(a):
        x = 1.0
        for _ in range(steps):
            x = x - f(x, a) / slope(x, a)
        return x

    return solved


def while_newton(a):
    def step(state):
        x, _ = state
        return (x + a / x) / 2, x

    return jax.lax.while_loop(lambda s: jnp.abs(s[0] - s[1]) > 1e-15 * s[0], step, (a, 0.0 * a))[0]


def logistic(x, r):
    return jax.lax.fori_loop(0, 12, lambda _, x: r * x * (1 - x), x)


def logistic_exactly(x, r):
    for _ in range(12):
        x = r * x * (1 - x)
    return x


def mean_of_arithmetic_and_geometric(a, b):
    for _ in range(7):
        a, b = (a + b) / 2, (a * b) ** 0.5
    return a


def agm(a, b):
    return mp.agm(a, b)


def continued_fraction(x):
    value = 0.0 * x
    for k in range(30, 0, -1):
        value = x * x / (2 * k + 1 + value)
    return x / (1 + value)


def clenshaw(c, x):
    first = second = 0.0 * x
    for k in range(5, 0, -1):
        first, second = c[k] + 2 * x * first - second, first
    return c[0] + x * first - second


def chebyshev(c, x):
    return mp.fsum(ck * mp.cos(k * mp.acos(x)) for k, ck in enumerate(c))


def pendulum(cos_or_sin, steps=8, h=0.25):
    def angle(q, p):
        for _ in range(steps):
            p = p - h / 2 * cos_or_sin(q)
            q = q + h * p
            p = p - h / 2 * cos_or_sin(q)
        return q

    return angle


def runge_kutta(y, k):
    def slope(y):
        return k * y * (1 - y)

    h = 0.1
    for _ in range(5):
        a = slope(y)
        b = slope(y + h / 2 * a)
        c = slope(y + h / 2 * b)
        y = y + h / 6 * (a + 2 * b + 2 * c + slope(y + h * c))
    return y


def runge_kutta_exactly(y, k):
    h = mpf(0.1)

    def slope(y):
        return k * y * (1 - y)

    for _ in range(5):
        a = slope(y)
        b = slope(y + h / 2 * a)
        c = slope(y + h / 2 * b)
        y = y + h / 6 * (a + 2 * b + 2 * c + slope(y + h * c))
    return y


def implicit_euler(y):
    """One step of y' = -y³ of length 1/2, by Newton's method."""
    z = y
    for _ in range(12):
        z = z - (z + 0.5 * z**3 - y) / (1 + 1.5 * z**2)
    return z


def kalman(q, r, z):
    mean, variance, total = 0.0, 1.0, 0.0
    for k in range(4):
        variance = variance + q
        spread = variance + r
        total = total - 0.5 * (z[k] - mean) ** 2 / spread - 0.5 * anp.log(spread)
        gain = variance / spread
        mean, variance = mean + gain * (z[k] - mean), (1 - gain) * variance
    return total


def state_space(q, r, z):
    """The same from the covariance of the observations, without constants."""
    n = 4
    cov = np.array([[1 + q * (min(i, j) + 1) + (r if i == j else 0) for j in range(n)] for i in range(n)], dtype=object)
    return -(z @ solve(cov, z)) / 2 - mp.log(det(cov)) / 2


def thomas(a, b):
    """A tridiagonal system with b on the diagonal and a next to it; the right side is one."""
    n = 4
    c, d = [a / b], [1.0 / b]
    for _ in range(1, n):
        scale = b - a * c[-1]
        d.append((1.0 - a * d[-1]) / scale)
        c.append(a / scale)
    x = d[-1]
    for k in range(n - 2, -1, -1):
        x = d[k] - c[k] * x
    return x


def tridiagonal(a, b):
    M = np.array(
        [[b if i == j else (a if abs(i - j) == 1 else mpf(0)) for j in range(4)] for i in range(4)], dtype=object
    )
    return solve(M, np.array([mpf(1)] * 4))[0]


def sinkhorn(C):
    u = torch.zeros(3, dtype=C.dtype)
    for _ in range(60):
        v = -torch.logsumexp(u[:, None] - C, 0)
        u = -torch.logsumexp(v[None, :] - C, 1)
    return ((u[:, None] + v[None, :] - C).exp() * C).sum()


def sinkhorn_exactly(C):
    scale = np.array([mpf(1)] * 3)
    K = exp(-C)
    for _ in range(500):
        other = 1 / (scale @ K)
        scale = 1 / (K @ other)
    return np.sum(scale[:, None] * K * other[None, :] * C)


def descent(a):
    """The result of ten steps of gradient descent on exp(x) - a x."""
    x = 0.0 * a
    for _ in range(10):
        x = x - 0.3 * (anp.exp(x) - a)
    return x


def descent_exactly(a):
    x = mpf(0)
    for _ in range(10):
        x = x - mpf(0.3) * (mp.exp(x) - a)
    return x


def mandelbrot(x, y):
    z = c = x + 1j * y
    for _ in range(6):
        z = z * z + c
    return jnp.abs(z)


def mandelbrot_exactly(x, y):
    z = c = mp.mpc(x, y)
    for _ in range(6):
        z = z * z + c
    return abs(z)


def viterbi(E):
    best = E[0]
    for row in E[1:]:
        best = torch.stack([torch.maximum(best[0] + 0.5, best[1]), torch.maximum(best[0], best[1] + 0.5)]) + row
    return best.max()


def collatz(x):
    """A program whose branches depend on a number, in Python."""
    for _ in range(6):
        x = x / 2 if x > 2 else 3 * x + 0.125 * x * x
    return x


def secant(a):
    x, y = 1.0, 2.0
    for _ in range(6):
        fx, fy = x**3 - a, y**3 - a
        x, y = y, y - fy * (y - x) / (fy - fx)
    return y


LOOPS = rows(
    "fresh: loops, solvers and differential equations",
    right("jax", "a square root by a while loop", while_newton, 7.0, truth=lambda a: 1 / (2 * mp.sqrt(a))),
    right("jax", "a logistic map of twelve steps", logistic, 0.3, 3.7, truth=D(logistic_exactly)),
    right("jax", "a Kepler equation by Newton's method", newton(lambda x, e: x - e * jnp.sin(x) - 0.8, lambda x,
          e: 1 - e * jnp.cos(x), 8), 0.4,
          truth=D(lambda e: mp.findroot(lambda x: x - e * mp.sin(x) - mpf(0.8), 1.0))),
    right("jax", "a mean of arithmetic and geometric means", mean_of_arithmetic_and_geometric, 1.0, 6.0, truth=D(agm)),
    right("jax", "a scan of an oscillator", lambda q, p: jax.lax.scan(lambda s,
          _: ((s[0] + 0.1 * s[1], s[1] - 0.1 * s[0]), None), (q, p), None, length=20)[0][0], 1.0, 0.5,
          truth=lambda q, p: [mp.re(mp.mpc(1, -mpf(0.1)) ** 20), -mp.im(mp.mpc(1, -mpf(0.1)) ** 20)]),
    right("jax", "an iteration of complex squares", mandelbrot, -0.4, 0.3, truth=D(mandelbrot_exactly)),
    right("jax", "an implicit step", implicit_euler, 1.3,
          truth=lambda y: 1 / (1 + mpf(1.5) * mp.findroot(lambda z: z + z**3 / 2 - y, 1.0) ** 2)),
    right("torch", "a pendulum by leapfrog", pendulum(torch.sin), 0.8, -0.3, truth=D(pendulum(mp.sin))),
    right("torch", "transport with entropy", sinkhorn, [[0.5, 1.0, 2.0], [1.5, 0.25, 1.0], [2.0, 1.0, 0.75]],
          truth=D(sinkhorn_exactly)),
    right("torch", "a best path", viterbi, [[1.0, 0.25], [0.5, 2.0], [1.5, 1.25]], truth=lambda E: [[1, 0], [0, 1],
          [0, 1]]),
    right("torch", "a tangent by a continued fraction", lambda x: continued_fraction(x), 0.9,
          truth=lambda x: 1 - mp.tanh(x) ** 2),
    right("torch", "a sum of Chebyshev polynomials", clenshaw, X6, 0.3, truth=D(chebyshev)),
    right("autograd", "a Runge-Kutta method", runge_kutta, 0.2, 1.5, truth=D(runge_kutta_exactly)),
    right("autograd", "a Kalman filter's likelihood", kalman, 0.4, 0.9, X6[:4], truth=D(state_space)),
    right("autograd", "a tridiagonal system", thomas, -1.0, 2.5, truth=D(tridiagonal)),
    right("autograd", "ten steps of descent", descent, 1.7, truth=D(descent_exactly)),
    right("autograd", "six steps of secants", secant, 3.0, truth=D(secant)),
    right("numpy", "branches of Python on a number", collatz, 1.3, truth=D(collatz)),
    right("numpy", "a pendulum by leapfrog", pendulum(np.sin), 0.8, -0.3, truth=D(pendulum(mp.sin))),
    right("numpy", "a square root by Heron", lambda a: mean_of_heron(a), 1e-8, truth=lambda a: 1 / (2 * mp.sqrt(a))),
)  # fmt: skip


def mean_of_heron(a):
    x = 1.0
    for _ in range(40):
        x = (x + a / x) / 2
    return x


def normal(x, mean, deviation):
    return -(((x - mean) / deviation) ** 2) / 2 - log(deviation)


def hidden_markov(x, y, p):
    alpha = jnp.array([0.5, 0.5])
    for k in range(3):
        alpha = (alpha @ jnp.array([[1 - p, p], [p, 1 - p]])) * jnp.exp(-((y[k] - x) ** 2) / 2)
    return jnp.log(jnp.sum(alpha))


def hidden_markov_exactly(x, y, p):
    alpha = np.array([mpf("0.5")] * 2)
    for k in range(3):
        alpha = (alpha @ np.array([[1 - p, p], [p, 1 - p]], dtype=object)) * exp(-((y[k] - x) ** 2) / 2)
    return mp.log(sum(alpha))


def student(x, df):
    return mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(df) / 2 - (df + 1) / 2 * mp.log1p(x * x / df)


def negative_binomial(k, mean, size):
    p = size / (size + mean)
    return mp.loggamma(k + size) - mp.loggamma(size) + size * mp.log(p) + k * mp.log1p(-p)


LIKELIHOODS = rows(
    "fresh: densities and likelihoods",
    right("jax", "a t density", jstats.t.logpdf, 1.7, 4.5, truth=D(student)),
    right("jax", "a Dirichlet density", lambda a: jstats.dirichlet.logpdf(jnp.array([0.2, 0.3, 0.5]), a),
          [1.5, 0.7, 2.0],
          truth=lambda a: [mp.psi(0, sum(a)) - mp.psi(0, v) + mp.log(mpf(p)) for v, p in zip(a, [0.2, 0.3, 0.5],
          strict=True)]),
    right("jax", "a beta density", lambda x, a, b: jstats.beta.logpdf(x, a, b), 0.3, 2.5, 1.5,
          truth=D(lambda x, a, b: (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - mp.log(mp.beta(a, b)))),
    right("jax", "a normal tail", jstats.norm.logsf, 6.0, truth=lambda x: -mp.npdf(x) / mp.ncdf(-x)),
    right("jax", "a hidden Markov model", hidden_markov, [0.0, 2.0], [0.3, 1.8, 1.1], 0.2,
          truth=D(hidden_markov_exactly)),
    right("jax", "a normal density of several numbers", lambda m: jstats.multivariate_normal.logpdf(jnp.array(B3), m,
          jnp.array(S3)), [0.5, 0.25, -1.0],
          truth=lambda m: inv(np.vectorize(mpf, otypes=[object])(np.array(S3))) @ (np.vectorize(mpf,
          otypes=[object])(np.array(B3)) - m)),
    right("jax", "a Poisson regression", lambda w: jnp.sum(jnp.exp(jnp.array(A3) @ w) - jnp.array([3.0, 0.0,
          1.0]) * (jnp.array(A3) @ w)), [0.2, -0.4, 0.1],
          truth=D(lambda w: sum(exp(np.array(A3) @ w)) - (3 * (np.array(A3) @ w)[0] + (np.array(A3) @ w)[2]))),
    right("torch", "a negative binomial density", lambda m,
          r: torch.lgamma(3 + r) - torch.lgamma(r) + r * torch.log(r / (r + m)) + 3 * torch.log(m / (r + m)), 2.5, 1.3,
          truth=D(lambda m, r: negative_binomial(3, m, r))),
    right("torch", "a von Mises density", lambda x, k: k * torch.cos(x) - torch.log(torch.special.i0(k)), 0.7, 2.0,
          truth=lambda x, k: [-k * mp.sin(x), mp.cos(x) - mp.besseli(1, k) / mp.besseli(0, k)]),
    right("torch", "a beta density of torch", lambda a, b: torch.distributions.Beta(a, b).log_prob(torch.tensor(0.3,
          dtype=torch.float64)), 2.5, 1.5,
          truth=D(lambda a, b: (a - 1) * mp.log(mpf(0.3)) + (b - 1) * mp.log1p(-mpf(0.3)) - mp.log(mp.beta(a, b)))),
    right("torch", "a divergence of normal densities", lambda m,
          s: torch.distributions.kl_divergence(torch.distributions.Normal(m, s), torch.distributions.Normal(0.5, 2.0)),
          1.5, 0.7,
          truth=lambda m, s: [(m - mpf("0.5")) / 4, s / 4 - 1 / s]),
    right("torch", "a cross entropy with smoothing", lambda X: functional.cross_entropy(X, torch.tensor(LABELS),
          label_smoothing=0.25), M23,
          truth=D(lambda X: sum(-(mpf("0.75") * (x[k] - lse(x)) + mpf("0.25") * sum(x - lse(x)) / 3) for x,
          k in zip(X, LABELS, strict=True)) / 2)),
    right("torch", "a Weibull density", lambda k, s: torch.distributions.Weibull(s, k).log_prob(torch.tensor(1.7,
          dtype=torch.float64)), 1.5, 2.0,
          truth=D(lambda k, s: mp.log(k / s) + (k - 1) * mp.log(mpf(1.7) / s) - (mpf(1.7) / s) ** k)),
    right("autograd", "a mixture of normal densities", lambda x, m, s: anp.log(0.3 * astats.norm.pdf(x, m,
          s) + 0.7 * astats.norm.pdf(x, -m, 2 * s)), 0.8, 1.5, 0.6,
          truth=D(lambda x, m, s: mp.log(mpf(0.3) * mp.npdf(x, m, s) + mpf(0.7) * mp.npdf(x, -m, 2 * s)))),
    right("autograd", "a t density", lambda x, df: astats.t.logpdf(x, df), 1.7, 4.5, truth=D(student)),
    right("autograd", "a gamma density", lambda x, a: astats.gamma.logpdf(x, a), 1.7, 2.5, truth=D(lambda x,
          a: (a - 1) * mp.log(x) - x - mp.loggamma(a))),
    right("numpy", "a logistic regression", lambda w: np.sum(np.logaddexp(0.0,
          -np.array([1.0, -1.0, 1.0]) * (np.array(A3) @ w))), [0.2, -0.4, 0.1],
          truth=D(lambda w: sum(softplus(-np.array([1, -1, 1]) * (np.array(A3) @ w))))),
    right("numpy", "a censored exponential", lambda rate,
          t: np.sum(np.array([1.0, 0.0, 1.0]) * np.log(rate) - rate * t), 0.7, [0.5, 2.0, 1.25],
          truth=lambda r, t: [2 / r - sum(t), -r, -r, -r]),
)  # fmt: skip


ROWS = [*LOOPS, *LIKELIHOODS]
