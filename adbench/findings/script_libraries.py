"""How a stand-alone script uses a library: its imports, its two modes, and its names for functions of the array API.

A script has no line of adbench. It computes every derivative from the library's two modes, nested as its backend does:

    reverse(g, x)       the gradient of g at the tuple x, a tuple
    forward(g, x, v)    J v, a number, or a tuple if g returns one

Libraries without an entry get a script that calls adbench: num_dual has single numbers, and casadi matrices with few
functions, so that the arrays of a program are those of adbench's backend; pytensor_numba needs its own compiler mode.
"""

from __future__ import annotations

import importlib
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from adbench.model.namespace import aliases
from adbench.model.operator import DEFINITIONS
from adbench.vocabulary import FUNCTIONS

THIRD = "third_order"
COMPUTED: Mapping[str, str] = {
    **{one.name: one.by_modes for one in DEFINITIONS.values() if one.by_modes},
    THIRD: "reverse(lambda *p: sum(total(g * d) for g, d in zip(reverse(slope, p), v)), at)",
}
"""Operator -> its text; `total` sums an array."""

OF_ONE_ENTRY = tuple(name for name, text in COMPUTED.items() if "unit" in text)
"""Operators whose text gives one entry of the result, along `unit`."""

OF_ONE_NUMBER = (*(one.name for one in DEFINITIONS.values() if one.result == "value"), *OF_ONE_ENTRY)
"""Operators whose result is one number."""

TRANSFORMS = {
    "reverse": "def reverse(g, x):\n    return vjp(g, *x)[1](array(1.0))",
    "forward": "def forward(g, x, v):\n    return jvp(g, x, v)[1]",
}
TORCH_REVERSE = """def reverse(g, x):
    leaves = tuple(leaf.view_as(leaf).requires_grad_() for leaf in x)
    value = g(*leaves)
    if not value.requires_grad:  # torch refuses to differentiate a constant
        return tuple(map(torch.zeros_like, leaves))
    again = any(leaf.requires_grad or forward_ad.unpack_dual(leaf).tangent is not None for leaf in x)
    return torch.autograd.grad(value, leaves, create_graph=again, materialize_grads=True)"""
TORCH_FORWARD = """def tangent(dual):
    primal, slope = forward_ad.unpack_dual(dual)
    return torch.zeros_like(primal) if slope is None else slope


def forward(g, x, v):
    with forward_ad.dual_level():
        result = g(*map(forward_ad.make_dual, x, v))
        return tuple(map(tangent, result)) if isinstance(result, tuple) else tangent(result)"""
MYGRAD_REVERSE = """def reverse(g, x):
    leaves = [mygrad.tensor(one) for one in x]
    value = g(*leaves)
    if isinstance(value, mygrad.Tensor):
        value.backward()
    return tuple(numpy.zeros(one.shape) if one.grad is None else one.grad for one in leaves)"""
PYTENSOR_REVERSE = """def reverse(g, x):
    return tuple(pytensor.grad(g(*x), list(x), disconnected_inputs="ignore", return_disconnected="zero"))"""
PYTENSOR_FORWARD = """def along(value, x, v):
    push = pytensor.gradient.pushforward
    return sum(push(value, [a], [pt.as_tensor(b)], disconnected_outputs="ignore") for a, b in zip(x, v))


def forward(g, x, v):
    result = g(*x)
    return tuple(along(one, x, v) for one in result) if isinstance(result, tuple) else along(result, x, v)"""
PYTENSOR_RUN = '''

def run(h, at):
    """h(at), as a graph that pytensor simplifies and runs."""
    symbols = tuple(pt.tensor(dtype="float64", shape=numpy.shape(one)) for one in at)
    mode = Mode(VMLinker(use_cloop=False, c_thunks=False), "fast_run")
    return pytensor.function(symbols, h(symbols), mode=mode, on_unused_input="ignore")(*at)
'''

TORCH_NAMES = {
    "permute_dims": "torch.permute", "expand_dims": "torch.unsqueeze", "max": "torch.amax", "min": "torch.amin",
    "cumulative_sum": "torch.cumsum", "cumulative_prod": "torch.cumprod", "linalg.trace": "torch.trace",
    "astype": "torch.Tensor.to", "matrix_transpose": "torch.adjoint", "pi": "torch.pi", "asarray": "torch.tensor",
    **{name: row.torch for name, row in FUNCTIONS.items() if row.torch},
}  # fmt: skip
TORCH_HELPERS = {
    "std": "def std(x, axis=None):\n    return torch.std(x, dim=axis, correction=0)",
    "var": "def var(x, axis=None):\n    return torch.var(x, dim=axis, correction=0)",
    "prod": "def prod(x, axis=None):\n    return torch.prod(x) if axis is None else torch.prod(x, axis)",
    "sort": "def sort(x, axis=-1):\n    return torch.sort(x, dim=axis, stable=True).values",
    "flip": "def flip(x, axis):\n    return torch.flip(x, (axis,))",
    "roll": "def roll(x, shift, axis):\n    return torch.roll(x, shift, axis)",
    "loop": "def loop(step, state, n):\n    for i in range(n):\n        state = step(i, state)\n    return state",
    "derivative": "def derivative(g, x):\n    return torch.func.grad(g)(x)",
    "log1p_exp": "def log1p_exp(x):\n    return torch.logaddexp(torch.zeros_like(x), x)",
}
JAX_HELPERS = {
    "loop": "def loop(step, state, n):\n    return jax.lax.fori_loop(0, n, step, state)",
    "derivative": "def derivative(g, x):\n    return jax.grad(g)(x)",
    "log1p_exp": "def log1p_exp(x):\n    return jnp.logaddexp(0.0, x)",
}
JAX_NAMES = {name: row.jax for name, row in FUNCTIONS.items() if row.jax.startswith("jax.scipy.") and name != "i0"}
"""Of jax's two functions i0, the backend's is jax.numpy's."""
NUMPY_HELPERS = {"loop": TORCH_HELPERS["loop"]}
OLDER = {**aliases(), "linalg.trace": "trace", "linalg.vector_norm": "linalg.norm"}
"""The names of libraries that follow an older numpy."""


@dataclass(frozen=True)
class ScriptLibrary:
    """How a script uses a library.

    module     whose version the script prints; numpy: what its text calls for `xp`
    names      function of the array API -> the library's, if it is spelled otherwise; helpers: its text, if it has none
    modes      "reverse" and "forward" -> the text of that function
    run        "{}" in place of a text that computes; "jax.jit(lambda at: {})(at)" for a compiled one
    """

    module: str
    numpy: str
    head: str
    modes: Mapping[str, str] = field(default_factory=lambda: TRANSFORMS)
    names: Mapping[str, str] = field(default_factory=dict)
    helpers: Mapping[str, str] = field(default_factory=dict)
    run: str = "{}"
    nests: bool = True

    def computed(self, operator: str) -> str | None:
        """The text that computes an operator; None if the library lacks one of the modes."""
        text = COMPUTED[operator]
        calls = {mode: text.count(f"{mode}(") for mode in TRANSFORMS}
        if any(calls[mode] and mode not in self.modes for mode in calls) or (
            sum(calls.values()) > 1 and not self.nests
        ):
            return None
        return self.run.format(text.replace("total(", f"{self.numpy}.sum("))

    def head_for(self, computed: str) -> str:
        """The imports and the modes that a text needs."""
        return "\n\n\n".join([self.head, *(text for mode, text in self.modes.items() if f"{mode}(" in computed)])

    def called(self, name: str) -> str:
        """The library's text for a function of the array API."""
        own = self.names.get(name, name)
        return own if own.partition(".")[0] in (self.module, self.numpy) else f"{self.numpy}.{own}"

    def has(self, text: str) -> bool:
        """Whether the library has the function of this text."""
        first, _, rest = text.partition(".")
        home = {"jnp": "jax.numpy", "anp": "autograd.numpy", "pt": "pytensor.tensor"}.get(first, first)
        try:
            if rest.count("."):
                importlib.import_module(f"{home}.{rest.rpartition('.')[0]}")
        except ImportError:
            pass
        try:
            operator.attrgetter(rest)(importlib.import_module(home))
        except (AttributeError, ImportError):
            return False
        return True


DOUBLE = "\n\ntorch.set_default_dtype(torch.float64)\narray = torch.tensor"
TORCH = f"import torch\nfrom torch.autograd import forward_ad{DOUBLE}"
TORCH_FUNC = f"import torch\nfrom torch.func import jvp, vjp{DOUBLE}"
OF_FUNC = ScriptLibrary("torch", "torch", TORCH_FUNC, names=TORCH_NAMES, helpers=TORCH_HELPERS)
JAX = (
    'import jax\nimport jax.numpy as jnp\nfrom jax import jvp, vjp\n\njax.config.update("jax_enable_x64", True)\n'
    'jax.config.update("jax_platforms", "cpu")\narray = jnp.array'
)
LIBRARIES: Mapping[str, ScriptLibrary] = {
    "torch": replace(OF_FUNC, head=TORCH, modes={"reverse": TORCH_REVERSE, "forward": TORCH_FORWARD}),
    "torch_func": OF_FUNC,
    "torch_compile": replace(OF_FUNC, run="torch.compile(lambda at: {})(at)"),
    "jax": ScriptLibrary("jax", "jnp", JAX, names=JAX_NAMES, helpers=JAX_HELPERS, run="jax.jit(lambda at: {})(at)"),
    "jax_eager": ScriptLibrary("jax", "jnp", JAX, names=JAX_NAMES, helpers=JAX_HELPERS),
    "autograd": ScriptLibrary(
        "autograd", "anp",
        "import autograd\nimport autograd.numpy as anp\nimport numpy\n\n\n"
        "def array(x):\n    return numpy.array(x) if isinstance(x, list) else x",
        {
            "reverse": "def reverse(g, x):\n    return autograd.grad(lambda at: g(*at))(tuple(x))",
            "forward": "def forward(g, x, v):\n    return autograd.make_jvp(lambda at: g(*at))(tuple(x))(v)[1]",
        },
        OLDER, {**NUMPY_HELPERS, "derivative": "def derivative(g, x):\n    return autograd.grad(g)(x)"},
    ),
    "mygrad": ScriptLibrary(
        "mygrad", "mygrad", "import mygrad\nimport numpy\n\narray = numpy.array", {"reverse": MYGRAD_REVERSE}, OLDER,
        NUMPY_HELPERS, nests=False,
    ),
    "pytensor": ScriptLibrary(
        "pytensor", "pt",
        "import numpy\nimport pytensor\nimport pytensor.gradient\nimport pytensor.tensor as pt\n"
        "from pytensor.compile.mode import Mode\nfrom pytensor.link.vm import VMLinker\n\narray = numpy.array"
        + PYTENSOR_RUN,
        {"reverse": PYTENSOR_REVERSE, "forward": PYTENSOR_FORWARD},
        {"linalg.vector_norm": "linalg.norm", "cumulative_sum": "cumsum", "cumulative_prod": "cumprod",
         "linalg.trace": "trace", "expit": "sigmoid", "lgamma": "gammaln", "log1p_exp": "softplus"},
        {}, "run(lambda at: {}, at)",
    ),
}  # fmt: skip
"""Backend -> its library."""

INNER = re.compile(r"\bjax(?:\.scipy)?\.(?:special|linalg|stats|integrate|fft|ops)\b")
"""Modules that `import jax` leaves out."""
NAME = re.compile(r"\bxp\.((?:linalg\.|fft\.)?\w+)")


def in_library(source: str, library: ScriptLibrary) -> tuple[str, list[str], bool]:
    """A program's source without `xp`, the helpers that it calls, and whether the library has all other functions."""
    names = dict.fromkeys(NAME.findall(source))
    helpers = [name for name in names if name in library.helpers]
    texts = {name: name if name in helpers else library.called(name) for name in names}
    text = re.sub(r"\(xp, ", "(", NAME.sub(lambda match: texts[match[1]], source))
    has_all = all(name in helpers or library.has(own) for name, own in texts.items())
    return text, [library.helpers[name] for name in helpers], has_all
