"""pytensor: differentiate and simplify one graph of arrays, run its operations on numpy."""

import re
from collections.abc import Callable, Hashable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytensor
import pytensor.gradient
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.traversal import ancestors
from pytensor.link.vm import VMLinker
from pytensor.scan.op import Scan

from adbench import Namespace, Operator, Unsupported, phase
from adbench.model import tree
from adbench.model.backend import WITH_VECTOR
from adbench.model.settings import kept_programs

REQUIRES = ("pytensor",)
THREADED = True  # in numpy's BLAS
LICENCE = "BSD-3-Clause"

# All simplifications except `fusion`: without a compiler, fused operations run number by number in Python.
MODE = Mode(VMLinker(use_cloop=False, c_thunks=False), "fast_run").excluding("fusion")
pytensor.config.mode = "FAST_COMPILE"  # for graphs inside operations, compiled at their first call
IN_LOOPS = None  # what pytensor's users have: a loop's body in C, with a compiler
if kept_programs("pytensor") is not None:  # a check
    pytensor.config.traceback__limit = 0  # recording where variables are created takes a quarter of a check's time
    IN_LOOPS = MODE  # the same simplifications, without seconds of a compiler for a few calls
MOST_OPERATIONS = 200  # in a graph: simplifying takes 7 ms each, far more inside loops

DEPENDS = "pytensor builds one graph for all data, but a Python loop or branch depends on data"


def shape(variable: Any) -> Any:
    """The shape as numbers if pytensor knows it, because cases count and index with it; otherwise as a variable."""
    known = variable.type.shape
    return pt.shape(variable) if None in known else known


pt.TensorVariable.shape = property(shape)


def loop(step: Callable[[Any, Any], Any], state: Any, n: int) -> Any:
    """A scan, so that the graph does not grow with n."""
    if not n:
        return state
    start = [pt.as_tensor(leaf, dtype="float64") for leaf in tree.leaves(state)]

    def body(i: Any, *leaves: Any) -> Any:
        return [pt.as_tensor(leaf) for leaf in tree.leaves(step(i, tree.filled(state, leaves)))]

    found = pytensor.scan(body, sequences=pt.arange(n), outputs_info=start, mode=IN_LOOPS, return_updates=False)
    return tree.filled(state, [leaf[-1] for leaf in (found if isinstance(found, list) else [found])])


def value_at(g: Callable[..., Any], at: Any) -> Any:
    """g(at), to be differentiated in `at`, which is not a root of the graph. Raises Unsupported if g has a scan.

    A scan absorbs everything between the roots and its body: derivatives in `at` would be 0.
    """
    value = g(at)
    parts = [pt.as_tensor(part, dtype="float64") for part in (value if isinstance(value, (list, tuple)) else [value])]
    if any(isinstance(getattr(variable.owner, "op", None), Scan) for variable in ancestors(parts)):
        raise Unsupported("pytensor cannot differentiate a scan inside another derivative")
    return parts if isinstance(value, (list, tuple)) else parts[0]


def derivative(g: Callable[[Any], Any], x: Any) -> Any:
    """∇g(x) at a new variable, because g may hold x as a constant."""
    at = pt.as_tensor(x, dtype="float64").copy()
    return gradient(value_at(g, at), [at])[0]


def fft(*_: Any) -> Any:
    raise Unsupported("pytensor's FFT returns pairs of real numbers instead of complex numbers")


# numpy's constants: their shapes are known.
PLAIN = {name: getattr(np, name) for name in ("zeros", "ones", "full", "eye", "arange", "linspace", "asarray")}
xp = Namespace(
    pt,
    loop=loop,
    derivative=derivative,
    linalg={
        "vector_norm": pt.linalg.norm,
        "diagonal": lambda x: pt.diagonal(x, axis1=-2, axis2=-1),
        "cholesky": lambda A, *, upper=False: pt.linalg.cholesky(A, lower=not upper),
    },
    fft=SimpleNamespace(rfft=fft, irfft=fft),
    remainder=pt.mod,
    stop_gradient=pytensor.gradient.disconnected_grad,
    **PLAIN,
)


def gradient(value: Any, x: list[Any]) -> list[Any]:
    found: list[Any] = pytensor.grad(value, x, disconnected_inputs="ignore", return_disconnected="zero")
    return found


def jacobian(value: Any, x: list[Any]) -> list[Any]:
    if not value.ndim:
        return gradient(value, x)
    found = pytensor.gradient.jacobian(value.ravel(), x, disconnected_inputs="ignore")
    return [J.reshape((*value.type.shape, *part.type.shape)) for J, part in zip(found, x, strict=True)]


def along(value: Any, x: list[Any], v: list[Any]) -> list[Any]:
    """J v, one input at a time: for several, `pushforward` loses broadcast inputs."""
    one = [
        pytensor.gradient.pushforward(value, [a], [b], disconnected_outputs="ignore") for a, b in zip(x, v, strict=True)
    ]
    return [sum(one[1:], one[0])]


OPERATIONS: dict[Operator, Callable[..., list[Any]]] = {
    "value": lambda f, x: [f],
    "gradient": gradient,
    "value_and_gradient": lambda f, x: [f, *gradient(f, x)],
    "jacobian": jacobian,
    "jvp": along,
    "vjp": lambda f, x, w: pytensor.gradient.pullback(f, x, w[0], disconnected_inputs="ignore"),
    "hvp": lambda f, x, v: gradient(sum((pt.sum(g * u) for g, u in zip(gradient(f, x), v, strict=True)), 0.0), x),
}


def forward(g: Callable[..., Any], x: Any, v: Any) -> Any:
    """J v at new variables, because g may hold x as a constant."""
    at = [pt.as_tensor(leaf, dtype="float64").copy() for leaf in x]
    value = value_at(g, at)
    return [along(part, at, v)[0] for part in value] if isinstance(value, list) else along(value, at, v)[0]


def reverse(g: Callable[..., Any], x: Any, w: Any) -> Any:
    """wᵀ J at new variables."""
    at = [pt.as_tensor(leaf, dtype="float64").copy() for leaf in x]
    return pytensor.gradient.pullback(value_at(g, at), at, pt.as_tensor(w), disconnected_inputs="ignore")


NESTED = {"jvp": forward, "vjp": reverse}


def to_native(leaf: Any) -> Any:
    return np.array(leaf, dtype=np.float64)


def numbers(args: tuple[Any, ...]) -> list[Any]:
    return [leaf for leaf in tree.leaves(args) if not tree.is_static(leaf)]


def size(variables: list[Any]) -> int:
    """Number of operations in a graph, including those inside loops."""
    nodes = {variable.owner for variable in ancestors(variables)} - {None}
    inner = (getattr(node.op, "fgraph", None) for node in nodes)
    return len(nodes) + sum(size(graph.outputs) for graph in inner if graph is not None)


def refuse(operations: int, most_operations: int) -> None:
    """Raise Unsupported if a graph has more operations."""
    if operations > most_operations:
        raise Unsupported(
            f"{operations:,} operations, more than {most_operations:,}, take too long; use a smaller size"
        )


GRADIENTS = ("gradient", "value_and_gradient", "jacobian")  # of a scalar function: the same graph
LIKE_GRADIENTS = ("vjp", "hvp")  # their graphs may be a little shorter
LENGTHS: dict[Hashable, int] = {}  # gradient -> operations: building a graph only to count takes seconds


def of_gradient(f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...], most_operations: int) -> Hashable:
    """The key in LENGTHS: everything that determines a gradient's graph."""
    leaves = tuple(leaf if tree.is_static(leaf) else np.shape(leaf) for leaf in tree.leaves(args))
    return getattr(getattr(f, "case", None), "f", f), leaves, wrt, most_operations


def graph(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...], most_operations: int
) -> tuple[tuple[Any, ...], list[Any]]:
    """(symbols for the arguments, requested variables). Raises Unsupported if the value's graph is too long."""
    if operator not in OPERATIONS:
        raise Unsupported(f"pytensor has no {operator} of several arguments")
    count = len(args) - (operator in WITH_VECTOR)
    gradients = of_gradient(f, args[:count], wrt, most_operations)
    known = LENGTHS.get(gradients, 0)
    if operator in GRADIENTS or (operator in LIKE_GRADIENTS and known > 2 * most_operations):
        refuse(known, most_operations)

    def symbol(leaf: Any) -> Any:
        return leaf if tree.is_static(leaf) else pt.tensor(dtype="float64", shape=np.shape(leaf))

    symbols = tuple(tree.map_leaves(symbol, arg) for arg in args)
    x = tree.leaves(tuple(symbols[i] for i in wrt))
    try:
        value = pt.as_tensor(f(*symbols[:count]), dtype="float64")
    except TypeError as error:
        if "cannot be converted to Python" in str(error):
            raise Unsupported(DEPENDS) from error
        if "Cannot cast True or False" in str(error):
            raise Unsupported("== compares the identity of pytensor's variables, not their values") from error
        raise
    refuse(size([value]), most_operations)
    asked = OPERATIONS[operator](value, x, *([tree.leaves(symbols[count:])] if count < len(args) else []))
    operations = size(asked)
    if not value.ndim and operator in GRADIENTS:
        LENGTHS[gradients] = operations
    refuse(operations, most_operations)
    return symbols, asked


def compiled(
    operator: Operator,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: tuple[int, ...],
    mode: Any,
    most_operations: int,
) -> Callable[..., Any]:
    """`prepare` in one of pytensor's modes, for graphs of at most `most_operations`."""
    try:
        with phase("trace"):
            symbols, asked = graph(operator, f, args, wrt, most_operations)
    except pytensor.gradient.NullTypeGradError as error:
        named = re.search(r"of the (\w+)", str(error))
        raise Unsupported(f"pytensor has no derivative of {named[1] if named else 'an operation'}") from error
    with phase("compile"):
        function = pytensor.function(numbers(symbols), asked, mode=mode, on_unused_input="ignore", trust_input=True)
        try:
            function(*numbers(args))  # compiles the graphs inside operations
        except (AttributeError, NotImplementedError) as error:  # the second since pytensor 3.3
            if not any(text in str(error) for text in ("Scratchpad' object has no attribute 'ufunc", "32 operands")):
                raise
            reason = "pytensor's virtual machine adds at most 31 arrays at once; use pytensor_numba"
            raise Unsupported(reason) from error
    example = tuple(args[i] for i in wrt)

    def call(*args: Any) -> Any:
        found = function(*numbers(args))
        if operator in ("value", "jvp"):
            return found[0]
        if operator == "value_and_gradient":
            return found[0], tree.filled(example, found[1:])
        return tree.filled(example, found)

    return call


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return compiled(operator, f, args, wrt, MODE, MOST_OPERATIONS)
