"""adbench.tape compiled: record once with the same rules and run machine code."""

from collections.abc import Callable
from typing import Any

from adbench import Namespace, Operator, Unsupported, phase, tape
from adbench.model.operator import WITH_VECTOR
from adbench.model.settings import allowed_threads, kept_programs

from . import tape as eager

REQUIRES = ("llvmlite", "scipy")
VARIANT_OF = "tape"
before_timing = eager.before_timing
BATCHED = True
THREADED = True
DEFAULT = True  # the way to use the tape for a function that is called often

# The compiled program keeps loops as loops.
xp = Namespace(tape, loop=tape.loop, linalg=vars(tape.linalg), derivative=lambda g, x: tape.gradient(g, x)[1])

FOLDER = kept_programs("tape")
NESTED = eager.NESTED

OPERATORS = ("value", "gradient", "value_and_gradient", "jvp", "vjp", "hvp", "jacobian", "hessian", "batch_gradient")
DERIVATIVE = {**dict.fromkeys((*WITH_VECTOR, "jacobian"), 1), "hessian": 2}
"""The position of the derivative in the result, where it comes after others."""

SPARSE_JACOBIAN = True  # it finds the pattern itself


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...], *, fast_math: bool = False
) -> Callable[..., Any]:
    if operator not in OPERATORS:
        raise Unsupported(f"the compiled tape has no {operator}")
    is_sparse = operator == "jacobian" and getattr(f, "sparsity", None) is not None
    options: dict[str, Any] = {"operator": operator, "wrt": wrt, "fast_math": fast_math, "sparse": is_sparse}
    options |= {"threads": allowed_threads(), "eager": False}  # a cell of this backend measures machine code or nothing
    if operator == "batch_gradient":
        shared = tuple(k for k in range(len(args)) if k not in wrt)
        options |= {"operator": "gradient", "batch": True, "shared": shared}
    make = eager.refusing(lambda *args: tape.compile(f, *args, watch=phase, cache=FOLDER, **options))
    call = make(*args).call
    place = DERIVATIVE.get(operator)
    return eager.refusing(call if place is None else lambda *args: call(*args)[place])
