"""casadi SX: record scalar expressions once and run them in casadi's virtual machine."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import casadi
import numpy as np
from scipy import sparse

from adbench import Operator, Unsupported, phase
from adbench.execution.native.build import Unit, built
from adbench.model import tree
from adbench.model.backend import WITH_VECTOR

from .support.casadi_arrays import CasadiArray, column_of, shape_of, within_reach
from .support.casadi_arrays import xp as xp

REQUIRES = ("casadi", "scipy")
LICENCE = "LGPL-3.0-or-later"
SPARSE_JACOBIAN = True
BATCHED = True

OPERATIONS: dict[Operator, Callable[..., Any]] = {  # f: column of values, x: column of active inputs
    "value": lambda f, x, v: f,
    "gradient": lambda f, x, v: casadi.gradient(f, x),
    "batch_gradient": lambda f, x, v: casadi.gradient(f, x),  # of one point
    "value_and_gradient": lambda f, x, v: casadi.vertcat(f, casadi.gradient(f, x)),
    "jacobian": lambda f, x, v: casadi.jacobian(f, x),
    "jvp": lambda f, x, v: casadi.jtimes(f, x, v),
    "vjp": lambda f, x, w: casadi.jtimes(f, x, w, True),
    "hvp": lambda f, x, v: casadi.jtimes(casadi.gradient(f, x), x, v),
    "hessian": lambda f, x, v: casadi.hessian(f, x)[0],
}


def transform(g: Callable[..., Any], x: Any, direction: Any, *, reverse: bool) -> Any:
    """J v or wᵀ J at a new symbol, with x substituted afterwards."""
    given = [column_of(leaf) for leaf in x]
    at = casadi.vertcat(*given)
    kind = type(at)
    symbol = kind.sym("inner", at.numel())
    inner = casadi.vertsplit(symbol, ends(given))
    value = g(tuple(CasadiArray(part, shape_of(leaf)) for part, leaf in zip(inner, x, strict=True)))
    values = value if isinstance(value, tuple) else (value,)
    seeds = casadi.vertcat(*map(column_of, direction if isinstance(direction, tuple) else (direction,)))
    column = casadi.vertcat(*(kind(column_of(part)) for part in values))
    found = casadi.substitute(casadi.jtimes(column, symbol, kind(seeds), reverse), symbol, at)
    like = x if reverse else values
    parts = casadi.vertsplit(casadi.densify(found), ends([column_of(leaf) for leaf in like]))
    arrays = tuple(CasadiArray(part, shape_of(leaf)) for part, leaf in zip(parts, like, strict=True))
    return arrays if reverse or value is values else arrays[0]


NESTED = {"jvp": partial(transform, reverse=False), "vjp": partial(transform, reverse=True)}


def to_native(leaf: Any) -> Any:
    return np.array(leaf, dtype=np.float64, order="C")


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    return recorded(operator, f, args, wrt, casadi.SX)


def recorded(
    operator: Operator,
    f: Callable[..., Any],
    args: tuple[Any, ...],
    wrt: tuple[int, ...],
    kind: Any,
    compiled: Callable[[Any], Any] = lambda function: function,
) -> Callable[..., Any]:
    """`prepare` with expressions of this kind; `compiled` may replace casadi's function by a faster one."""
    batched = operator == "batch_gradient"
    with phase("trace"):
        function, shape = graph(operator, f, at_one_point(args, wrt) if batched else args, wrt, kind)
    function = compiled(function)
    return calling(at_points(function, args, wrt) if batched else function, operator, args, wrt, shape)


def at_one_point(args: tuple[Any, ...], wrt: tuple[int, ...]) -> tuple[Any, ...]:
    """The arguments of the first of many points."""
    return tuple(tree.map_leaves(lambda leaf: leaf[0], arg) if k in wrt else arg for k, arg in enumerate(args))


def at_points(function: Any, args: tuple[Any, ...], wrt: tuple[int, ...]) -> Any:
    """A function of one point mapped over many: its columns are points, in memory one after the other."""
    count = len(tree.leaves(args[wrt[0]])[0])
    owners = [k for k, arg in enumerate(args) for leaf in tree.leaves(arg) if not tree.is_static(leaf)]
    shared = [number for number, owner in enumerate(owners) if owner not in wrt]
    return function.map("of_points", "serial", count, shared, [])


def graph(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...], kind: Any
) -> tuple[Any, tuple[int, ...]]:
    """(casadi's function, shape of f's value). The function maps all numbers and arrays to the blocks of the result.

    Each block is transposed, because casadi stores columns.

    kind   casadi.SX for scalar expressions, casadi.MX for matrix expressions
    """

    def symbol(leaf: Any) -> Any:
        if tree.is_static(leaf):
            return leaf
        found = CasadiArray(kind.sym("x", np.size(leaf)), np.shape(leaf))
        within_reach(found.size, found)
        return found

    count = len(args) - (operator in WITH_VECTOR)
    symbols = [tree.map_leaves(symbol, arg) for arg in args]
    given = columns(symbols)
    active = columns([symbols[i] for i in wrt])
    # A column of SX symbols is still a symbol. For MX, take one symbol and split it into the inputs.
    x = casadi.vertcat(*active) if kind is casadi.SX else kind.sym("x", sum(part.numel() for part in active))
    parts = iter(active if kind is casadi.SX else casadi.vertsplit(x, ends(active)))
    for i in wrt:
        symbols[i] = tree.map_leaves(lambda leaf: CasadiArray(next(parts), leaf.shape), symbols[i])
    value = f(*symbols[:count])
    found = OPERATIONS[operator](kind(column_of(value)), x, casadi.vertcat(*columns(symbols[count:])))
    if kind is not casadi.SX:
        others = [column for column in given if not any(column is part for part in active)]
        found = casadi.Function("of_all", [x, *others], [found])(casadi.vertcat(*active), *others)
    outputs = [
        block
        if operator == "jacobian" and shape_of(value) and 2 * block.nnz() < block.numel()
        else casadi.densify(block)
        for block in blocks(operator, found, ends(active))
    ]
    return casadi.Function("f", given, outputs), shape_of(value)


def blocks(operator: Operator, found: Any, cuts: list[int]) -> Iterator[Any]:
    """Split an operation's result at the borders of the active inputs."""
    if operator in ("value", "jvp"):
        yield found
    elif operator == "value_and_gradient":
        yield from casadi.vertsplit(found, [0, *(1 + cut for cut in cuts)])
    elif operator == "hessian":
        yield from (block.T for row in casadi.vertsplit(found, cuts) for block in casadi.horzsplit(row, cuts))
    elif operator == "jacobian":
        yield from (block.T for block in casadi.horzsplit(found, cuts))
    else:
        yield from casadi.vertsplit(found, cuts)


def columns(symbols: Any) -> list[Any]:
    return [leaf.column for leaf in tree.leaves(symbols) if isinstance(leaf, CasadiArray)]


def ends(parts: Sequence[Any]) -> list[int]:
    return [0, *np.cumsum([part.numel() for part in parts]).tolist()]


def calling(
    function: Any, operator: Operator, args: tuple[Any, ...], wrt: tuple[int, ...], shape: tuple[int, ...]
) -> Callable[..., Any]:
    """Make the call, with arrays that are bound to casadi once: its other ways to call take 15 µs more."""
    x = tuple(args[i] for i in wrt)
    shapes = [np.shape(leaf) for leaf in tree.leaves(x)]
    made = {
        "value": [shape],
        "jvp": [shape],
        "value_and_gradient": [shape, *shapes],
        "jacobian": [(*shape, *s) for s in shapes],
        "hessian": [(*s, *t) for s in shapes for t in shapes],
    }.get(operator, shapes)
    buffer, evaluate = function.buffer()
    read = [np.empty(function.nnz_in(k)) for k in range(function.n_in())]
    written = [np.empty(function.nnz_out(k)) for k in range(function.n_out())]
    for k, array in enumerate(read):
        buffer.set_arg(k, array.data)
    for k, array in enumerate(written):
        buffer.set_res(k, array.data)
    results = [result(function.sparsity_out(k), s) for k, s in enumerate(made)]
    flat = all(isinstance(arg, np.ndarray) or tree.is_static(arg) for arg in args)
    data = [i for i, arg in enumerate(args) if not tree.is_static(arg)]

    def call(*args: Any) -> Any:
        leaves = [args[i] for i in data] if flat else [leaf for leaf in tree.leaves(args) if not tree.is_static(leaf)]
        for array, leaf in zip(read, leaves, strict=True):
            array[...] = leaf.ravel()
        evaluate()
        if buffer.ret():  # for example a singular matrix: casadi is silent and keeps the old results
            raise ArithmeticError("casadi's evaluation failed, for example on a singular matrix")
        found = [make(array.copy()) for make, array in zip(results, written, strict=True)]
        return assemble(found)

    def gradient(found: list[Any]) -> Any:
        return tuple(found) if flat else tree.filled(x, found)

    def hessian(found: list[Any]) -> Any:
        n = len(shapes)
        return gradient([gradient(found[k : k + n]) for k in range(0, n * n, n)])

    ways: dict[str, Callable[[list[Any]], Any]] = {
        "value": lambda found: found[0],
        "jvp": lambda found: found[0],
        "value_and_gradient": lambda found: (found[0], gradient(found[1:])),
        "hessian": hessian,
    }
    assemble = ways.get(operator, gradient)
    return call


def result(sparsity: Any, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """A function from the numbers of an output to the array; a sparse output is a transposed block of the Jacobian."""
    if sparsity.is_dense():
        return lambda numbers: numbers.reshape(shape)
    rows, starts = np.array(sparsity.row()), np.array(sparsity.colind())
    return lambda numbers: sparse.csr_array((numbers, rows, starts), shape=sparsity.T.size())


# Written out as C.

# The C code has no loops: gcc takes 8 s for 8,000 instructions and minutes for a hundred thousand.
MOST_INSTRUCTIONS = 6_000

# Not C++: there the generated code replaces hypot, log1p and expm1 with poor versions.
AS_C = ("-x", "c", "-std=gnu11", "-DGCC_HASCLASSVISIBILITY")


def in_c(function: Any) -> Any:
    length = function.n_instructions()
    if length > MOST_INSTRUCTIONS:
        raise Unsupported(f"{length:,} C instructions, at most {MOST_INSTRUCTIONS:,} compile in seconds; use casadi")
    with phase("lower"):
        writer = casadi.CodeGenerator(function.name())
        writer.add(function)
        text = writer.dump()
    path = built(Unit(text, AS_C, (), AS_C, f"casadi's C, {length:,} instructions"))
    return casadi.external(function.name(), str(path))


VARIANTS = {
    "casadi_c": {
        "SUMMARY": "casadi SX written out as C and compiled by the system's compiler.",
        "BUILDS": True,
        "DEBIAN": ("g++",),
        "prepare": partial(recorded, kind=casadi.SX, compiled=in_c),
    },
    "casadi_mx": {
        "SUMMARY": "casadi MX: record matrix operations once as nodes of a graph.",
        "prepare": partial(recorded, kind=casadi.MX),
    },
}
