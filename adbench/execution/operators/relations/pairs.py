"""Relations between two prepared operators of one backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from adbench.execution.operators.relations.consistency import difference
from adbench.execution.operators.relations.setting import PreparedSubject
from adbench.model import tree
from adbench.model.operator import Operator
from adbench.oracle.structure import symmetrised

Test = Callable[[PreparedSubject, PreparedSubject, Any], Iterator[str]]
"""A relation of two operators. With axes it holds for symmetric changes of these inputs only (`symmetrised`)."""


def modes(jvp: PreparedSubject, vjp: PreparedSubject, axes: Any = None) -> Iterator[str]:
    """<w, J v> = <Jᵀ w, v>, for general v and w: forward compared with reverse."""
    setting = jvp.setting
    (v,), (w,) = setting.general("jvp"), setting.general("vjp")
    v = v if axes is None else symmetrised(v, axes)
    jv, wj = jvp.result(jvp.with_vector((v,))), vjp.result(vjp.with_vector((w,)))
    terms = [np.ravel(p * q) for p, q in zip(tree.leaves(wj), tree.leaves(v), strict=True)]
    products = np.concatenate(terms) if terms else np.zeros(0)
    left, right = float(np.sum(w * jv)), float(products.sum())
    noise, size = setting.noise("jvp"), float(np.abs(products).sum()) + float(np.sum(np.abs(w * jv)))
    bound = (noise.relative + noise.share) * size + noise.floor + 1e-300
    if not abs(left - right) <= max(bound, abs(right) * (setting.backend.claimed_relative_error or 0.0)):
        yield f"<w, J v> = {left!r}, but <Jᵀ w, v> = {right!r}"


def symmetric(hvp: PreparedSubject, hessian: PreparedSubject, axes: Any = None) -> Iterator[str]:
    """H v is H times v for a general v, and H is symmetric."""
    setting = hvp.setting
    (v,), matrix = setting.general("hvp"), hessian.base
    if axes is not None:
        v, matrix = symmetrised(v, axes), symmetrised(matrix, axes, both_sides=True)
    rows = tree.leaves(v)
    blocks = tree.leaves(matrix)
    grid = [blocks[start : start + len(rows)] for start in range(0, len(blocks), len(rows))]
    noise, counts = setting.noise("hvp"), [np.ndim(leaf) for leaf in rows]
    products = [[np.tensordot(b, s, axes=np.ndim(s)) for b, s in zip(row, rows, strict=True)] for row in grid]
    sizes = [
        [np.tensordot(abs(b), abs(s), axes=np.ndim(s)) for b, s in zip(row, map(np.asarray, rows), strict=True)]
        for row in grid
    ]
    got = hvp.result(hvp.with_vector((v,)))
    got = got if axes is None else symmetrised(got, axes)
    expected, size = (tree.filled(got, [sum(row) for row in table]) for table in (products, sizes))
    if differs := difference(got, expected, noise, size):
        yield f"H v is not H times v: {differs}"
    for i, row in enumerate(grid):
        for j, block in enumerate(row[: i + 1]):
            turned = np.moveaxis(grid[j][i], range(counts[j]), range(-counts[j], 0)) if counts[j] else grid[j][i]
            if differs := difference(block, turned, noise, np.abs(turned) + np.abs(block)):
                yield f"the Hessian is not symmetric in inputs {i} and {j}: {differs}"
                return


def disagreements(test: Test, first: PreparedSubject, second: PreparedSubject) -> Iterator[str]:
    """The disagreements of two operators; of symmetric changes alone if the case reads one triangle of an input.

    There a library may follow one convention forward, and another one in reverse (`references.by_conventions`).
    """
    sentences = list(test(first, second, None))
    if sentences and (axes := first.setting.symmetric_axes) is not None:
        sentences = list(test(first, second, axes))
    yield from sentences


PAIRS: Mapping[str, tuple[tuple[Operator, Operator], Test]] = {
    "modes": (("jvp", "vjp"), modes),
    "symmetric": (("hvp", "hessian"), symmetric),
}
"""relation -> its two operators, and the test."""
