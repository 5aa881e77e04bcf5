"""A finding as a script that imports only the library and numpy, prints both numbers, and exits with 1.

The program's source is the same as everywhere, with the library's own names instead of `xp`: some differ (`SPELLED`),
and a few are short functions in the script (`HELPERS`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.findings.finding import Finding
from adbench.findings.programs.judging import Trial
from adbench.model import tree

SPELLED: Mapping[str, Mapping[str, str]] = {
    "torch": {
        "permute_dims": "torch.permute", "expand_dims": "torch.unsqueeze", "max": "torch.amax", "min": "torch.amin",
        "cumulative_sum": "torch.cumsum", "cumulative_prod": "torch.cumprod", "linalg.trace": "torch.trace",
        "astype": "torch.Tensor.to",
    },
    "jax": {},
}  # fmt: skip
"""Names of the array API that a library spells differently."""

HELPERS: Mapping[str, Mapping[str, str]] = {
    "torch": {
        "std": "def std(x, axis=None):\n    return torch.std(x, dim=axis, correction=0)",
        "var": "def var(x, axis=None):\n    return torch.var(x, dim=axis, correction=0)",
        "prod": "def prod(x, axis=None):\n    return torch.prod(x) if axis is None else torch.prod(x, axis)",
        "sort": "def sort(x):\n    return torch.sort(x, dim=-1, stable=True).values",
        "flip": "def flip(x, axis):\n    return torch.flip(x, (axis,))",
        "roll": "def roll(x, shift, axis):\n    return torch.roll(x, shift, axis)",
        "loop": "def loop(step, state, n):\n    for i in range(n):\n        state = step(i, state)\n    return state",
        "derivative": "def derivative(g, x):\n    return torch.func.grad(g)(x)",
    },
    "jax": {
        "loop": "def loop(step, state, n):\n    return jax.lax.fori_loop(0, n, step, state)",
        "derivative": "def derivative(g, x):\n    return jax.grad(g)(x)",
    },
}

NAME = re.compile(r"\bxp\.((?:linalg\.)?\w+)")
INDENT = "    "


@dataclass(frozen=True)
class Library:
    """How a script uses a library.

    transforms  the module with grad, jvp and vjp
    array       text -> the text of a float64 array
    jit         text of a function -> the text of it compiled; unchanged for an eager variant
    """

    name: str
    head: str
    numpy: str
    transforms: str
    array: Callable[[str], str]
    number: str
    jit: Callable[[str], str]


def bare(text: str) -> str:
    """A function that is not compiled: a lambda in brackets, to be called."""
    return f"({text})" if text.startswith("lambda") else text


def library_of(backend: str) -> Library | None:
    """How to write a script for this backend; None if only adbench can."""
    family = backend.partition("_")[0]
    if family == "torch":
        head = "import torch\n\ntorch.set_default_dtype(torch.float64)"
        jit = (lambda text: f"torch.compile({text})") if backend == "torch_compile" else bare
        return Library("torch", head, "torch", "torch.func", lambda text: f"torch.tensor({text})", ".item()", jit)
    if backend in ("jax", "jax_eager"):
        head = (
            'import jax\nimport jax.numpy as jnp\n\njax.config.update("jax_enable_x64", True)\n'
            'jax.config.update("jax_platforms", "cpu")'
        )
        jit = (lambda text: f"jax.jit({text})") if backend == "jax" else bare
        return Library("jax", head, "jnp", "jax", lambda text: f"jnp.array({text})", "", jit)
    return None


def script(finding: Finding) -> str:
    """The script. For libraries other than torch and jax it calls adbench."""
    library = library_of(finding.library)
    return _through_adbench(finding) if library is None else _own(finding, library)


def in_library(source: str, library: Library) -> tuple[str, list[str]]:
    """A program's source without `xp`, and the helpers that it calls."""
    helpers = dict.fromkeys(name for name in NAME.findall(source) if name in HELPERS[library.name])

    def spelled(match: re.Match[str]) -> str:
        name = match[1]
        return name if name in helpers else SPELLED[library.name].get(name, f"{library.numpy}.{name}")

    text = re.sub(r"\(xp, ", "(", NAME.sub(spelled, source))
    return text, [HELPERS[library.name][name] for name in helpers]


def _own(finding: Finding, library: Library) -> str:
    trial = Trial(finding.program)
    text, helpers = in_library(finding.program.source(library.name), library)
    modules = sorted(set(re.findall(r"\b(numpy|scipy)\.", text)))
    values = [f"x{k} = {library.array(_text(one))}" for k, one in enumerate(trial.args)]
    lines = [
        f'"""{finding.title[:100]}."""', "", "import platform", "import sys", "", "import numpy",
        *(f"import {name}" for name in modules if name != "numpy"), library.head, "", "",
        *(f"{helper}\n\n" for helper in helpers), f"{text}\n", *values,
        *_derivative(finding, trial, library), "",
        *([] if finding.expected.startswith("any value") else [f"expected = {_expected(finding)}"]),
        *_end(finding, f"{library.name}.__version__", library.name),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _derivative(finding: Finding, trial: Trial, library: Library) -> list[str]:
    """The lines that compute `got`."""
    of, operator = library.transforms, finding.operator
    every, active = trial.program.names, [trial.program.names[k] for k in trial.wrt]
    x = ", ".join(active)
    lines = []
    if len(active) < len(every):
        lines += [f"def g({x}):", f"{INDENT}return f({', '.join(every)})", "", ""]
        function = "g"
    else:
        function = "f"
    numbers = str(tuple(range(len(active)))) if len(active) > 1 else "0"
    gradient = f"{of}.grad({function}, argnums={numbers})"
    v = [library.array(_text(one)) for one in tree.leaves(trial.vector)]
    along = f"({''.join(f'{one}, ' for one in v).rstrip(' ')})"
    at = f"({x},)"
    place, index = _place(finding, trial)
    entry = f"[{', '.join(map(str, index))}]" if index else ""
    if operator in ("gradient", "value_and_gradient") and finding.library == "torch":  # not torch.func: other formulas
        lines += [f"{name}.requires_grad_()" for name in active]
        return [*lines, f"got = float(torch.autograd.grad({function}({x}), ({x},))[{place}]{entry})"]
    if operator in ("gradient", "value_and_gradient") or finding.kind in ("crashes", "hangs"):
        call = f"{library.jit(gradient)}({x})"
    elif operator == "jvp":
        lines.append(f"v = {along}  # a direction")
        call = f"{library.jit(f'lambda x, v: {of}.jvp({function}, x, v)[1]')}({at}, v)"
        return [*lines, f"got = {call}", f"got = float(got{'.detach()' if library.name == 'torch' else ''})"]
    else:
        lines.append(f"v = {along}  # H v is computed")
        slope = f"lambda *x: {of}.jvp({function}, x, v)[1]"
        inner = f"{of}.grad({function}, argnums={numbers})(*x)"
        pairs = f"zip({inner}, v)" if len(active) > 1 else f"[({inner}, v[0])]"
        if operator == "hvp_forward_over_forward":
            units = [np.zeros(np.shape(one)) for one in tree.leaves(trial.vector)]
            units[place][index] = 1.0
            unit = ", ".join(library.array(_text(one if one.ndim else float(one))) for one in units)
            lines.append(f"unit = ({unit},)")
            call = f"{library.jit(f'lambda *x: {of}.jvp({slope}, x, unit)[1]')}({x})"
            return [*lines, f"got = float({call})"]
        forms = {
            "hvp_reverse_over_forward": f"{of}.grad({slope}, argnums={numbers})",
            "hvp_reverse_over_reverse": (
                f"{of}.grad(lambda *x: sum((d * e).sum() for d, e in {pairs}), argnums={numbers})"
            ),
        }
        forward = f"lambda *x: {of}.jvp({of}.grad({function}, argnums={numbers}), x, v)[1]"
        call = f"{library.jit(forms.get(operator, forward))}({x})"
    picked = f"[{place}]" if len(active) > 1 else ""
    return [*lines, f"got = float({call}{picked}{entry})"]


def _place(finding: Finding, trial: Trial) -> tuple[int, tuple[int, ...]]:
    """The active input and the index that the finding is about."""
    found = re.match(r"(x\d+)(?:\[([\d, ]+)\])?$", finding.place)
    names = [trial.program.names[k] for k in trial.wrt]
    if found is None or found[1] not in names:
        shape = np.shape(trial.point.leaves[0].values)
        return 0, (0,) * len(shape)
    return names.index(found[1]), tuple(int(k) for k in found[2].split(",")) if found[2] else ()


def _expected(finding: Finding) -> str:
    try:
        return repr(float(finding.expected))
    except ValueError:
        return "float('nan')" if finding.kind in ("wrong", "nan") else "0.0"


def _end(finding: Finding, version: str, name: str) -> list[str]:
    interval = re.match(r"any value in \[(.*), (.*)\]", finding.expected)
    words = f"any value in [{interval[1]}, {interval[2]}]" if interval else "{expected!r}"
    inside = f"{interval[1]} <= got <= {interval[2]}" if interval else f"abs(got - expected) <= {_tolerance(finding)!r}"
    return [
        f'print(f"{finding.operator} got {{got!r}}, expected {words}")',
        f'print("expected value from: {finding.where or "no derivative was returned"}")',
        f'print("{name}", {version}, "numpy", numpy.__version__)',
        'print("Python", platform.python_version(), "on", platform.platform())',
        f"sys.exit(0 if {inside} else 1)  # NaN agrees with nothing",
    ]


def _tolerance(finding: Finding) -> float:
    """A power of ten well below the error."""
    try:
        got, expected = float(finding.got), float(finding.expected)
    except ValueError:
        return 1e-9
    error = abs(got - expected)
    if not math.isfinite(error) or not error:
        return 1e-9 * (abs(expected) if math.isfinite(expected) and expected else 1.0)
    return 10.0 ** math.floor(math.log10(error / 2))


def _text(value: Any) -> str:
    return repr(np.asarray(value, dtype=np.float64).tolist())


def _through_adbench(finding: Finding) -> str:
    trial = Trial(finding.program)
    lines = [
        f'"""{finding.title[:100]}."""', "", "import platform", "import sys", "", "import numpy", "",
        "import adbench", "", "", finding.program.source(), "",
        f"inputs = [{', '.join(_value(one) for one in trial.args)}]",
        f"found = adbench.check(f, *inputs, backend={finding.library!r}, operator={finding.operator!r}, "
        f"wrt={list(trial.wrt)})",
        "print(found)",
        'print("numpy", numpy.__version__, "Python", platform.python_version(), platform.platform())',
        "sys.exit(1 if found.is_wrong else 0)",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _value(one: Any) -> str:
    return _text(one) if isinstance(one, float) else f"numpy.array({_text(one)})"


def arguments(values: Sequence[Any]) -> str:
    """Inputs as text."""
    return ", ".join(map(_value, values))
