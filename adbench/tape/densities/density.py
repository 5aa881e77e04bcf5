"""Log densities as data: a value, its partial derivatives, and the domains of the arguments.

A density is one node for any number of observations (Carpenter et al. 2015, sections on vectorised densities and on
partials): the sum of log p(y_i | …) over the broadcast shape of its arguments, with all normalising constants. Partials
are computed only for arguments that are not constant, and common terms such as (y - μ)/σ once. Partials are written
with the functions of this package, so they have derivatives of all orders.

All densities treat bad input alike:

    a parameter outside its domain (σ ≤ 0, a probability of 1.1, a matrix that is not positive definite), NaN, a
    count that is not whole                   DomainError with function, argument, expected and found value
    y outside the support                     log density -inf and gradient 0, because the density is 0 nearby too
    a count as an active variable             RuleError: it has no derivative
    arguments that do not broadcast           ValueError with their shapes

Derivatives in constrained parameters (simplices, probabilities) are those of the formula, entry by entry.
Symmetric matrices are read as (S + Sᵀ)/2, so that their gradients and Hessians are symmetric too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import numpy as np

from adbench.tape.core.rule import Active, AllInputs, Rule, RuleError, TapeError, Value, function_gradients
from adbench.tape.rules.elementwise import where
from adbench.tape.rules.reductions import sum  # numpy's name
from adbench.tape.rules.shapes import broadcast_to, sum_to
from adbench.tape.values import constant, may_have_nan, shape_of, value_of

Partial = Callable[..., Value]


class DomainError(TapeError, ValueError):
    """An argument of a density is outside its domain."""


class DensityDomain(NamedTuple):
    """An interval, with or without its ends, optionally restricted to whole numbers. Errors show `text`."""

    text: str
    low: float = -np.inf
    high: float = np.inf
    closed: tuple[bool, bool] = (False, False)
    whole: bool = False

    def holds(self, x: Value) -> bool:
        """Whether all of x lies in the interval, in two passes without memory. NaN lies in no interval."""
        if type(x) is float:
            least = most = x
        elif not x.size:
            return True
        else:
            least, most = np.minimum.reduce(x, None), np.maximum.reduce(x, None)
        above = self.low <= least if self.closed[0] else self.low < least
        below = most <= self.high if self.closed[1] else most < self.high
        return bool(above and below and (not self.whole or np.all(np.equal(np.floor(x), x))))

    def inside(self, x: Value) -> Value:
        """Whether each element lies in the interval."""
        above = np.less_equal(self.low, x) if self.closed[0] else np.less(self.low, x)
        below = np.less_equal(x, self.high) if self.closed[1] else np.less(x, self.high)
        inside = above & below
        return inside & np.equal(np.floor(np.where(inside, x, 0.0)), x) if self.whole else inside


NUMBER = DensityDomain("numbers without NaN", closed=(True, True))
FINITE = DensityDomain("finite numbers")
POSITIVE = DensityDomain("positive finite numbers", low=0.0)
NOT_NEGATIVE = DensityDomain("finite numbers of at least 0", low=0.0, closed=(True, False))
UNIT = DensityDomain("numbers from 0 to 1", 0.0, 1.0, (True, True))
WHOLE = DensityDomain("whole numbers", whole=True)
COUNT = DensityDomain("whole numbers of at least 0", low=0.0, closed=(True, False), whole=True)
BINARY = DensityDomain("0 or 1", 0.0, 1.0, (True, True), whole=True)


def require(name: str, argument: str, domain: DensityDomain, x: Value) -> None:
    """Raise DomainError, with the first offending element, unless all of x lies in the domain."""
    if not domain.holds(x):
        outside = ~np.asarray(domain.inside(x))
        place = tuple(int(i) for i in np.argwhere(outside)[0])
        at = f" at {list(place)}" if place else ""
        raise DomainError(f"{name}: {argument}: expected {domain.text}, got {np.asarray(x)[place]}{at}")


def sums_to_one(name: str, argument: str, theta: Value) -> None:
    """Raise DomainError unless the last axis sums to 1, to the eight digits that rounded input has."""
    totals = np.add.reduce(theta, -1)
    if theta.size and not np.max(np.abs(totals - 1.0)) <= 1e-8:
        worst = np.ravel(totals)[np.argmax(np.abs(totals - 1.0))]
        raise DomainError(f"{name}: {argument}: expected rows that sum to 1, got the sum {worst:.9g}")


@dataclass(slots=True, eq=False, repr=False)
class Density:
    """A log density `f(y, *parameters)`, summed over the broadcast shape of its arguments; one rule for both modes.

    arguments    the name and domain of each argument; for y: the values that raise no error
    support      where the density of y is positive: a domain for y, or supports(*plain inputs); elsewhere -inf
    check        check(name, *plain inputs): raises for faults beyond intervals, as a matrix that is not symmetric
    shared       shared(*inputs): terms that value and partials share, computed once for each
    value        value(shared, *inputs) on plain numbers: log p for each element, or with `elementwise=False` their sum
    partials     partial(shared, *inputs) for each argument, None for a count: ∂ log p/∂argument for each element;
                 with `elementwise=False` of the sum, in the argument's shape or a broadcast of it
    """

    name: str
    arguments: dict[str, DensityDomain]
    value: Callable[..., Value]
    partials: Sequence[Partial | None]
    _: KW_ONLY
    support: DensityDomain | Callable[..., bool] = FINITE
    check: Callable[..., None] | None = None
    shared: Callable[..., Value] = lambda *_inputs: None
    elementwise: bool = True
    rule: Rule = field(init=False)

    def __post_init__(self) -> None:
        reverse, forward = AllInputs(self._reverse), AllInputs(self._forward)
        self.rule = function_gradients(self._total, reverse=reverse, forward=forward, name=self.name)

    def __call__(self, *args: Value) -> Value:
        """The sum of the log densities."""
        inputs = self.checked(args)
        plain = [value_of(x) for x in inputs]
        return self.rule(*inputs) if self.supports(plain) else -np.inf

    def __repr__(self) -> str:
        return f"<density {self.name}({', '.join(self.arguments)})>"

    def checked(self, args: Sequence[Value]) -> list[Value]:
        """The arguments in normal form, each in its domain."""
        if len(args) != len(self.arguments):
            expected = ", ".join(self.arguments)
            raise TypeError(f"{self.name}: expected {len(self.arguments)} arguments ({expected}), got {len(args)}")
        inputs = []
        for x, partial, (argument, domain) in zip(args, self.partials, self.arguments.items(), strict=True):
            if type(x) is not float:
                x = self._normal(x, argument, partial)
            require(self.name, argument, domain, value_of(x))
            inputs.append(x)
        if self.elementwise:
            self.common_shape(inputs)
        if self.check is not None:
            self.check(self.name, *map(value_of, inputs))
        return inputs

    def _normal(self, x: Value, argument: str, partial: Partial | None) -> Value:
        if isinstance(x, Active):
            if partial is None:
                raise RuleError(f"{self.name}: {argument}: expected a plain number, got a variable; pass its .val")
            return x
        x = constant(x, f"{self.name}: {argument}", keep=False)
        if x is None:
            raise TypeError(f"{self.name}: {argument}: expected numbers, got None")
        return x.astype(float) if isinstance(x, np.ndarray) and x.dtype.kind == "b" else x

    def common_shape(self, inputs: Sequence[Value]) -> tuple[int, ...]:
        """The broadcast shape of the arguments."""
        shapes = [shape_of(x) for x in inputs]
        if not any(shapes):
            return ()
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            described = ", ".join(f"{a} {s}" for a, s in zip(self.arguments, shapes, strict=True))
            raise ValueError(f"{self.name}: expected shapes that broadcast, got {described}") from None

    def supports(self, plain: Sequence[Value]) -> bool:
        """Whether the density is positive at all of y."""
        return self.support.holds(plain[0]) if isinstance(self.support, DensityDomain) else self.support(*plain)

    # The rule

    def _total(self, *inputs: Value) -> Value:
        with np.errstate(all="ignore"):  # overflow here means the limit; NaN is an error below
            terms = self.value(self.shared(*inputs), *inputs)
            if self.elementwise:
                full = self.common_shape(inputs)
                if np.shape(terms) != full:
                    terms = np.broadcast_to(terms, full)
                terms = np.add.reduce(terms, None) if full else terms
        if terms != terms:
            raise DomainError(f"{self.name}: no value at these arguments: inf - inf in double precision")
        return terms

    def _parts(self, wanted: Sequence[bool], inputs: Sequence[Value]) -> list[Value]:
        """The derivative of the sum in each wanted argument, in its shape."""
        shared = self.shared(*inputs)
        full = self.common_shape(inputs) if self.elementwise else ()
        parts: list[Value] = []
        for x, partial, is_wanted in zip(inputs, self.partials, wanted, strict=True):
            if not is_wanted or partial is None:
                parts.append(None)
                continue
            part = partial(shared, *inputs)
            parts.append(sum_to(broadcast_to(part, full) if full else part, shape_of(x)))
        return parts

    def _reverse(self, wanted: Sequence[bool], _val: Value, adj: Value, *inputs: Value) -> list[Value]:
        unit = type(adj) is float and adj == 1.0  # log densities are mostly summed, so skip the multiplication
        return [part if part is None or unit else adj * part for part in self._parts(wanted, inputs)]

    def _forward(self, _val: Value, tans: Sequence[Value], *inputs: Value) -> Value:
        total: Value = 0.0
        for part, tan in zip(self._parts([tan is not None for tan in tans], inputs), tans, strict=True):
            if part is not None:
                step = part * tan
                if may_have_nan(step):  # 0 · inf is 0, as in the sweep
                    step = where(value_of(tan) == 0.0, 0.0, step)
                total = total + (sum(step) if shape_of(step) else step)
        return total
