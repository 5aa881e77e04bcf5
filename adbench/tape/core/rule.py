"""Rules: one definition of a derivative, used by reverse mode and by forward mode.

A rule is data: a value function and, for each argument, a gradient function

    gradient(val, adj, *inputs, **params)

after "Generalized function gradients" (Stan RFC, 2022). For an *elementwise* function the Jacobian is diagonal and so
its own transpose: the same gradient function takes the result's adjoint to the argument's (reverse mode) and the
argument's tangent to the result's (forward mode). Any other function has a `reverse` and a `forward` tuple.

Calling a rule evaluates it. The active argument of the innermost level (see `Active`) decides what else happens: a
`Scalar` or `Array` records a node on its tape, a `Dual` carries a tangent along. Without an active argument only the
value function runs. No rule knows these types, so one recording serves the sweep, a compiler and a printed table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Value = Any
"""A float, a float64 array, or an active value of an outer level."""

Gradient = Callable[..., Value]
Gradients = Sequence["Gradient | None"]


class TapeError(Exception):
    """Base of the errors raised by the engine itself."""


class RuleError(TapeError):
    """A gradient function is missing, or returned something of the wrong shape."""


class Active:
    """A value being differentiated.

    Each call of a functional (`gradient`, `jvp`, …) opens a new level, numbered upwards. An operation on values of
    several levels belongs to the innermost, that is the highest; values of all other levels are constants to it.
    This keeps nested derivatives from confusing their perturbations.

    Its operators, methods and numpy's functions come from outside (`adbench.tape.operand`).
    """

    __slots__ = ()

    symbolic = False
    """Whether it stands for the numbers of calls to come, and has no plain number under it (see `compiled`)."""

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

    For fast paths only:

    fresh        contributions are newly made arrays (or `adj`, or views of it), so that the sweep may add into them
    scatter      for a function that reads part of its first argument: scatter(buffer, adj, **params) adds the
                 contribution in place, at the cost of the part and not of the whole; `adj` may be one number for all
    slope        for a function of one argument that is elementwise or a sum: its derivative, where that is one number
    reads        which of (val, *inputs) gradient functions read, once somebody has found out
    """

    __slots__ = ("elementwise", "forward", "fresh", "name", "reads", "reverse", "scatter", "slope", "value")

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
        self.reads: dict[tuple[bool, ...], tuple[bool, ...]] = {}

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
        """Which of (val, *inputs) the record has to keep for the gradient functions of the active arguments: all."""
        if self.reverse is None:
            raise RuleError(f"{self.name} has no reverse mode")
        if not isinstance(self.reverse, AllInputs):
            if len(active) != len(self.reverse):
                raise RuleError(
                    f"{self.name}: called with {len(active)} arguments, but the rule has {len(self.reverse)}"
                )
            for i, gradient in enumerate(self.reverse):
                if active[i] and gradient is None:
                    raise RuleError(f"{self.name} has no derivative in argument {i}; take its plain value with .val")
        return (True,) * (1 + len(active))


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
