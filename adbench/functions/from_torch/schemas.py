"""torch's schema of an operation: its name, and the memory that it writes and shares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from adbench.vocabulary import words

NEW_GEOMETRY = words("as_strided_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_")
"""Operations that return their tensor's memory in another shape."""

LIKE = words(
    "empty_like full_like new_empty new_empty_strided new_full new_ones new_zeros ones_like rand_like "
    "randint_like randn_like zeros_like"
)
"""Operations that use only shape and type of a tensor."""

OTHER_TYPES = words("_conj _neg_view view_as_complex view_as_real")
"""Views in torch with other numbers as entries; here they are read-only copies."""


@dataclass(frozen=True)
class AtenOverload:
    """An overload of an ATen operation, with facts from its schema.

    writes  it changes its first argument; `functional` returns the same result in new memory
    out     it writes its result into the keyword argument `out`
    view    its result shares the memory of its first argument
    whole   torch composes it from other operations
    """

    name: str
    key: str
    writes: bool
    out: bool
    view: bool
    whole: bool
    functional: Any
    random: bool


@cache
def operation(func: Any) -> AtenOverload:
    """The `AtenOverload` of an overload."""
    schema, name = func._schema, func.overloadpacket.__name__
    written = [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    aliases = [a for a in schema.returns if a.alias_info is not None]
    writes = name.endswith("_") and not name.endswith("__") and bool(written)
    functional = None
    if writes:
        packet = getattr(torch.ops.aten, name.removesuffix("_"), None)
        functional = getattr(packet, func._overloadname, packet)
    return AtenOverload(
        name,
        f"{name}.{func._overloadname}",
        writes,
        out="out" in written,
        view=bool(aliases) and not written,
        whole=torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"),
        functional=functional,
        random=torch.Tag.nondeterministic_seeded in func.tags,
    )
