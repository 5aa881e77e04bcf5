"""The backends, each imported once for all tests of this folder."""

from __future__ import annotations

from functools import cache

from adbench.catalog.discovery import catalog, load
from adbench.execution.session import prepare
from adbench.model.backend import Backend, from_module
from adbench.model.record import Record

NAMES = ("autograd", "finite_differences", "jax", "tape", "torch")


@cache
def backend(name: str) -> Backend:
    return from_module(name, load(catalog().backends[name]))


def checked(backend: str, case: str, operator: str) -> Record:
    """Check a case at its smallest size in a separate worker, because a compiler does not share a process."""
    session = prepare(
        cases=[case], backends=[backend], operators=[operator], sizes=["1", "2"], time=False, memory=False
    )
    for _ in session.events():
        pass
    return session.result().records[0]
