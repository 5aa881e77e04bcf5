"""Initial value problems on plain numbers, by one of scipy's methods, and their adjoints.

An adjoint is λ and θ̄, solved backwards along a known solution:

    dλ/dτ = Jᵀ λ,   dθ̄/dτ = (∂f/∂θ)ᵀ λ,   τ = t1 - t

from each time to the previous one, where the adjoint of that state is added to λ. Products with Jᵀ and (∂f/∂θ)ᵀ are
vector-Jacobian products of f. The system is linear, and implicit methods get its Jacobian from the engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from adbench.tape.core.functionals import vjp
from adbench.tape.core.rule import Active, TapeError, Value
from adbench.tape.jacobians import jacobian
from adbench.tape.lazy import integrate
from adbench.tape.rules.shapes import reshape
from adbench.tape.values import shape_of, value_of

METHODS = {"rk23": "RK23", "rk45": "RK45", "dop853": "DOP853", "radau": "Radau", "bdf": "BDF", "lsoda": "LSODA"}
"""Method name -> scipy's class."""

STIFF = frozenset(("radau", "bdf", "lsoda"))
"""Implicit methods, which use the Jacobian ∂f/∂y."""


class OdeError(TapeError, RuntimeError):
    """The solver could not reach the last time."""


class SolverOptions(NamedTuple):
    """The solver's method, relative and absolute tolerance (one, or one per state), and the limit of steps."""

    method: str
    rtol: float
    atol: Any
    max_steps: int

    def tolerances(self, n: int) -> Any:
        """The absolute tolerance of each of n states."""
        return np.broadcast_to(np.asarray(self.atol, float), (n,))


def integrate_to(
    f: Callable[[float, Value], Value],
    jacobian: Callable[[float, Value], Value] | None,
    y0: Value,
    t0: float,
    times: Value,
    options: SolverOptions,
    dense: list[Any] | None = None,
) -> Value:
    """The solution y of ẏ = f(t, y), y(t0) = y0, at monotone times from t0 on, shape (len(times), n).

    With a list `dense`, append the interpolant of every step to it. Raises OdeError with the method, the time and
    the solver's reason.
    """
    states = np.empty((len(times), len(y0)))
    done = 0
    while done < len(times) and times[done] == t0:
        states[done] = y0
        done += 1
    if done == len(times) or not len(y0):
        return states
    settings: dict[str, Any] = {"rtol": options.rtol, "atol": options.tolerances(len(y0))}
    if options.method in STIFF:
        settings["jac"] = jacobian
    end = float(times[-1])
    steps = 0
    # Trial steps may leave the domain of f or overflow. The solver then takes shorter steps, or fails.
    with np.errstate(all="ignore"):
        if not np.all(np.isfinite(f(t0, y0))):
            raise _failed(options, t0, end, f"f is not finite at the start, y = {y0}")
        try:
            solver = getattr(integrate, METHODS[options.method])(f, t0, np.array(y0, float), end, **settings)
        except ValueError as error:
            raise _failed(options, t0, end, str(error)) from None
        if not np.isfinite(getattr(solver, "h_abs", 0.0)):  # f is not finite near the start; try shorter steps
            solver.h_abs = 1e-6 * abs(end - t0)
        while done < len(times):
            try:
                message = solver.step()
            except (ValueError, np.linalg.LinAlgError) as error:  # a Jacobian with NaN cannot be factorised
                message, solver.status = str(error), "failed"
            steps += 1
            if solver.status == "failed" or not np.all(np.isfinite(solver.y)):
                raise _failed(options, solver.t, end, message or "the state is not finite")
            piece = solver.dense_output()
            if dense is not None:
                dense.append(piece)
            while done < len(times) and (times[done] - solver.t) * solver.direction <= 0.0:
                states[done] = solver.y if times[done] == solver.t else piece(times[done])
                done += 1
            if steps >= options.max_steps and done < len(times):
                raise _failed(options, solver.t, end, f"no end after {steps} steps (max_steps)")
    return states


def _failed(options: SolverOptions, reached: float, end: float, reason: str) -> OdeError:
    return OdeError(
        f"odeint: method {options.method!r} reached t = {float(reached):.12g} on the way to {end:.12g} and failed: "
        f"{reason.rstrip('.')}. For a stiff problem use 'bdf', 'radau' or 'lsoda'; check also whether the solution "
        f"grows without bound or leaves the domain of f"
    )


Field = Callable[..., Value]
"""f(t, y, *leaves) -> vector (n,), where y is a vector (n,) and the leaves are the parameters' numbers and arrays."""


def plain_field(field: Field, leaves: Sequence[Value]) -> Callable[[float, Value], Value]:
    """f(t, y) on plain numbers. Raises an error if a derivative would be lost."""

    def plain(t: float, y: Value) -> Value:
        rate = field(float(t), y, *leaves)
        if isinstance(rate, Active):
            raise TapeError(
                "odeint: f uses a variable from outside that is being differentiated; pass it as a parameter"
            )
        return rate

    return plain


def plain_jacobian(field: Field, leaves: Sequence[Value]) -> Callable[[float, Value], Value]:
    """∂f/∂y at (t, y), shape (n, n)."""
    return lambda t, y: jacobian(lambda u: field(float(t), u, *leaves), y)[1]


def of_moving(field: Field, t: Value, leaves: Sequence[Value], moving: Sequence[int]) -> Callable[[Any], Value]:
    """f at time t as a function of (y, [parameters at the positions `moving`]), with all other parameters fixed."""

    def at(point: Any) -> Value:
        merged = list(leaves)
        for i, leaf in zip(moving, point[1], strict=True):
            merged[i] = leaf
        return field(t, point[0], *merged)

    return at


def sizes(leaves: Sequence[Value], moving: Sequence[int]) -> Value:
    """max(1, |θ|) for each element of these parameters: a derivative in θ = 10⁷ needs 10⁻⁷ of the tolerance."""
    return np.concatenate([np.zeros(0), *(np.maximum(1.0, np.abs(np.ravel(value_of(leaves[i])))) for i in moving)])


class Memo:
    """Results of one sweep, kept for the next over the same node, because a Jacobian takes a sweep per row.

    One entry for each kind of result, valid while the inputs are the same numbers.
    """

    def __init__(self) -> None:
        self.entries: dict[Any, tuple[list[Any], Any]] = {}

    def recall(self, kind: Any, inputs: Sequence[Value], compute: Callable[[], Any]) -> Any:
        """The stored result, or a new one; results with an active input are never stored."""
        if any(isinstance(x, Active) for x in inputs):
            return compute()
        entry = self.entries.get(kind)
        if entry is None or not all(np.array_equal(a, b) for a, b in zip(entry[0], inputs, strict=True)):
            entry = self.entries[kind] = [np.array(x) for x in inputs], compute()
        return entry[1]


class Problem(NamedTuple):
    """ẏ = f(t, y, *leaves), the options of the solver, and the method of reverse mode.

    Its values are always in the order y0, t0, ts, *leaves.
    """

    field: Field
    options: SolverOptions
    sensitivity: str
    memo: Memo


def cut_leaves(flat: Value, leaves: Sequence[Value], moving: Sequence[int]) -> list[Value]:
    """The parts of a vector in the shapes of the wanted parameters; None for the others."""
    parts: list[Value] = [None] * len(leaves)
    start = 0
    for i in moving:
        size = math.prod(shape_of(leaves[i]))
        parts[i] = reshape(flat[start : start + size], shape_of(leaves[i]))
        start += size
    return parts


def _backwards(
    field: Field, solution: Any, leaves: Sequence[Value], moving: Sequence[int], end: float, direction: float
) -> tuple[Callable[[float, Value], Value], Callable[[float, Value], Value]]:
    """The rate of (λ, θ̄) at τ = |end - t|, and its Jacobian. The direction is -1 if time ran backwards.

    τ starts at 0, because the first steps after a jump can be too short for t to resolve.
    """

    def point(tau: float) -> tuple[Callable[[Any], Value], Any]:
        t = float(end - direction * tau)
        return of_moving(field, t, leaves, moving), (solution(t), [leaves[i] for i in moving])

    def rate(tau: float, z: Value) -> Value:
        at, where = point(tau)
        _, (moved, partials) = vjp(at, where, z[: len(where[0])])
        return direction * np.concatenate([moved, *(np.ravel(p) for p in partials)])

    def slope(tau: float, z: Value) -> Value:
        at, where = point(tau)
        _, (moved, partials) = jacobian(at, where, "reverse")
        n = len(where[0])
        full = np.zeros((len(z), len(z)))
        full[:, :n] = direction * np.concatenate([moved, *(np.reshape(p, (n, -1)) for p in partials)], 1).T
        return full

    return rate, slope


def adjoint_sensitivities(wanted: Sequence[bool], adj: Value, inputs: Sequence[Value], problem: Problem) -> list[Value]:
    """[ȳ0, t̄0, *θ̄] from the adjoint (len(ts), n) of the states; θ̄ where `wanted[3:]`, None elsewhere."""
    y0, t0, ts, *leaves = inputs
    field, options = problem.field, problem.options
    n = shape_of(y0)[0]
    moving = [i for i in range(len(leaves)) if wanted[3 + i]]
    direction = -1.0 if np.any(ts < t0) else 1.0
    times, order = np.unique(direction * ts, return_inverse=True)
    jumps = np.zeros((len(times), n))
    np.add.at(jumps, order, adj)
    rate = plain_field(field, leaves)

    def solve() -> Any:
        pieces: list[Any] = []
        integrate_to(rate, plain_jacobian(field, leaves), y0, float(t0), direction * times, options, pieces)
        return integrate.OdeSolution([float(t0), *(piece.t for piece in pieces)], pieces)

    solution = problem.memo.recall("solution", inputs, solve)
    atol, weights = options.tolerances(n), sizes(leaves, moving)
    tighter = options._replace(atol=np.concatenate([atol, np.min(atol, initial=np.inf) / weights]))
    z = np.zeros(n + len(weights))
    starts = np.concatenate([[direction * float(t0)], times])
    for k in range(len(times) - 1, -1, -1):
        z[:n] += jumps[k]
        back = _backwards(field, solution, leaves, moving, float(direction * times[k]), direction)
        z = integrate_to(*back, z, 0.0, np.array([times[k] - starts[k]]), tighter)[0]
    t0_back = -float(z[:n] @ rate(float(t0), y0)) if wanted[1] else None
    return [z[:n], t0_back, *cut_leaves(z[n:], leaves, moving)]
