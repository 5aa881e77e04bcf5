"""Jacobians and second derivatives, built from reverse sweeps and forward evaluations."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from adbench.tape.core.functionals import Function, Rebuild, along, finished, gradient, is_on, plain
from adbench.tape.core.node import new_leaf
from adbench.tape.core.recording import Tape
from adbench.tape.core.rule import RuleError, Value
from adbench.tape.core.sweep import propagate
from adbench.tape.levels import ForwardModeError, current, on_tape
from adbench.tape.linalg.symmetric_eigenvalues import EqualEigenvaluesError
from adbench.tape.singular import irregular
from adbench.tape.trees import flatten, matching, outputs
from adbench.tape.values import PLAIN, asarray, has_nan, settle, shape_of, size_of, value_of


def hvp(f: Function, x: Any, v: Any) -> tuple[Value, Any]:
    """(f(x), H v) with H[i, j] = ∂²f/∂x_i∂x_j, in the structure of x: forward mode over the gradient."""
    values, rebuild = flatten(x, "hvp: x")
    (fx, *_), (_, *hv), _ = linear(lambda point: gradient(f, point), values, rebuild, matching(v, values, "hvp: v"))
    return fx, rebuild(hv)


def linear(
    f: Function, values: list[Value], rebuild: Rebuild, tangents: Sequence[Value]
) -> tuple[list[Value], list[Value], Rebuild]:
    """`along`, with NaN where f has a derivative along each direction that is not linear in it, as sign(v) |v| of |x|.

    A derivative D is linear if D(v) + D(w) = D(v + w), checked if a kink was met, for w = -c v with irregular c.
    """
    before, current.one_sided = current.one_sided, False
    try:
        fx, slopes, rebuild_y = along(f, values, rebuild, tangents)
        if current.one_sided and all(type(tan) in PLAIN for tan in (*tangents, *slopes)):
            sizes = np.cumsum([0, *map(size_of, tangents)])
            weights = irregular((int(sizes[-1]),))
            factors = [
                weights[i:j].reshape(shape_of(tan)) for i, j, tan in zip(sizes, sizes[1:], tangents, strict=False)
            ]
            others = [settle(-c * tan) for c, tan in zip(factors, tangents, strict=True)]
            sums = [settle(tan + other) for tan, other in zip(tangents, others, strict=True)]
            parts = zip(slopes, *(along(f, values, rebuild, tans)[1] for tans in (others, sums)), strict=True)
            slopes = [settle(_if_additive(*three)) for three in parts]
        return fx, slopes, rebuild_y
    finally:
        current.one_sided = before or current.one_sided


def _if_additive(x: Value, y: Value, total: Value) -> Value:
    """x where x + y = total up to rounding, else NaN."""
    size = np.abs(x) + np.abs(y) + np.abs(total)
    largest = np.max(np.where(np.isfinite(size), size, 0.0), initial=0.0)
    return np.where(np.abs(x + y - total) <= 1e-8 * largest, x, np.nan)


def jacobian(f: Function, x: Any, mode: str | None = None) -> tuple[Value, Any]:
    """(f(x), J): J[i, j] = ∂f_i/∂x_j, of shape f(x).shape + x.shape; for a nest x, one such array for each leaf.

    mode "reverse": one recording and a sweep per element of f(x); "forward": one evaluation per element of x.
    By default the cheaper of the two, or reverse if part of f has no forward mode.
    """
    if mode not in (None, "forward", "reverse"):
        raise ValueError(f"jacobian: mode: expected 'forward', 'reverse' or None, got {mode!r}")
    values, rebuild = flatten(x, "jacobian: x")
    if mode == "forward":
        return _by_columns(f, values, rebuild)
    with on_tape() as tape:
        leaves = [new_leaf(tape, value) for value in values]
        cells = [leaf.cell for leaf in leaves]
        ys, rebuild_y = outputs(f(rebuild(leaves)))
        if mode is None and sum(map(size_of, values)) < sum(map(size_of, ys)):
            try:
                return _by_columns(f, values, rebuild)
            except (RuleError, ForwardModeError):
                pass  # part of f has reverse mode only, and the recording exists already
        blocks = [rebuild(rows(y, tape, cells)) for y in ys]
        return rebuild_y([plain(y, tape) for y in ys]), rebuild_y(blocks)


def rows(y: Any, tape: Tape, cells: Sequence[Any]) -> list[Value]:
    """∂y/∂x for each leaf, of shape y.shape + leaf.shape, by one sweep per element of y."""
    shape = shape_of(y)
    lines: list[list[Value]] = [[] for _ in cells]
    for place in np.ndindex(shape if is_on(y, tape) else (0,)):
        propagate(tape, [(y.cell, _unit(shape, place))], cells)
        for line, cell in zip(lines, cells, strict=True):
            line.append(finished(cell))
    return [_assembled(line, shape, cell.shape) for line, cell in zip(lines, cells, strict=True)]


def _unit(shape: tuple[int, ...], place: tuple[int, ...] | None) -> Value:
    """1 at one position, 0 elsewhere; 0 everywhere if there is no position."""
    unit = np.zeros(shape)
    if place is not None:
        unit[place] = 1.0
    return unit if shape else float(unit)


def _assembled(parts: list[Value], shape: tuple[int, ...], leaf_shape: tuple[int, ...], columns: bool = False) -> Value:
    """The rows ∂f_i/∂x, or the columns ∂f/∂x_j, as one array of shape f.shape + x.shape; zeros for an empty list."""
    if not parts:
        return settle(np.zeros(shape + leaf_shape))
    if not (leaf_shape if columns else shape):
        return parts[0]
    stacked = asarray(parts)
    return (np.moveaxis(stacked, 0, -1) if columns else stacked).reshape(shape + leaf_shape)


def _by_columns(f: Function, values: list[Value], rebuild: Rebuild) -> tuple[Value, Any]:
    """The Jacobian by one evaluation of f in forward mode for each element of the inputs."""
    fx: list[Value] | None = None
    rebuild_y: Rebuild
    columns: list[list[list[Value]]] = []
    for k, value in enumerate(values):
        columns.append([])
        for place in np.ndindex(shape_of(value)):
            directions = [_unit(shape_of(u), place if i == k else None) for i, u in enumerate(values)]
            fx, tangents, rebuild_y = linear(f, values, rebuild, directions)
            columns[k].append(tangents)
    if fx is None:  # all inputs are empty
        fx, _, rebuild_y = along(f, values, rebuild, [_unit(shape_of(u), None) for u in values])
    blocks = []
    for i, y in enumerate(fx):
        pairs = zip(columns, values, strict=True)
        blocks.append(rebuild([_assembled([c[i] for c in of], shape_of(y), shape_of(u), True) for of, u in pairs]))
    return rebuild_y(fx), rebuild_y(blocks)


def hessian(f: Function, x: Any) -> tuple[Value, Any, Any]:
    """(f(x), g, H): H[i, j] = ∂²f/∂x_i∂x_j of shape x.shape + x.shape; for a nest x, a nest of nests.

    The Jacobian of the gradient, reverse over reverse: one recording, then one sweep per input. If that fails, or gives
    NaN, as at equal eigenvalues or where |x| is 0, forward over reverse: one evaluation per input.
    """
    try:
        (fx, g), (_, h) = jacobian(lambda point: gradient(f, point), x, "reverse")
        if not any(has_nan(value_of(part)) for part in flatten(h, "hessian")[0]):
            return fx, g, h
    except EqualEigenvaluesError:
        return _hessian_by_columns(f, x)
    with contextlib.suppress(RuleError, ForwardModeError):
        return _hessian_by_columns(f, x)
    return fx, g, h


def _hessian_by_columns(f: Function, x: Any) -> tuple[Value, Any, Any]:
    """The Hessian by forward over reverse; NaN in rows whose product with a vector is not the derivative along it."""
    (fx, g), (_, h) = jacobian(lambda point: gradient(f, point), x, "forward")
    values, rebuild = flatten(x, "hessian: x")
    if any(type(value) not in PLAIN for value in values):
        return fx, g, h
    directions = [settle(irregular(shape_of(value)) + k) for k, value in enumerate(values)]
    along_all = flatten(hvp(f, x, rebuild(directions))[1], "hessian")[0]
    blocks = flatten(h, "hessian")[0]
    checked = []
    for i, expected in enumerate(along_all):
        row = blocks[i * len(values) : (i + 1) * len(values)]
        parts = [np.tensordot(part, v, np.ndim(v)) for part, v in zip(row, directions, strict=True)]
        product = np.add.reduce(parts)
        wrong = np.isnan(_if_additive(product, 0.0, expected)) & ~np.isnan(product)
        checked += [
            settle(np.where(wrong.reshape(wrong.shape + (1,) * np.ndim(v)), np.nan, part))
            for part, v in zip(row, directions, strict=True)
        ]
    return fx, g, flatten(h, "hessian")[1](checked)
