"""Enzyme-JAX: differentiate jax's lowered program in MLIR and compile it with XLA, in double precision."""

import re
from collections.abc import Callable
from typing import Any

import jax
from enzyme_ad.jax import enzyme_jax_ir, primitives

from adbench import Namespace, Operator, Unsupported
from adbench.model.tree import is_static

from . import jax as lowered

REQUIRES = ("enzyme-ad", "jax")
LICENCE = "Apache-2.0 WITH LLVM-exception"
VARIANT_OF = "jax"  # asked for by name only: Enzyme's passes take a quarter of a second or more

# Error messages of Enzyme's passes; the group captures the operation without a (valid) rule.
REFUSALS = (
    r'could not compute the adjoint for this operation [^\n]*call_target_name = "(\w+)"',
    r'could not compute the adjoint for this operation\s[^"]*"([\w.]+)"',
    r"Unsupported (?:operation in )?(reduction|reduce window) (?:rev )?autodiff",
    r"'(complex\.\w+)' op operand",
)

# Enzyme-JAX would leave a file in the system's temporary folder for each refused program.
primitives._dump_mlir_to_file = lambda *_: "no file"


def stop_gradient(_: Any) -> Any:
    raise Unsupported("jax removes stop_gradient while lowering, so Enzyme would differentiate through it; use jax")


def sort(_: Any, **options: Any) -> Any:
    raise Unsupported("Enzyme crashes the process when it differentiates a sort; use jax")


def derivative(g: Callable[[Any], Any], x: Any) -> Any:
    """∇g(x). Enzyme-JAX lowers each function alone, so closed-over values become arguments."""
    closed, values = jax.closure_convert(g, x)
    return jax.grad(by_enzyme(closed))(x, *values)


xp = Namespace(jax.numpy, loop=lowered.loop, derivative=derivative, stop_gradient=stop_gradient, sort=sort)
to_native, sync = lowered.to_native, lowered.sync


def by_enzyme(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, differentiated by Enzyme when jax needs a derivative. Static arguments are not part of the program."""

    def call(*args: Any) -> Any:
        leaves, structure = jax.tree.flatten(args)

        def program(*data: Any) -> Any:
            rest = iter(data)
            return f(*jax.tree.unflatten(structure, [leaf if is_static(leaf) else next(rest) for leaf in leaves]))

        return enzyme_jax_ir(inner_jit=False)(program)(*(leaf for leaf in leaves if not is_static(leaf)))

    return call


def nested(transform: Callable[..., Any]) -> Callable[..., Any]:
    """A jax transform of g that uses Enzyme's derivatives."""

    def of_enzyme(g: Callable[..., Any], x: Any, direction: Any) -> Any:
        closed, values = jax.closure_convert(g, x)
        differentiable = by_enzyme(closed)
        return transform(lambda y: differentiable(y, *values), x, direction)

    return of_enzyme


NESTED = {mode: nested(transform) for mode, transform in lowered.NESTED.items()}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator in ("jacobian", "hessian"):
        raise Unsupported(f"Enzyme-JAX has no rule for vmap, which jax needs for a {operator}")
    differentiable = by_enzyme(f)
    if operator == "hvp":  # forward over reverse, both by Enzyme
        operator, differentiable = "jvp", by_enzyme(lambda *args: jax.grad(by_enzyme(f), wrt)(*args))
    try:
        return lowered.prepare(operator, differentiable, args, wrt)
    except ValueError as error:
        lacking = next((found[1] for pattern in REFUSALS if (found := re.search(pattern, str(error)))), None)
        if lacking is None:
            raise
        raise Unsupported(f"Enzyme has no rule for {lacking}, which jax lowers this function to") from error
