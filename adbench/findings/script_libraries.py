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
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adbench.model.namespace import aliases
from adbench.model.operator import DEFINITIONS
from adbench.model.settings import PROCESSOR
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


@dataclass(frozen=True)
class ScriptLibrary:
    """How a script uses a library.

    module     whose version the script prints; numpy: what its text calls for `xp`
    names      function of the array API -> the library's, if it is spelled otherwise; helpers: its text, if it has none
    modes      "reverse" and "forward" -> the text of that function
    on_device  a line of the head, and what takes its place on a device, "{}"
    run        "{}" in place of a text that computes; "jax.jit(lambda at: {})(at)" for a compiled one
    """

    module: str
    numpy: str
    head: str
    modes: Mapping[str, str]
    names: Mapping[str, str] = field(default_factory=dict)
    helpers: Mapping[str, str] = field(default_factory=dict)
    on_device: tuple[str, ...] = ()
    run: str = "{}"
    nests: bool = True

    def computed(self, operator: str) -> str | None:
        """The text that computes an operator; None if the library lacks one of the modes."""
        text = COMPUTED[operator]
        calls = {mode: text.count(f"{mode}(") for mode in ("reverse", "forward")}
        if any(calls[mode] and mode not in self.modes for mode in calls) or (
            sum(calls.values()) > 1 and not self.nests
        ):
            return None
        return self.run.format(text.replace("total(", f"{self.numpy}.sum("))

    def head_for(self, computed: str, device: str = PROCESSOR) -> str:
        """The imports and the modes that a text needs; arrays are created on the device."""
        head = self.head
        if device != PROCESSOR and self.on_device:
            line, there = self.on_device
            head = head.replace(line, there.format(device))
        return "\n\n\n".join([head, *(text for mode, text in self.modes.items() if f"{mode}(" in computed)])

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


SPELLED: Mapping[str, Mapping[str, str]] = {
    "torch": {name: row.torch for name, row in FUNCTIONS.items() if row.torch},
    # of jax's two functions i0, the backend's is jax.numpy's
    "jax": {name: row.jax for name, row in FUNCTIONS.items() if row.jax.startswith("jax.scipy.") and name != "i0"},
    "older": {**aliases(), "linalg.trace": "trace", "linalg.vector_norm": "linalg.norm"},
}
"""Function of the array API -> its name in a library; "older": in libraries that follow an older numpy."""


def _libraries(tables: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, ScriptLibrary]]:
    for backend, table in tables.items():
        row = {**tables.get(table.get("like", ""), {}), **table}
        names = {**row.get("names", {}), **SPELLED.get(row.get("spelled", ""), {})}
        fields = {key: value for key, value in row.items() if key not in ("like", "spelled")}
        yield backend, ScriptLibrary(**{**fields, "names": names})


LIBRARIES = dict(_libraries(tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))))
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
