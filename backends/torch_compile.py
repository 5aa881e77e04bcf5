"""Function transforms compiled as one graph by torch.compile: TorchDynamo, AOTAutograd, Inductor's C++."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
import torch._inductor.config
from torch.overrides import TorchFunctionMode

from adbench import Operator, Unsupported, on_active, phase

from . import torch_func

VARIANT_OF = "torch"
BUILDS = True
DEBIAN = ("g++",)

KNOWN = torch_func.KNOWN

torch._inductor.config.compile_threads = 1  # else a pool of processes starts, and outlives what asked for it

xp, to_native = torch_func.xp, torch_func.to_native

# A loop is unrolled, and Inductor's time grows faster than the graph: ten steps of an ODE take it five minutes.
MOST_FUNCTIONS = 150


class Count(TorchFunctionMode):  # type: ignore[misc]  # torch is not read for its types
    """How many of torch's functions are called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), options: Any = None) -> Any:
        """Called in the place of each."""
        self.calls += 1
        if self.calls > MOST_FUNCTIONS:
            raise Unsupported(f"more than {MOST_FUNCTIONS} operations in one graph, loops unrolled: minutes to compile")
        return function(*args, **(options or {}))


def prepare(
    operator: Operator, f: Callable[..., Any], args: tuple[Any, ...], wrt: tuple[int, ...]
) -> Callable[..., Any]:
    call = f if operator == "value" else on_active(torch_func.OPERATIONS[operator], operator, f, wrt)
    count = len(args) - (operator in ("jvp", "vjp", "hvp"))

    def program(*args: Any) -> Any:
        return call(*args)

    with phase("trace"), Count():
        f(*args[:count])
    # What is compiled is kept by code object, and searched through at every call: each program has one of its own.
    own = FunctionType(program.__code__.replace(), globals(), operator, None, program.__closure__)
    compiled = torch.compile(own, fullgraph=True, dynamic=False)
    try:
        with phase("compile"):
            compiled(*args)
    except torch._dynamo.exc.Unsupported as error:
        reason = "torch.compile cannot make one graph of it: a branch on data, or a function it does not follow"
        raise Unsupported(reason) from error
    return compiled  # type: ignore[no-any-return]
