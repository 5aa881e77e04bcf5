"""torch.compile: record torch.func's transforms as one graph (make_fx) and compile it to C++ with Inductor."""

from collections.abc import Callable
from typing import Any

import torch
import torch._inductor.config
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from adbench import Operator, Unsupported, on_active, phase

from . import torch_func

VARIANT_OF = "torch"
BATCHED = True
DTYPES = ("float32", "bfloat16", "float16")
BUILDS = True

torch._inductor.config.compile_threads = 1  # or a pool of processes starts that outlives the worker

xp, to_native, to_numpy, NESTED = torch_func.xp, torch_func.to_native, torch_func.to_numpy, torch_func.NESTED
use_dtype = torch_func.use_dtype

# Inductor's time grows faster than the graph: ten seconds for this many, five minutes for ten unrolled ODE steps.
MOST_OPERATIONS = 400


def refuse(operations: int) -> None:
    """Raise Unsupported if the graph has too many."""
    if operations > MOST_OPERATIONS:
        raise Unsupported(f"more than {MOST_OPERATIONS} operations, loops unrolled, take minutes; use a smaller size")


class GraphLimit(TorchFunctionMode):  # type: ignore[misc]  # torch is untyped here
    """Stop recording when the graph grows too long."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), options: Any = None) -> Any:
        """Called instead of each torch function."""
        self.calls += 1
        refuse(self.calls)
        return function(*args, **(options or {}))


def recorded(call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The graph of a call, operations and derivatives, without dead code."""
    try:  # not TorchDynamo: it follows the case's Python and fails on numpy arrays
        with GraphLimit():
            graph = make_fx(call)(*args)
    except RuntimeError as error:
        if "get value out of a tracing tensor" not in str(error):
            raise
        reason = "torch.compile needs one graph for all data, but a Python loop or branch depends on data; use torch"
        raise Unsupported(reason) from error
    graph.graph.eliminate_dead_code()
    graph.recompile()
    refuse(sum(node.op == "call_function" for node in graph.graph.nodes))
    return graph


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    call = f if operator == "value" else on_active(torch_func.OPERATIONS[operator], operator, f, wrt)
    with phase("trace"):
        graph = recorded(call, args)
    compiled = torch.compile(graph, fullgraph=True, dynamic=False)
    with phase("compile"):
        compiled(*args)
    return compiled  # type: ignore[no-any-return]
