"""Faults in H v and in the Hessian with a correct gradient."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from adbench import Case
from adbench.model import tree
from tests.oracle.campaign import cases as at
from tests.oracle.campaign.fault import Fault, refilled, wrapped

CASES: dict[str, Case] = {"chain": at.SMALL, "two": at.PAIR, "couples": at.COUPLES, "matrix": at.MATRIX}
Matrix = Callable[[Any], Any]


def matrix_of(hessian: Any) -> Any:
    """The blocks of a Hessian as one matrix over all entries."""
    rows = []
    for row in hessian:
        blocks = [np.asarray(block) for block in row]
        widths = [block.size for block in blocks]
        n = max(1, round(np.sqrt(sum(widths)))) if len(hessian) == 1 else None
        rows.append((blocks, widths, n))
    heights = [_side(hessian, k) for k in range(len(hessian))]
    return np.block([[np.asarray(b).reshape(heights[i], heights[j]) for j, b in enumerate(row)] for i, row in
                     enumerate(hessian)])  # fmt: skip


def _side(hessian: Any, which: int) -> int:
    return round(np.sqrt(np.asarray(hessian[which][which]).size))


def blocks_of(matrix: Any, like: Any) -> Any:
    ends = np.cumsum([0, *(_side(like, k) for k in range(len(like)))])
    return tuple(
        tuple(
            matrix[ends[i] : ends[i + 1], ends[j] : ends[j + 1]].reshape(np.shape(block)) for j, block in enumerate(row)
        )
        for i, row in enumerate(like)
    )


def in_hessian(change: Matrix) -> Any:
    return wrapped(lambda o, H, args, wrt: blocks_of(change(matrix_of(H)), H), ("hessian",))


def in_product(change: Callable[[Any, Any, Any], Any]) -> Any:
    """change(H v, v, x) as flat vectors."""

    def flat(parts: Any) -> Any:
        return np.concatenate([np.ravel(np.asarray(leaf)) for leaf in tree.leaves(parts)])

    def changed(operator: str, result: Any, args: Any, wrt: Any) -> Any:
        v, x = flat(args[-1]), flat(tuple(args[i] for i in wrt))
        return refilled(result, lambda hv: change(hv, v, x))

    return wrapped(changed, ("hvp",))


def put(H: Any, i: int, j: int, value: float) -> Any:
    H = H.copy()
    H[i, j] = value
    return H


HESSIANS: dict[str, Matrix] = {
    "Hessian upper half only": np.triu,
    "Hessian lower half only": np.tril,
    "Hessian diagonal only": lambda H: np.diag(np.diag(H)),
    "Hessian without its diagonal": lambda H: H - np.diag(np.diag(H)),
    "Hessian diagonal doubled": lambda H: H + np.diag(np.diag(H)),
    "Hessian off-diagonal entries doubled": lambda H: 2 * H - np.diag(np.diag(H)),
    "Hessian sign": lambda H: -H,
    "Hessian zero": lambda H: 0 * H,
    "Hessian entry off by 1e-3": lambda H: put(H, 1, 0, H[1, 0] * (1 + 1e-3) + 1e-3),
    "Hessian entry off by 1e-8": lambda H: put(H, 1, 1, H[1, 1] * (1 + 1e-8)),
    "Hessian with two opposite errors in a row": lambda H: H + _errors(H, [(0, 0, 0.1), (0, 1, -0.1)]),
    "Hessian with two equal errors in a row": lambda H: H + _errors(H, [(0, 0, 0.1), (0, 1, 0.1)]),
    "Hessian with opposite errors in every row": lambda H: H + 0.1 * np.outer(np.ones(len(H)), _two(len(H), -1.0)),
    "Hessian with equal errors in every row": lambda H: H + 0.1 * np.outer(np.ones(len(H)), _two(len(H), 1.0)),
    "Hessian with a skew error": lambda H: H + _errors(H, [(0, 1, 0.1), (1, 0, -0.1)]),
    "Hessian columns exchanged": lambda H: H[:, [1, 0, *range(2, len(H))]],
    "Hessian rows reversed": lambda H: H[::-1],
    "Hessian mirrored": lambda H: H[::-1, ::-1],
    "Hessian in single precision": lambda H: H.astype(np.float32).astype(np.float64),
    "Hessian of the wrong scale": lambda H: 2 * H,
    "Hessian without the last row": lambda H: np.vstack([H[:-1], 0 * H[-1:]]),
    "Gauss-Newton instead of the Hessian": lambda H: np.outer(np.diag(H), np.diag(H)) / np.abs(np.diag(H)).max(),
}


def _errors(H: Any, where: list[tuple[int, int, float]]) -> Any:
    found = np.zeros_like(H)
    for i, j, error in where:
        found[i, j] = error
    return found


def _two(n: int, second: float) -> Any:
    found = np.zeros(n)
    found[:2] = 1.0, second
    return found


def rounded_down(size: float) -> float:
    return float(2.0 ** np.floor(np.log2(size)))


PRODUCTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "H v sign": lambda hv, v, x: -hv,
    "H v doubled": lambda hv, v, x: 2 * hv,
    "H v zero": lambda hv, v, x: 0 * hv,
    "v instead of H v": lambda hv, v, x: v,
    "H v quadratic in v": lambda hv, v, x: hv * np.abs(v).max(),
    "H v even in v": lambda hv, v, x: hv * np.sign(v[0]),
    "H v of v rounded to a power of two": lambda hv, v, x: hv * rounded_down(np.abs(v).max()) / np.abs(v).max(),
    "H v entry off by 1e-6": lambda hv, v, x: hv * (1 + 1e-6 * (np.arange(hv.size) == 1)),
    "H v entry off by 1e-8": lambda hv, v, x: hv * (1 + 1e-8 * (np.arange(hv.size) == 0)),
    "H v last entry missing": lambda hv, v, x: np.append(hv[:-1], 0.0),
    "H v reversed": lambda hv, v, x: hv[::-1],
    "H v with a term of the gradient": lambda hv, v, x: hv + 0.01 * x,
    "H v in single precision": lambda hv, v, x: hv.astype(np.float32).astype(np.float64),
    "H v projected on v": lambda hv, v, x: v * (hv @ v) / (v @ v),
    "H v with a multiple of v": lambda hv, v, x: hv + 1e-3 * v,
}


def second_order() -> Iterator[Fault]:
    for kind, of_matrix in HESSIANS.items():
        for name, case in CASES.items():
            yield Fault(kind=kind, name=name, case=case, operators=("hessian",), make=in_hessian(of_matrix))
    for kind, of_vector in PRODUCTS.items():
        for name, case in CASES.items():
            yield Fault(kind=kind, name=name, case=case, operators=("hvp",), make=in_product(of_vector))


SECOND_ORDER = list(second_order())
