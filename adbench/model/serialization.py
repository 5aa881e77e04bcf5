"""Frozen dataclasses to plain data (for JSON) and back, by `cattrs`.

JSON has no NaN and no infinity, and other programs' readers refuse them: such floats travel as the texts "nan",
"inf", "-inf".
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, TypeVar

import cattrs
from cattrs.gen import make_dict_unstructure_fn
from cattrs.strategies import configure_union_passthrough

from adbench.measure.clock import Round

T = TypeVar("T")


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    configure_union_passthrough(str | int | float | bool | None, converter)
    converter.register_unstructure_hook(float, lambda x: x if math.isfinite(x) else str(float(x)))
    converter.register_structure_hook(float, lambda x, _: float(x))
    # By the hundred thousand in one file, and undisturbed nearly all: half the bytes, half the time to read them.
    converter.register_unstructure_hook(Round, make_dict_unstructure_fn(Round, converter, _cattrs_omit_if_default=True))
    return converter


def to_plain(value: Any) -> Any:
    """Dataclasses as dicts, tuples as lists, floats that JSON lacks as texts."""
    return _converter().unstructure(value)


def from_plain(data: Any, kind: type[T]) -> T:
    """The value of type `kind` that the plain data stands for. Raises ValueError, in one line, where it stands for
    none."""
    try:
        return _converter().structure(data, kind)
    except Exception as error:  # cattrs raises groups of errors of many types; all of them mean "not of that form"
        raise ValueError("; ".join(cattrs.transform_error(error)[:3])) from error
