"""A torch function on the oracle's numbers: tensors that hold `Real` numbers, and torch's own dispatcher.

The function runs eagerly. Each of its ATen operations arrives here and is computed in one of these ways:

* from the table in `adbench.functions.from_torch.torch_operations`, by the namespace over balls;
* by torch on tensors of flat positions, if it only arranges entries (view, index, cat);
* by torch's decomposition into other operations, or by the function of a `torch.library.custom_op`.

Entries are in a `Storage` shared by views, as in torch: writing through a view changes its base. Python control flow
follows the numbers: comparisons give bool tensors, and the oracle decides `bool(t)`.
Importing this module imports torch.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch._decomp import decomposition_table
from torch._library.custom_ops import OPDEFS

from adbench.functions.declared_constants import DRAWN, constant, holds, moves
from adbench.functions.from_torch.number_tensors import (
    DOUBLE,
    NumbersTensor,
    Storage,
    constants,
    entries,
    escaped,
    in_custom_function,
    mapped,
    places_of,
    replaced,
    tensors_in,
    unrecorded,
)
from adbench.functions.from_torch.schemas import LIKE, NEW_GEOMETRY, OTHER_TYPES, AtenOverload, operation
from adbench.functions.from_torch.torch_operations import ARRANGING, CONSTANT_DRAWS, QUANTILES, RANDOM_IN_PLACE, TABLE
from adbench.functions.from_torch.watching import Eager
from adbench.functions.low_precision import WIDENS, low_type
from adbench.functions.low_precision import widened as in_double
from adbench.model.errors import Unsupported
from adbench.oracle.enclosures.recorded import EnclosedArray, joined
from adbench.oracle.series.algebra.positions import boxed, unboxed
from adbench.oracle.series.arrays import RealArray, holds_complex
from adbench.oracle.series.number import ComplexNumber, Real


class Evaluation(Eager):
    """One evaluation of a function on numbers of the namespace ``xp``. While entered, it handles every operation."""

    def __init__(self, xp: Any) -> None:
        super().__init__()
        self.xp = xp
        self._outside: dict[int, tuple[Any, Storage]] = {}
        self._last: tuple[Any, Storage] | None = None

    # Between numbers and tensors --------------------------------------------------------------------------------

    def leaf(self, value: Any) -> Any:
        """An argument of the text as a tensor; integers, booleans and static values unchanged."""
        if isinstance(value, Real | EnclosedArray) or (isinstance(value, np.ndarray) and value.dtype == object):
            return self.made(boxed(value), active=True)
        if isinstance(value, (float, np.floating)) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
            return self.made(np.array(value, dtype=np.float64), active=False)
        return torch.from_numpy(np.array(value)) if isinstance(value, np.ndarray) else value

    def value(self, result: Any) -> Any:
        """The function's result as numbers. Raises Unsupported for lower precision than float64."""
        if isinstance(result, NumbersTensor):
            return unboxed(self.array(result))
        if isinstance(result, torch.Tensor):
            result = in_double(result) if WIDENS.get() else result
            refuse_less(result.dtype, "its value")
            return self.xp.reals(result.detach().numpy())
        if isinstance(result, (list, tuple)):
            raise TypeError(f"the function must return one tensor; it returned a {type(result).__name__}")
        return result

    def made(self, numbers: Any, active: bool, like: Any = None) -> Any:
        """A new tensor of these numbers, with the memory order of ``like``'s axes; integers and booleans give torch's
        own tensors."""
        numbers = boxed(numbers)
        if numbers.dtype.kind in "biu":
            return torch.from_numpy(np.array(numbers))
        is_enclosed = isinstance(numbers, EnclosedArray)
        is_complex = numbers.dtype.kind in "cO" and not is_enclosed and holds_complex(numbers)
        if active and numbers.dtype == object and _records_nothing(numbers):
            numbers = boxed(constant(numbers))
        flat, places = numbers.reshape(-1), torch.arange(numbers.size).reshape(numbers.shape)
        if like is not None and like.shape == places.shape and not like.is_contiguous():
            places = places.reshape(-1).as_strided(places.shape, torch.empty_like(like).stride())
            flat = flat[np.argsort(places.numpy(), axis=None)]
        elif not is_enclosed:
            flat = np.array(flat)
        return NumbersTensor(Storage(flat, active), places, False, DOUBLE[is_complex])

    def lifted(self, tensor: Any) -> Any:
        """A float64 or complex128 tensor from outside the function, sharing memory with its views."""
        if isinstance(tensor, NumbersTensor) or tensor.dtype not in DOUBLE:
            return tensor
        if tensor.device.type != "cpu":
            raise Unsupported(f"the function computes on the device {tensor.device}; the oracle needs the CPU")
        if tensor.layout != torch.strided:
            raise Unsupported(f"the function has a tensor of the layout {tensor.layout}")
        tensor = tensor.detach().resolve_conj().resolve_neg()
        memory = tensor.untyped_storage()
        if memory._cdata not in self._outside:
            flat = torch.empty(0, dtype=tensor.dtype).set_(memory)
            self._outside[memory._cdata] = memory, Storage(flat.numpy())
        storage = self._outside[memory._cdata][1]
        whole = torch.arange(len(storage.numbers))
        places = whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        return NumbersTensor(storage, places, False, tensor.dtype)

    def array(self, tensor: Any) -> Any:
        """A tensor's entries: numbers of the namespace, or integers or booleans in numpy."""
        if isinstance(tensor, NumbersTensor):
            return self._numbers(entries(tensor))
        array = tensor.detach().resolve_conj()
        return self._numbers(array.double().numpy()) if tensor.dtype.is_floating_point else array.numpy()

    def _numbers(self, array: Any) -> Any:
        """An array of floats, or of numbers, as one of numbers of the namespace."""
        array = boxed(array if array.dtype == object else self.xp.reals(array))
        return array.view(RealArray) if isinstance(array, np.ndarray) else array

    # Dispatch ---------------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.xp.check_time()
        return self.run(func, args, kwargs or {})

    def run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """The result of an operation."""
        op = operation(func)
        given = list(tensors_in((args, kwargs)))
        numbers = [tensor for tensor in given if isinstance(tensor, NumbersTensor) or tensor.dtype in DOUBLE]
        if not numbers:
            return self._without_numbers(func, op, args, kwargs, given)
        args, kwargs = mapped(self.lifted, (args, kwargs))
        if op.name in LIKE:
            return self._constant(func, args, kwargs)
        if op.writes:
            return self._written(func, op, args, kwargs)
        if op.out:
            return self._written_out(func, args, kwargs)
        deterministic = op.whole or op.name in TABLE or op.name.startswith("_scaled_dot_product")
        if op.random and not deterministic:
            return self._random(func, args, kwargs)
        self._check_types(func, args, kwargs)
        return self._computed(func, op, args, kwargs)

    def _computed(self, func: Any, op: AtenOverload, args: Any, kwargs: dict[str, Any]) -> Any:
        """The result in new memory, or as a view."""
        special = getattr(self, f"_on_{op.name}", None)
        if special is not None:
            return special(*args, **kwargs)
        if op.key in TABLE or op.name in TABLE:
            return self._from_table(op, args, kwargs)
        if op.whole:
            with self:
                return func.decompose(*args, **kwargs)
        if op.key == "view.dtype":
            raise Unsupported("torch's operation `aten.view.dtype`: the bits of a number as another type")
        if op.view and op.name not in OTHER_TYPES:
            return self._view(func, args, kwargs)
        if op.name in ARRANGING:
            return self._arranged(func, args, kwargs)
        custom = OPDEFS.get(func.name())
        with self:
            if custom is not None and "cpu" not in custom._backend_fns:
                return unrecorded(custom._init_fn, *args, **kwargs)
            found = decomposition_table.get(func, lambda *_, **__: NotImplemented)(*args, **kwargs)
        if found is NotImplemented:
            raise Unsupported(f"the oracle has no torch operation `{func}`")
        return found

    def _from_table(self, op: AtenOverload, args: Any, kwargs: dict[str, Any]) -> Any:
        numbers = [tensor for tensor in tensors_in((args, kwargs)) if isinstance(tensor, NumbersTensor)]
        active = any(tensor.storage.active for tensor in numbers)
        first = numbers[0].positions if numbers else None
        args, kwargs = mapped(self.array, (args, kwargs))
        function = TABLE[op.key] if op.key in TABLE else TABLE[op.name]
        result = function(self.xp, *args, **kwargs)
        if isinstance(result, tuple):
            return tuple(self.made(part, active) for part in result)
        return self.made(result, active, first)

    def _without_numbers(self, func: Any, op: AtenOverload, args: Any, kwargs: dict[str, Any], given: list[Any]) -> Any:
        """By torch, for integers, booleans and shapes. The oracle computes floats from integers."""
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.dtype == torch.float64 and given and op.name in TABLE:
            return self._from_table(op, args, kwargs)
        return mapped(self._new_constant, result)

    def _new_constant(self, tensor: Any) -> Any:
        tensor = in_double(tensor) if WIDENS.get() else tensor
        return self.lifted(tensor) if tensor.dtype in DOUBLE else tensor

    def _constant(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """By torch, from tensors whose shape and type alone matter."""

        first, *others = args
        if isinstance(first, NumbersTensor):
            first = torch.empty_strided(first.shape, first.stride(), dtype=first.dtype)
        return self._of_constants(func, (first, *others), kwargs)

    def _random(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Drawn by torch's generator. Draws are constants, unless torch may differentiate them."""
        name = operation(func).name
        active = any(isinstance(part, NumbersTensor) and part.storage.active for part in tensors_in((args, kwargs)))
        spelling = name if torch.is_grad_enabled() or in_custom_function() else "no_grad"
        if active and spelling == name and name not in CONSTANT_DRAWS:
            if name in QUANTILES:
                holds(DRAWN)
            raise Unsupported(f"torch's operation `{func}` draws random numbers that depend on active numbers")

        def floats(tensor: Any) -> Any:
            return torch.from_numpy(escaped(tensor, spelling)) if isinstance(tensor, NumbersTensor) else tensor

        args, kwargs = mapped(floats, (args, kwargs))
        return mapped(self._new_constant, func(*args, **kwargs))

    def _of_constants(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """By torch, from floats."""

        def floats(tensor: Any) -> Any:
            return constants(tensor, str(func)) if isinstance(tensor, NumbersTensor) else tensor

        args, kwargs = mapped(floats, (args, kwargs))
        return mapped(self._new_constant, func(*args, **kwargs))

    def _check_types(self, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Raise Unsupported if a result of active numbers has lower precision than float64."""
        given = list(tensors_in((args, kwargs)))
        numbers = [tensor for tensor in given if isinstance(tensor, NumbersTensor)]
        if WIDENS.get() or not any(tensor.storage.active for tensor in numbers):
            return
        for value in (*args, *kwargs.values()):
            if isinstance(value, torch.dtype):
                refuse_less(value, f"`{func}` converts to it")
        if all(tensor.ndim == 0 for tensor in numbers):
            for tensor in given:
                if tensor.ndim:
                    refuse_less(tensor.dtype, f"`{func}` takes an array of it")

    # Memory -----------------------------------------------------------------------------------------------------

    def _view(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """The same memory with another geometry, which torch determines from tensors of positions."""
        base, *others = args

        def sharing(positions: Any) -> Any:
            return NumbersTensor(base.storage, positions, stopped, base.dtype)

        stopped = base.stopped or _records_nothing(base.storage.numbers)
        return mapped(sharing, func(base.positions, *mapped(places_of, others), **kwargs))

    def _arranged(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """New memory with entries of all tensors, fill values and zeros."""
        parts: list[Any] = [np.zeros(1)]
        active = False

        def places(value: Any) -> Any:
            nonlocal active
            start = sum(map(len, parts))
            if isinstance(value, NumbersTensor):
                active = active or value.storage.active
                parts.append(entries(value).reshape(-1))
                return torch.arange(start, start + value.numel(), dtype=torch.float64).reshape(value.shape)
            if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
                return places(self.made(value.detach().double().numpy(), active=False))
            return value

        def numbered(name: str, value: Any) -> Any:
            if name == "value" and isinstance(value, (int, float)):
                parts.append(np.array([float(value)]))
                return sum(map(len, parts)) - 1
            return mapped(places, value)

        names = [argument.name for argument in func._schema.arguments]
        arranged = [numbered(name, value) for name, value in zip(names, args, strict=False)]
        found = func(*arranged, **{name: numbered(name, value) for name, value in kwargs.items()})
        every = self._joined(parts)

        def taken(positions: Any) -> Any:
            if not positions.dtype.is_floating_point:
                return positions
            return self.made(every[positions.long().numpy()], active, positions)

        return mapped(taken, found)

    def _joined(self, parts: Sequence[Any]) -> Any:
        """Entries of several tensors in one array: of numbers if one of them is."""
        if all(part.dtype != object for part in parts):
            return np.concatenate(parts)
        parts = list(map(self._numbers, parts))
        return joined(parts) if isinstance(parts[0], EnclosedArray) else np.concatenate(parts)

    def _written(self, func: Any, op: AtenOverload, args: Any, kwargs: dict[str, Any]) -> Any:
        """An in-place operation: the result of the functional one, written to the memory of the first argument."""
        target, *others = args
        if op.name in NEW_GEOMETRY:
            return self._reshaped(func, target, others)
        if op.name in RANDOM_IN_PLACE:
            drawn = torch.empty_strided(target.shape, target.stride(), dtype=target.dtype)
            return self.write(func, target, self._random(func, (drawn, *others), kwargs))
        if op.name == "copy_":
            return self.write(func, target, others[0])
        if op.name in ("fill_", "zero_"):
            return self.write(func, target, others[0] if others else 0.0)
        if op.functional is None:
            raise Unsupported(f"the oracle has no in-place operation `{func}` of torch")
        return self.write(func, target, self.run(op.functional, args, kwargs))

    def _reshaped(self, func: Any, target: NumbersTensor, arguments: Any) -> Any:
        """The tensor itself in another shape."""
        target.positions = func(torch.ops.aten.alias(target.positions), *arguments)
        with torch._C._DisableTorchDispatch():
            func(target, *arguments)
        return target

    def _written_out(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """An operation with `out=`."""
        target = kwargs.pop("out")
        with self:
            return self.write(func, target, func.overloadpacket(*args, **kwargs))

    def write(self, func: Any, target: Any, value: Any) -> Any:
        """Write a tensor or a number to the memory of ``target``, and return it."""
        active = isinstance(value, NumbersTensor) and value.storage.active
        if not isinstance(target, NumbersTensor):
            return self._write_plain(func, target, value, active)
        storage = target.storage
        if storage.copied:
            raise Unsupported(f"torch's in-place operation `{func}` on a conjugate or complex view")
        given = boxed(self.xp.reals(self.array(value) if isinstance(value, torch.Tensor) else value))
        numbers: Any = np.broadcast_to(given, tuple(target.shape)).reshape(-1)
        at = target.positions.numpy().reshape(-1)
        if isinstance(numbers, EnclosedArray):
            return self._write_enclosed(func, target, at, numbers)
        if storage.numbers.dtype != object:
            storage.numbers = self._numbers(storage.numbers).view(np.ndarray)
        if target.stopped and not _records_nothing(numbers) and moves(numbers):
            raise Unsupported(f"torch's in-place operation `{func}` writes active numbers to a detached tensor")
        if target.stopped or _records_nothing(numbers):
            numbers = replaced(storage.numbers[at], numbers)
        storage.numbers[at] = numbers
        storage.active = storage.active or active
        return target

    def _write_enclosed(self, func: Any, target: NumbersTensor, at: Any, numbers: EnclosedArray) -> Any:
        """Give the memory of ``target`` new numbers, with these at its places."""
        storage = target.storage
        if (storage.active or numbers.moves) and (target.stopped or _records_nothing(numbers)):
            raise Unsupported(f"torch's in-place operation `{func}` on constants, in enclosures")
        places = np.arange(storage.numbers.size)
        places[at] = np.arange(places.size, places.size + at.size)
        storage.numbers = self._joined([self._numbers(storage.numbers), numbers])[places]
        storage.active = storage.numbers.moves
        return target

    def _write_plain(self, func: Any, target: Any, value: Any, active: bool) -> Any:
        """Write to integers, booleans or lower precision."""
        if active and target.dtype.is_floating_point:
            refuse_less(target.dtype, f"`{func}` writes to it")
        if isinstance(value, NumbersTensor) and value.storage.active:
            value = torch.from_numpy(np.array(self.xp.astype(self.array(value), np.int64)))
        elif isinstance(value, NumbersTensor):
            value = constants(value, str(func))
        return target.copy_(value) if isinstance(value, torch.Tensor) else target.fill_(value)

    # Operations that need tensors instead of arrays ----------------------------------------------------------------

    def _on_detach(self, tensor: NumbersTensor) -> Any:
        # Called by torch, which stores results for derivatives; `detach` in Python is the tensor's method.
        return NumbersTensor(tensor.storage, tensor.positions, tensor.stopped, tensor.dtype)

    def _on_lift_fresh(self, tensor: Any) -> Any:
        return tensor

    def _on_clone(self, tensor: NumbersTensor, *, memory_format: Any = torch.preserve_format) -> Any:
        like = tensor.positions if memory_format == torch.preserve_format else None
        return self.made(entries(tensor), tensor.storage.active, like)

    def _on__to_copy(self, tensor: NumbersTensor, *, dtype: Any = None, device: Any = None, **_: Any) -> Any:
        if device is not None and torch.device(device).type != "cpu":
            raise Unsupported(f"the function computes on the device {device}; the oracle needs the CPU")
        if dtype is None or dtype == tensor.dtype or (WIDENS.get() and low_type(dtype) and not dtype.is_complex):
            return self._on_clone(tensor)
        if dtype == torch.complex128:
            return self.made(self.array(tensor) + np.array(0j, dtype=object), tensor.storage.active, tensor.positions)
        if dtype.is_floating_point or dtype.is_complex:
            return constants(tensor, str(dtype)).to(dtype)
        if dtype == torch.bool:
            return torch.from_numpy(np.array(self.array(tensor) != 0, dtype=np.bool_))
        return torch.from_numpy(np.array(self.xp.astype(self.array(tensor), np.int64))).to(dtype)

    def _on__local_scalar_dense(self, tensor: NumbersTensor) -> Any:
        return escaped(tensor, "item").item()

    def _on_is_same_size(self, a: Any, b: Any) -> bool:
        return bool(a.shape == b.shape)

    def _on__has_same_storage_numel(self, a: Any, b: Any) -> bool:
        return len(a.storage.numbers) == len(b.storage.numbers)

    def _on__fused_sdp_choice(self, *_: Any, **__: Any) -> int:
        return 0

    def _on__conj(self, tensor: NumbersTensor) -> Any:
        return self._other_numbers(tensor, self.xp.conj(self.array(tensor)))

    def _on_view_as_real(self, tensor: NumbersTensor) -> Any:
        array = self.array(tensor)
        parts = [np.asarray(part(array), dtype=object) for part in (self.xp.real, self.xp.imag)]
        return self._other_numbers(tensor, np.stack(parts, axis=-1))

    def _on_view_as_complex(self, tensor: NumbersTensor) -> Any:
        array = np.asarray(self.array(tensor))
        made = np.frompyfunc(ComplexNumber, 2, 1)(array[..., 0], array[..., 1])
        return self._other_numbers(tensor, np.asarray(made, dtype=object))

    def _other_numbers(self, tensor: NumbersTensor, numbers: Any) -> Any:
        """A view in torch that is a copy here, so writing to either is refused."""
        made = self.made(numbers, tensor.storage.active)
        made.storage.copied = tensor.storage.copied = True
        return made


def refuse_less(dtype: Any, where: str) -> None:
    """Raise Unsupported for a type below float64."""
    if (dtype.is_floating_point or dtype.is_complex) and dtype not in DOUBLE:
        raise Unsupported(f"the function computes in {str(dtype).removeprefix('torch.')} inside: {where}")


def _records_nothing(numbers: Any) -> bool:
    """Whether `torch.no_grad()` or a similar mode makes these results constant."""
    if torch.is_grad_enabled() or in_custom_function():
        return False
    spelling = "inference_mode" if torch.is_inference_mode_enabled() else "no_grad"
    if torch._C._current_graph_task_id() != -1:  # inside `torch.autograd.grad`
        spelling = "grad without create_graph"
    return numbers.dtype != object or not moves(numbers) or holds(spelling)


@contextlib.contextmanager
def in_float64() -> Iterator[None]:
    """New tensors are float64, and compiled functions run eagerly."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else contextlib.nullcontext():
            yield
    finally:
        torch.set_default_dtype(before)
