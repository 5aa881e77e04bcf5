"""Rules: one definition of a derivative, used by reverse mode and by forward mode.

A rule is data: a value function and, for each argument, a gradient function `(val, adj, *inputs, **params)`, after
"Generalized function gradients" (Stan RFC, 2022). An *elementwise* function has a diagonal Jacobian, which is its own
transpose. So one gradient function serves both modes: it takes the result's adjoint to the argument's (reverse mode)
and the argument's tangent to the result's (forward mode). Any other function has a `reverse` and a `forward` tuple.

Calling a rule evaluates it. The active argument of the innermost level (see `Active`) decides what else happens: a
`Scalar` or `Array` records a node on its tape, a `Dual` computes a tangent. No rule knows these types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any

Value = Any
"""A float, a float64 array, or an active value of an outer level."""

Gradient = Callable[..., Value]


class TapeError(Exception):
    """Base class of the engine's own errors."""


class RuleError(TapeError):
    """A gradient function is missing, or returned the wrong shape."""


class Active:
    """A value being differentiated.

    Each call of a functional (`gradient`, `jvp`, …) opens a new level with a higher number. An operation on values of
    several levels belongs to the innermost level, the highest; values of all other levels are constants to it. This
    keeps nested derivatives from confusing their perturbations. `adbench.tape.operand` adds operators, methods and
    numpy's functions.
    """

    __slots__ = ()

    val: Any  # its value one level down
    gradient: dict[str, Any]  # only for results of `with_gradient`
    symbolic = False  # whether it represents numbers of future calls and has no plain number
    is_differentiated = True  # whether results computed with it will be differentiated

    @property
    def level(self) -> int:
        """The number of the level it belongs to; the highest is the innermost."""
        raise NotImplementedError

    def interpret(self, rule: Rule, args: tuple[Value, ...], params: dict[str, Any]) -> Value:
        """The result of `rule(*args, **params)` at this value's level."""
        raise NotImplementedError


class AllInputs:
    """One gradient function for all arguments at once, for any number of them or to share work.

    reverse   fn(wanted, val, adj, *inputs, **params) -> the contribution to each argument's adjoint, in order;
              `wanted[i]` is true if argument i is active, and the entry of a constant is ignored
    forward   fn(val, tans, *inputs, **params) -> the result's tangent; `tans[i]` is None for a constant
    """

    __slots__ = ("fn",)

    def __init__(self, fn: Gradient) -> None:
        self.fn = fn


@dataclass(slots=True, eq=False, repr=False)
class Rule:
    """A function together with its derivatives.

    name         shown in errors and tables
    value        value(*inputs, **params) on plain floats and arrays
    reverse      for each argument (val, adj, *inputs, **params) -> contribution to its adjoint; or `AllInputs`
    forward      for each argument (val, tan, *inputs, **params) -> contribution to the result's tangent; or `AllInputs`
    elementwise  whether the Jacobian is diagonal, up to broadcasting, which the engine undoes
    special      None, or special(rule, top, args, params) for a call with active arguments: see `identities`
    inner        None, or the same function as outer levels see it inside another derivative: see `singular`
    remembered   whether every result in forward mode stores the call that made it, for `identities`

    run          what a call runs: `evaluate`, or a quicker function with the same results, see `fast.scalar_functions`

    Only fast paths use the rest, see `fast.quick_sweep`.
    """

    name: str
    value: Callable[..., Value]
    reverse: Any
    forward: Any
    _: KW_ONLY
    elementwise: bool = False
    fresh: bool = False
    scatter: Callable[..., None] | None = None
    slope: float | None = None
    special: Callable[..., Value] | None = field(default=None, init=False)
    inner: Rule | None = field(default=None, init=False)
    remembered: bool = field(default=False, init=False)
    native: Any = field(default=None, init=False)
    reads: dict[tuple[bool, ...], tuple[bool, ...]] = field(default_factory=dict, init=False)
    run: Callable[..., Value] = field(init=False)

    def __post_init__(self) -> None:
        self.run = self.evaluate

    def __call__(self, *args: Value, **params: Any) -> Value:
        """The value; if an argument is active, recorded or with a tangent."""
        return self.run(*args, **params)

    def evaluate(self, *args: Value, **params: Any) -> Value:
        """The value for any rule and arguments; if an argument is active, recorded or with a tangent."""
        if len(args) == 1:
            top = args[0]
            if not isinstance(top, Active):
                return self.value(top, **params)
            return top.interpret(self, args, params) if self.special is None else self.special(self, top, args, params)
        top = None
        for arg in args:
            if isinstance(arg, Active) and (top is None or (arg is not top and arg.level > top.level)):
                top = arg
        if top is None:
            return self.value(*args, **params)
        return top.interpret(self, args, params) if self.special is None else self.special(self, top, args, params)

    def __repr__(self) -> str:
        return f"<rule {self.name}>"

    def check(self, cells: Sequence[Any]) -> None:
        """Raise RuleError unless each active argument (with a cell) has a gradient function."""
        if self.reverse is None:
            raise RuleError(f"{self.name} has no reverse mode; use jvp, or give it reverse gradients")
        listed = [self] * len(cells) if isinstance(self.reverse, AllInputs) else self.reverse
        if len(cells) != len(listed):
            raise RuleError(f"{self.name}: called with {len(cells)} arguments, but the rule has {len(listed)}")
        for i, cell in enumerate(cells):
            if cell is not None and listed[i] is None:
                raise RuleError(f"{self.name} has no derivative in argument {i}; take its plain value with .val")


def function_gradients(
    value: Callable[..., Value],
    gradients: Sequence[Gradient | None] | None = None,
    *,
    reverse: Sequence[Gradient | None] | AllInputs | None = None,
    forward: Sequence[Gradient | None] | AllInputs | None = None,
    name: str | None = None,
    fresh: bool = False,
    scatter: Callable[..., None] | None = None,
    slope: float | None = None,
) -> Rule:
    """A differentiable function, from its value and its gradients for both modes (Stan RFC, 2022).

    Elementwise functions: for each argument, multiply `adj` (an adjoint or a tangent) by the partial derivative:

        hypot = function_gradients(np.hypot, (lambda val, adj, x, y: adj * x / val,
                                              lambda val, adj, x, y: adj * y / val))

    Matrix functions: a tuple for each mode, here Ā = -Cᵀ C̄ Cᵀ and Ċ = -C Ȧ C (Giles 2008, section 2.2.3):

        inverse = function_gradients(np.linalg.inv, reverse=(lambda C, adj, A: -C.T @ adj @ C.T,),
                                                    forward=(lambda C, tan, A: -C @ tan @ C,))

    None means no derivative in this argument. Gradient functions written with functions of this package can themselves
    be differentiated. Start a parameter's name with an underscore if the function does not read it: the input is not
    kept.
    """
    name = name or str(getattr(value, "__name__", "function"))
    if gradients is not None:
        if reverse is not None or forward is not None:
            raise TypeError(f"{name}: give gradients (elementwise), or reverse and forward; got both")
        return Rule(name, value, tuple(gradients), tuple(gradients), elementwise=True, fresh=fresh, slope=slope)
    if reverse is None and forward is None:
        raise TypeError(f"{name}: no gradients given; pass gradients (elementwise), or reverse and forward")
    sides = [tuple(side) if isinstance(side, (list, tuple)) else side for side in (reverse, forward)]
    return Rule(name, value, *sides, fresh=fresh, scatter=scatter, slope=slope)


own_gradients = partial(function_gradients, fresh=True)
"""`function_gradients` for the engine's own rules, whose contributions are new arrays (see `fast.quick_sweep`)."""
