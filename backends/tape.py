"""adbench.tape, the reference engine: record scalars and arrays on a tape at every call and sweep it back."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from adbench import Namespace, Operator, Unsupported, on_active, phase, tape
from adbench.model import tree
from adbench.model.operator import WITH_VECTOR
from adbench.model.settings import allowed_threads, kept_programs
from adbench.tape import pqr

from .support import closures

LICENCE = "BSD-3-Clause"  # ours
ROLE = "own engine"
NO_DTYPES = "its scalars are Python's floats, and its machine code computes with doubles"
THREADED = True  # in numpy's BLAS

Function = Callable[..., Any]
Arguments = tuple[Any, ...]
Active = tuple[int, ...]

before_timing = tape.load_machine_code  # otherwise long measurements load it on the way


def namespace(**parts: Any) -> Namespace:
    # Traps also need the derivative inside a function, which the array API lacks.
    return Namespace(tape, linalg=vars(tape.linalg), derivative=lambda g, x: tape.gradient(g, x)[1], **parts)


xp = namespace()

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


def prepare(operator: Operator, f: Function, args: Arguments, wrt: Active) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator not in OPERATIONS:
        raise Unsupported(f"the tape has no {operator}")
    return refusing(on_active(OPERATIONS[operator], operator, f, wrt))


# Built-in densities.

DENSITIES = {
    "normal_log_density": lambda xp, y, mu, sigma: tape.normal_lpdf(y, mu, sigma),
    "multi_normal": lambda xp, y, mu, sigma: tape.multi_normal_lpdf(y, mu, sigma),
    "logistic_regression": lambda xp, beta, X, y: tape.bernoulli_logit_lpmf(y, X @ beta) - 0.5 * xp.sum(beta * beta),
    "log_sum_exp": lambda xp, x: tape.log_sum_exp(x),
}
FIRST_ORDER_ONLY = "built-in densities have first derivatives only; use tape"


def of_densities(operator: Operator, f: Function, args: Arguments, wrt: Active) -> Callable[..., Any]:
    if operator in ("hvp", "hessian"):
        raise Unsupported(FIRST_ORDER_ONLY)
    return prepare(operator, f, args, wrt)


# Forward mode.

FORWARD: dict[Operator, Callable[..., Any]] = {
    "gradient": lambda g, x: tape.jacobian(g, x, mode="forward")[1],
    "value_and_gradient": partial(tape.jacobian, mode="forward"),
    "jacobian": lambda g, x: tape.jacobian(g, x, mode="forward")[1],
    "jvp": OPERATIONS["jvp"],
}


def forward(operator: Operator, f: Function, args: Arguments, wrt: Active) -> Callable[..., Any]:
    if operator not in ("value", *FORWARD):
        # A Hessian would take one pass per pair of inputs; the variant `tape` has forward over reverse.
        raise Unsupported(f"forward mode has no {operator}: one pass gives J v; use tape")
    return f if operator == "value" else refusing(on_active(FORWARD[operator], operator, f, wrt))


# Whole Jacobians, carried forwards.

MOST_NUMBERS = 1_000_000
COMPACT_OPERATORS = ("gradient", "value_and_gradient", "jacobian")
PLAIN_NUMBERS = "compact Jacobians are plain numbers and cannot be differentiated again"


def whole_jacobians(mode: str, operator: Operator, f: Function, args: Arguments, wrt: Active) -> Callable[..., Any]:
    if operator == "value":
        return f
    if operator not in COMPACT_OPERATORS:
        raise Unsupported(f"compact Jacobians give no {operator}, only gradients and Jacobians; use tape")
    if mode == "dense" and (numbers := sum(np.size(leaf) for leaf in tree.leaves(args[wrt[0]])) ** 2) > MOST_NUMBERS:
        raise Unsupported(f"the dense Jacobian has {numbers:,} entries, more than {MOST_NUMBERS:,}; use tape_compact")
    if len(wrt) > 1 or not hasattr(args[wrt[0]], "shape"):
        raise Unsupported("compact Jacobians need exactly one active input, an array; use tape")

    def operation(g: Callable[..., Any], x: tuple[Any]) -> Any:
        value, jacobian = pqr.compact_jacobian(lambda entry: g((entry,)), x[0], mode)
        shape = getattr(value, "shape", ()) + x[0].shape
        whole = (jacobian.dense().reshape(shape),)
        return (value, whole) if operator == "value_and_gradient" else whole

    return refusing(on_active(operation, operator, f, wrt))


# Machine code.

COMPILED_OPERATORS = (*OPERATIONS, "value", "batch_gradient")
DERIVATIVE = {**dict.fromkeys((*WITH_VECTOR, "jacobian"), 1), "hessian": 2}
"""The position of the derivative in the result, where it comes after others."""


def compiled(fast_math: bool, operator: Operator, f: Function, args: Arguments, wrt: Active) -> Callable[..., Any]:
    if operator not in COMPILED_OPERATORS:
        raise Unsupported(f"the compiled tape has no {operator}")
    is_sparse = operator == "jacobian" and getattr(f, "sparsity", None) is not None
    options: dict[str, Any] = {"operator": operator, "wrt": wrt, "fast_math": fast_math, "sparse": is_sparse}
    options |= {"threads": allowed_threads(), "eager": False}  # a cell of this backend measures machine code or nothing
    if operator == "batch_gradient":
        shared = tuple(k for k in range(len(args)) if k not in wrt)
        options |= {"operator": "gradient", "batch": True, "shared": shared}
    make = refusing(lambda *args: tape.compile(f, *args, watch=phase, cache=kept_programs("tape"), **options))
    call = make(*args).call
    place = DERIVATIVE.get(operator)
    return refusing(call if place is None else lambda *args: call(*args)[place])


WITH_LOOPS = namespace(loop=tape.loop)
"""The compiled program keeps loops as loops."""

VARIANTS = {
    "tape_builtin": {
        "SUMMARY": "adbench.tape with built-in densities: one node each, with hand-written partial derivatives.",
        "FUNCTIONS": DENSITIES,
        "NESTED": FIRST_ORDER_ONLY,
        "prepare": of_densities,
    },
    "tape_checkpointed": {
        "SUMMARY": "adbench.tape with checkpoints: keep √n states of a loop and evaluate its steps twice.",
        "xp": namespace(loop=tape.checkpointed_loop),
    },
    "tape_closures": {
        "SUMMARY": "Reverse mode by closures: every scalar operation pushes a function on a stack, and the sweep calls "
        "them.",
        "xp": closures.xp,
        "NESTED": closures.NESTED,
        "prepare": closures.prepare,
    },
    "tape_compact": {
        "SUMMARY": "adbench.tape with compact Jacobians: carry whole Jacobians forwards in as few numbers as possible.",
        "NESTED": PLAIN_NUMBERS,
        "prepare": partial(whole_jacobians, "forward"),
    },
    "tape_compiled": {
        "SUMMARY": "adbench.tape compiled: record once with the same rules and run machine code.",
        "REQUIRES": ("llvmlite", "scipy"),
        "DEFAULT": True,  # the way to use the tape for a function that is called often
        "BATCHED": True,
        "SPARSE_JACOBIAN": True,  # it finds the pattern itself
        "xp": WITH_LOOPS,
        "prepare": partial(compiled, False),
    },
    "tape_compiled_fast_math": {
        "SUMMARY": "adbench.tape compiled with fast math: sums reordered, products fused, NaN and infinity ignored.",
        "REQUIRES": ("llvmlite", "scipy"),
        "BATCHED": True,
        "SPARSE_JACOBIAN": True,
        "xp": WITH_LOOPS,
        "prepare": partial(compiled, True),
    },
    "tape_dense": {
        "SUMMARY": "adbench.tape with dense Jacobians: carry whole Jacobians forwards, with every entry stored.",
        "NESTED": PLAIN_NUMBERS,
        "prepare": partial(whole_jacobians, "dense"),
    },
    "tape_forward": {
        "SUMMARY": "adbench.tape in forward mode: carry a tangent with each value, one pass per input.",
        "NESTED": {"jvp": NESTED["jvp"]},
        "prepare": forward,
    },
}
