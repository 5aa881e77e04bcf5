"""gradbench's particle and saddle: descents whose objective contains derivatives.

In a function's name, the first letter is the mode of the outer derivative, the second that of the inner one: `f`
forward (the backend's J v), `r` reverse (its wᵀ J). The descent follows, step by step, Pearlmutter and Siskind (2008),
"Using programming language theory to make automatic differentiation sound and efficient".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.interop.gradbench.inputs import array, number, part
from adbench.interop.gradbench.work import Prepared, Work, case_module
from adbench.model.backend import Backend
from adbench.model.errors import Unsupported

MODES = ("ff", "fr", "rf", "rr")
NAMES = {"f": "forward", "r": "reverse"}
PRECISION = 1e-5  # the descent ends at a gradient or a step below this
STEP = 0.1  # of the flight


def argmin(objective: Callable[[Any], Any], gradient: Callable[[Any], Any], x: Any, norm: Callable[[Any], Any]) -> Any:
    """The end of the descent, whose steps are doubled after ten good ones and halved after a bad one."""
    value, slope, rate, good = objective(x), gradient(x), PRECISION, 0
    while norm(slope) > PRECISION:
        if good == 10:
            rate, good = 2 * rate, 0
            continue
        there = x - rate * slope
        if norm(x - there) <= PRECISION:
            break
        found = objective(there)
        if found < value:
            x, value, slope, good = there, found, gradient(there), good + 1
        else:
            rate, good = rate / 2, 0
    return x


def slopes(backend: Backend, g: Callable[..., Any], x: Any, mode: str) -> Any:
    """∇g at x, a number or a vector, within a differentiated function."""
    if mode == "r" and hasattr(backend.xp, "derivative"):
        return backend.xp.derivative(g, x)
    if mode == "r":
        return backend.prepare("vjp", g, (x, backend.to_native(1.0)), (0,))(x, backend.to_native(1.0))[0]
    shape = getattr(x, "shape", ())
    call = backend.prepare("jvp", g, (x, (backend.to_native(np.ones(shape) if shape else 1.0),)), (0,))
    if not shape:
        return call(x, (backend.to_native(1.0),))
    return backend.xp.stack([call(x, (backend.to_native(unit),)) for unit in np.eye(*shape)])


@dataclass(frozen=True)
class Outside:
    """A function of plain vectors with value and gradient from the backend, prepared once, for a descent in numpy."""

    value: Callable[..., float]
    gradient: Callable[..., np.ndarray]


def outside(backend: Backend, f: Callable[..., Any], args: tuple[np.ndarray, ...], mode: str, active: int) -> Outside:
    """f(*vectors) and its gradient by the active one. Raises Unsupported if the backend lacks that mode."""

    def native(vectors: tuple[Any, ...]) -> tuple[Any, ...]:
        return backend.native_inputs(tuple(vectors))

    value = backend.prepare("value", f, native(args), (active,))
    units = [native(((unit,),))[0] for unit in np.eye(args[active].size)]
    if mode == "f":
        jvp = backend.prepare("jvp", f, (*native(args), units[0]), (active,))

        def gradient(*vectors: Any) -> np.ndarray:
            given = native(vectors)
            return np.array([float(backend.to_numpy(backend.waited(jvp(*given, unit)))) for unit in units])
    else:
        one = backend.to_native(1.0)
        vjp = backend.prepare("vjp", f, (*native(args), one), (active,))

        def gradient(*vectors: Any) -> np.ndarray:
            return np.array(backend.to_numpy(backend.waited(vjp(*native(vectors), one)[0])), dtype=np.float64)

    return Outside(lambda *vectors: float(backend.to_numpy(backend.waited(value(*native(vectors))))), gradient)


def refuse_wrong_nest(backend: Backend, modes: str) -> None:
    """Raise Unsupported if a nested derivative is missing or wrong: d/dx of ∂/∂y x y² at y = x.

    A library that does not record the inner computation would treat the inner derivative as a constant.
    """
    outer, inner = modes[0], modes[1]

    def g(x: Any) -> Any:
        return slopes(backend, lambda y: x[0] * y * y, x[0], inner)

    found = outside(backend, g, (np.array([1.5]),), outer, 0).gradient(np.array([1.5]))
    if not abs(found[0] - 6.0) < 1e-6:
        names = f"{NAMES[inner]} mode inside {NAMES[outer]} mode"
        raise Unsupported(f"{names} is wrong with {backend.name}: got {found[0]:.6g} instead of 4 x = 6")


@dataclass(frozen=True)
class NestedWork:
    """The work of one of the two modules with these modes at a parsed input."""

    modes: str
    solve: Callable[[Backend, str], Callable[[], Any]]

    def prepare(self, backend: Backend) -> Prepared:
        """See Work. Raises Unsupported if the backend lacks the modes, or nests them wrongly."""
        if backend.functions or not hasattr(backend.xp, "sqrt"):
            raise Unsupported(f"{backend.name} differentiates only its own implementations, and has none of this")
        refuse_wrong_nest(backend, self.modes)
        return Prepared(
            self.solve(backend, self.modes), lambda found: found.tolist() if found.size > 1 else found.item()
        )


def particle(modes: str) -> Callable[[Any], Work]:
    """The w for which the particle hits the origin, from an initial guess: one number."""

    def work(data: Any) -> Work:
        w = number(part(data, "w"), "w")
        parts = case_module("particle")

        def solve(backend: Backend, modes: str) -> Callable[[], Any]:
            inner = modes[1]

            def force(xp: Any, x: Any, y: Any, w: Any) -> tuple[Any, Any]:
                by_x = slopes(backend, lambda a: parts.potential(xp, a, y, w), x, inner)
                return by_x, slopes(backend, lambda b: parts.potential(xp, x, b, w), y, inner)

            start = np.array([w])
            found = outside(backend, lambda w: parts.flight(backend.xp, force, w[0], STEP), (start,), modes[0], 0)
            return lambda: argmin(found.value, found.gradient, start, np.linalg.norm)

        return NestedWork(modes, solve)

    return work


def saddle(modes: str) -> Callable[[Any], Work]:
    """x and y of min over x of max over y of ‖x‖² - ‖y‖², both from `start`: four numbers."""

    def work(data: Any) -> Work:
        start = array(data, "start", 2)

        def solve(backend: Backend, modes: str) -> Callable[[], Any]:
            xp, outer, inner = backend.xp, modes[0], modes[1]

            def phi(x: Any, y: Any) -> Any:
                return xp.sum(x * x) - xp.sum(y * y)

            def norm(v: Any) -> Any:
                return xp.sqrt(xp.sum(v * v))

            def largest(x: Any) -> Any:
                """The largest phi(x, y) found by the descent."""

                def lowered(y: Any) -> Any:
                    return -phi(x, y)

                y = backend.to_native(start) + 0 * x
                return phi(x, argmin(lowered, lambda y: slopes(backend, lowered, y, inner), y, norm))

            of_x = outside(backend, largest, (start,), outer, 0)
            of_y = outside(backend, lambda x, y: -phi(x, y), (start, start), outer, 1)

            def run() -> Any:
                x = argmin(of_x.value, of_x.gradient, start, np.linalg.norm)
                y = argmin(lambda y: of_y.value(x, y), lambda y: of_y.gradient(x, y), start, np.linalg.norm)
                return np.concatenate([x, y])

            return run

        return NestedWork(modes, solve)

    return work
