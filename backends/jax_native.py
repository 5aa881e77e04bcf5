"""jax.jit on idiomatic jax code: scan, vmap, while_loop, built-in densities."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import logsumexp
from jax.scipy.stats import norm

from adbench import Operator, Unsupported

from . import jax as portable

VARIANT_OF = "jax"
BATCHED = True
DEVICES = ("cuda",)
DTYPES = ("float32", "bfloat16", "float16")

xp, to_native, sync, NESTED = portable.xp, portable.to_native, portable.sync, portable.NESTED
use_device, use_dtype = portable.use_device, portable.use_dtype

LOG_TWO_PI = math.log(2 * math.pi)
G = 9.8


def normal_log_density(xp: Any, y: Any, mu: Any, sigma: Any) -> Any:
    return jnp.sum(norm.logpdf(y, mu, sigma))


def normal_log_density_loop(xp: Any, y: Any, mu: Any, sigma: Any) -> Any:
    """The density of one observation, mapped over all."""
    return jnp.sum(jax.vmap(lambda one: -0.5 * ((one - mu) / sigma) ** 2 - jnp.log(sigma) - 0.5 * LOG_TWO_PI)(y))


def log_sum_exp(xp: Any, x: Any) -> Any:
    return logsumexp(x)


def log_sum_exp_loop(xp: Any, x: Any) -> Any:
    return jax.lax.scan(lambda total, one: (jnp.logaddexp(total, one), None), x[0], x[1:])[0]


def lstm(xp: Any, main: Any, extra: Any, hidden: Any, memory: Any, frames: Any) -> Any:
    """Scan over pairs of successive frames; the weights of the four gates are one axis of an array."""

    def step(state: Any, pair: Any) -> Any:
        (h, c), (frame, following) = state, pair
        x, hs, cs = frame * extra[0], [], []
        for (weights, offsets), h_k, c_k in zip(main, h, c, strict=True):
            forget, outgate = jax.nn.sigmoid(x * weights[0::2] + offsets[0::2])
            ingate = jax.nn.sigmoid(h_k * weights[1] + offsets[1])
            cs.append(c_k * forget + ingate * jnp.tanh(h_k * weights[3] + offsets[3]))
            x = outgate * jnp.tanh(cs[-1])
            hs.append(x)
        y = x * extra[1] + extra[2]
        gain = jnp.sum(following * (y - jnp.log(2 + jnp.sum(jnp.exp(y)))))
        return (jnp.stack(hs), jnp.stack(cs)), gain

    _, gains = jax.lax.scan(step, (hidden, memory), (frames[:-1], frames[1:]))
    return -jnp.sum(gains) / frames[1:].size


def stochastic_volatility(xp: Any, y: Any, phi: Any, sigma: Any, mu: Any, z: Any) -> Any:
    def step(gap: Any, draw: Any) -> Any:
        gap = sigma * draw + phi * gap
        return gap, gap

    first = sigma * z[0] / jnp.sqrt(1 - phi * phi)
    _, gaps = jax.lax.scan(step, first, z[1:])
    h = mu + jnp.concatenate([first[None], gaps])
    of_returns = jnp.sum(norm.logpdf(y, 0.0, jnp.exp(h / 2)))
    scales = jax.scipy.stats.cauchy.logpdf(sigma, 0.0, 5.0) + jax.scipy.stats.cauchy.logpdf(mu, 0.0, 10.0)
    return of_returns + jnp.sum(norm.logpdf(z)) + scales


def gaussian_process(xp: Any, t: Any, y: Any, alpha: Any, rho: Any, sigma: Any) -> Any:
    """Solve with the triangular factor by substitution."""
    gap = (t[:, None] - t[None, :]) / rho
    L = jnp.linalg.cholesky(alpha**2 * jnp.exp(-0.5 * gap**2) + sigma**2 * jnp.eye(t.size))
    z = solve_triangular(L, y, lower=True)
    return -0.5 * (z @ z + t.size * LOG_TWO_PI) - jnp.sum(jnp.log(jnp.diagonal(L)))


def projectile(xp: Any, angle: Any, speed: Any, dt: Any) -> Any:
    """The loop ends depending on data: while_loop, which has forward mode only."""
    vx, start = speed * jnp.cos(angle), speed * jnp.sin(angle)

    def step(state: Any) -> Any:
        (x, y, vy), _ = state
        return (x + vx * dt, y + vy * dt, vy - G * dt), (x, y)

    zero = jnp.zeros_like(start)
    (x, y, _), (last_x, last_y) = jax.lax.while_loop(
        lambda state: state[0][1] >= 0, step, ((zero, zero, start), (zero, zero))
    )
    return (x * last_y - last_x * y) / (last_y - y)


def particle(xp: Any, w: Any, dt: Any) -> Any:
    """Compute the force by jax.grad inside a while_loop."""

    def potential(place: Any) -> Any:
        charges = (jnp.stack([10.0, 10 - w]), jnp.array([10.0, 0.0]))
        return sum(1 / jnp.linalg.norm(place - charge) for charge in charges)

    def step(state: Any) -> Any:
        place, velocity = state
        return place + dt * velocity, velocity - dt * jax.grad(potential)(place)

    start = (jnp.array([0.0, 8.0]), jnp.array([0.75, 0.0]))
    (x, y), (u, v) = jax.lax.while_loop(lambda state: (state[0] + dt * state[1])[1] > 0, step, start)
    return (x - u * y / v) ** 2


# For other cases, a jax user would write the case's own source.
FUNCTIONS = {
    "gaussian_process": gaussian_process,
    "log_sum_exp": log_sum_exp,
    "log_sum_exp_loop": log_sum_exp_loop,
    "lstm": lstm,
    "normal_log_density": normal_log_density,
    "normal_log_density_loop": normal_log_density_loop,
    "particle": particle,
    "particle_nested": particle,
    "projectile": projectile,
    "stochastic_volatility": stochastic_volatility,
}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    try:
        return portable.prepare(operator, f, args, wrt)
    except ValueError as error:
        if "Reverse-mode differentiation does not work" not in str(error):
            raise
        raise Unsupported(f"jax's while_loop has no reverse mode, which {operator} needs; use jvp") from error
