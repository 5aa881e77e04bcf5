"""What must hold between the calls of an operator that will be timed: four calls, and nothing is prepared again.

A check without times asks for many more relations (relations.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adbench.execution.operators.prepared_point import Known, Point, judged
from adbench.model import tree
from adbench.model.backend import Backend


@dataclass(frozen=True)
class Site:
    """Inputs, and what is known there; `name` says which ones they are."""

    at: Point
    known: Known
    name: str


def first_fault(backend: Backend, operator: str, call: Callable[..., Any], sites: Sequence[Site]) -> str | None:
    """Calls at each of the sites, twice in turns. Why a result is wrong, or what a call changed; None if all is right.

    call   prepared at the inputs of the first site; returns when its result is there
    """
    inputs = [site.at.copied().native(backend, operator)[1] for site in sites]
    before = [_numbers(backend, native) for native in inputs]
    results, kept = [], []
    for native in inputs:
        results.append(call(*native))
        kept.append(_numbers(backend, results[-1]))
    again = [call(*native) for native in inputs]
    for site, native, old in zip(sites, inputs, before, strict=True):
        if not _same(_numbers(backend, native), old):
            return f"a call at {site.name} changes its inputs"
    for site, result, old in zip(sites, results, kept, strict=True):
        if not _same(_numbers(backend, result), old):
            return f"a later call changes the result of the one at {site.name}"
    for found, when in ((kept, "called"), (again, "called again, after a call at other inputs,")):
        for site, result in zip(sites, found, strict=True):
            numbers = backend.numpy_result(result) if found is again else result
            verdict = judged(site.at, operator, numbers, site.known, backend.claimed_relative_error)
            if verdict.word == "wrong":
                return f"prepared at the case's inputs and {when} at {site.name}: {verdict.sentence}"
    return None


def _numbers(backend: Backend, native: Any) -> Any:
    """In numpy, as copies; what is static stays as it is."""

    def copied(leaf: Any) -> Any:
        if tree.is_static(leaf):
            return leaf
        numbers = leaf if hasattr(leaf, "tocsc") else backend.to_numpy(leaf)
        return numbers.copy() if hasattr(numbers, "copy") else np.array(numbers)

    return tree.map_leaves(copied, native)


def _same(a: Any, b: Any) -> bool:
    pairs = zip(map(_dense, tree.leaves(a)), map(_dense, tree.leaves(b)), strict=True)
    return all(np.array_equal(p, q, equal_nan=np.asarray(p).dtype.kind in "fc") for p, q in pairs)


def _dense(leaf: Any) -> Any:
    return leaf.toarray() if hasattr(leaf, "tocsc") else leaf
