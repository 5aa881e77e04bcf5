"""The call that made a value, which a few functions store on their results; see `recognised`."""

from __future__ import annotations

from typing import Any

from adbench.tape.core.rule import Active, Rule, Value

Made = tuple[Rule, tuple[Value, ...], dict[str, Any]]


def call_of(x: Value) -> Made | None:
    """The call that made x, if stored: (rule, args, params)."""
    if not isinstance(x, Active):
        return None
    if x.symbolic:
        return x.tape.producer(x)  # type: ignore[attr-defined,no-any-return]
    origin = getattr(x, "origin", None)  # some values have none
    return origin[1:] if origin is not None and origin[0] is x.val else None
