"""Function transforms recorded as one graph and compiled: make_fx, then torch.compile with Inductor's C++."""

from collections.abc import Callable
from typing import Any

import torch
import torch._inductor.config
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from adbench import Operator, Unsupported, on_active, phase

from . import torch_func

VARIANT_OF = "torch"
BUILDS = True

KNOWN = {
    **torch_func.KNOWN,
    "gaussian_mixture": "second derivatives off by orders: added up in one zero, expanded (pytorch/pytorch#183986)",
    "gaussian_process": "off by orders: an identity is read before its diagonal is filled (as pytorch/pytorch#182765)",
}

torch._inductor.config.compile_threads = 1  # else a pool of processes starts, and outlives what asked for it

xp, to_native, to_numpy = torch_func.xp, torch_func.to_native, torch_func.to_numpy

# Inductor's time grows faster than the graph: this many take ten seconds, ten unrolled steps of an ODE five minutes.
MOST_OPERATIONS = 400


def refuse(operations: int) -> None:
    """Raises Unsupported where a graph has so many."""
    if operations > MOST_OPERATIONS:
        raise Unsupported(f"more than {MOST_OPERATIONS} operations in one graph, loops unrolled: it soon takes minutes")


class Count(TorchFunctionMode):  # type: ignore[misc]  # torch is not read for its types
    """Ends the recording of what will be too long."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), options: Any = None) -> Any:
        """Called in the place of each of torch's functions."""
        self.calls += 1
        refuse(self.calls)
        return function(*args, **(options or {}))


def recorded(call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Its operations and derivatives as a graph, without those whose result nobody takes."""
    try:  # TorchDynamo by itself follows the case's Python, and fails where that has arrays of numpy's
        with Count():
            graph = make_fx(call)(*args)
    except RuntimeError as error:
        if "get value out of a tracing tensor" not in str(error):
            raise
        raise Unsupported("a Python loop or branch depends on data, and one graph is compiled for all data") from error
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
