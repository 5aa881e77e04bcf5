"""The results of a function that returns several: a tuple, a list, a dict or a dataclass, nested.

Every floating-point part is checked. The parts are joined in one array, whose entries are named by the part:
``output['loss']``, ``output[1][0, 2]``. A complex part has two, ``output.real`` and ``output.imag``. Integers, strings
and None are left out.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from adbench.model.errors import UsageError

Output = int | str | None
"""The chosen output: a position, a key, or a path such as ``['params']['w']``; None for all."""

OUTPUT = re.compile(r"\boutput\[(\d+)\]")
OF_SINGLE = re.compile(r"\boutput(?=\[[\d, ]+\])")
PARTS = ("real", "imag")
"""Of a complex number: attributes, and functions of namespaces."""


@dataclass(frozen=True)
class Outputs:
    """The parts of a result that are checked.

    ways     the keys, positions or attributes that lead to each
    names    of the parts: ``output[1]``
    shapes   of the parts
    library  by which they are joined
    complex  whether some are the parts of complex numbers
    """

    ways: tuple[tuple[Any, ...], ...]
    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    library: str
    complex: bool = False

    def of(self, value: Any, xp: Any = None) -> Any:
        """The only part, or all parts in one array; xp: the namespace of a function that takes one."""
        parts = [_part(value, way, self.library) for way in self.ways]
        return parts[0] if len(parts) == 1 else _joined(self.library, parts, xp)

    @cached_property
    def note(self) -> str:
        """Which parts are checked."""
        return f"checked outputs: {listed(self.names, 5)}"

    def renamed(self, text: str) -> str:
        """The text with the name of the part for each entry, of the joined array or of the single part."""
        if len(self.names) == 1:
            return OF_SINGLE.sub(lambda found: self.names[0], text)
        return OUTPUT.sub(lambda found: self._place(int(found[1])), text)

    def _place(self, index: int) -> str:
        sizes = [int(np.prod(shape, dtype=int)) for shape in self.shapes]
        ends = np.cumsum(sizes)
        which = int(np.searchsorted(ends, index, side="right"))
        place = np.unravel_index(index - int(ends[which]) + sizes[which], self.shapes[which])
        return self.names[which] + (f"[{', '.join(map(str, place))}]" if place else "")


def outputs_of(value: Any, chosen: Output, library: str, name: str) -> Outputs | None:
    """The floating-point parts of a result, or those of the chosen output; None if the result is one real array.

    Raises UsageError if nothing is floating-point, or if the chosen output does not exist.
    """
    if not _is_container(value) and not _is_complex(value):
        if chosen is not None:
            raise UsageError(f"output is {chosen!r}, but {name} returns one {type(value).__name__}; leave output out")
        return None
    every = list(_parts(value, (), "output"))
    if not every:
        raise UsageError(
            f"{name} returns a {type(value).__name__} of {len(steps(value))} parts, none of them floating-point; "
            "return floating-point numbers or arrays"
        )
    ways = filter(None, (f"[{chosen!r}]", f"[{chosen}]", f".{chosen}", str(chosen).removeprefix("output")))
    below = {f"output{way}" for way in ways}
    kept = every if chosen is None else [part for part in every if is_below(part[1], below)]
    if not kept:
        there = ", ".join(name.removeprefix("output") for _, name, _ in every)
        raise UsageError(f"output: {chosen!r} is not a floating-point part of what {name} returns; choose from {there}")
    keys, names, shapes = zip(*kept, strict=True)
    return Outputs(keys, names, shapes, library, any(_is_complex(_part(value, way[:-1], library)) for way in keys))


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _is_container(value: Any) -> bool:
    return isinstance(value, tuple | list | dict) or (
        dataclasses.is_dataclass(value) and not isinstance(value, type) and not hasattr(value, "dtype")
    )


def _is_complex(value: Any) -> bool:
    return isinstance(value, complex) or str(getattr(value, "dtype", "")).rpartition(".")[2].startswith("complex")


def steps(value: Any) -> Sequence[tuple[Any, str, Any]]:
    """The parts of a container: key, its text in a path, value."""
    if isinstance(value, dict):
        return [(key, f"[{key!r}]", part) for key, part in value.items()]
    fields = getattr(type(value), "_fields", None)  # of a named tuple
    if isinstance(value, tuple | list) and not fields:
        return [(k, f"[{k}]", part) for k, part in enumerate(value)]
    names = fields or [field.name for field in dataclasses.fields(value)]
    return [(name, f".{name}", getattr(value, name)) for name in names]


def rebuilt_with(value: Any, parts: Mapping[Any, Any]) -> Any:
    """The container with other parts, by the keys of `steps`."""
    if isinstance(value, list | tuple):
        kind = list if isinstance(value, list) else tuple
        return type(value)(*parts.values()) if hasattr(type(value), "_fields") else kind(parts.values())
    made = copy.copy(value)  # also of a subclass
    if isinstance(value, dict):
        made.update(parts)
    else:
        for key, part in parts.items():
            object.__setattr__(made, key, part)  # also for a frozen one
    return made


def _parts(value: Any, way: tuple[Any, ...], name: str) -> Iterator[tuple[tuple[Any, ...], str, tuple[int, ...]]]:
    """The way to each floating-point part, its name and its shape."""
    if _is_container(value):
        for key, text, part in steps(value):
            yield from _parts(part, (*way, key), name + text)
    elif _is_complex(value):
        for key in PARTS:
            yield (*way, key), f"{name}.{key}", tuple(np.shape(value))
    elif isinstance(value, float):
        yield way, name, ()
    elif str(getattr(value, "dtype", "")).rpartition(".")[2].startswith(("float", "bfloat")):
        yield way, name, tuple(value.shape)


def is_below(path: str, ways: Iterable[str]) -> bool:
    """Whether a path is one of these, or below one."""
    return any(path == way or (path.startswith(way) and path[len(way)] in ".[") for way in ways)


def _part(value: Any, way: tuple[Any, ...], library: str) -> Any:
    for key in way:
        if library == "autograd" and key in PARTS and not hasattr(value, key):  # its arrays lack the attribute
            value = getattr(importlib.import_module("autograd.numpy"), key)(value)
            continue
        value = value[key] if isinstance(value, dict | list) or isinstance(key, int) else getattr(value, key)
    return value


def _joined(library: str, parts: Sequence[Any], xp: Any) -> Any:
    """The parts' entries in one array of the library."""
    if library == "torch":
        torch = importlib.import_module("torch")
        return torch.cat([torch.as_tensor(part).reshape(-1) for part in parts])
    if xp is None:
        names = {"jax": "jax.numpy", "autograd": "autograd.numpy"}
        xp = importlib.import_module(names.get(library, "numpy"))
        return xp.concatenate([xp.reshape(part, (-1,)) for part in parts])
    return xp.concat([xp.reshape(part, (-1,)) for part in parts])
