"""asdex: sparse Jacobians and Hessians of jax functions by colouring; all else is jax.jit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asdex
import jax
import jax.experimental.sparse
import numpy as np
from scipy import sparse

from adbench import Operator, Unsupported, phase
from adbench.catalog.discovery import first_line
from adbench.model import tree

from .jax import sync as sync
from .jax import to_native as to_native
from .jax import xp as xp

REQUIRES = ("asdex", "jax", "scipy")
LICENCE = "MIT"
DEFAULT = False  # XLA compiles each Jacobian and Hessian for seconds
SPARSE_JACOBIAN = True
NESTED = "asdex gives Jacobians and Hessians; jax has the transforms"


def to_numpy(leaf: Any) -> Any:
    """A block of a sparse Jacobian as a matrix, its columns in the order of the input's entries."""
    if not isinstance(leaf, jax.experimental.sparse.BCOO):
        return np.asarray(leaf)
    rows, *columns = np.asarray(leaf.indices).T
    flat = np.ravel_multi_index(tuple(columns), leaf.shape[1:]) if columns else np.zeros_like(rows)
    shape = (leaf.shape[0], int(np.prod(leaf.shape[1:], dtype=int)))
    return sparse.csr_array((np.asarray(leaf.data), (rows, flat)), shape=shape)


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if operator not in OPERATIONS:
        raise Unsupported(f"asdex has no {operator}: it gives Jacobians and Hessians")
    leaves = tree.leaves(args)
    places = [k for k, leaf in enumerate(leaves) if not tree.is_static(leaf)]

    def program(*traced: Any) -> Any:  # static leaves become part of the program
        every = list(leaves)
        for k, leaf in zip(places, traced, strict=True):
            every[k] = leaf
        return f(*tree.filled(args, every))

    owners = [k for k, arg in enumerate(args) for leaf in tree.leaves(arg) if not tree.is_static(leaf)]
    active = tuple(position for i in wrt for position, owner in enumerate(owners) if owner == i)
    given = [leaves[k] for k in places]
    try:
        with phase("trace"):
            made = OPERATIONS[operator](program, given, active)
        with phase("compile"):
            compiled = jax.jit(made).lower(*given).compile()
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        reason = "jax compiles one program for all data, but a Python loop or branch depends on data"
        raise Unsupported(f"{reason} ({type(error).__name__})") from error
    except (NotImplementedError, ValueError) as error:
        if isinstance(error, ValueError) and "handler assumes" not in str(error):
            raise
        raise Unsupported(f"asdex: {first_line(error)}") from error
    x = tuple(args[i] for i in wrt)

    def call(*args: Any) -> Any:
        found = compiled(*(leaf for leaf in tree.leaves(args) if not tree.is_static(leaf)))
        if operator == "value":
            return found
        if operator == "jacobian":
            return tree.filled(x, list(found))
        return tree.filled(x, [tree.filled(x, list(row)) for row in found])

    return call


def jacobian(program: Callable[..., Any], given: list[Any], active: tuple[int, ...]) -> Callable[..., Any]:
    """Sparse blocks of an array's Jacobian, one for each active array; dense ones for a number's."""
    if not jax.eval_shape(program, *given).shape:
        of_number: Callable[..., Any] = asdex.jacobian(program, *given, argnums=active, output_format="dense")
        return of_number
    made: Callable[..., Any] = asdex.jacobian(lambda *every: jax.numpy.ravel(program(*every)), *given, argnums=active)
    return made


def hessian(program: Callable[..., Any], given: list[Any], active: tuple[int, ...]) -> Callable[..., Any]:
    """Dense blocks of the Hessian, computed from as many products H v as its colouring needs."""
    made: Callable[..., Any] = asdex.hessian(program, *given, argnums=active, output_format="dense")
    return made


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "value": lambda program, given, active: program,
    "jacobian": jacobian,
    "hessian": hessian,
}
