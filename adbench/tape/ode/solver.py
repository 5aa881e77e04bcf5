"""Solve one initial value problem on plain numbers by one of scipy's methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adbench.tape.core.rule import TapeError, Value
from adbench.tape.lazy import integrate

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

    With a list `dense`, append (end, interpolant) of every step to it. Raises OdeError with the method, the time and
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
                dense.append((solver.t, piece))
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
