"""Operations × libraries × kinds of repetition: which gradients keep their bits?

Every operation maps rows to rows, or rows to one number, and has reductions in its value or its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adbench.catalog.ad_hoc import ad_hoc
from adbench.catalog.selection import resolve
from adbench.findings.same_bits.same_bits import LIBRARIES_OF_XP, BitRow, SameBits, asking, repetitions
from adbench.model.errors import BadFile, UsageError
from adbench.model.serialization import converted, to_plain

ROWS, COLUMNS, WIDTH = 96, 1024, 64
"""Large enough for libraries that share a reduction among threads."""

FORMAT = "adbench same bits"


def _softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.max(x, axis=1)[:, None])
    return e / xp.sum(e, axis=1)[:, None]


def _layer_norm(xp: Any, x: Any, scale: Any) -> Any:
    centred = x - xp.mean(x, axis=1)[:, None]
    return centred / xp.sqrt(xp.mean(centred * centred, axis=1) + 1e-5)[:, None] * scale


def _cross_entropy(xp: Any, x: Any, w: Any) -> Any:
    scores = x @ w
    return xp.log(xp.sum(xp.exp(scores), axis=1)) - scores[:, 0]


@dataclass(frozen=True)
class RowOperation:
    """An operation on rows, and the shapes of its further arguments."""

    f: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...] = ()


ROW_OPERATIONS: Mapping[str, RowOperation] = {
    "sum of all": RowOperation(lambda xp, x: xp.sum(x * x)),
    "mean of all": RowOperation(lambda xp, x: xp.mean(x * x)),
    "sum of a row": RowOperation(lambda xp, x: xp.sum(xp.sin(x), axis=1)),
    "variance": RowOperation(lambda xp, x: xp.mean(x * x, axis=1) - xp.mean(x, axis=1) ** 2),
    "norm": RowOperation(lambda xp, x: xp.sqrt(xp.sum(x * x, axis=1))),
    "log-sum-exp": RowOperation(lambda xp, x: xp.log(xp.sum(xp.exp(x), axis=1))),
    "softmax": RowOperation(_softmax),
    "added bias": RowOperation(lambda xp, x, b: xp.tanh(x + b), ((COLUMNS,),)),
    "layer norm": RowOperation(_layer_norm, ((COLUMNS,),)),
    "cumulative sum": RowOperation(lambda xp, x: xp.cumulative_sum(x, axis=1)),
    "matrix · vector": RowOperation(lambda xp, x, w: x @ w, ((COLUMNS,),)),
    "matrix · matrix": RowOperation(lambda xp, x, w: x @ w, ((COLUMNS, WIDTH),)),
    "two layers": RowOperation(lambda xp, x, w, u: xp.tanh(x @ w) @ u, ((COLUMNS, WIDTH), (WIDTH, WIDTH))),
    "attention": RowOperation(lambda xp, x, k, v: _softmax(xp, x @ k / 32.0) @ v, ((COLUMNS, WIDTH), (WIDTH, COLUMNS))),
    "cross-entropy": RowOperation(_cross_entropy, ((COLUMNS, WIDTH),)),
    "linear solve": RowOperation(
        lambda xp, x, a: xp.linalg.solve(a @ a.T + 9.0 * xp.eye(WIDTH), x[:, :WIDTH].T).T, ((WIDTH, WIDTH),)
    ),
}


def inputs_of(name: str) -> tuple[Any, ...]:
    """The arguments of an operation: normal numbers, scaled so that sums of products are about 1."""
    rng = np.random.default_rng(0x5B)
    further = [rng.normal(size=shape) / np.sqrt(shape[0]) for shape in ROW_OPERATIONS[name].shapes]
    return (rng.normal(size=(ROWS, COLUMNS)), *further)


def __getattr__(name: str) -> Any:
    """``operation_3`` and ``inputs_3``: the third operation and its inputs, as functions of the command line."""
    kind, _, number = name.partition("_")
    if kind not in ("operation", "inputs") or not number.isdecimal():
        raise AttributeError(name)
    title = [*ROW_OPERATIONS][int(number)]
    return ROW_OPERATIONS[title].f if kind == "operation" else lambda n: inputs_of(title)


@dataclass(frozen=True)
class BitsMatrix:
    """The result: a `SameBits` for each operation and library.

    libraries   library -> version; refused: (operation, library, why it has no cell)
    """

    libraries: Mapping[str, str]
    cells: tuple[SameBits, ...]
    refused: tuple[tuple[str, str, str], ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """For JSON."""
        return {FORMAT: 1, **to_plain(self)}

    @staticmethod
    def from_plain(data: Any, file: Path) -> BitsMatrix:
        """The inverse. Raises BadFile."""
        try:
            return converted(data, BitsMatrix, strict=False)
        except ValueError as error:
            raise BadFile(f"{file}: not a matrix of same bits: {error}; make it with scripts/same-bits") from error


def bits_matrix(
    libraries: Sequence[str] = LIBRARIES_OF_XP,
    operations: Sequence[str] = tuple(ROW_OPERATIONS),
    told: Callable[[str, str], None] = lambda library, operation: None,
) -> BitsMatrix:
    """Repeat every operation by every library; told(library, operation) before each."""
    chosen = resolve(backends=libraries)
    cells, refused = list[SameBits](), list[tuple[str, str, str]]()
    versions = {name: chosen.catalog.backends[name].version or "" for name in libraries}
    for library in libraries:
        with asking(chosen, library, 0) as ask:
            for name in operations:
                told(library, name)
                number = [*ROW_OPERATIONS].index(name)
                named = ad_hoc(f"{__name__}:operation_{number}", inputs=f"{__name__}:inputs_{number}", double=False)
                try:
                    rows: tuple[BitRow, ...] = repetitions(ask, {"named": asdict(named), "size": 1, "seed": 0})
                except UsageError as refusal:
                    refused.append((name, library, str(refusal)))
                    continue
                cells.append(SameBits(name, library, versions[library], rows))
    return BitsMatrix(versions, tuple(cells), tuple(refused))
