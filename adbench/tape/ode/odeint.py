"""Ordinary differential equations: `odeint` is one node for any number of steps.

    ẏ = f(t, y, θ),   y(t0) = y0,   result: y(ts)

The derivative is that of the exact solution, not of the solver's steps. It solves differential equations too. With J =
∂f/∂y, and f written with the functions of this package:

forward sensitivities     U̇ = J U + ∂f/∂θ,  U = ∂y/∂(y0, θ)           solved along with y
adjoint sensitivities     λ̇ = -Jᵀ λ,  θ̄ = ∫ (∂f/∂θ)ᵀ λ dt              solved backwards from the last time; at each of
                                                                       ts the adjoint of that state is added to λ
ends                      ∂y(t1)/∂t1 = f(t1, y(t1)),  ∂y(t1)/∂t0 = -∂y(t1)/∂y0 · f(t0, y0)

Forward sensitivities solve one system of n (1 + n + p) equations. The adjoint solves n + p equations, which pays for
many parameters. It reads y(t) from the interpolants of the forward solution, so it integrates nothing unstable
backwards. (Solving y itself backwards, as Chen et al. do, fails for stiff systems.)

Order two and higher: forward mode and forward sensitivities are `odeint` of a larger system, and so differentiable to
any order and in any nesting. Under `sensitivity="adjoint"` the first derivative comes from the adjoint, and its
derivatives from forward sensitivities.

Sources: Carpenter et al. (2015), "The Stan Math Library" (the coupled system); Hindmarsh & Serban (2005),
CVODES; Chen et al. (2018), "Neural ordinary differential equations", appendix B and C (all gradients, with d/dt).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adbench.tape.core.functionals import jvp
from adbench.tape.core.rule import Active, AllInputs, Value, own_gradients
from adbench.tape.jacobians import jacobian
from adbench.tape.levels import loop
from adbench.tape.ode.solver import (
    METHODS,
    Field,
    Memo,
    Problem,
    SolverOptions,
    adjoint_sensitivities,
    cut_leaves,
    integrate_to,
    of_moving,
    plain_field,
    plain_jacobian,
    sizes,
)
from adbench.tape.rules.products import einsum, matmul
from adbench.tape.rules.reductions import sum  # numpy's name
from adbench.tape.rules.shapes import asarray, concatenate, ravel, reshape, stack
from adbench.tape.trees import flatten
from adbench.tape.values import leaf_value, shape_of, size_of, value_of


def odeint(
    f: Callable[..., Any],
    y0: Any,
    t0: Any,
    ts: Any,
    *parameters: Any,
    method: str = "dop853",
    rtol: float = 1e-8,
    atol: float = 1e-10,
    sensitivity: str = "forward",
    max_steps: int = 100_000,
) -> Value:
    """The solution of ẏ = f(t, y, *parameters), y(t0) = y0, at the times ts: shape (len(ts), *y0.shape).

    f            f(t, y, *parameters) -> ẏ in the shape of y, written with the functions of this package. Pass every
                 value to differentiate in as a parameter; do not take it from outside
    y0           a number or an array; t0 a number; ts a vector of times, all on one side of t0, in any order
    parameters   numbers, arrays, or nests of tuples, lists and dicts of them
    method       "rk23", "rk45", "dop853"; for stiff systems "radau", "bdf", "lsoda", which use ∂f/∂y
    rtol, atol   the solver's tolerances, also for the sensitivities
    sensitivity  "forward" or "adjoint": the method of reverse mode (see the module)

    Differentiable in y0, t0, ts and all parameters, in both modes. Raises OdeError if the solver fails.
    """
    if method not in METHODS:
        raise ValueError(f"odeint: argument method: expected one of {', '.join(METHODS)}, got {method!r:.60}")
    if sensitivity not in ("forward", "adjoint"):
        raise ValueError(f"odeint: argument sensitivity: expected 'forward' or 'adjoint', got {sensitivity!r:.60}")
    start, begin, times = (_number(x, name) for x, name in ((y0, "y0"), (t0, "t0"), (ts, "ts")))
    _check_times(begin, times)
    leaves, rebuild = flatten(tuple(parameters), "odeint: parameters")
    shape = shape_of(start)

    def field(t: Value, y: Value, *leaves: Value) -> Value:
        return _rate(f(t, reshape(y, shape), *rebuild(leaves)), shape)

    options = SolverOptions(method, float(rtol), float(atol), int(max_steps))
    states = _solution(ravel(start), begin, times, *leaves, problem=Problem(field, options, sensitivity, Memo()))
    return reshape(states, (shape_of(times)[0], *shape))


def _number(x: Any, name: str) -> Value:
    return leaf_value(asarray(x) if isinstance(x, (list, tuple)) else x, f"odeint: argument {name}")


def _check_times(begin: Value, times: Value) -> None:
    if shape_of(begin) != ():
        raise ValueError(f"odeint: argument t0: expected a number, got shape {shape_of(begin)}")
    if len(shape_of(times)) != 1:
        raise ValueError(f"odeint: argument ts: expected a vector of times, got shape {shape_of(times)}")
    t0, ts = value_of(begin), value_of(times)
    if not (np.isfinite(t0) and np.all(np.isfinite(ts))):
        raise ValueError(f"odeint: arguments t0 and ts: expected finite times, got {t0} and {ts}")
    if np.any(ts < t0) and np.any(ts > t0):
        raise ValueError(f"odeint: argument ts: expected times on one side of t0 = {t0}, got {ts.min()} to {ts.max()}")


def _rate(value: Any, shape: tuple[int, ...]) -> Value:
    rate = asarray(value)
    if shape_of(rate) != shape:
        raise ValueError(f"odeint: f should return the shape of y, expected {shape}, got {shape_of(rate)}")
    return ravel(rate) if shape else reshape(rate, (1,))


def _solve(y0: Value, t0: Value, ts: Value, *leaves: Value, problem: Problem) -> Value:
    """The value: plain states, shape (len(ts), n), for times in any order."""
    direction = -1.0 if np.any(ts < t0) else 1.0
    times, order = np.unique(direction * ts, return_inverse=True)
    rate, slope = plain_field(problem.field, leaves), plain_jacobian(problem.field, leaves)
    return integrate_to(rate, slope, y0, float(t0), direction * times, problem.options)[order]


# Forward mode: one direction


def _along(
    states: Value, tans: Sequence[Value], y0: Value, t0: Value, ts: Value, *leaves: Value, problem: Problem
) -> Value:
    """ẏ(ts) from u̇ = J u + ∂f/∂θ θ̇, u(t0) = ẏ0 - f(t0, y0) ṫ0, and f(ts, y(ts)) ṫs."""
    field, options = problem.field, problem.options
    y0_tan, t0_tan, ts_tan, *leaf_tans = tans
    n, count = shape_of(y0)[0], len(leaves)
    moving = [i for i, tan in enumerate(leaf_tans) if tan is not None]
    total: Value = np.zeros(shape_of(states))
    if y0_tan is not None or t0_tan is not None or moving:
        u0: Value = np.zeros(n) if y0_tan is None else y0_tan
        if t0_tan is not None:
            u0 = u0 - field(t0, y0, *leaves) * t0_tan

        def pair(t: Value, z: Value, *both: Value) -> Value:
            at = of_moving(field, t, both[:count], moving)
            rate, moved = jvp(at, (z[:n], [both[i] for i in moving]), (z[n:], list(both[count:])))
            return concatenate([rate, moved])

        parameters = [*leaves, *(leaf_tans[i] for i in moving)]
        z0 = concatenate([y0, u0])
        wider = options._replace(atol=np.tile(options.tolerances(n), 2))
        total = _solution(z0, t0, ts, *parameters, problem=Problem(pair, wider, problem.sensitivity, Memo()))[:, n:]
    if ts_tan is not None:
        total = total + _rates(states, ts, leaves, field) * reshape(ts_tan, (-1, 1))
    return total


def _rates(states: Value, ts: Value, leaves: Sequence[Value], field: Field) -> Value:
    """f(t, y(t)) at each time, shape (len(ts), n)."""
    count = shape_of(ts)[0]
    return stack([field(ts[i], states[i], *leaves) for i in range(count)]) if count else np.zeros(shape_of(states))


# Reverse mode


def _back(wanted: Sequence[bool], states: Value, adj: Value, *inputs: Value, problem: Problem) -> list[Value]:
    _, _, ts, *leaves = inputs
    ts_back = sum(adj * _rates(states, ts, leaves, problem.field), -1) if wanted[2] else None
    if not (wanted[0] or wanted[1] or any(wanted[3:])):
        return [None, None, ts_back, *([None] * len(leaves))]
    plain = not any(isinstance(x, Active) for x in (adj, *inputs))
    # Only the first derivative uses the adjoint: a second one needs y(t) with derivatives.
    back = adjoint_sensitivities if problem.sensitivity == "adjoint" and plain else _by_sensitivities
    y0_back, t0_back, *leaves_back = back(wanted, adj, inputs, problem)
    return [y0_back, t0_back, ts_back, *leaves_back]


def _by_sensitivities(wanted: Sequence[bool], adj: Value, inputs: Sequence[Value], problem: Problem) -> list[Value]:
    """Solve for U, with a column for each element of y0, t0 and each parameter, and return Σ ȳᵀ U."""
    y0, t0, ts, *leaves = inputs
    field, options = problem.field, problem.options
    n = shape_of(y0)[0]
    moving = [i for i in range(len(leaves)) if wanted[3 + i]]
    lengths = [size_of(leaves[i]) for i in moving]
    states_first = (n if wanted[0] else 0) + (1 if wanted[1] else 0)
    width = states_first + int(np.sum(lengths, dtype=int))
    columns: list[Value] = [np.eye(n)] if wanted[0] else []
    if wanted[1]:
        columns.append(reshape(-field(t0, y0, *leaves), (n, 1)))
    columns.append(np.zeros((n, width - states_first)))

    def coupled(t: Value, z: Value, *leaves: Value) -> Value:
        at = of_moving(field, t, leaves, moving)
        rate, (slope, partials) = jacobian(at, (z[:n], [leaves[i] for i in moving]), "reverse")
        drive = [np.zeros((n, states_first)), *(reshape(p, (n, s)) for p, s in zip(partials, lengths, strict=True))]
        moved = matmul(slope, reshape(z[n:], (n, width))) + concatenate(drive, 1)
        return concatenate([rate, ravel(moved)])

    weights = np.concatenate([np.ones(states_first), sizes(leaves, moving)])
    atol = options.tolerances(n)
    wider = options._replace(atol=np.concatenate([atol, np.ravel(atol[:, None] / weights)]))
    z0 = concatenate([y0, ravel(concatenate(columns, 1))])

    def solve() -> Value:
        return _solution(z0, t0, ts, *leaves, problem=Problem(coupled, wider, "forward", Memo()))

    z = problem.memo.recall(tuple(wanted), inputs, solve)
    rows = einsum("ti,tik->k", adj, reshape(z[:, n:], (-1, n, width)))
    y0_back = rows[:n] if wanted[0] else None
    t0_back = rows[states_first - 1] if wanted[1] else None
    return [y0_back, t0_back, *cut_leaves(rows[states_first:], leaves, moving)]


_solution = own_gradients(_solve, reverse=AllInputs(_back), forward=AllInputs(_along), name="odeint")


def rk4(f: Callable[..., Any], y0: Any, t0: Any, t1: Any, steps: int, *parameters: Any) -> Value:
    """y(t1) by this many steps of the classical Runge–Kutta method of order four, recording every operation.

    The derivative is exactly that of the steps, and all steps stay in memory; that of `odeint` belongs to the exact
    solution. Solves ẏ = f(t, y, *parameters), with y a number or an array.
    Source: Hairer, Nørsett & Wanner (1993), "Solving ordinary differential equations I", table 1.2.
    """
    if not isinstance(steps, (int, np.integer)) or steps < 1:
        raise ValueError(f"rk4: argument steps: expected a positive integer, got {steps!r:.60}")
    start = leaf_value(asarray(y0), "rk4: argument y0")
    h = (t1 - t0) / int(steps)

    def step(i: int, y: Value) -> Value:
        t = t0 + i * h
        k1 = asarray(f(t, y, *parameters))
        k2 = asarray(f(t + 0.5 * h, y + 0.5 * h * k1, *parameters))
        k3 = asarray(f(t + 0.5 * h, y + 0.5 * h * k2, *parameters))
        k4 = asarray(f(t + h, y + h * k3, *parameters))
        return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    return loop(step, start, int(steps))
