"""Rules: one definition of a derivative, used by reverse mode and by forward mode.

A rule is data. It names the value function and, for each argument, a gradient function

    gradient(val, adj, *inputs, **params)

after "Generalized function gradients" (Stan RFC, 2022). For an *elementwise* function the Jacobian is diagonal and
so its own transpose: the same gradient function takes an adjoint to the argument's adjoint (reverse mode) and a
tangent to the result's tangent (forward mode). Any other function has a `reverse` and a `forward` tuple.

Calling a rule evaluates it. The active argument of the innermost level (see `Active`) decides what else happens:
a `Scalar` or `Array` records a node on its tape, a `Dual` carries a tangent along. With no active argument the value
function is all that runs. This module knows none of these types, and no rule does: that is what lets one
recording serve the sweep, a compiler and a printed table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

Value = Any
"""A float, a float64 array, or an active value of an outer level."""

Gradient = Callable[..., Value]
Gradients = Sequence["Gradient | None"]

ONE, MINUS_ONE = 1.0, -1.0
"""The slopes of sums and differences. The sweep knows these objects, and does not multiply by them."""


class TapeError(Exception):
    """Base of the errors raised by the engine itself."""


class RuleError(TapeError):
    """A gradient function is missing, or returned something of the wrong shape."""


class Active:
    """A value being differentiated.

    Each call of a functional (`gradient`, `jvp`, …) opens a new level, numbered upwards. An operation on values of
    several levels belongs to the innermost, that is the highest; values of all other levels are constants to it.
    This is what keeps nested derivatives from confusing their perturbations.

    `symbolic` says that there is no plain number under it: it stands for the numbers of calls to come (see `compiled`).
    """

    __slots__ = ()

    symbolic = False

    @property
    def level(self) -> int:
        """The number of the level it belongs to; the highest is the innermost."""
        raise NotImplementedError

    def interpret(self, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
        """The result of `rule(*args, **params)` at this value's level."""
        raise NotImplementedError


class AllInputs:
    """One gradient function for all arguments at once: for any number of them, or where they share work.

    reverse   fn(wanted, val, adj, *inputs, **params) -> the contribution to each argument's adjoint, in order;
              `wanted[i]` says whether argument i is active, for a constant anything (None) may stand
    forward   fn(val, tans, *inputs, **params) -> the result's tangent; `tans[i]` is None for a constant
    """

    __slots__ = ("fn",)

    def __init__(self, fn: Gradient) -> None:
        self.fn = fn


class Rule:
    """A function together with its derivatives.

    name         as printed in errors and tables
    value        value(*inputs, **params) on plain floats and arrays
    reverse      for each argument (val, adj, *inputs, **params) -> contribution to its adjoint; or `AllInputs`
    forward      for each argument (val, tan, *inputs, **params) -> contribution to the result's tangent; or `AllInputs`
    elementwise  the Jacobian is diagonal up to broadcasting, which the engine undoes
    fresh        contributions are always newly made arrays (or `adj`, or views of it), so that the sweep may
                 add into them; a rule from outside is not trusted with this
    scatter      for a function that reads part of its first argument: scatter(buffer, adj, **params) adds the
                 contribution in place, at the cost of the part and not of the whole; `adj` may be one number for all
    slope        for a function of one argument that is elementwise or a sum: its derivative, where that is one number
    pointwise    whether its gradient functions take one number for an adjoint whose elements are all the same
    """

    __slots__ = (
        *("_kept", "elementwise", "forward", "fresh", "name", "pointwise", "reads", "reverse", "scatter", "slope"),
        "value",
    )

    def __init__(
        self,
        name: str,
        value: Callable[..., Value],
        reverse: Any,
        forward: Any,
        *,
        elementwise: bool = False,
        fresh: bool = False,
        scatter: Callable[..., None] | None = None,
        slope: float | None = None,
    ) -> None:
        self.name = name
        self.value = value
        self.reverse = reverse
        self.forward = forward
        self.elementwise = elementwise
        self.fresh = fresh
        self.scatter = scatter
        self.slope = slope
        self.pointwise = elementwise and fresh
        listed = reverse is not None and not isinstance(reverse, AllInputs)
        self.reads = tuple(map(_parameters_read, reverse)) if listed else None
        self._kept: dict[tuple[bool, ...], tuple[bool, ...]] = {}

    def __call__(self, *args: Value, **params: Any) -> Value:
        """The value, recorded or with a tangent if an argument is active."""
        if len(args) == 1:
            top = args[0]
            return top.interpret(self, args, params) if isinstance(top, Active) else self.value(top, **params)
        top = None
        for arg in args:
            if isinstance(arg, Active) and (top is None or (arg is not top and arg.level > top.level)):
                top = arg
        if top is None:
            return self.value(*args, **params)
        return top.interpret(self, args, params)

    def __repr__(self) -> str:
        return f"<rule {self.name}>"

    def kept(self, active: tuple[bool, ...]) -> tuple[bool, ...]:
        """Which of (val, *inputs) the gradient functions of the active arguments may read."""
        try:
            return self._kept[active]
        except KeyError:
            kept = self._kept[active] = self._find_kept(active)
            return kept

    def _find_kept(self, active: tuple[bool, ...]) -> tuple[bool, ...]:
        if self.reverse is None:
            raise RuleError(f"{self.name} has no reverse mode")
        everything = (True,) * (1 + len(active))
        if self.reads is None:
            return everything
        if len(active) != len(self.reads):
            raise RuleError(f"{self.name}: called with {len(active)} arguments, but the rule has {len(self.reads)}")
        for i, is_active in enumerate(active):
            if is_active and self.reverse[i] is None:
                raise RuleError(f"{self.name} has no derivative in argument {i}; take its plain value with .val")
        asked = [reads for reads, is_active in zip(self.reads, active, strict=True) if is_active]
        if any(reads is None for reads in asked):
            return everything
        return tuple(any(reads[i] for reads in asked if reads) for i in range(len(active) + 1))


def _parameters_read(gradient: Gradient | None) -> tuple[bool, ...] | None:
    """Which of (val, *inputs) a gradient function reads: all but the parameters named with an underscore in front.

    An input that is not read is not kept: in its place the function is given something that has `.shape` only.
    None, "it may read everything", for a function whose parameters are not spelled out.
    """
    if gradient is None:
        return None
    try:
        parameters = list(inspect.signature(gradient).parameters.values())
    except (TypeError, ValueError):  # some functions written in C tell nothing about their parameters
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return tuple(not name.startswith("_") for name in names[:1] + names[2:])


def function_gradients(
    value: Callable[..., Value],
    gradients: Gradients | None = None,
    *,
    reverse: Gradients | AllInputs | None = None,
    forward: Gradients | AllInputs | None = None,
    name: str | None = None,
    fresh: bool = False,
    scatter: Callable[..., None] | None = None,
    slope: float | None = None,
) -> Rule:
    """A differentiable function from its value and its gradients, for both modes at once.

    Elementwise functions: one tuple of gradient functions `(val, adj, *inputs)`, one for each argument, multiplies
    whatever it is given, an adjoint or a tangent, by the partial derivative:

        hypot = function_gradients(np.hypot, (lambda val, adj, x, y: adj * x / val,
                                              lambda val, adj, x, y: adj * y / val))

    Matrix functions: a tuple for each mode, here Ā = -Cᵀ C̄ Cᵀ and Ċ = -C Ȧ C (Giles 2008, section 2.2.3):

        inverse = function_gradients(np.linalg.inv, reverse=(lambda C, adj, A: -C.T @ adj @ C.T,),
                                                    forward=(lambda C, tan, A: -C @ tan @ C,))

    Gradient functions are asked for active arguments only. `None` in a tuple says that the function has no
    derivative in that argument. Written with operators and functions of this package they are themselves
    differentiable, and so have all higher orders. A parameter whose name begins with an underscore is promised not
    to be read; its value is then not kept for the sweep.

    Source: Stan RFC "generalized_function_gradients" (2022).
    """
    name = name or str(getattr(value, "__name__", "function"))
    if gradients is not None:
        if reverse is not None or forward is not None:
            raise TypeError(f"{name}: give either gradients, for an elementwise function, or reverse and forward")
        return Rule(name, value, tuple(gradients), tuple(gradients), elementwise=True, fresh=fresh, slope=slope)
    if reverse is None and forward is None:
        raise TypeError(f"{name}: no gradients given")
    sides = [side if side is None or isinstance(side, AllInputs) else tuple(side) for side in (reverse, forward)]
    return Rule(name, value, *sides, fresh=fresh, scatter=scatter, slope=slope)
