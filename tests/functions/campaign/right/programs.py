"""Programs: loops, fixed points, branches and kinks, steps of differential equations."""

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import torch
from mpmath import mp, mpf

from tests.functions.campaign.row import right, rows
from tests.functions.campaign.truth import Between, D, tanh


def collatz_like(x):
    """The loop's length depends on x; along it the derivative is a power of a half."""
    return jax.lax.while_loop(lambda s: s[0] > 1.0, lambda s: (s[0] / 2 + 0.1, s[1] + s[0]), (x, 0.0))[1]


def halvings(x):
    total = mpf(0)
    while x > 1:
        x, total = x / 2 + mpf(0.1), total + x
    return total


def agm(a, b):
    for _ in range(6):
        a, b = (a + b) / 2, anp.sqrt(a * b)
    return a


def newton_cube_root(a):
    x = 1.0
    for _ in range(30):
        x = x - (x**3 - a) / (3 * x * x)
    return x


def kepler(e, m):
    return jax.lax.fori_loop(0, 15, lambda _, E: E - (E - e * jnp.sin(E) - m) / (1 - e * jnp.cos(E)), m)


def kepler_root(e, m):
    return mp.findroot(lambda E: E - e * mp.sin(E) - m, m + e)


def until_converged(x):
    """Newton's iteration for a reciprocal, stopped by its own step."""
    y = 0.1
    while True:
        step = y * (1 - x * y)
        y = y + step
        if abs(step) < 1e-14:
            return y


def logistic_map(r, x):
    return jax.lax.scan(lambda x, _: (r * x * (1 - x), None), x, None, length=8)[0]


def logistic(r, x):
    for _ in range(8):
        x = r * x * (1 - x)
    return x


def recurrence(x):
    """An exponentially weighted mean, then its last change."""
    level, changes = x[0], []
    for k in range(1, 5):
        new = 0.7 * level + 0.3 * x[k]
        changes.append(new - level)
        level = new
    return changes[-1] * level


def lstm_like(w, x):
    h = torch.zeros(2, dtype=x.dtype)
    for k in range(3):
        h = torch.tanh(w @ h + x[k])
    return h.sum()


def recursion(x, depth=5):
    return x if depth == 0 else recursion(np.sin(x) * 1.5, depth - 1) + x / depth


def recursion_exact(x, depth=5):
    return x if depth == 0 else recursion_exact(mp.sin(x) * mpf(1.5), depth - 1) + x / depth


V5 = [0.5, -1.5, 2.0, 3.5, -0.25]
W2 = [[0.3, -0.8], [0.6, 0.1]]
X32 = [[0.1, 0.4], [-0.3, 0.2], [0.5, -0.6]]

LOOPS = rows(
    "loops and fixed points",
    right("jax", "a while loop whose length depends on the input", collatz_like, 12.0, truth=D(halvings)),
    right("jax", "Kepler's equation by Newton in a fori loop", kepler, 0.3, 1.1, truth=D(kepler_root)),
    right("jax", "a logistic map in a scan", logistic_map, 3.7, 0.3, truth=D(logistic)),
    right("jax", "a scan that returns all states", lambda x: jnp.sum(jax.lax.scan(lambda s, v: (jnp.cos(s) * v, s),
          x[0], x)[1]), V5,
          truth=D(lambda x: all_states(x))),
    right("jax", "an associative scan", lambda x: jax.lax.associative_scan(jnp.multiply, x)[3], V5,
          truth=D(lambda x: x[0] * x[1] * x[2] * x[3])),
    right("jax", "a switch in a loop", lambda x: jax.lax.fori_loop(0, 6,
          lambda k, s: jax.lax.switch(k % 3, [jnp.sin, jnp.exp, lambda y: y * x], s), x), 0.4,
          truth=D(lambda x: mp.exp(mp.sin(mp.exp(mp.sin(x)) * x)) * x)),
    right("jax", "a gradient inside", lambda x: jax.grad(lambda y: jnp.sin(y) * y**2)(x) ** 2, 1.3,
          truth=D(lambda x: (mp.cos(x) * x**2 + 2 * x * mp.sin(x)) ** 2)),
    right("jax", "a vectorised loop", lambda x: jnp.sum(jax.vmap(lambda v: jax.lax.fori_loop(0, 4,
          lambda _, s: s * s - 0.5, v))(x)), [0.3, 1.1],
          truth=D(lambda x: sum(squared(v) for v in x))),
    right("jax", "a checkpointed chain", jax.checkpoint(lambda x: jnp.sin(jnp.sin(jnp.sin(x)))), 0.8,
          truth=D(lambda x: mp.sin(mp.sin(mp.sin(x))))),
    right("torch", "a recurrent cell by hand", lstm_like, W2, X32, truth=D(lambda w, x: recurrent(w, x))),
    right("torch", "a running product with a break", lambda x: product_until(x), V5,
          truth=lambda x: [x[1], x[0], 0, 0, 0]),
    right("torch", "a gradient inside with a graph", lambda x: inner_gradient(x).sum(), V5,
          truth=lambda x: 3 * x**2 * 2 + 1),
    right("autograd", "an arithmetic-geometric mean", agm, 1.0, 2.5, truth=D(mp.agm)),
    right("autograd", "a Newton iteration", newton_cube_root, 20.0, truth=lambda a: 1 / (3 * mp.cbrt(a) ** 2)),
    right("autograd", "a loop until it converges", until_converged, 3.0, truth=lambda x: -1 / x**2),
    right("numpy", "an exponentially weighted mean", recurrence, V5, truth=D(lambda x: weighted(x))),
    right("numpy", "a recursive function", recursion, 0.9, truth=D(recursion_exact)),
    right("numpy", "a Newton iteration stopped by its value", until_converged, 7.0, truth=lambda x: -1 / x**2),
    right("numpy", "a continued fraction", lambda x: 1 + 1 / (x + 1 / (x + 1 / (x + 1 / x))), 0.7,
          truth=D(lambda x: 1 + 1 / (x + 1 / (x + 1 / (x + 1 / x))))),
)  # fmt: skip


def all_states(x):
    state, total = x[0], mpf(0)
    for v in x:
        total += state
        state = mp.cos(state) * v
    return total


def squared(v):
    for _ in range(4):
        v = v * v - mpf(0.5)
    return v


def recurrent(w, x):
    h = np.array([mpf(0)] * 2, dtype=object)
    for row in x:
        h = tanh(w @ h + row)
    return sum(h)


def product_until(x):
    total = torch.ones((), dtype=x.dtype)
    for v in x:
        if total < -0.5:
            break
        total = total * v
    return total


def inner_gradient(x):
    return torch.autograd.grad((x**3 * x / 2 + x**2 / 2).sum(), x, create_graph=True)[0]


def weighted(x):
    level = x[0]
    for v in x[1:]:
        before, level = level, mpf(0.7) * level + mpf(0.3) * v
    return (level - before) * level


def leaky(x):
    return torch.where(x > 0, x, 0.01 * x)


BRANCHES = rows(
    "branches and kinks",
    right("jax", "a guarded square root with a safe inside", lambda x: jnp.sum(jnp.where(x > 0,
          jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0)), [4.0, -1.0, 0.25],
          truth=lambda x: [mpf(1) / 4, 0, 1]),
    right("jax", "a conditional of two functions", lambda x: jax.lax.cond(x > 1, jnp.log, lambda y: y**2, x),
          1.0 + 2.0**-40, truth=lambda x: 1 / x),
    right("jax", "relu at its kink", lambda x: jax.nn.relu(x) * 2, 0.0, truth=lambda x: Between(0, 2)),
    right("jax", "an absolute value at its kink in a sum", lambda x: jnp.sum(jnp.abs(x) * x[0]), [2.0, 0.0, -1.0],
          truth=lambda x: [5, Between(-2, 2), -2]),
    right("jax", "a clip inside and outside", lambda x: jnp.sum(jnp.clip(x, -1.0, 1.0) ** 2), [0.5, 2.0, -3.0],
          truth=lambda x: [1, 0, 0]),
    right("jax", "elu, selu and celu", lambda x: jnp.sum(jax.nn.elu(x) * jax.nn.selu(x) + jax.nn.celu(x)), [-0.7, 1.2],
          truth=D(lambda x: smooth_units(x))),
    right("jax", "a Huber loss by where", lambda x: jnp.sum(jnp.where(jnp.abs(x) < 1, 0.5 * x * x, jnp.abs(x) - 0.5)),
          [0.4, -3.0, 1.5],
          truth=lambda x: [x[0], -1, 1]),
    right("torch", "a leaky unit", lambda x: leaky(x).sum(), [3.0, -2.0], truth=lambda x: [1, mpf(0.01)]),
    right("torch", "a hinge loss at its kink", lambda x: torch.clamp(1 - x, min=0).sum(), [1.0, 0.5, 2.0],
          truth=lambda x: [Between(-1, 0), -1, 0]),
    right("torch", "hardtanh and softshrink", lambda x: (torch.nn.functional.hardtanh(x) +
          torch.nn.functional.softshrink(x) ** 2).sum(), [0.9, -4.0, 0.25],
          truth=lambda x: [1 + 2 * (x[0] - mpf("0.5")), 2 * (x[1] + mpf("0.5")), 1]),
    right("torch", "an absolute value of a sine", lambda x: torch.sin(x).abs().sum(), [4.0, 1.0],
          truth=lambda x: [-mp.cos(x[0]), mp.cos(x[1])]),
    right("torch", "a Python branch on a tensor", lambda x: x[0] * x[1] if x[0] > x[1] else x[1] ** 3, [0.3, 0.9],
          truth=lambda x: [0, 3 * x[1] ** 2]),
    right("autograd", "a select among three", lambda x: anp.sum(anp.select([x < 0, x < 1], [x**2, x**3], x**4)),
          [-2.0, 0.5, 3.0],
          truth=lambda x: [2 * x[0], 3 * x[1] ** 2, 4 * x[2] ** 3]),
    right("autograd", "a distance to an interval", lambda x: anp.maximum(anp.maximum(1.0 - x, x - 2.0), 0.0), 2.5,
          truth=lambda x: 1),
    right("numpy", "a piecewise function", lambda x: np.sum(np.where(x < 1, np.exp(x), np.e * x)), [0.5, 1.5],
          truth=lambda x: [mp.exp(x[0]), mpf(np.e)]),
    right("numpy", "a Python branch", lambda x, y: x * y if x > y else x / y, 1.0, 4.0,
          truth=lambda x, y: [1 / y, -x / y**2]),
    right("numpy", "sign times magnitude", lambda x: np.sum(np.sign(x) * np.sqrt(np.abs(x))), [-4.0, 9.0],
          truth=lambda x: [mpf(1) / 4, mpf(1) / 6]),
)  # fmt: skip


def smooth_units(x):
    alpha, scale = mpf(1.6732632423543772), mpf(1.0507009873554805)
    return sum(
        (v if v > 0 else mp.expm1(v)) * scale * (v if v > 0 else alpha * mp.expm1(v)) + (v if v > 0 else mp.expm1(v))
        for v in x
    )


def runge_kutta(f, y, h, steps):
    for _ in range(steps):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def lotka_volterra(stack, p):
    return lambda y: stack([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])


def objects(parts):
    return np.array(parts, dtype=object)


def implicit_euler(y, k):
    for _ in range(5):
        y = y / (1 + 0.1 * k)
    return y


def leapfrog(q, p):
    for _ in range(4):
        p = p - 0.05 * torch.sin(q)
        q = q + 0.1 * p
        p = p - 0.05 * torch.sin(q)
    return p * p / 2 - torch.cos(q)


def pendulum(q, p):
    for _ in range(4):
        p = p - mpf(0.05) * mp.sin(q)
        q = q + mpf(0.1) * p
        p = p - mpf(0.05) * mp.sin(q)
    return p * p / 2 - mp.cos(q)


def heat(u):
    for _ in range(3):
        u = u + 0.2 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return np.sum(u**3)


def heat_exact(u):
    for _ in range(3):
        u = u + mpf(0.2) * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return sum(u**3)


P4 = [1.1, 0.4, 0.1, 0.4]

EQUATIONS = rows(
    "steps of differential equations",
    right("jax", "Lotka and Volterra by Runge and Kutta", lambda p, y: runge_kutta(lotka_volterra(jnp.array, p), y,
          0.1, 2)[0], P4, [10.0, 5.0],
          truth=D(lambda p, y: runge_kutta(lotka_volterra(objects, p), y, mpf(0.1), 2)[0])),
    right("jax", "a linear equation by many Euler steps", lambda a: jax.lax.fori_loop(0, 100,
          lambda _, y: y + 0.01 * a * y, 1.0), -0.8,
          truth=lambda a: (1 + mpf(0.01) * a) ** 99 * 100 * mpf(0.01)),
    right("jax", "a steady state of diffusion", lambda D: jnp.linalg.solve(jnp.eye(3) * (2 * D + 1) - D * (jnp.eye(3,
          k=1) + jnp.eye(3, k=-1)), jnp.ones(3))[1], 0.7,
          truth=D(lambda d: steady(d))),
    right("torch", "a pendulum by leapfrog", lambda q, p: leapfrog(q, p).sum(), [1.0], [0.2],
          truth=D(lambda q, p: pendulum(q[0], p[0]))),
    right("torch", "a step of Adam", lambda x: adam_step(x).sum(), [0.5, -2.0], truth=D(lambda x: adam_exact(x))),
    right("autograd", "an implicit Euler method", implicit_euler, 2.0, 1.5,
          truth=lambda y, k: [(1 + k * mpf(0.1)) ** -5, -5 * mpf(0.1) * y * (1 + k * mpf(0.1)) ** -6]),
    right("autograd", "a Lorenz system", lambda y: anp.sum(runge_kutta(lambda s: anp.array([10.0 * (s[1] - s[0]),
          s[0] * (28.0 - s[2]) - s[1], s[0] * s[1] - 2.5 * s[2]]), y, 0.02, 4)), [1.0, 2.0, 20.0],
          truth=D(lambda y: sum(runge_kutta(lambda s: objects([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1],
          s[0] * s[1] - mpf(2.5) * s[2]]), y, mpf(0.02), 4)))),
    right("numpy", "a heat equation on a ring", heat, V5, truth=D(heat_exact)),
    right("numpy", "a stiff decay by the trapezoidal rule", lambda k: ((1 - 0.05 * k) / (1 + 0.05 * k)) ** 10, 30.0,
          truth=lambda k: -10 * ((1 - mpf(0.05) * k) / (1 + mpf(0.05) * k)) ** 9 * 2 * mpf(0.05) / (1 + mpf(0.05) * k)
          ** 2),
)  # fmt: skip


def steady(d):
    from tests.functions.campaign.truth import solve

    m = objects([[2 * d + 1, -d, mpf(0)], [-d, 2 * d + 1, -d], [mpf(0), -d, 2 * d + 1]])
    return solve(m, objects([mpf(1)] * 3))[1]


def adam_step(x):
    gradient = 2 * x * torch.exp(-x * x)
    mean, square = 0.1 * gradient, 0.001 * gradient**2
    return x - 0.1 * (mean / 0.1) / (torch.sqrt(square / 0.001) + 1e-3)


def adam_exact(x):
    g = [2 * v * mp.exp(-v * v) for v in x]
    return sum(
        v - mpf(0.1) * d * (mpf(0.1) / mpf(0.1)) / (mp.sqrt(d * d) + mpf(1e-3)) for v, d in zip(x, g, strict=True)
    )


ROWS = [*LOOPS, *BRANCHES, *EQUATIONS]
