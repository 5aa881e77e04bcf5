"""The layout of inputs for C++: one leaf after the other, each with its kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.model import tree
from adbench.model.errors import Unsupported


@dataclass(frozen=True)
class ArgumentLayout:
    """The properties of inputs that stay the same between calls.

    kinds     the C++ type of each input's kind: `Real<1>`, `Whole`, `Nest<Real<2>, Real<0>>`
    shapes    of each leaf, None for a static leaf
    owners    the position of each leaf's input
    """

    kinds: tuple[str, ...]
    shapes: tuple[tuple[int, ...] | None, ...]
    owners: tuple[int, ...]

    def leaves_of(self, positions: Sequence[int]) -> list[int]:
        """The leaves of these inputs, in their order."""
        return [k for k, owner in enumerate(self.owners) if owner in positions]

    def size(self, leaf: int) -> int:
        """The number of its entries; 1 for a static leaf."""
        return math.prod(self.shapes[leaf] or ())


def layout(args: Sequence[Any]) -> ArgumentLayout:
    """The layout of native inputs. Raises Unsupported for an input without a C++ type."""
    kinds = tuple(_kind(arg) for arg in args)
    parts = [(position, leaf) for position, arg in enumerate(args) for leaf in tree.leaves(arg)]
    shapes = tuple(leaf.shape if isinstance(leaf, np.ndarray) else None for _, leaf in parts)
    return ArgumentLayout(kinds, shapes, tuple(position for position, _ in parts))


def _kind(arg: Any) -> str:
    if isinstance(arg, dict):
        return _nest([arg[key] for key in sorted(arg)])
    if isinstance(arg, list | tuple):
        return _nest(arg)
    if isinstance(arg, np.ndarray):
        return f"adbench::Real<{arg.ndim}>"
    for kind, name in ((bool, "Truth"), (int, "Whole"), (str, "Text")):
        if isinstance(arg, kind):
            return f"adbench::{name}"
    raise Unsupported(f"a C++ implementation takes no input of type {type(arg).__name__}")


def _nest(parts: Sequence[Any]) -> str:
    return f"adbench::Nest<{', '.join(map(_kind, parts))}>"


def mask(positions: Sequence[int]) -> int:
    """A bit for each of these inputs."""
    return sum(1 << position for position in set(positions))


def unit_text(kinds: Sequence[str], active: int, own: int, *, every: bool) -> str:
    """The C++ source that joins a library's header to a case's C++ implementation.

    Both are macros, because their paths must not change the source.

    active   the mask of the active inputs
    own      the mask of the case's own active inputs, for its gradient by hand
    every    whether to build all operators, or the gradient alone
    """
    return (
        "#include ADBENCH_LIBRARY\n"
        "#include ADBENCH_TWIN\n"
        '#include "function.hpp"\n'
        f"using Unit = adbench::Function<{active}u, {own}u, {', '.join(kinds)}>;\n"
        f"constexpr bool every_operator = {str(every).lower()};\n"
        '#include "exports.hpp"\n'
    )
