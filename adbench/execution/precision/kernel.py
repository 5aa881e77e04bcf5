"""A kernel against its definition: the truth comes from the one, the judged result from the other.

The definition is code that the oracle translates. Where its gradient at the exact numbers is proved, rounding explains
what random roundings of its operations give. Where it is too large for that, the truth is the definition's gradient in
float64 by its library, held against differences of its values, and rounding explains the errors that the library makes
with the definition in the kernel's precision, measured at inputs a rounding apart.

Arrays of inputs lie in memory between NaN, so that a kernel that reads beyond an array, for want of a mask, shows it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import optree
from numpy.typing import NDArray

from adbench.execution.operators.prepared_point import CasePoint, PointReferences, examined, point
from adbench.execution.operators.references import known_at, subject_of
from adbench.execution.precision.called_kernel import CalledKernel, guarded
from adbench.execution.precision.given import (
    LIBRARIES,
    InGivenPrecision,
    Settings,
    in_numpy,
    lowest_of,
    precision_of,
)
from adbench.execution.precision.measured import Measured
from adbench.functions.derivative_table import CheckedMode, FunctionCheck
from adbench.functions.libraries import library_name_of_value
from adbench.functions.outputs import outputs_of
from adbench.functions.points import points_inside
from adbench.functions.recognition import library_of
from adbench.functions.user_arguments import Leaf, Wrt, arguments_of, name_of
from adbench.functions.user_function import UserFunction, function_case, told
from adbench.model.backend import Backend
from adbench.model.case import Case
from adbench.model.errors import Unsupported, UsageError, contained
from adbench.oracle.compute import value_reference
from adbench.oracle.evidence import Precision, lowest
from adbench.oracle.subject import Effort

MOST_PROVED = 4_000
"""More numbers than this in the arguments are too many for a proof in seconds."""

BITS = 7
"""Of the random cotangents, which are numbers of every type. Their products with its numbers are exact in float64."""

STRIDED = "strided inputs"
Loader = Callable[[str], Backend]


def weights_of(shape: tuple[int, ...], seed: int) -> Any:
    """A random cotangent: signs times odd multiples of 2^-7 between 1/2 and 1; 1 for a number."""
    if not shape:
        return 1.0
    rng, most = np.random.default_rng([seed, 0x6B]), 1 << BITS
    signs = 2.0 * rng.integers(0, 2, shape) - 1.0
    return signs * (2.0 * rng.integers(most // 4, most // 2, shape) + 1.0) / most


def check_kernel(
    kernel: Callable[..., Any],
    definition: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    wrt: Wrt,
    seed: int,
    points: int,
    seconds: float,
    settings: Settings,
    load: Loader,
) -> FunctionCheck:
    """The table of a kernel: its value and its gradient at each point, then with strided inputs.

    load   name -> backend

    Raises UsageError if the two take or return something else.
    """
    checked = _Check(kernel, definition, args, kwargs, wrt, seed, seconds, settings, load)
    numbers, outside = points_inside(checked.case, 0, points)
    for number in numbers:
        checked.at_point(number)
    return checked.table(outside, points - len(numbers))


class _Check:
    """One check of a kernel; `rows` and `values` grow."""

    def __init__(
        self,
        kernel: Callable[..., Any],
        definition: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        wrt: Wrt,
        seed: int,
        seconds: float,
        settings: Settings,
        load: Loader,
    ) -> None:
        self.seed, self.seconds, self.rows, self.values = seed, seconds, list[CheckedMode](), list[CheckedMode]()
        self.notes: list[str] = []
        plain = [_plain(arg) for arg in args], {name: _plain(arg) for name, arg in kwargs.items()}
        is_plain = library_of(definition, *plain).name in ("numpy", "xp", "autograd")
        self.own = plain if is_plain else (list(args), dict(kwargs))
        self.definition, self.wrt = definition, wrt
        self.case = function_case(definition, *self.own, wrt, seed=seed)
        self.f = _user_function(self.case)
        self.weights = weights_of(self.f.shape, seed)
        self.kernel = self._kernel(kernel, args, kwargs, settings, load)
        self._same_arguments()
        low = lowest_of(self.kernel.arguments)
        renamed = replace(self.kernel.arguments, names=self.f.arguments.names)
        self.gradient_case = self.case
        if self.f.shape:
            total = _total_of(definition, self.weights, self.f)
            self.gradient_case = function_case(total, *self.own, wrt, seed=seed)
        for f in (self.f, _user_function(self.gradient_case)):
            if low is not None:
                f.keep_types(renamed, low)
        self.name = f"{name_of(kernel)} against {name_of(definition)}"
        self.rival = self._rival(settings, load)

    def _kernel(
        self, kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any], settings: Settings, load: Loader
    ) -> CalledKernel:
        every: Any = [*args, *kwargs.values()]
        names = set(map(library_name_of_value, optree.tree_leaves(every)))
        library = next((name for name in LIBRARIES if name in names), library_of(kernel, args, kwargs).name)
        if library not in LIBRARIES:
            raise UsageError(f"{name_of(kernel)} is written for {library}; pass arrays of torch or jax to a kernel")
        from adbench.functions.libraries import LIBRARIES as ROWS

        arguments = arguments_of(kernel, args, kwargs, self.wrt, double=False)
        wrt = tuple(arguments.names.index(name) for name in arguments.active)
        made = CalledKernel(
            arguments, InGivenPrecision.of(load(ROWS[library].backend), ROWS[library], arguments, settings), wrt
        )
        with contained(), settings():
            native = [guarded(library, *pair, False) for pair in zip(arguments.values, arguments.given, strict=True)]
            try:
                value = arguments.call(native)
            except Exception as error:
                raise UsageError(f"{name_of(kernel)} raises {told(error)}") from error
        outputs = outputs_of(value, None, library, name_of(kernel))
        if outputs is not None:
            arguments = replace(arguments, outputs=outputs)
            made = replace(made, arguments=arguments, backend=replace(made.backend, arguments=arguments))
            value = outputs.of(value)
        if tuple(np.shape(in_numpy(value))) != self.f.shape:
            raise UsageError(
                f"{name_of(kernel)} returns the shape {tuple(np.shape(in_numpy(value)))}, its definition "
                f"{name_of(self.definition)} {self.f.shape}; both must return the same"
            )
        if tuple(np.shape(in_numpy(value))) and np.iscomplexobj(in_numpy(value)):
            raise UsageError(f"{name_of(kernel)} returns complex numbers; return real ones")
        self.result_type = precision_of(value)
        return made

    def _same_arguments(self) -> None:
        mine, theirs = self.kernel.arguments, self.f.arguments
        shapes = [[np.shape(value) for value in each.values] for each in (mine, theirs)]
        if shapes[0] != shapes[1] or len(mine.active) != len(theirs.active):
            raise UsageError(
                f"the kernel takes {', '.join(mine.active)}, its definition {', '.join(theirs.active)}; both must take "
                "the same arguments in the same order"
            )

    def _rival(self, settings: Settings, load: Loader) -> CalledKernel | None:
        """The definition in the kernel's precision by its own library, if that can."""
        if self.f.library.name not in LIBRARIES or self.f.library.name != self.kernel.backend.library:
            return None
        arguments = arguments_of(self.definition, *self.own, self.wrt, double=False)
        arguments = replace(arguments, outputs=self.f.arguments.outputs)
        backend = InGivenPrecision.of(load(self.f.library.backend), self.f.library, arguments, settings)
        return CalledKernel(arguments, backend, self.kernel.wrt)

    @property
    def precision(self) -> Precision:
        """The arithmetic by which the kernel is judged: the lowest of its arguments and of its result."""
        return lowest(self.f.precision, self.result_type)

    def at_point(self, number: int) -> None:
        """Check the value and the gradient at this point; at the first also with strided inputs, and the calls."""
        where = self.f.point_name(number)
        at, of_sum = point(self.case, 1, number), point(self.gradient_case, 1, number)
        leaves = [np.asarray(arg) if np.ndim(arg) else arg for arg in at.args]
        truth = self._truth(at, of_sum, leaves)
        beside = self._numbers(self.rival, leaves) if self.rival is not None else None
        variants = [(where, False)]
        if not number and any(np.ndim(leaf) for leaf in leaves) and self.kernel.backend.library == "torch":
            variants.append((STRIDED, True))
        for place, strided in variants:
            try:
                with contained(), np.errstate(all="ignore"):
                    value, gradient, after = self.kernel.run(leaves, self.weights, strided)
            except (Unsupported, NotImplementedError) as refusal:
                self.rows.append(CheckedMode("gradient", place, None, reason=str(refusal)))
                continue
            except Exception as error:
                if strided:  # many kernels refuse them, and say so
                    self.rows.append(CheckedMode("gradient", place, None, reason=told(error)))
                    continue
                raise UsageError(f"{self.name.partition(' ')[0]} raises {told(error)}") from error
            if changed := self._changed(leaves, after):
                self.rows.append(CheckedMode.wrong("gradient", place, f"the kernel changes its argument {changed}"))
            numbers = in_numpy(value), tuple(map(in_numpy, gradient))
            self.values.append(truth.value(place, numbers[0], beside and beside[0]))
            self.rows.append(truth.gradient(place, numbers[1], beside and beside[1]))
            if not number and not strided:
                self._again(leaves, (value, gradient), numbers)

    def _truth(self, at: CasePoint, of_sum: CasePoint, leaves: Sequence[Leaf]) -> Measured | _Proved:
        sizes = sum(np.size(leaf) for leaf in leaves)
        if sizes <= MOST_PROVED:
            known = known_at(of_sum, second_order=False, seconds=self.seconds)
            if known.first.is_proved:
                effort = Effort(self.seed, max_outputs=64, max_seconds=self.seconds, precision=self.precision)
                values = known.first if not self.f.shape else value_reference(subject_of(at), effort)
                if values.is_proved:
                    return _Proved(at, of_sum, PointReferences(values), known)
        if self.rival is None:
            raise UsageError(
                f"the definition {name_of(self.definition)} is too large to be proved, or is not translated; write it "
                "for the kernel's own library, which then computes its gradient in float64"
            )
        return Measured.of(self.f, self.rival, leaves, self.weights, self.precision, self.seed)

    def _numbers(self, kernel: CalledKernel, leaves: Sequence[Leaf]) -> tuple[Any, tuple[Any, ...]] | None:
        """The value and the gradient of a kernel in numpy; None if it fails."""
        try:
            with contained(), np.errstate(all="ignore"):
                value, gradient, _ = kernel.run(leaves, self.weights)
        except Exception:  # the definition need not run in the kernel's precision
            return None
        return in_numpy(value), tuple(map(in_numpy, gradient))

    def _changed(self, leaves: Sequence[Leaf], after: Sequence[Any]) -> str:
        """The name of an argument that the kernel changed, or ""."""
        pairs = zip(self.kernel.arguments.names, leaves, after, strict=True)
        return next((name for name, leaf, now in pairs if not np.array_equal(in_numpy(now), leaf, equal_nan=True)), "")

    def _again(self, leaves: Sequence[Leaf], results: tuple[Any, Any], numbers: tuple[Any, tuple[Any, ...]]) -> None:
        """Call the kernel at other numbers and again at these: it must give the same, and keep what it returned."""
        with contained(), np.errstate(all="ignore"):
            self.kernel.run([leaf * 0.5 for leaf in leaves], self.weights)
        kept = in_numpy(results[0]), tuple(map(in_numpy, results[1]))
        if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(_flat(kept), _flat(numbers), strict=True)):
            sentence = "a later call of the kernel overwrites the result of an earlier one"
            self.rows.append(CheckedMode.wrong("gradient", self.f.point_name(0), sentence))
        again = self._numbers(self.kernel, leaves)
        if again is None:
            return
        errors = (np.abs(a - b) / self.precision.ulps(b) for a, b in zip(_flat(again), _flat(numbers), strict=True))
        apart = max(float(np.max(each, initial=0.0)) for each in errors)
        if apart > 0:
            self.notes.append(f"two calls at the same numbers differ by up to {apart:.3g} ulp")

    def table(self, outside: Sequence[int], missing: int) -> FunctionCheck:
        """The result."""
        f = self.f
        f.__name__ = self.name
        return FunctionCheck.of(
            f,
            outside,
            self.notes,
            backend=self.kernel.backend.name,
            library=self.kernel.backend.library,
            rows=tuple(self.rows),
            values=tuple(self.values),
            missing=missing,
        )


@dataclass(frozen=True)
class _Proved:
    """Proved references of the values, and of the gradient of their sum with random weights."""

    at: CasePoint
    of_sum: CasePoint
    values: PointReferences
    sums: PointReferences

    def value(self, where: str, got: Any, beside: Any) -> CheckedMode:
        """The row of the value."""
        return self._row(self.at, "value", where, got, self.values, beside)

    def gradient(self, where: str, got: tuple[Any, ...], beside: Any) -> CheckedMode:
        """The row of the gradient."""
        return self._row(self.of_sum, "gradient", where, got, self.sums, beside)

    @staticmethod
    def _row(at: CasePoint, mode: str, where: str, got: Any, known: PointReferences, beside: Any) -> CheckedMode:
        verdict, entries = examined(at, mode, got, known, None)
        rivals = {} if beside is None else {e.place: e.got for e in examined(at, mode, beside, known, None)[1]}
        return CheckedMode(mode, where, verdict, entries, "native", beside=rivals)


def _plain(arg: Any) -> Any:
    """An argument with its tensors and jax arrays in numpy."""
    return optree.tree_map(lambda leaf: np.asarray(in_numpy(leaf)) if library_name_of_value(leaf) else leaf, arg)


def _user_function(case: Case) -> UserFunction:
    assert isinstance(case.f, UserFunction)
    return case.f


def _total_of(definition: Callable[..., Any], weights: Any, f: UserFunction) -> Callable[..., Any]:
    """The sum of the definition's results with these weights, in its library."""
    outputs = f.arguments.outputs
    own = importlib.import_module("torch").as_tensor(weights) if f.library.name == "torch" else weights

    def total(*args: Any, **kwargs: Any) -> Any:
        value = definition(*args, **kwargs)
        return ((value if outputs is None else outputs.of(value)) * own).sum()

    total.__wrapped__ = definition  # type: ignore[attr-defined]  # for its signature
    total.__name__ = total.__qualname__ = name_of(definition)
    return total


def _flat(results: tuple[Any, tuple[Any, ...]]) -> list[NDArray[np.float64]]:
    return [np.asarray(part, dtype=np.float64) for part in (results[0], *results[1])]
