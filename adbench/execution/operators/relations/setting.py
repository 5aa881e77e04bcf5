"""A backend on a case at a size, and one of its prepared operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any

import numpy as np

from adbench.execution.operators.fallback import lacking
from adbench.execution.operators.prepared_point import CasePoint, PointReferences, point
from adbench.execution.operators.relations.consistency import AllowedDifference, difference, noise_of
from adbench.execution.operators.relations.neighbours import MOST_SECONDS, Neighbours
from adbench.execution.operators.rounding_spread import Judge
from adbench.model import tree
from adbench.model.backend import Backend, Call
from adbench.model.case import Case
from adbench.model.operator import Operator, definition, needs_second_order

Args = tuple[Any, ...]


class NotApplicable(Exception):
    """Why a relation does not apply here."""


class InterruptedOnPurpose(Exception):
    """Raised in the middle of a call, on purpose."""


@dataclass
class Interruption:
    """A switch that makes the case raise after computing its value."""

    is_on: bool = False

    def of(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The function, interrupted."""

        @wraps(f)
        def interrupted(*args: Any) -> Any:
            value = f(*args)
            if self.is_on:
                raise InterruptedOnPurpose("in the middle of a call")
            return value

        return interrupted


Kept = tuple[Call, Interruption]
"""A prepared operator, and its interruption."""


@dataclass(frozen=True)
class Setting:
    """A case at a size on a backend, its references, and operators already prepared there.

    patience   a factor of the times for inputs that differ in one entry
    """

    backend: Backend
    case: Case
    size: int
    seed: int
    known: PointReferences
    kept: Mapping[str, Kept] = field(default_factory=dict)
    patience: float = 1.0

    @cached_property
    def at(self) -> CasePoint:
        """The inputs at which results are compared: here."""
        return point(self.case, self.size, self.seed, single=self.backend.single, dtype=self.backend.dtype)

    @cached_property
    def _other(self) -> CasePoint:
        following = getattr(self.at.case.f, "following", lambda seed: seed + 1)  # a user's function has its own order
        seed = following(self.seed)
        return point(self.case, self.size, seed, single=self.backend.single, dtype=self.backend.dtype)

    @property
    def there(self) -> CasePoint:
        """Other inputs of the same shapes. Raises NotApplicable without such inputs."""
        if self.case.prepared is not None:
            raise NotApplicable("the case defines the inputs to prepare with")
        if _shapes(self._other.args) != _shapes(self.at.args):
            raise NotApplicable("the inputs of another seed have other shapes")
        if not getattr(self.case.f, "is_defined", lambda _: True)(self._other.args):
            raise NotApplicable("the function is not defined at other inputs")
        return self._other

    def entries(self, operator: Operator) -> int:
        """The size of the operator's dense result if it is a matrix, else 0."""
        total = sum(self.at.arguments.sizes)
        return {"hessian": total**2, "jacobian": total * self.known.first.size}.get(definition(operator).result, 0)

    def general(self, operator: Operator) -> Args:
        """A vector like it, without powers of two."""
        rng = np.random.default_rng([self.seed, 29])
        vectors = (
            tree.like(v, lambda leaf: leaf * rng.uniform(0.6, 1.4, leaf.shape)) for v in self.at.vector(operator)
        )
        return tuple(map(self.at.in_vector_type, vectors))

    @cached_property
    def symmetric_axes(self) -> Any:
        """The axes of inputs of which the case reads one triangle (`references.symmetric_axes`)."""
        from adbench.execution.operators.references import symmetric_axes  # a worker loads it only after a fault

        with suppress(Exception):  # the case may fail on the oracle's numbers
            return symmetric_axes(self.at)
        return None

    @cached_property
    def neighbours(self) -> Neighbours:
        """Inputs that differ in one entry. Raises NotApplicable if differences of the case's values know nothing."""
        if self.case.declared:
            raise NotApplicable("the case declares its gradient, which differences of its values do not show")
        if self.at.arguments.constants:
            raise NotApplicable("an active input contains constants")
        return Neighbours(self.at, MOST_SECONDS * self.patience)

    def noise(self, operator: Operator) -> AllowedDifference:
        """The noise of the operator's results."""
        return self._noises[needs_second_order(operator)]

    @cached_property
    def _noises(self) -> tuple[AllowedDifference, AllowedDifference]:
        seconds = [known for known in (self.known.hvp, self.known.hessian) if known is not None]
        by = self.at.arithmetic
        return noise_of([self.known.first], by), noise_of([self.known.first, *seconds], by)

    @cached_property
    def has_kink(self) -> bool:
        """Whether one-sided derivatives differ here."""
        rows = [*(row for _, row in self.known.first.outputs), *self.known.first.sums]
        return any(one.kind == "kink" for row in rows for one in row.derivatives)

    def judges(self, operator: Operator) -> bool:
        """Whether there is a reference for the operator."""
        return getattr(self.known, definition(operator).reference) is not None

    def native(self, args: Args) -> Args:
        """Native copies of numpy arguments, because a case may return its own arrays."""
        return self.backend.native_inputs(tree.copied(args))

    def numpy(self, result: Any) -> Any:
        """A native result, waited for, copied into numpy arrays."""
        copy = lambda leaf: leaf.copy() if hasattr(leaf, "tocsc") else np.array(leaf)  # noqa: E731 - for one line
        return tree.map_leaves(copy, self.backend.numpy_result(self.backend.waited(result)))

    def prepare(
        self, operator: Operator, args: Args, wrt: tuple[int, ...], interruption: Interruption | None = None
    ) -> Call:
        """The backend's own operator, prepared at native arguments. Raises what the backend does."""
        f = self.backend.function(self.case, self.at.names, self.size)
        try:
            return self.backend.prepare(operator, interruption.of(f) if interruption else f, args, wrt)
        except AttributeError as error:
            raise lacking(error) from error


@dataclass
class PreparedSubject:
    """An operator prepared by the backend itself, and its result here.

    base          the result of the first call, in numpy
    is_right      whether the oracle finds that result correct, as far as it can decide; fault: its sentence if not
    interruption  raises in the case, if the call runs the case and was prepared for that
    """

    setting: Setting
    operator: Operator
    call: Call
    interruption: Interruption = field(default_factory=Interruption)
    base: Any = None
    is_right: bool = True
    fault: str = ""

    def __post_init__(self) -> None:
        self._judge = Judge(self.setting.backend, self.operator, self.call)
        self.base = self.result(self.native())
        if self.setting.judges(self.operator):
            self.fault = self._judged(self.base)
            self.is_right = not self.fault

    @property
    def wrt(self) -> tuple[int, ...]:
        """The positions of the active inputs."""
        return self.setting.at.wrt

    @property
    def args(self) -> Args:
        """The arguments here, in numpy: the inputs, and the vector if any."""
        return (*self.setting.at.args, *self.setting.at.vector(self.operator))

    def with_vector(self, vector: Args) -> Args:
        """The native arguments here with another vector."""
        return self.setting.native((*self.setting.at.args, *vector))

    def native(self) -> Args:
        """The arguments here, native."""
        return self.setting.native(self.args)

    def there(self) -> Args:
        """Other arguments, with another vector too. Raises NotApplicable without others."""
        return self.setting.native((*self.setting.there.args, *self.setting.general(self.operator)))

    def somewhere(self) -> Args:
        """Other arguments, or else those here."""
        try:
            return self.there()
        except NotApplicable:
            return self.native()

    def result(self, native: Args) -> Any:
        """The call's result in numpy."""
        return self.setting.numpy(self.call(*native))

    def faults(self, what: str, native: Args) -> Iterator[str]:
        """A sentence that begins with `what` if the call is wrong at these arguments, which equal those here."""
        if differs := self.disagreement(self.result(native)):
            yield f"{what}: {differs}"

    def disagreement(self, got: Any, expected: Any = None, sizes: Any = None) -> str:
        """Why the result is wrong; "" if it has the same numbers as the first one, or as `expected`.

        Different numbers are correct too if the oracle accepts them, because rounding may differ.
        """
        of_base = expected is None or expected is self.base
        noise = self.setting.noise(self.operator)
        differs = difference(got, self.base if of_base else expected, noise, sizes)
        if differs and of_base and self.is_right and self.setting.judges(self.operator):
            return self._judged(got)
        return differs

    def _judged(self, result: Any) -> str:
        """The sentence of a wrong verdict; "" for any other."""
        verdict = self._judge.judged(self.setting.at, result, self.setting.known)
        return verdict.sentence if verdict.word == "wrong" else ""


def prepared(setting: Setting, operator: Operator, *, again: bool = False) -> PreparedSubject:
    """The backend's own operator, prepared and called here. Raises Unsupported, and what the library raises.

    again   prepare it even if it is already prepared
    """
    if operator in setting.kept and not again:
        call, interruption = setting.kept[operator]
        return PreparedSubject(setting, operator, call, interruption)
    interruption = Interruption()
    elsewhere = (*setting.case.bind_prepared(setting.size, setting.seed), *setting.at.vector(operator))
    call = setting.prepare(operator, setting.native(elsewhere), setting.at.wrt, interruption)
    with suppress(NotApplicable):  # a library that records at its first call then records there
        setting.numpy(call(*setting.native((*setting.there.args, *setting.at.vector(operator)))))
    return PreparedSubject(setting, operator, call, interruption)


def combined(function: Callable[..., Any], *trees: Any) -> Any:
    """function(leaf, leaf, …) in the structure of the first tree."""
    return tree.filled(trees[0], [function(*each) for each in zip(*map(tree.leaves, trees), strict=True)])


def described(error: Exception) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _shapes(args: Args) -> list[Any]:
    """Shapes of the leaves, and the static leaves: `prepare` may depend on them."""
    return [leaf if tree.is_static(leaf) else np.shape(leaf) for leaf in tree.leaves(args)]
