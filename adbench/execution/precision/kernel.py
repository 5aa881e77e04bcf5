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
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import optree

from adbench.catalog.ad_hoc import AdHoc
from adbench.catalog.selection import resolve
from adbench.execution.operators.prepared_point import CasePoint, PointReferences, examined, point
from adbench.execution.operators.references import known_at, lost_digits_at, subject_of
from adbench.execution.precision.called_kernel import CalledKernel, Numbers, Ran, guarded, with_outputs
from adbench.execution.precision.given import in_numpy, lowest_of, placed
from adbench.execution.precision.measured import Measured
from adbench.functions.derivative_table import CheckedMode, FunctionCheck
from adbench.functions.libraries import (
    LIBRARIES,
    OF_BACKENDS,
    Library,
    double_precision,
    library_name_of_value,
    own_settings,
)
from adbench.functions.low_precision import Low
from adbench.functions.points import points_inside
from adbench.functions.recognition import library_of
from adbench.functions.user_arguments import Arguments, Leaf, Wrt, arguments_of, name_of
from adbench.functions.user_function import UserFunction, function_case, told
from adbench.model import tree
from adbench.model.case import Case
from adbench.model.errors import Unsupported, UsageError, contained
from adbench.model.settings import PROCESSOR
from adbench.oracle.compute import value_reference
from adbench.oracle.evidence import DOUBLE, EntryEvidence
from adbench.oracle.leaves import random_weights
from adbench.oracle.subject import Effort
from adbench.oracle.verdict import Verdict

MOST_PROVED = 4_000
"""More numbers than this in the arguments are too many for a proof in seconds."""

BITS = 7
"""Of the random cotangents, which are numbers of every type. Their products with its numbers are exact in float64."""

STRIDED = "strided inputs"
TOO_LARGE = f"it takes more than {MOST_PROVED:,} numbers, too many for a proof"


class KernelCheck:
    """One check of a kernel at its arguments: `table` runs it.

    wrt       the active arguments, by default all floating-point ones
    seconds   for each reference
    device    to copy the arrays and tensors to; "cpu": they stay where they are

    Raises UsageError if kernel and definition take or return something else.
    """

    def __init__(
        self,
        kernel: Callable[..., Any],
        definition: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        wrt: Wrt,
        seed: int,
        seconds: float,
        device: str = PROCESSOR,
    ) -> None:
        self.name, self.seed, self.seconds = name_of(kernel), seed, seconds
        self.rows, self.values, self.notes = list[CheckedMode](), list[CheckedMode](), list[str]()
        self._settings = own_settings()
        with double_precision():
            if device != PROCESSOR:
                args, kwargs = self._placed(kernel, args, kwargs, device)
            plain = [_plain(arg) for arg in args], {name: _plain(arg) for name, arg in kwargs.items()}
            takes_tensors = library_of(definition, *plain).name in ("torch", "jax")
            own = (args, kwargs) if takes_tensors else plain
            self.case = function_case(definition, *own, wrt, seed=seed)
            self.f = _user_function(self.case)
            rng, shape = np.random.default_rng([seed, 0x6B]), self.f.shape
            self.weights: Any = random_weights(rng, shape, BITS) if shape else 1.0
            self.kernel, low = self._called(kernel, args, kwargs, wrt)
            named = (args, kwargs) if self.f.library.name in ("torch", "jax") else own  # if its text names no library
            self.definition = self._in_own_type(definition, *named, wrt)
            self.gradient_case = self.case
            if self.f.shape:
                self.gradient_case = function_case(_total_of(definition, self.weights, self.f), *own, wrt, seed=seed)
            if low is not None:
                in_types = replace(self.kernel.arguments, names=self.f.arguments.names)
                for f in (self.f, _user_function(self.gradient_case)):
                    f.keep_types(in_types, low)

    def table(self, points: int) -> FunctionCheck:
        """The value and the gradient at each point, at the first also with strided inputs and in further calls."""
        with double_precision():
            numbers, outside = points_inside(self.case, 0, points)
            for number in numbers:
                self._at_point(number)
        made = FunctionCheck.of(
            self.f,
            outside,
            self.notes,
            backend=self.kernel.backend.name,
            library=LIBRARIES[self.kernel.backend.library].title,
            rows=tuple(self.rows),
            values=tuple(self.values),
            missing=points - len(numbers),
        )
        return replace(made, function=f"{self.name} against {self.f.__name__}")

    def _library(self, kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Library:
        every: Any = [*args, *kwargs.values()]
        names = set(map(library_name_of_value, optree.tree_leaves(every)))
        library = next((LIBRARIES[name] for name in OF_BACKENDS if name in names), library_of(kernel, args, kwargs))
        if not library.keeps_types:
            raise UsageError(f"{self.name} is written for {library.name}; pass arrays of torch or jax to a kernel")
        return library

    def _placed(self, kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any], device: str) -> Any:
        """The arguments on this device of the kernel's library. Raises UsageError if it sees none."""
        from adbench.execution.operators.on_device import NoDevice, loaded
        from adbench.execution.workers.resident_worker import no_device

        library = self._library(kernel, args, kwargs)
        try:
            backend = loaded(resolve(backends=[library.backend]).catalog.backends[library.backend], device, "outside")
        except NoDevice as absent:
            raise no_device({library.backend: str(absent)}) from absent
        return placed(args, kwargs, library.name, backend)

    def _called(
        self, kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any], wrt: Wrt
    ) -> tuple[CalledKernel, Low | None]:
        """The kernel, and the lowest type of its arguments and its result."""
        library = self._library(kernel, args, kwargs)
        arguments = arguments_of(kernel, args, kwargs, wrt, double=False)
        self._refuse_other_arguments(arguments)
        whole = [name for name, given in zip(arguments.names, arguments.given, strict=True) if _is_whole(given)]
        if whole:
            integers = f"{', '.join(whole)} {'holds' if len(whole) == 1 else 'hold'} integers, which have no derivative"
            raise UsageError(f"{self.name}: {integers}; pass floating-point numbers")
        native = [guarded(library.name, *pair, False) for pair in zip(arguments.values, arguments.given, strict=True)]
        with self._settings():
            arguments, value = with_outputs(self.name, library.name, arguments, native)
        result = in_numpy(value)
        kinds = [bool(parts and parts.complex) for parts in (arguments.outputs, self.f.arguments.outputs)]
        if kinds[0] != kinds[1]:
            mine, other = ("complex" if kind else "real" for kind in kinds)
            raise UsageError(
                f"{self.name} returns {mine} numbers, its definition {self.f.__name__} {other} ones; "
                "both must return the same"
            )
        if np.shape(result) != self.f.shape:
            raise UsageError(
                f"{self.name} returns the shape {np.shape(result)}, its definition {self.f.__name__} {self.f.shape}; "
                "both must return the same"
            )
        return CalledKernel.of(library, arguments, self._settings), lowest_of(arguments, value)

    def _refuse_other_arguments(self, arguments: Arguments) -> None:
        theirs = self.f.arguments
        shapes = [[np.shape(value) for value in each.values] for each in (arguments, theirs)]
        if shapes[0] != shapes[1] or len(arguments.active) != len(theirs.active):
            raise UsageError(
                f"{self.name} takes {', '.join(arguments.active)}, its definition {', '.join(theirs.active)}; both "
                "must take the same arguments in the same order"
            )

    def _in_own_type(
        self, definition: Any, args: Sequence[Any], kwargs: Mapping[str, Any], wrt: Wrt
    ) -> CalledKernel | None:
        """The definition in the kernel's types, if it is written for the kernel's library."""
        if self.f.library.name != self.kernel.backend.library:
            return None
        arguments = arguments_of(definition, args, kwargs, wrt, double=False)
        arguments = replace(arguments, outputs=self.f.arguments.outputs)
        return CalledKernel.of(self.f.library, arguments, self._settings)

    def _at_point(self, number: int) -> None:
        where = self.f.point_name(number)
        at, of_sum = point(self.case, 1, number), point(self.gradient_case, 1, number)
        leaves = [np.asarray(arg) if np.ndim(arg) else arg for arg in at.args]
        truth = self._truth(at, of_sum, leaves)
        beside: Numbers | None = None
        if self.definition is not None:
            with suppress(Exception), contained(), np.errstate(all="ignore"):  # it need not run in these types
                beside = self.definition.run(leaves, self.weights).numbers
        ran = self._judge(where, truth, leaves, beside, strided=False)
        if isinstance(truth, _Proved) and self.rows[-1].loses_digits and self.f.precision is not DOUBLE:
            self.notes.extend(lost_digits_at(of_sum, truth.sums, self.seconds))
        if ran is not None and not number:
            self._call_again(where, leaves, ran)
            if self.kernel.backend.library == "torch" and any(map(np.ndim, leaves)):
                self._judge(STRIDED, truth, leaves, beside, strided=True)

    def _judge(
        self, where: str, truth: Measured | _Proved, leaves: Sequence[Leaf], beside: Numbers | None, *, strided: bool
    ) -> Ran | None:
        """Add the rows of one call. Returns what it gave, or None if the kernel refuses these inputs."""
        try:
            with contained(), np.errstate(all="ignore"):
                ran = self.kernel.run(leaves, self.weights, strided)
        except Exception as error:  # raised by the kernel; many refuse strided inputs
            if not (strided or isinstance(error, Unsupported | NotImplementedError)):
                raise UsageError(f"{self.name} raises {told(error)}") from error
            self.rows.append(CheckedMode("gradient", where, None, reason=told(error)))
            return None
        if changed := self._changed(leaves, ran):
            self.rows.append(CheckedMode.wrong("gradient", where, f"the kernel changes its argument {changed}"))
        self.values.append(truth.row("value", where, ran.numbers, beside))
        self.rows.append(truth.row("gradient", where, ran.numbers, beside))
        return ran

    def _truth(self, at: CasePoint, of_sum: CasePoint, leaves: Sequence[Leaf]) -> Measured | _Proved:
        reason, precision = TOO_LARGE, self.f.precision
        if sum(map(np.size, leaves)) <= MOST_PROVED:
            known = known_at(of_sum, second_order=False, seconds=self.seconds)
            effort = Effort(self.seed, max_outputs=64, max_seconds=self.seconds, precision=precision)
            values = known.first if not self.f.shape else value_reference(subject_of(at), effort)
            if known.first.is_proved and values.is_proved:
                return _Proved(at, of_sum, PointReferences(values), known)
            reason = known.first.all_outputs.reason or values.all_outputs.reason
        advice = "check it at fewer numbers"
        if precision is not DOUBLE:
            try:
                measured = Measured.of(self.f, self.definition, leaves, self.weights, self.seed, reason)
                self.notes.extend(filter(None, [measured.proof]))
                return measured
            except Unsupported as refusal:
                reason, advice = f"{reason}; {refusal}", "write it for the kernel's library"
        raise UsageError(f"the definition {self.f.__name__} is not proved ({reason}); {advice}, or of known operations")

    def _changed(self, leaves: Sequence[Leaf], ran: Ran) -> str:
        """The name of an argument that the kernel changed, or ""."""
        pairs = zip(self.kernel.arguments.names, leaves, ran.arguments, strict=True)
        return next((name for name, leaf, now in pairs if not np.array_equal(in_numpy(now), leaf, equal_nan=True)), "")

    def _call_again(self, where: str, leaves: Sequence[Leaf], first: Ran) -> None:
        """Call the kernel at other numbers and again at these: it must give the same, and keep what it returned."""
        with suppress(Exception), contained(), np.errstate(all="ignore"):  # half of each may be outside its domain
            self.kernel.run([leaf * 0.5 for leaf in leaves], self.weights)
        try:
            with contained(), np.errstate(all="ignore"):
                again = self.kernel.run(leaves, self.weights)
        except Exception as error:  # the kernel may raise anything; its first call did not
            self.rows.append(CheckedMode.wrong("gradient", where, f"a later call of the kernel raises {told(error)}"))
            return
        if not tree.are_equal(first.numbers, first.now):
            sentence = "a later call of the kernel overwrites the result of an earlier one"
            self.rows.append(CheckedMode.wrong("gradient", where, sentence))
        if not tree.are_equal(first.numbers, again.numbers):
            with np.errstate(all="ignore"):
                errors = [
                    np.abs(a - b) / self.f.precision.ulps(b) for a, b in zip(again.numbers, first.numbers, strict=True)
                ]
            apart = max(float(np.max(each, initial=0.0)) for each in errors)
            self.notes.append(f"two calls at the same numbers differ by up to {apart:.3g} ulp")


@dataclass(frozen=True)
class _Proved:
    """Proved references of the values, and of the gradient of their sum with random weights."""

    at: CasePoint
    of_sum: CasePoint
    values: PointReferences
    sums: PointReferences

    def row(self, mode: str, where: str, got: Numbers, beside: Numbers | None) -> CheckedMode:
        """The row of the value or of the gradient, with the numbers of the definition in the kernel's type."""

        def judged(numbers: Numbers) -> tuple[Verdict, tuple[EntryEvidence, ...]]:
            if mode == "value":
                return examined(self.at, mode, numbers[0], self.values, None)
            return examined(self.of_sum, mode, numbers[1:], self.sums, None)

        verdict, entries = judged(got)
        rivals = {} if beside is None else {entry.place: entry.got for entry in judged(beside)[1]}
        return CheckedMode(mode, where, verdict, entries, "native", beside=rivals)


def _plain(arg: Any) -> Any:
    """An argument with its tensors and jax arrays in numpy."""

    def plain(leaf: Any) -> Any:
        return in_numpy(leaf) if hasattr(leaf, "dtype") and library_name_of_value(leaf) else leaf

    return optree.tree_map(plain, arg)


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


def _is_whole(given: Any) -> bool:
    """Whether it is an integer or an array of integers."""
    return "int" in str(getattr(given, "dtype", type(given).__name__))


def kernel_checks(
    named: AdHoc, definition: str, sizes: Sequence[str], points: int, seed: int, seconds: float, device: str
) -> list[FunctionCheck]:
    """The check of the kernel for each size, for which `named.inputs` makes the arguments; one check without them.

    Raises UsageError in one line for a fault in the kernel, the definition or the arguments, and without the device.
    """
    tables = []
    with contained():
        numbers, arguments = named.sizes_of(sizes), named.arguments_by_size()
        kernel, reference = named.function(), named.named(definition, "--definition")
        for size in numbers:
            check = KernelCheck(kernel, reference, *arguments(size), named.wrt or None, seed, seconds, device)
            tables.append(check.table(points))
    return tables
