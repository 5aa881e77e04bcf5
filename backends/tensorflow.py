"""tf.function: trace once at the input shapes into a TensorFlow graph, in double precision."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow logs its instruction sets at import
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import optree
import tensorflow as tf
import tensorflow.experimental.numpy as tnp

from adbench import Namespace, Operator, Unsupported, on_active, phase
from adbench.catalog.discovery import first_line
from adbench.model import tree

REQUIRES = ("tensorflow",)
DEFAULT = False  # its import takes seconds and prints to the console
LICENCE = "Apache-2.0"


tf.config.set_visible_devices([], "GPU")
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
tnp.experimental_enable_numpy_behavior()  # numpy's promotion of types, indexing and methods


def loop(step: Callable[[Any, Any], Any], state: Any, n: int) -> Any:
    """tf.while_loop with a fixed trip count in a graph, Python's loop otherwise."""
    if tf.executing_eagerly() or n < 2:
        for i in range(n):
            state = step(i, state)
        return state
    state = step(0, state)  # its types and shapes are those of all later steps
    leaves, structure = optree.tree_flatten(state)

    def body(i: Any, *leaves: Any) -> Any:
        after = optree.tree_leaves(step(i, optree.tree_unflatten(structure, leaves)))
        return (i + 1, *map(tf.convert_to_tensor, after))

    found = tf.while_loop(
        lambda i, *_: i < n, body, (tf.constant(1), *map(tf.convert_to_tensor, leaves)), maximum_iterations=n
    )
    return optree.tree_unflatten(structure, found[1:])


def svd(A: Any, *, full_matrices: bool = True) -> tuple[Any, Any, Any]:
    s, u, v = tf.linalg.svd(A, full_matrices=full_matrices)
    return u, s, tf.linalg.adjoint(v)


def solve(A: Any, b: Any) -> Any:
    return tf.linalg.solve(A, b) if len(b.shape) == 2 else tf.linalg.solve(A, b[:, None])[:, 0]


def cholesky(A: Any, *, upper: bool = False) -> Any:
    return (
        tf.linalg.matrix_transpose(tf.linalg.cholesky(tf.linalg.matrix_transpose(A)))
        if upper
        else tf.linalg.cholesky(A)
    )


def derivative(g: Callable[[Any], Any], x: Any) -> Any:
    return gradient(lambda x: g(x[0]), (x,))[0]


def vector_norm(x: Any, *, axis: int | None = None, ord: float = 2) -> Any:
    return tf.norm(x, axis=axis, ord=ord)


LINALG = {
    "cholesky": cholesky,
    "det": tf.linalg.det,
    "diagonal": tf.linalg.diag_part,
    "eigh": tf.linalg.eigh,
    "eigvalsh": tf.linalg.eigvalsh,
    "inv": tf.linalg.inv,
    "qr": tf.linalg.qr,
    "slogdet": tf.linalg.slogdet,
    "solve": solve,
    "svd": svd,
    "svdvals": partial(tf.linalg.svd, compute_uv=False),
    "trace": tf.linalg.trace,
    "vector_norm": vector_norm,
}

xp = Namespace(
    tnp,
    linalg=LINALG,
    loop=loop,
    derivative=derivative,
    stop_gradient=tf.stop_gradient,
    cumulative_prod=lambda x, axis=0: tf.math.cumprod(x, axis),
    cumulative_sum=lambda x, axis=0: tf.math.cumsum(x, axis),
    matrix_transpose=tf.linalg.matrix_transpose,
)


def to_native(leaf: Any) -> Any:
    return tf.constant(np.array(leaf), dtype=tf.float64)


def to_numpy(leaf: Any) -> Any:
    return leaf.numpy() if hasattr(leaf, "numpy") else np.asarray(leaf)


def copied(x: Any) -> tuple[list[Any], Any]:
    """(leaves, structure) of new tensors: one that the function also reads as a constant would count as active."""
    leaves, structure = optree.tree_flatten(x)
    return [tf.identity(leaf) for leaf in leaves], structure


def numbers(leaf: Any, like: Any) -> Any:
    """The gradient of an input; None, or slices of rows that were read, become arrays."""
    return tf.zeros_like(like) if leaf is None else tf.convert_to_tensor(leaf)


def pull_back(g: Callable[..., Any], x: Any, w: Any = None) -> tuple[Any, Any]:
    """(g(x), wᵀ J)."""
    leaves, structure = copied(x)
    with tf.GradientTape() as recorded:
        recorded.watch(leaves)
        value = tf.convert_to_tensor(g(optree.tree_unflatten(structure, leaves)))
    slopes = recorded.gradient(value, leaves, w)
    return value, optree.tree_unflatten(structure, list(map(numbers, slopes, leaves)))


def gradient(g: Callable[..., Any], x: Any) -> Any:
    return pull_back(g, x)[1]


def blocks(values: Sequence[Any], leaves: Sequence[Any], recorded: tf.GradientTape) -> list[list[Any]]:
    """∂value/∂leaf for all pairs; `pfor` would refuse loops."""

    def block(value: Any, leaf: Any) -> Any:
        empty = 0 in (*value.shape, *leaf.shape)  # which TensorFlow refuses
        return None if empty else recorded.jacobian(value, leaf, experimental_use_pfor=False)

    found = [[block(value, leaf) for leaf in leaves] for value in values]
    return [
        [
            tf.zeros((*value.shape, *leaf.shape), tf.float64) if block is None else block
            for leaf, block in zip(leaves, row, strict=True)
        ]
        for value, row in zip(values, found, strict=True)
    ]


def jacobian(g: Callable[..., Any], x: Any) -> Any:
    leaves, structure = copied(x)
    with tf.GradientTape(persistent=True) as recorded:
        recorded.watch(leaves)
        value = tf.convert_to_tensor(g(optree.tree_unflatten(structure, leaves)))
    return optree.tree_unflatten(structure, blocks([value], leaves, recorded)[0])


def push_forward(g: Callable[..., Any], x: Any, v: Any) -> Any:
    """J v by forward mode, in the structure of g's value."""
    leaves, structure = copied(x)
    with tf.autodiff.ForwardAccumulator(leaves, optree.tree_leaves(v)) as pushed:
        value = optree.tree_map(tf.convert_to_tensor, g(optree.tree_unflatten(structure, leaves)))
    return optree.tree_map(lambda part: numbers(pushed.jvp(part), part), value)


def hessian(g: Callable[..., Any], x: Any) -> Any:
    leaves, structure = copied(x)
    with tf.GradientTape(persistent=True) as recorded:
        recorded.watch(leaves)
        slopes = optree.tree_leaves(gradient(g, optree.tree_unflatten(structure, leaves)))
    rows = [optree.tree_unflatten(structure, row) for row in blocks(slopes, leaves, recorded)]
    return optree.tree_unflatten(structure, rows)


OPERATIONS: dict[Operator, Callable[..., Any]] = {
    "gradient": gradient,
    "value_and_gradient": pull_back,
    "jacobian": jacobian,
    "jvp": push_forward,
    "vjp": lambda g, x, w: pull_back(g, x, w)[1],
    "hvp": lambda g, x, v: push_forward(partial(gradient, g), x, v),
    "hessian": hessian,
}
NESTED = {"jvp": push_forward, "vjp": OPERATIONS["vjp"]}


def eager(operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]) -> Callable[..., Any]:
    """The operator as TensorFlow runs it operation by operation. Raises Unsupported if TensorFlow has none."""
    if operator == "value":
        return lambda *args: tf.convert_to_tensor(f(*args))
    if operator not in OPERATIONS:
        raise Unsupported(f"TensorFlow has no {operator} here")
    return on_active(OPERATIONS[operator], operator, f, wrt)


UNTRACEABLE = (
    tf.errors.OperatorNotAllowedInGraphError,
    LookupError,
    NotImplementedError,
    SystemError,  # from TensorFlow's C code, instead of the TypeError of a derivative of a loop
    TypeError,
)


def compiled(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...], **options: Any
) -> Callable[..., Any]:
    """`prepare` by tf.function with these options."""
    call = eager(operator, f, args, wrt)
    given: Any = args
    leaves, structure = optree.tree_flatten(given)
    places = [k for k, leaf in enumerate(leaves) if not tree.is_static(leaf)]

    def program(*traced: Any) -> Any:  # static leaves become part of the program
        every: list[Any] = list(leaves)
        for k, leaf in zip(places, traced, strict=True):
            every[k] = leaf
        return call(*optree.tree_unflatten(structure, every))

    specs = [tf.TensorSpec(leaves[k].shape, tf.float64) for k in places]
    try:
        with phase("trace"):
            function = tf.function(program, autograph=False, **options).get_concrete_function(*specs)
    except UNTRACEABLE as error:
        raise Unsupported(f"tf.function: {first_line(error.__cause__ or error)}") from error
    flat = all(isinstance(arg, tf.Tensor) for arg in args)
    if flat:
        return lambda *args: function(*args)
    return lambda *args: function(*(leaf for leaf in tree.leaves(args) if not tree.is_static(leaf)))


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return compiled(operator, f, args, wrt)


def by_xla(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    call = compiled(operator, f, args, wrt, jit_compile=True)

    def supported(*args: Any) -> Any:  # XLA compiles at the first call
        try:
            return call(*args)
        except tf.errors.InvalidArgumentError as error:
            if "unsupported operations" not in str(error):
                raise
            found = re.search(r"XLA_CPU_JIT: (\w+)", str(error))
            raise Unsupported(f"XLA has no {found[1] if found else 'kernel of an operation'}") from error

    return supported


VARIANTS = {
    "tensorflow_eager": {
        "SUMMARY": "Eager TensorFlow: record operations with tf.GradientTape at every call.",
        "prepare": eager,
    },
    "tensorflow_xla": {
        "SUMMARY": "tf.function with jit_compile: XLA compiles TensorFlow's graph at the input shapes.",
        "prepare": by_xla,
    },
}
