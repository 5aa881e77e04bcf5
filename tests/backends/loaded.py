"""The backends, each imported once for the whole folder."""

from __future__ import annotations

from functools import cache

from adbench.suite.backend import Backend, from_module
from adbench.suite.catalog import catalog, load

NAMES = ("autograd", "finite_differences", "jax", "tape", "torch")


@cache
def backend(name: str) -> Backend:
    return from_module(name, load(catalog().backends[name]))
