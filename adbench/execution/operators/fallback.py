"""Fallbacks: operators that a library lacks, computed from those it has, and labelled.

The file of each operator (adbench/model/operator) has its ways. One of `jvp` and `vjp` is enough for first order, one
of `hvp`, `hessian` and the compositions of two modes for second. If the case declares the Jacobian's pattern, groups of
columns that share no row are computed together (colouring.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from adbench.catalog.discovery import first_line
from adbench.catalog.installed import installed_version
from adbench.execution.operators import many_points
from adbench.execution.operators.compositions import composed
from adbench.measure import clock
from adbench.model import tree
from adbench.model.backend import Backend, Call
from adbench.model.case import function_of
from adbench.model.combining import Here, Shape
from adbench.model.errors import Unsupported
from adbench.model.namespace import Namespace
from adbench.model.operator import BATCH, COMPOSITIONS, TRANSFORMS, WITH_VECTOR, Operator, definition

NATIVE = "native"
LOOP = "from gradient in a loop"
OF_A_MODULE = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")


@dataclass(frozen=True)
class Prepared:
    """A prepared operator: `call(*args)`, and `how`: "native", or "from …" with the operators it is computed from."""

    call: Call
    how: str


def prepare(
    backend: Backend, operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Prepared:
    """The backend's operator, or a fallback; see `OperatorRequest.prepared`."""
    return OperatorRequest(backend, operator, f, args, wrt).prepared()


@dataclass(frozen=True)
class FirstCall:
    """A prepared operator and its first call: the native result, and the nanoseconds of both steps."""

    prepared: Prepared
    prepare_ns: int
    result: Any
    call_ns: int


def refusal_in_call(error: Exception, made: Prepared | None) -> Exception | None:
    """The reason why a library lacks its own operator, if it refuses only in the call; `made` is None before."""
    is_refusal = isinstance(error, Unsupported | NotImplementedError | AttributeError)
    return lacking(error) if is_refusal and made is not None and made.how == NATIVE else None


def lacking(refusal: Exception) -> Exception:
    """The refusal as Unsupported; for a module's AttributeError, it names the installed version that lacks the
    function.

    Raises any other AttributeError again, because it is a fault.
    """
    if isinstance(refusal, Unsupported) or not isinstance(refusal, AttributeError):
        return refusal
    match = OF_A_MODULE.match(str(refusal))
    if match is None:
        raise refusal
    module, name = match.groups()
    version = installed_version(module.partition(".")[0])
    installed = f" in the installed version {version}" if version else ""
    return Unsupported(f"{module} has no {name}{installed}")


_REFUSED: dict[Hashable, Unsupported] = {}
"""Operator at inputs -> why the backend refused it, for the life of a worker."""


@dataclass(frozen=True)
class OperatorRequest:
    """A request for an operator of a backend, prepared at `args`."""

    backend: Backend
    operator: Operator
    f: Callable[..., Any]
    args: tuple[Any, ...]
    wrt: tuple[int, ...]

    def prepared(self) -> Prepared:
        """The backend's operator, or a fallback from its other operators. Compositions have no fallback.

        A Jacobian with a declared pattern takes as few directions as the pattern allows, unless the backend uses the
        pattern itself.

        Raises Unsupported with the backend's reason if neither works.
        """
        backend, operator = self.backend, self.operator
        if operator == BATCH and not backend.batched and not self.is_array_valued:
            return self._looped()
        if self.is_array_valued and not definition(operator).of_arrays:
            raise Unsupported(f"an array-valued function has no {operator}; use jacobian, jvp or vjp")
        if operator in COMPOSITIONS:
            try:
                return Prepared(composed(backend, operator, self.f, self.args, self.wrt), NATIVE)
            except AttributeError as error:
                raise lacking(error) from error
        if operator == "jacobian" and not backend.sparse_jacobian and getattr(self.f, "sparsity", None) is not None:
            with suppress(Unsupported):
                return self._coloured()
        try:
            return Prepared(self.own(operator, self.args), NATIVE)
        except Unsupported as refusal:
            return self.instead(refusal)

    def instead(self, refusal: Exception, *, by_modes: bool = False) -> Prepared:
        """The operator from the first fallback that works with the backend; raises `refusal` if none does.

        by_modes   also from compositions of two modes
        """
        if self.operator == BATCH:
            return self._looped()
        defined, shape = definition(self.operator), self.shape
        ways = defined.fallbacks_of_arrays if self.is_array_valued else defined.fallbacks
        further = defined.fallbacks_by_modes if by_modes and not self.is_array_valued else ()
        for needed, make in (*ways, *further):
            try:
                calls = {part: self.part(part) for part in sorted(needed, key="value".__eq__)}  # refusals first
            except (Unsupported, NotImplementedError):
                continue
            return Prepared(self._composed(calls, make, shape), f"from {' and '.join(needed)}")
        raise refusal

    def instead_of_call(self, refusal: Exception) -> Prepared:
        """`instead` after a refusal in a call. It calls the operators of the fallback once: they may refuse there
        too."""
        backend = self.backend

        def prepare(*asked: Any) -> Call:
            try:
                call = backend.prepare(*asked)
                backend.waited(call(*asked[2]))
            except Exception as error:  # raised by the library, or by the function in this mode
                raise Unsupported(f"{type(error).__name__}: {first_line(error)}") from error
            return call

        return replace(self, backend=replace(backend, prepare=prepare)).instead(refusal, by_modes=True)

    def first_call(
        self,
        native: tuple[Any, ...],
        refusal: Callable[[Exception, Prepared | None], Exception | None] = refusal_in_call,
    ) -> FirstCall:
        """Prepare and call once at `native`, both timed; after a refusal, by the fallback.

        refusal   refusal(error, made) -> the reason why the library lacks the operator; None for an error to be raised
        """
        made, sync = None, self.backend.sync
        try:
            made, prepare_ns = clock.once(self.prepared)
            result, call_ns = clock.once(clock.bind(made.call, native, sync))
        except Exception as error:  # raised by the library, or by the function in this mode
            reason = refusal(error, made)
            if reason is None:
                raise
            made, prepare_ns = clock.once(partial(self.instead_of_call, reason))
            result, call_ns = clock.once(clock.bind(made.call, native, sync))
        return FirstCall(made, prepare_ns, result, call_ns)

    @property
    def inputs(self) -> int:
        """The number of the function's arguments; the operator's vector, if any, comes after them."""
        return len(self.args) - (self.operator in WITH_VECTOR)

    @property
    def is_array_valued(self) -> bool:
        """Whether the function's case is array-valued."""
        case = getattr(self.f, "case", None)
        return case is not None and case.is_array_valued

    @cached_property
    def shape(self) -> Shape:
        """The shape of the value, from the case on plain numpy. Raises Unsupported if that fails."""
        if not self.is_array_valued:
            return ()
        plain = function_of(self.f.case, self.f.names, Namespace(np))  # type: ignore[attr-defined]  # see `function_of`
        inputs = self.args[: self.inputs]
        numbers = tree.map_leaves(lambda leaf: leaf if tree.is_static(leaf) else self.backend.to_numpy(leaf), inputs)
        try:
            return np.shape(plain(*numbers))
        except Exception as error:
            raise Unsupported(f"the shape of its value is unknown; it does not run on numpy: {error}") from error

    def active(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The active arguments, in numpy."""
        return tuple(self.backend.numpy_result(args[i]) for i in self.wrt)

    def own(self, operator: Operator, args: tuple[Any, ...]) -> Call:
        """The backend's operator. A refusal is remembered for the same inputs, because some libraries refuse only after
        building a long program."""
        key = self._key(operator)
        if key in _REFUSED:
            raise _REFUSED[key]
        try:
            if operator in COMPOSITIONS:
                return composed(self.backend, operator, self.f, args, self.wrt)
            return self.backend.prepare(operator, self.f, args, self.wrt)
        except AttributeError as error:
            raise lacking(error) from error
        except Unsupported as refusal:
            if key is not None:
                _REFUSED[key] = Unsupported(str(refusal))
            raise

    def _key(self, operator: Operator) -> Hashable:
        """Everything that a refusal depends on; None if unknown, as for a function without a case."""
        case = getattr(self.f, "case", None)
        if case is None:
            return None
        inputs = self.args[: self.inputs]
        try:
            leaves = tuple(
                (type(leaf), leaf) if tree.is_static(leaf) else (np.shape(leaf), np.asarray(leaf).tobytes())
                for leaf in tree.leaves(inputs)
            )
        except (TypeError, ValueError):  # values that only the library can read
            return None
        return self.backend.name, self.backend.prepare, case.f, case.gradient, operator, self.wrt, leaves

    def part(self, operator: Operator) -> Call:
        """An operator used by a fallback; its example vector has ones."""
        inputs = self.args[: self.inputs]
        if operator not in WITH_VECTOR:
            return self.own(operator, inputs)
        value = np.ones(self.shape) if self.shape else 1.0
        ones = value if definition(operator).vector == "cotangent" else tree.like(self.active(inputs), np.ones_like)
        return self.own(operator, (*inputs, *self.backend.native_inputs((ones,))))

    def _looped(self) -> Prepared:
        """The gradients of many points, one call after the other. Its call raises Unsupported if that takes too
        long."""
        backend, wrt = self.backend, self.wrt

        def stacked(inputs: tuple[Any, ...]) -> tuple[Any, ...]:  # the active ones in numpy, the others as they were
            return tuple(backend.numpy_result(arg) if k in wrt else arg for k, arg in enumerate(inputs))

        def point(stack: tuple[Any, ...], index: int) -> tuple[Any, ...]:
            one = many_points.point_of(stack, wrt, index)
            return tuple(backend.native_inputs((arg,))[0] if k in wrt else arg for k, arg in enumerate(one))

        prepared = prepare(backend, "gradient", self.f, point(stacked(self.args), 0), wrt)

        def call(*inputs: Any) -> Any:
            stack = stacked(inputs)
            x = tuple(stack[k] for k in wrt)
            gradients, count = [np.empty(leaf.shape) for leaf in tree.leaves(x)], len(tree.leaves(x)[0])
            for index in many_points.in_time(count):
                gradient = backend.numpy_result(backend.waited(prepared.call(*point(stack, index))))
                for whole, part in zip(gradients, tree.leaves(gradient), strict=True):
                    whole[index] = part
            return tree.filled(x, gradients)

        return Prepared(call, LOOP)

    def _coloured(self) -> Prepared:
        """The Jacobian of a declared pattern. Raises Unsupported if the backend lacks jvp."""
        outputs = int(np.prod(self.shape, dtype=np.intp))
        jvp = self.part(TRANSFORMS["forward"])
        # It imports scipy's sparse matrices, which other workers do not need.
        from adbench.execution.operators.colouring import GroupedColumns

        pattern = self.f.sparsity  # type: ignore[attr-defined]  # see `function_of`
        grouped = GroupedColumns(self.active(self.args), outputs, *pattern)
        directions = [self.backend.native_inputs((v,)) for v in grouped.directions]

        def call(*inputs: Any) -> Any:
            products = [self.backend.numpy_result(self.backend.waited(jvp(*inputs, *v))) for v in directions]
            return grouped.jacobian(products)

        return Prepared(call, f"from jvp, coloured: {len(directions)} directions for {grouped.count} columns")

    def _composed(self, calls: Mapping[Operator, Call], make: Callable[[Here], Any], shape: Shape) -> Call:
        backend, count = self.backend, self.inputs

        def call(*args: Any) -> Any:
            inputs = args[:count]

            def part(name: Operator, *vectors: Any) -> Any:
                native = backend.native_inputs(vectors)
                return backend.numpy_result(backend.waited(calls[name](*inputs, *native)))

            return make(Here(part, self.active(inputs), backend.numpy_result(args[count:]), shape))

        return call
