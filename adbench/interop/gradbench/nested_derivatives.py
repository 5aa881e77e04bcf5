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
from adbench.interop.gradbench.work import PreparedWork, Work, case_module
from adbench.model.backend import Backend
from adbench.model.errors import Unsupported
from adbench.model.operator import TRANSFORMS

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
        new = objective(there)
        if new < value:
            x, value, slope, good = there, new, gradient(there), good + 1
        else:
            rate, good = rate / 2, 0
    return x


def slopes(backend: Backend, g: Callable[..., Any], *numbers: Any, mode: str) -> tuple[Any, ...]:
    """The derivative of g by each of its numbers, within a differentiated function: traced there, not compiled.

    Raises Unsupported if the library does not nest this mode.
    """
    transform, one = _transform(backend, mode), backend.to_native(1.0)
    if mode == "r":
        return tuple(transform(lambda x: g(*x), numbers, one))
    places = range(len(numbers))  # the other numbers are constants: a tangent of 0 would be computed, too
    return tuple(
        transform(lambda x, k=k: g(*numbers[:k], x[0], *numbers[k + 1 :]), (numbers[k],), (one,)) for k in places
    )


def gradient(backend: Backend, g: Callable[[Any], Any], x: Any, mode: str) -> Any:
    """∇g at the vector x; see slopes."""
    if mode == "r":
        return slopes(backend, g, x, mode=mode)[0]
    transform, units = _transform(backend, mode), map(backend.to_native, np.eye(*x.shape))
    return backend.xp.stack([transform(lambda at: g(at[0]), (x,), (unit,)) for unit in units])


def _transform(backend: Backend, mode: str) -> Callable[..., Any]:
    """The library's transform of this mode that accepts transformed functions. Raises Unsupported."""
    transform = backend.nested.get(TRANSFORMS[NAMES[mode]])
    if transform is None:
        raise Unsupported(f"{backend.not_nested or f'{backend.name} has no {NAMES[mode]} mode that nests'}")
    return transform


@dataclass(frozen=True)
class Outside:
    """A function of plain vectors with value and gradient from the backend, prepared once, for a descent in numpy."""

    value: Callable[..., float]
    gradient: Callable[..., np.ndarray]


def outside(backend: Backend, f: Callable[..., Any], args: tuple[np.ndarray, ...], mode: str, active: int) -> Outside:
    """f(*vectors) and its gradient by the active one. Raises Unsupported if the backend lacks that mode."""

    def native(vectors: tuple[Any, ...]) -> tuple[Any, ...]:
        return backend.native_inputs(tuple(vectors))

    def sloped(*vectors: Any) -> Any:
        return gradient(backend, lambda x: f(*vectors[:active], x, *vectors[active + 1 :]), vectors[active], mode)

    value, slope = (backend.prepare("value", g, native(args), (active,)) for g in (f, sloped))
    return Outside(
        lambda *vectors: float(backend.to_numpy(backend.waited(value(*native(vectors))))),
        lambda *vectors: np.array(backend.to_numpy(backend.waited(slope(*native(vectors)))), dtype=np.float64),
    )


def refuse_wrong_nest(backend: Backend, modes: str) -> None:
    """Raise Unsupported if a nested derivative is missing or wrong: d/dx of ∂/∂y x y² at y = x.

    A library that does not record the inner computation would treat the inner derivative as a constant.
    """
    outer, inner = modes[0], modes[1]

    def g(x: Any) -> Any:
        return slopes(backend, lambda y: x[0] * y * y, x[0], mode=inner)[0]

    slope = outside(backend, g, (np.array([1.5]),), outer, 0).gradient(np.array([1.5]))
    if not abs(slope[0] - 6.0) < 1e-6:
        names = f"{NAMES[inner]} mode inside {NAMES[outer]} mode"
        raise Unsupported(f"{names} is wrong with {backend.name}: got {slope[0]:.6g} instead of 4 x = 6")


@dataclass(frozen=True)
class NestedWork:
    """The work of one of the two modules with these modes at a parsed input."""

    modes: str
    solve: Callable[[Backend], Callable[[], Any]]

    def prepare(self, backend: Backend) -> PreparedWork:
        """See Work. Raises Unsupported if the backend lacks the modes, or nests them wrongly."""
        if backend.functions or not hasattr(backend.xp, "sqrt"):
            raise Unsupported(f"{backend.name} differentiates only its own implementations, and has none of this")
        refuse_wrong_nest(backend, self.modes)
        return PreparedWork(self.solve(backend), lambda found: found.tolist() if found.size > 1 else found.item())


def particle(modes: str) -> Callable[[Any], Work]:
    """The w for which the particle hits the origin, from an initial guess: one number."""

    def work(data: Any) -> Work:
        w = number(part(data, "w"), "w")
        parts = case_module("particle")

        def solve(backend: Backend) -> Callable[[], Any]:
            def force(xp: Any, x: Any, y: Any, w: Any) -> tuple[Any, ...]:
                return slopes(backend, lambda a, b: parts.potential(xp, a, b, w), x, y, mode=modes[1])

            start = np.array([w])
            flight = outside(backend, lambda w: parts.flight(backend.xp, force, w[0], STEP), (start,), modes[0], 0)
            return lambda: argmin(flight.value, flight.gradient, start, np.linalg.norm)

        return NestedWork(modes, solve)

    return work


def saddle(modes: str) -> Callable[[Any], Work]:
    """x and y of min over x of max over y of ‖x‖² - ‖y‖², both from `start`: four numbers."""

    def work(data: Any) -> Work:
        start = array(data, "start", 2)

        def solve(backend: Backend) -> Callable[[], Any]:
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
                return phi(x, argmin(lowered, lambda y: gradient(backend, lowered, y, inner), y, norm))

            of_x = outside(backend, largest, (start,), outer, 0)
            of_y = outside(backend, lambda x, y: -phi(x, y), (start, start), outer, 1)

            def run() -> Any:
                x = argmin(of_x.value, of_x.gradient, start, np.linalg.norm)
                y = argmin(lambda y: of_y.value(x, y), lambda y: of_y.gradient(x, y), start, np.linalg.norm)
                return np.concatenate([x, y])

            return run

        return NestedWork(modes, solve)

    return work
