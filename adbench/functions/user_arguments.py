"""Arguments of a user's function as named floating-point leaves in numpy, and back.

A leaf is a float or a float64 array, named by its path: ``x``, ``params['w'][0]``, ``model.weight``. A complex number
or array has two, ``z.real`` and ``z.imag``. Everything else (integers, strings, functions, None, ...) is static: the
function gets it unchanged.

Containers are dicts, lists, tuples, named tuples, dataclasses, pytrees of jax, and torch.nn.Module, whose parameters
are leaves. A list of numbers is one array if it contains a float. If nothing is floating-point and `wrt` names
nothing, arrays and lists of integers become float64.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adbench.functions.outputs import Outputs, is_below, listed, rebuilt_with, steps
from adbench.model.errors import UsageError

Leaf = float | NDArray[np.float64]
Make = Callable[[Sequence[Any]], Any]
"""make(leaves) -> the value with these leaves."""

Wrt = int | str | Sequence[int | str] | None

OF_OTHERS: Mapping[str, str] = {
    "argnums": "adbench calls it wrt: write wrt=0 or wrt='x'",
    "has_aux": "leave it out and name the result to check with output=0; wrt= names active arguments",
    "kwargs": "give keyword arguments by name, as in check(f, 1.0, n=3); wrt= names active arguments",
}
"""Keyword arguments of other libraries' functions, and what to write instead."""


@dataclass(frozen=True)
class Made:
    """A function, its arguments and the names of the positional ones."""

    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    names: Sequence[str]


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call.

    names     of the leaves, in order
    values    a float or a float64 array each
    active    the names of the active leaves
    notes     conversions, one sentence each
    outputs   the parts of the value that count; None if it is one number or array
    given     the argument that each leaf comes from: a number, an array or a tensor, in its own type and on its device
    complex   the names of the active complex arguments, each with two leaves
    """

    names: tuple[str, ...]
    values: tuple[Leaf, ...]
    active: tuple[str, ...]
    notes: tuple[str, ...]
    _make: Callable[[Sequence[Any]], Made] = field(repr=False)
    _modules: tuple[tuple[Any, Mapping[str, int]], ...] = field(default=(), repr=False)
    outputs: Outputs | None = None
    given: tuple[Any, ...] = ()
    complex: tuple[str, ...] = ()

    @property
    def is_in_training(self) -> bool:
        """Whether a torch.nn.Module among them is in training, where layers such as dropout are random."""
        return any(module.training for module, _ in self._modules)

    def call(self, leaves: Sequence[Any], *first: Any) -> Any:
        """The function's value at these leaves; `first` are arguments before all others."""
        value = self._called(leaves, self._make(leaves), first)
        return value if self.outputs is None else self.outputs.of(value, *first)

    def watched(self, leaves: Sequence[Any], *first: Any) -> Any:
        """The same value, whole. Raises UsageError if the call changes an argument."""
        made = self._make(leaves)
        before = _snapshot(made, self.active)
        value = self._called(leaves, made, first)
        after = _snapshot(made, self.active)
        for name in dict.fromkeys((*before, *after)):
            if name not in before or name not in after or not np.array_equal(before[name], after[name], equal_nan=True):
                raise UsageError(
                    f"{name_of(made.function)} changes its argument {name} in place, but adbench calls it many times; "
                    "let it work on a copy"
                )
        return value

    def _called(self, leaves: Sequence[Any], made: Made, first: Sequence[Any]) -> Any:
        if not self._modules:
            return made.function(*first, *made.args, **made.kwargs)
        torch = sys.modules["torch"]
        holder, parameters = torch.nn.Module(), dict[str, Any]()
        for number, (module, slots) in enumerate(self._modules):
            setattr(holder, f"m{number}", module)
            parameters |= {f"m{number}.{name}": leaves[slot] for name, slot in slots.items()}
        holder.forward = lambda: made.function(*first, *made.args, **made.kwargs)
        return torch.func.functional_call(holder, parameters, ())


def _snapshot(made: Made, whole: Sequence[str]) -> dict[str, Any]:
    """Copies of the arguments' current leaves, by name."""
    found = _Leaves(whole)
    for name, value in {**dict(zip(made.names, made.args, strict=False)), **made.kwargs}.items():
        if not _is_module(value):  # its parameters are set only for the call
            found.take(value, name)
    return {name: np.array(value) for name, value in zip(found.names, found.values, strict=True)}


def arguments_of(
    f: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    wrt: Wrt = None,
    *,
    xp: bool = False,
    double: bool = True,
    place: Any = "cpu",
) -> Arguments:
    """The arguments of ``f(*args, **kwargs)``; with `xp` f takes a namespace before them.

    wrt      the active arguments: positions, names, or names of leaves below them; by default every leaf
    double   modules of torch compute in float64 on the device `place`, where other tensors are too; otherwise in their
             own types, where they are

    Raises UsageError if f does not take these arguments, if `wrt` matches none, or if nothing is floating-point.
    """
    names = _names(f, args, kwargs, xp=xp)
    wanted = None if wrt is None else _wanted(wrt, names, len(args))
    for whole_arrays in (False, True) if wanted is None else (False,):
        found = _Leaves(wanted or (), whole_arrays=whole_arrays, double=double, place=place)
        function = found.function(f)
        positional = [found.take(arg, name) for arg, name in zip(args, names, strict=False)]
        named = {name: found.take(arg, name) for name, arg in kwargs.items()}
        if found.names:
            break
    active = tuple(found.names)
    if wanted is not None:
        active = tuple(name for name in found.names if is_below(name, wanted))
        if missing := [way for way in wanted if not any(is_below(name, (way,)) for name in found.names)]:
            there_are = f"choose from {', '.join(found.names)}" if found.names else "all arguments are static"
            raise UsageError(f"wrt: {missing[0]!r} is not a floating-point argument; {there_are}")
    if not active:
        raise UsageError(_nothing_to_differentiate(args, kwargs))

    def make(leaves: Sequence[Any]) -> Made:
        given = {key: part(leaves) for key, part in named.items()}
        return Made(function(leaves), [part(leaves) for part in positional], given, names)

    modules, notes = tuple(found.modules.values()), found.notes if double else ()
    complex_names = tuple(name for name in found.complex if any(is_below(leaf, (name,)) for leaf in active))
    return Arguments(
        tuple(found.names), tuple(found.values), active, notes, make, modules,
        given=tuple(found.given), complex=complex_names,
    )  # fmt: skip


def _nothing_to_differentiate(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    every = [*args, *kwargs.values()]
    if not every:
        return "the function got no arguments; pass the point after it: check(f, 1.0)"
    kinds = ", ".join(dict.fromkeys(_kind(arg) for arg in every))
    hint = "; write 3.0 instead of 3, or name the argument in wrt" if any(_is_whole(arg) for arg in every) else ""
    return f"no argument is floating-point; they are {kinds}{hint}"


def _kind(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ + (f" of {str(dtype).removeprefix('torch.')}" if dtype is not None else "")


def _names(f: Any, args: Sequence[Any], kwargs: Mapping[str, Any], *, xp: bool) -> list[str]:
    """The names of the positional arguments. Raises UsageError if f does not take these."""
    try:
        signature = signature_of(f)
    except (TypeError, ValueError):  # written in C: its arguments are unknown
        return [f"x{i}" for i in range(len(args))]
    given = (None, *args) if xp else tuple(args)
    try:
        signature.bind(*given, **kwargs)
    except TypeError as error:
        advice = next(
            (OF_OTHERS[name] for name in kwargs if name in OF_OTHERS), "pass its arguments after the function"
        )
        raise UsageError(f"{name_of(f)} cannot be called with these arguments: {error}; {advice}") from None
    names: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind == parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{i}]" for i in range(len(given) - len(names))]
    return names[1 if xp else 0 : len(given)]


def signature_of(f: Any) -> inspect.Signature:
    """The parameters of f; of a torch.nn.Module and a torch.autograd.Function those of `forward`.

    Raises TypeError or ValueError if they are unknown.
    """
    if _is_module(f):
        return inspect.signature(f.forward)
    if _is_rule_of_torch(f):
        found = inspect.signature(f.__self__.forward)
        torch = sys.modules["torch"]
        if f.__self__.setup_context is torch.autograd.Function.setup_context:  # forward(ctx, *inputs)
            return found.replace(parameters=list(found.parameters.values())[1:])
        return found
    return inspect.signature(f)


def _is_rule_of_torch(f: Any) -> bool:
    """Whether f is the `apply` of a torch.autograd.Function."""
    if not isinstance(f, MethodType) or "torch" not in sys.modules or not isinstance(f.__self__, type):
        return False
    return issubclass(f.__self__, sys.modules["torch"].autograd.Function)


def name_of(f: Any) -> str:
    """The name of a function in messages."""
    if _is_rule_of_torch(f):
        return f"{f.__self__.__name__}.apply"
    while hasattr(f, "func") and not hasattr(f, "__name__"):  # functools.partial
        f = f.func
    own = getattr(f, "__name__", None) or type(f).__name__
    name = str(getattr(f, "__qualname__", None) or own).rpartition("<locals>.")[2]
    return name if name.endswith(own) else own  # autograd's wrappers set only one of them


def _wanted(wrt: Wrt, names: Sequence[str], count: int) -> tuple[str, ...]:
    """The paths in `wrt`."""
    every = (wrt,) if isinstance(wrt, int | str) else tuple(wrt or ())
    if not every:
        raise UsageError("wrt is empty; name at least one argument")
    if any(isinstance(way, int) and not 0 <= way < count for way in every):
        raise UsageError(f"wrt is {wrt}, but there are {count} arguments; use positions from 0 to {count - 1}")
    return tuple(names[way] if isinstance(way, int) else way for way in every)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


class _Leaves:
    """Collects leaves while `take` walks through values.

    Integers are leaves only if named in `whole`, or in arrays and lists with `whole_arrays`.
    """

    def __init__(
        self, whole: Sequence[str], *, whole_arrays: bool = False, double: bool = True, place: Any = "cpu"
    ) -> None:
        self.whole, self.whole_arrays, self.double, self.place = whole, whole_arrays, double, place
        self.names: list[str] = []
        self.values: list[Leaf] = []
        self.given: list[Any] = []
        self.complex: list[str] = []
        self.converted: dict[str, list[str]] = {}
        self.modules: dict[int, tuple[Any, Mapping[str, int]]] = {}

    def function(self, f: Any) -> Make:
        """The function itself, since a torch.nn.Module, a callable jax pytree and their methods have leaves."""
        if isinstance(f, MethodType) and (_is_module(f.__self__) or is_pytree(f.__self__)):
            owner, function = self.take(f.__self__, "self"), f.__func__
            return lambda leaves: MethodType(function, owner(leaves))
        if _is_module(f):
            return self.take(f, "model")
        if not isinstance(f, FunctionType) and is_pytree(f):
            return self.take(f, "self")
        return lambda leaves: f

    def take(self, value: Any, name: str) -> Make:
        """Collect the value's leaves; returns a function that rebuilds the value from leaves."""
        if isinstance(value, np.ndarray | np.generic | float | int | complex) and not isinstance(value, bool):
            return self._number(value, name)
        if _is_tensor(value) or _is_jax_array(value):
            return self._array(value, name)
        if _is_module(value):
            return self._module(value, name)
        if isinstance(value, list) and _is_numbers(value, whole=name in self.whole or self.whole_arrays):
            if self.whole_arrays:
                self._note("integers", name)
            return self._leaf(np.asarray(value, dtype=np.float64), name, value)
        if not isinstance(value, dict | list | tuple) and is_pytree(value):
            return self._pytree(value, name)
        if isinstance(value, dict | list | tuple) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
            return self._container(value, name)
        return lambda leaves: value

    def _leaf(self, value: Leaf, name: str, given: Any) -> Make:
        slot = len(self.names)
        self.names.append(name)
        self.values.append(value if np.ndim(value) else float(value))
        self.given.append(given)
        return lambda leaves: leaves[slot]

    def _number(self, value: Any, name: str) -> Make:
        array = np.asarray(value)
        if array.dtype.kind == "c":
            return self._complex(value, name)
        if array.dtype.kind == "f":
            self._note(array.dtype, name)
        elif array.dtype.kind not in "iu" or not self._takes_whole(name, array.shape):
            return lambda leaves: value
        elif self.whole_arrays:
            self._note(array.dtype, name)
        return self._leaf(array.astype(np.float64), name, value)

    def _takes_whole(self, name: str, shape: Sequence[int]) -> bool:
        """Whether integers of this name and shape are leaves."""
        return name in self.whole or (self.whole_arrays and len(shape) > 0)

    def _array(self, value: Any, name: str) -> Make:
        """A tensor of torch or an array of jax."""
        if _is_tensor(value) and value.layout is not sys.modules["torch"].strided:
            advice = "pass its values, and make it inside the function"
            raise UsageError(f"{name} is a sparse tensor ({value.layout}), whose zeros may be no arguments; {advice}")
        kind = str(value.dtype).removeprefix("torch.")
        if kind.startswith("complex"):
            return self._complex(value, name)
        is_whole = kind.startswith(("int", "uint")) and self._takes_whole(name, value.shape)
        if not kind.startswith(("float", "bfloat")) and not is_whole:
            static = value.to(self.place) if self.double and _is_tensor(value) else value
            return lambda leaves: static
        self._note(kind, name)
        array = value
        if _is_tensor(value):
            if value.device.type != "cpu":
                self.converted.setdefault(f"on {value.device}", []).append(name)
            array = value.double().numpy(force=True)
        return self._leaf(np.array(array, dtype=np.float64), name, value)

    def _complex(self, value: Any, name: str) -> Make:
        from adbench.functions.complex_arguments import complex_of, parts_of  # not at the top: few are complex

        self.complex.append(name)
        real, imag = (self.take(part, f"{name}.{which}") for which, part in parts_of(value))
        return lambda leaves: complex_of(real(leaves), imag(leaves))

    def _module(self, value: Any, name: str) -> Make:
        """A torch.nn.Module: a copy of it in float64, whose parameters `Arguments.call` sets."""
        if id(value) not in self.modules:
            own = copy.deepcopy(value)
            own = own.to(self.place).double() if self.double else own
            slots = {}
            for parameter, tensor in value.named_parameters():
                self._note(str(tensor.dtype).removeprefix("torch."), f"{name}.{parameter}")
                slots[parameter] = len(self.names)
                self._leaf(tensor.double().numpy(force=True).copy(), f"{name}.{parameter}", tensor)
            self.modules[id(value)] = (own, slots)
        own = self.modules[id(value)][0]
        return lambda leaves: own

    def _container(self, value: Any, name: str) -> Make:
        """A dict, list, tuple, named tuple or dataclass."""
        parts = {key: self.take(part, name + way) for key, way, part in steps(value)}

        def make(leaves: Sequence[Any]) -> Any:
            return rebuilt_with(value, {key: part(leaves) for key, part in parts.items()})

        return make

    def _pytree(self, value: Any, name: str) -> Make:
        """One level of a jax container."""
        util = sys.modules["jax"].tree_util
        pairs, structure = util.tree_flatten_with_path(value, is_leaf=lambda part: part is not value)
        ways = [re.sub(r"<flat index (\d+)>", r"\1", util.keystr(path)) for path, _ in pairs]
        parts = [self.take(part, name + way) for way, (_, part) in zip(ways, pairs, strict=True)]
        return lambda leaves: structure.unflatten([part(leaves) for part in parts])

    def _note(self, kind: Any, name: str) -> None:
        if str(kind) != "float64":
            self.converted.setdefault(f"as {kind}", []).append(name)

    @property
    def notes(self) -> tuple[str, ...]:
        """Conversions, one sentence for each kind."""
        return tuple(
            f"checked in float64 on the CPU, though given {kind}: {listed(names)}"
            for kind, names in self.converted.items()
        )


def _is_numbers(value: Any, *, whole: bool) -> bool:
    """Whether a list holds only numbers, in rows of equal length, with at least one float, unless `whole`."""

    def leaves(part: Any) -> list[Any]:
        return [leaf for one in part for leaf in leaves(one)] if isinstance(part, list) else [part]

    every = leaves(value)
    if not (whole or any(isinstance(leaf, float | np.floating) for leaf in every)):
        return False
    if not all(isinstance(leaf, float | np.floating) or _is_whole(leaf) for leaf in every):
        return False
    try:
        np.asarray(value, dtype=np.float64)
    except ValueError:  # rows of different lengths
        return False
    return True


def _is_tensor(value: Any) -> bool:
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


def _is_module(value: Any) -> bool:
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].nn.Module)


def _is_jax_array(value: Any) -> bool:
    return "jax" in sys.modules and isinstance(value, sys.modules["jax"].Array)


def is_pytree(value: Any) -> bool:
    """Whether the value is a jax container."""
    if "jax" not in sys.modules or value is None:
        return False
    return not sys.modules["jax"].tree_util.all_leaves([value])
