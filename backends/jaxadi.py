"""jaxadi: casadi's expressions and their derivatives, translated to jax and compiled by XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi
import jax
import jax.numpy
import jaxadi
import numpy as np

from adbench import Operator, Unsupported, phase
from adbench.model import tree

from .casadi import OPERATIONS, graph
from .casadi import xp as xp

REQUIRES = ("jaxadi", "casadi", "jax")
LICENCE = "MIT"
DEFAULT = False  # XLA compiles each program for seconds
MOST_INSTRUCTIONS = 300  # XLA's time grows faster than the program, which has no loops
NESTED = "jaxadi translates functions of casadi, not functions of functions"

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
sync = jax.block_until_ready


def to_native(leaf: Any) -> Any:
    return jax.numpy.array(leaf)


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator not in OPERATIONS or operator == "batch_gradient":
        raise Unsupported(f"jaxadi has no {operator}")
    with phase("trace"):
        function, shape = graph(operator, f, args, wrt, casadi.SX)
    if function.n_instructions() > MOST_INSTRUCTIONS:
        raise Unsupported(
            f"casadi's program has more than {MOST_INSTRUCTIONS:,} instructions, which XLA compiles slowly"
        )
    with phase("lower"):
        try:
            translated = jaxadi.convert(function)
        except KeyError as error:  # in its table of casadi's operations
            names = [name for name in dir(casadi) if name.startswith("OP_") and getattr(casadi, name) == error.args[0]]
            raise Unsupported(f"jaxadi has no translation of casadi's {', '.join(names)}") from error
    x = tuple(args[i] for i in wrt)
    shapes = [np.shape(leaf) for leaf in tree.leaves(x)]

    def program(*leaves: Any) -> Any:
        """The result in blocks; casadi stores columns."""
        found = [block.T for block in translated(*(leaf.reshape(-1, 1) for leaf in leaves))]
        if operator in ("value", "jvp"):
            return found[0].reshape(shape)
        if operator == "value_and_gradient":
            return found[0].reshape(shape), [block.reshape(s) for block, s in zip(found[1:], shapes, strict=True)]
        if operator == "jacobian":
            return [block.reshape((*shape, *s)) for block, s in zip(found, shapes, strict=True)]
        if operator == "hessian":
            pairs = [(*s, *t) for s in shapes for t in shapes]
            return [block.reshape(pair) for block, pair in zip(found, pairs, strict=True)]
        return [block.reshape(s) for block, s in zip(found, shapes, strict=True)]

    leaves = [leaf for leaf in tree.leaves(args) if not tree.is_static(leaf)]
    with phase("compile"):
        try:
            compiled = jax.jit(program).lower(*leaves).compile()
        except NameError as error:  # casadi prints infinity as a name
            raise Unsupported(f"jaxadi's program lacks a name: {error}") from error

    def call(*args: Any) -> Any:
        found = compiled(*(leaf for leaf in tree.leaves(args) if not tree.is_static(leaf)))
        if operator in ("value", "jvp"):
            return found
        if operator == "value_and_gradient":
            return found[0], tree.filled(x, found[1])
        if operator == "hessian":
            n = len(shapes)
            return tree.filled(x, [tree.filled(x, found[k : k + n]) for k in range(0, n * n, n)])
        return tree.filled(x, found)

    return call
