"""adbench's own reference engine: records scalars and arrays on a tape at every call, then sweeps it back."""

from collections.abc import Callable
from typing import Any

from adbench import Namespace, Operator, Unsupported, on_active, tape

LICENCE = "BSD-3-Clause"  # ours

# Faults that `adbench check` finds. A key alone, such as "nan", means the reason in the trap's `faults`.
KNOWN = {
    **dict.fromkeys(("particle", "particle_nested"), "a NaN is lost: a tangent of 0 stays 0, whatever its factor is"),
    "trap_exp_of_log": "0: where log is vertical 0 · inf is taken as 0, as x log x needs it",
    # Of second order: a key ends in the operators that it is about.
    "trap_atan2_small hvp hessian hvp_*": "nan",
    "trap_equal_eigenvalues h*": "raises, and says so",
    "trap_equal_singular_values h*": "raises, and says so",
    "trap_logistic_tail hvp hessian hvp_*": "nan",
    "trap_masked_sinc hvp hessian hvp_*": "0",
    "trap_simple_eigenvector h*": "raises, and says so",
    "trap_square_of_singular_values h*": "raises, and says so",
}

# What the traps ask for beyond the array API: the derivative inside a function.
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
    """The call, where the engine's own refusals are the harness's: a reason, not a failure."""

    def honest(*args: Any) -> Any:
        try:
            return call(*args)
        except (tape.UnsupportedError, tape.ComplexError) as error:
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
