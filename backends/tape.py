"""adbench.tape, the reference engine: record scalars and arrays on a tape at every call and sweep it back."""

from collections.abc import Callable
from typing import Any

from adbench import Namespace, Operator, Unsupported, on_active, tape

LICENCE = "BSD-3-Clause"  # ours

# Known faults. A bare outcome such as "nan" refers to the reason in the trap's `faults`.
THREADED = True  # in numpy's BLAS

before_timing = tape.load_machine_code  # otherwise long measurements load it on the way

# Traps also need the derivative inside a function, which the array API lacks.
xp = Namespace(tape, linalg=vars(tape.linalg), derivative=lambda g, x: tape.gradient(g, x)[1])

OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": lambda g, x: tape.gradient(g, x)[1],
    "value_and_gradient": tape.gradient,
    "jacobian": lambda g, x: tape.jacobian(g, x)[1],
    "jvp": lambda g, x, v: tape.jvp(g, x, v)[1],
    "vjp": lambda g, x, w: tape.vjp(g, x, w)[1],
    "hvp": lambda g, x, v: tape.hvp(g, x, v)[1],
    "hessian": lambda g, x: tape.hessian(g, x)[2],
}


def refusing(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a call to turn the engine's refusals into Unsupported."""

    def honest(*args: Any) -> Any:
        try:
            return call(*args)
        except (tape.UnsupportedError, tape.ComplexError, tape.NotCompilableError) as error:
            raise Unsupported(str(error)) from error

    return honest


NESTED = {mode: refusing(OPERATIONS[mode]) for mode in ("jvp", "vjp")}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator not in OPERATIONS:
        raise Unsupported(f"the tape has no {operator}")
    return refusing(on_active(OPERATIONS[operator], operator, f, wrt))
