"""Dr.Jit: record tensors at every call; LLVM compiles the recorded kernels, which Dr.Jit keeps for equal programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import drjit as dr
import numpy as np
import optree
from drjit.llvm.ad import TensorXf64

from adbench import Namespace, Operator, Unsupported, on_active
from adbench.catalog.discovery import first_line

REQUIRES = ("drjit",)
LICENCE = "BSD-3-Clause"
DEFAULT = False  # it needs LLVM 17 or later, which few machines have


LIMITS = {"NaN": "an adjoint of 0 is not passed on, so a NaN stops there"}

NEEDED = 17  # Dr.Jit's maximum is LLVM's fmaximum, on which older LLVMs abort the process
MOST_STEPS = 100  # LLVM's time grows faster than the kernel
NESTED = "Dr.Jit's derivatives cannot be differentiated again: it has first order only"

dr.set_thread_count(1)
kind: Any = TensorXf64
kind.__array_ufunc__ = None  # or numpy's numbers take the tensor's entries and lose the derivative


def unusable() -> str:
    """Why the library cannot run here; "" if it can."""
    if not dr.has_backend(dr.JitBackend.LLVM):
        return "Dr.Jit found no LLVM library; apt install libllvm19, or set DRJIT_LIBLLVM_PATH"
    version = dr.detail.llvm_version()
    if version[0] < NEEDED:
        found = ".".join(map(str, version))
        return f"Dr.Jit found LLVM {found}, which aborts on maximum; apt install libllvm19, or set DRJIT_LIBLLVM_PATH"
    return ""


def tensor(x: Any) -> Any:
    """A tensor from numbers, arrays, or lists of them."""
    if isinstance(x, list | tuple):
        return dr.stack([tensor(part) for part in x])
    return x if dr.is_tensor_v(x) else TensorXf64(np.asarray(x, dtype=np.float64))


def loop(step: Callable[[Any, Any], Any], state: Any, n: int) -> Any:
    """Python's loop, all in one kernel: dr.while_loop takes no slices of tensors that the loop changes."""
    if n > MOST_STEPS:
        raise Unsupported(f"Dr.Jit unrolls this loop of {n:,} steps; adbench allows {MOST_STEPS}")
    for i in range(n):
        state = step(i, state)
    return state


def reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction over all axes by default, as in numpy."""

    def of_axis(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return function(tensor(x), axis=axis, **({"keepdims": True} if keepdims else {}))

    return of_axis


def entrywise(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: function(*map(tensor, args))


def logaddexp(x: Any, y: Any) -> Any:
    """log(e^x + e^y), which Dr.Jit lacks."""
    x, y = tensor(x), tensor(y)
    return dr.maximum(x, y) + log1p(dr.exp(-dr.abs(x - y)))


def log1p(x: Any) -> Any:
    return dr.log(1.0 + tensor(x))


def concat(parts: Any, axis: int = 0) -> Any:
    filled = [part for part in map(tensor, parts) if np.prod(part.shape)]  # dr.concat refuses empty tensors
    return dr.concat(filled or list(map(tensor, parts)), axis=axis)


def vector_norm(x: Any, *, axis: int | None = None, ord: float = 2) -> Any:
    return dr.sqrt(dr.sum(x * x, axis=axis)) if ord == 2 else dr.sum(dr.abs(x) ** ord, axis=axis) ** (1 / ord)


def missing(name: str) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise Unsupported(f"Dr.Jit has no {name}")

    return refused


def derivative(*_: Any) -> Any:
    raise Unsupported(NESTED)


ENTRYWISE = (
    "abs acos acosh asin asinh atan atan2 atanh cos cosh exp floor hypot log log2 maximum minimum sin sinh sqrt square "
    "tan tanh"
)
NO_LINALG = "cholesky det eigh eigvalsh inv qr slogdet solve svd svdvals"
CONVERTING: dict[str, Any] = {
    **{name: entrywise(getattr(dr, name)) for name in ENTRYWISE.split()},
    **{name: reduced(getattr(dr, name)) for name in ("sum", "prod", "max", "min", "mean", "std", "var")},
}
xp = Namespace(
    dr,
    linalg={
        **{name: missing(name) for name in NO_LINALG.split()},
        "vector_norm": vector_norm,
    },
    **CONVERTING,
    asarray=tensor,
    clip=dr.clip,
    concat=concat,
    cumulative_sum=lambda x, axis=0: dr.cumsum(tensor(x), axis),
    derivative=derivative,
    log1p=log1p,
    logaddexp=logaddexp,
    loop=loop,
    matmul=lambda a, b: tensor(a) @ tensor(b),
    matrix_transpose=lambda x: dr.swapaxes(x, -1, -2),
    permute_dims=dr.transpose,
    pow=lambda x, y: tensor(x) ** tensor(y),
    stack=lambda parts, axis=0: dr.stack([tensor(part) for part in parts], axis=axis),
    stop_gradient=dr.detach,
    where=lambda condition, a, b: dr.select(condition, tensor(a), tensor(b)),
    zeros=lambda shape: dr.zeros(TensorXf64, shape),
    zeros_like=lambda x: dr.zeros(TensorXf64, np.shape(x)),
    ones=lambda shape: dr.ones(TensorXf64, shape),
    ones_like=lambda x: dr.ones(TensorXf64, x.shape),
    eye=lambda n: tensor(np.eye(n)),
)


def to_native(leaf: Any) -> Any:
    found = TensorXf64(np.array(leaf, dtype=np.float64, order="C"))
    dr.make_opaque(found)  # data in memory: a literal would be part of the kernel, to compile again when it changes
    return found


def to_numpy(leaf: Any) -> Any:
    return np.array(leaf, dtype=np.float64)


def sync(result: Any) -> None:
    dr.eval(result)
    dr.sync_thread()


def marked(x: Any) -> tuple[list[Any], Any]:
    """(leaves, structure) of new tensors that record derivatives."""
    plain, structure = optree.tree_flatten(x)
    leaves = [TensorXf64(leaf.array, leaf.shape) for leaf in plain]
    dr.enable_grad(leaves)
    return leaves, structure


def slope(leaf: Any) -> Any:
    return dr.grad(leaf) if np.prod(leaf.shape) else dr.zeros(TensorXf64, leaf.shape)


def pull_back(g: Callable[..., Any], x: Any, w: Any = 1.0) -> tuple[Any, Any]:
    """(g(x), wᵀ J)."""
    leaves, structure = marked(x)
    value = tensor(g(optree.tree_unflatten(structure, leaves)))
    if dr.grad_enabled(value):
        dr.set_grad(value, w)
        dr.enqueue(dr.ADMode.Backward, value)
        dr.traverse(dr.ADMode.Backward)
    return dr.detach(value), optree.tree_unflatten(structure, [slope(leaf) for leaf in leaves])


def push_forward(g: Callable[..., Any], x: Any, v: Any) -> Any:
    leaves, structure = marked(x)
    for leaf, slope in zip(leaves, optree.tree_leaves(v), strict=True):
        dr.set_grad(leaf, slope)
    value = tensor(g(optree.tree_unflatten(structure, leaves)))
    dr.enqueue(dr.ADMode.Forward, leaves)
    dr.traverse(dr.ADMode.Forward)
    return dr.grad(value)


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": lambda g, x: pull_back(g, x)[1],
    "value_and_gradient": pull_back,
    "jvp": push_forward,
    "vjp": lambda g, x, w: pull_back(g, x, w)[1],
}


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    if reason := unusable():
        raise Unsupported(reason)
    if operator not in ("value", *OPERATIONS):
        raise Unsupported(f"Dr.Jit has no {operator}: it has first order only")
    call = f if operator == "value" else on_active(OPERATIONS[operator], operator, f, wrt)
    return partial(called, call)


REFUSALS = ("unsupported type", "unsupported argument", "incompatible function arguments")


def called(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call(*args)
    except (TypeError, RuntimeError) as error:
        if not any(part in str(error) for part in REFUSALS):
            raise
        raise Unsupported(f"Dr.Jit: {first_line(error)}") from error
