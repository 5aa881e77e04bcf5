"""The part of `adbench conform` that runs in a worker: a library's derivatives of one operation at many points.

The worker imports the library and the table of operations, never the oracle; the parent judges.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from adbench.catalog.discovery import first_line
from adbench.execution.operators import fallback
from adbench.execution.operators.on_device import create_there
from adbench.execution.operators.prepared_point import point
from adbench.execution.operators.source_text_call import imported
from adbench.execution.python_check import REFUSAL
from adbench.findings.conform.places import Place
from adbench.findings.operations import OPERATIONS
from adbench.findings.operations.operation import ARGUMENTS, Operation
from adbench.model.backend import Backend
from adbench.model.case import Case
from adbench.model.errors import Unsupported, contained
from adbench.model.operator import COMPOSITIONS, Operator

ORDERS: tuple[Operator, ...] = ("value", "gradient", "jvp", *COMPOSITIONS)
"""The examined derivatives. With one number as result, vjp is the gradient."""

THIRD = "third_order"
OF_SLOPE: Operator = "hvp_reverse_over_reverse"
"""The third derivative is computed as this second derivative of the slope, which is `xp.derivative`."""

MISSING = re.compile(r"module '[\w.]+' has no attribute|.*\bis unsupported\b", re.DOTALL)
"""How Python says that another version of a library lacks a function, and torch that it lacks a derivative."""

TINY = 2.0**-1060


def case_of(operation: Operation, place: Place, library: str | None = None) -> Case:
    """The operation at a point as a case; in a library by its own expression if it has one."""
    expression = operation.expression(library) if library else None
    compute = own_function(expression) if expression else None

    def of_numbers(xp: Any, **inputs: Any) -> Any:
        return operation.definition(xp, *inputs.values()) if compute is None else compute(**inputs)

    def f(xp: Any, w: Any = None, **inputs: Any) -> Any:
        if operation.is_slope:
            return xp.derivative(lambda x: of_numbers(xp, x=x), inputs["x"])
        value = of_numbers(xp, **inputs)
        return value if w is None else xp.sum(w * value)

    active = tuple(name for name, domain in zip(ARGUMENTS, operation.domain, strict=False) if domain.active)
    return Case(f=f, inputs=lambda _n, _rng: place.inputs, wrt=active, sizes=(1,), name=operation.name)


@cache
def own_function(expression: str) -> Callable[..., Any]:
    """The expression as a function of its arguments by name; the modules that it names are imported.

    It is a plain lambda: TorchDynamo cannot trace a call of eval, and would run all around it without compiling.
    """
    parameters = ", ".join(f"{name}=None" for name in ARGUMENTS)
    function: Callable[..., Any] = eval(f"lambda {parameters}: {expression}", {**imported(expression)})  # noqa: S307 - our own table
    return function


def derivatives(backend: Backend, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """For each point the results of each derivative: numbers, or the reason why they are missing.

    request   operation: its name; places: the fields of points of the same shapes; operators: the derivatives
    """
    create_there(backend)
    places = [Place(**one) for one in request["places"]]
    answers_of_points: list[dict[str, Any]] = [{} for _ in places]
    for operator in request["operators"]:
        operation = OPERATIONS[request["operation"]]
        of: Operator = OF_SLOPE if operator == THIRD else operator
        if operator == THIRD:
            assert operation.slope is not None
            operation = operation.slope
        cases = [case_of(operation, place, family_of(backend.name)) for place in places]
        points = [point(case, 1, 0, single=is_single(backend)) for case in cases]
        call: Callable[..., Any] | None = None
        for at, answers in zip(points, answers_of_points, strict=True):
            try:
                native = at.native(backend, of)[1]
                with contained(), np.errstate(all="ignore"):
                    if call is None:
                        f = backend.function(at.case, at.names, at.size)
                        call = fallback.prepare(backend, of, f, native, at.wrt).call
                    answers[operator] = {"value": _floats(backend.numpy_result(backend.waited(call(*native))))}
            except (Unsupported, NotImplementedError) as refusal:
                answers[operator] = {"refused": first_line(refusal)}
            except Exception as error:  # raised by the library
                kind = "refused" if REFUSAL.search(str(error)) or MISSING.match(str(error)) else "raises"
                answers[operator] = {kind: f"{type(error).__name__}: {first_line(error)}"}
    return answers_of_points


def is_single(backend: Backend) -> bool:
    """Whether it computes in float32."""
    return "float32" in (backend.precision, backend.dtype)


def family_of(backend: str) -> str:
    """The library of a backend: jax for jax_eager."""
    return backend.partition("_")[0]


def flushes(backend: Backend, request: Mapping[str, Any]) -> bool:
    """Whether the library reads numbers below the normal range as zero."""
    x = TINY * 2.0**200
    case = Case(f=lambda xp, x: x * 2.0**200, inputs=lambda _n, _rng: {"x": TINY}, wrt=("x",), sizes=(1,))
    at = point(case, 1, 0, single=is_single(backend))
    native = at.native(backend, "value")[1]
    call = fallback.prepare(backend, "value", backend.function(case, at.names, 1), native, at.wrt).call
    return float(backend.numpy_result(backend.waited(call(*native)))) != x


def _floats(result: Any) -> Any:
    """A result as float64. Raises TypeError or ValueError if it has no such numbers."""
    return list(map(_floats, result)) if isinstance(result, tuple | list) else np.asarray(result, dtype=np.float64)
