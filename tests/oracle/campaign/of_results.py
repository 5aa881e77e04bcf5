"""Faults in what a call returns: wrong entries, wrong order, wrong structure, wrong value, wrong products."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from adbench import Case
from tests.oracle.campaign import cases as at
from tests.oracle.campaign.fault import GRADIENTS, Fault, in_gradient, place, refilled, wrapped

FIRST = GRADIENTS
ONLY = ("gradient", "vjp")  # of large inputs


def entry(index: int, change: Callable[[float], float]) -> Callable[[Any], Any]:
    def changed(g: Any) -> Any:
        g[index % g.size] = change(g[index % g.size])
        return g

    return changed


def exchanged(g: Any, i: int, j: int) -> Any:
    g[[i, j]] = g[[j, i]]
    return g


def where(g: Any, mask: Any, values: Any) -> Any:
    return np.where(mask, values, g)


def one_entry() -> Iterator[Fault]:
    small = {"chain": at.SMALL, "matrix": at.MATRIX, "scalars": at.SCALAR}
    for error in (1.0, 1e-2, 1e-4, 1e-6, 1e-8, 3e-9):
        for name, case in small.items():
            for number in range(3):
                yield Fault(
                    kind=f"one entry off by {error:g}", name=f"{name}, place {number}", case=case, operators=FIRST,
                    make=in_gradient(lambda g, n=number, e=error: entry(place(g.size, n), lambda y: y * (1 + e))(g)),
                )  # fmt: skip
    for error in (1.0, 1e-2, 1e-4, 1e-6):
        for name, case, size in (("300", at.LONG_CHAIN, at.LONG), ("1e5", at.LARGE_WAVES, at.LARGE)):
            for number in range(4, 8):
                yield Fault(
                    kind=f"one entry of {name} off by {error:g}", name=f"place {number}", case=case, operators=ONLY,
                    make=in_gradient(entry(place(size, number), lambda y, e=error: y * (1 + e))),
                )  # fmt: skip
    for number in range(4, 8):
        yield Fault(
            kind="one entry of 1e5 off, entries of many sizes", name=f"place {number}", case=at.LARGE_STEEP,
            make=in_gradient(entry(place(at.LARGE, number), lambda y: 2 * y)), operators=ONLY,
        )  # fmt: skip
    for error in (1.0, 1e-3, 1e-6):
        yield Fault(
            kind=f"a small entry beside large ones off by {error:g}", name="tower", case=at.TOWER, operators=FIRST,
            make=in_gradient(entry(0, lambda y, e=error: y * (1 + e))),
        )  # fmt: skip


def whole_vectors() -> Iterator[Fault]:
    rng = np.random.default_rng(5)
    sizes: dict[str, tuple[Case, tuple[str, ...]]] = {
        "5": (at.SMALL, FIRST), "300": (at.LONG_CHAIN, ONLY), "1e5": (at.LARGE_WAVES, ONLY),
    }  # fmt: skip
    changes: dict[str, Callable[[Any], Any]] = {
        "sign of all": lambda g: -g,
        "factor 2": lambda g: 2 * g,
        "factor 1 + 1e-8": lambda g: (1 + 1e-8) * g,
        "factor 1 + 1e-6": lambda g: (1 + 1e-6) * g,
        "zero": lambda g: 0 * g,
        "absolute values": lambda g: np.abs(g) + 0.0 if (g < 0).any() else g[::-1],
        "reversed": lambda g: g[::-1],
        "rolled by one": lambda g: np.roll(g, 1),
        "sorted": lambda g: np.sort(g) if (np.diff(g) < 0).any() else g[::-1],
        "first two exchanged": lambda g: exchanged(g, 0, 1),
        "two distant ones exchanged": lambda g: exchanged(g, g.size // 3, -1),
        "neighbours in the middle exchanged": lambda g: exchanged(g, g.size // 2, g.size // 2 + 1),
        "last entry missing": lambda g: np.append(g[:-1], 0.0),
        "first entry missing": lambda g: np.append(0.0, g[1:]),
        "every second zero": lambda g: where(g, np.arange(g.size) % 2 == 1, 0.0),
        "last tenth zero": lambda g: where(g, np.arange(g.size) >= min(g.size - 1, 0.9 * g.size), 0.0),
        "single precision": lambda g: g.astype(np.float32).astype(np.float64),
        "half precision": lambda g: g.astype(np.float16).astype(np.float64),
        "random 1e-8": lambda g: g * (1 + 1e-8 * rng.uniform(0.5, 1, g.size)),
        "ten decimals": lambda g: np.round(g, 7),
        "constant added": lambda g: g + 1e-3,
        "mean subtracted": lambda g: g - g.mean(),
        "normalised": lambda g: g / np.linalg.norm(g),
        "clipped": lambda g: np.clip(g, -1.0, 1.0),
        "difference of two kept": lambda g: g + np.eye(1, g.size, 1)[0] - np.eye(1, g.size, 2)[0],
        "NaN in one": lambda g: where(g, np.arange(g.size) == g.size // 2, np.nan),
        "infinity in one": lambda g: where(g, np.arange(g.size) == g.size // 2, np.inf),
    }  # fmt: skip
    for kind, change in changes.items():
        for size, (case, operators) in sizes.items():
            yield Fault(kind=kind, name=f"of {size}", case=case, operators=operators, make=in_gradient(change))


def exchanges() -> Iterator[Fault]:
    """Sums with random signs miss two exchanged entries with equal signs."""
    for size, case, pairs in ((5, at.SMALL, 8), (at.LONG, at.LONG_CHAIN, 24), (at.LARGE, at.LARGE_WAVES, 24)):
        for number in range(pairs):
            i, j = np.random.default_rng([size, number]).choice(size, 2, replace=False)
            yield Fault(
                kind=f"two entries of {size} exchanged", name=f"pair {number}", case=case,
                operators=FIRST if size == 5 else ONLY,
                make=in_gradient(lambda g, i=int(i), j=int(j): exchanged(g, i, j)),
            )  # fmt: skip


def small_numbers() -> Iterator[Fault]:
    def where_zero(g: Any) -> Any:
        return np.where(g == 0, 1e-15, g)

    yield Fault(
        kind="a number where zero is", name="1e-15", case=at.WITH_ZEROS, operators=FIRST, make=in_gradient(where_zero)
    )
    yield Fault(
        kind="a number where zero is", name="1e-3", case=at.WITH_ZEROS, operators=FIRST,
        make=in_gradient(lambda g: np.where(g == 0, 1e-3, g)),
    )  # fmt: skip
    yield Fault(
        kind="zero where a small number is", name="tower", case=at.TOWER, operators=FIRST,
        make=in_gradient(lambda g: np.where(np.abs(g) < 1e-7, 0.0, g)),
    )  # fmt: skip
    yield Fault(
        kind="absolute rounding", name="1e-12 on entries of 1e-9", case=at.TOWER, operators=FIRST,
        make=in_gradient(lambda g: np.round(g, 12)),
    )  # fmt: skip


def matrices() -> Iterator[Fault]:
    def of_matrix(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def changed(g: Any) -> Any:
            g[:9] = change(g[:9].reshape(3, 3)).ravel()
            return g

        return changed

    both = {"mixture": at.MATRIX, "symmetric": at.SYMMETRIC}
    changes: dict[str, Callable[[Any], Any]] = {
        "transposed": lambda G: G.T,
        "upper half only": np.triu,
        "lower half only": np.tril,
        "strictly lower half doubled": lambda G: np.tril(G) + np.tril(G, -1),
        "off-diagonal entries doubled": lambda G: 2 * G - np.diag(np.diag(G)),
        "symmetrised": lambda G: (G + G.T) / 2,
        "diagonal only": lambda G: np.diag(np.diag(G)),
        "diagonal halved": lambda G: G - np.diag(np.diag(G)) / 2,
        "Fortran order": lambda G: G.ravel(order="F"),
        "rows exchanged": lambda G: G[[1, 0, 2]],
        "mirrored": lambda G: G[:, ::-1],
    }
    for kind, change in changes.items():
        for name, case in both.items():
            if name == "symmetric" and kind in ("transposed", "symmetrised", "Fortran order"):
                continue  # almost nothing would be wrong
            yield Fault(
                kind=f"matrix {kind}", name=name, case=case, operators=FIRST, make=in_gradient(of_matrix(change))
            )
    yield Fault(
        kind="inputs exchanged", name="of one shape", case=at.COUPLES, operators=FIRST,
        make=in_gradient(lambda g: np.concatenate([g[4:], g[:4]])),
    )  # fmt: skip
    yield Fault(
        kind="inputs exchanged", name="scalars", case=at.SCALAR, operators=FIRST, make=in_gradient(lambda g: g[::-1])
    )
    yield Fault(
        kind="one input's gradient zero", name="the second", case=at.COUPLES, operators=FIRST,
        make=in_gradient(lambda g: np.concatenate([g[:4], 0 * g[4:]])),
    )  # fmt: skip


def values() -> Iterator[Fault]:
    def of_value(change: Callable[[Any], Any], only: tuple[str, ...] = ("value", "value_and_gradient")) -> Any:
        def changed(operator: str, result: Any, args: Any, wrt: Any) -> Any:
            return change(result) if operator == "value" else (change(result[0]), result[1])

        return wrapped(changed, only)

    changes: dict[str, Callable[[Any], Any]] = {
        "value off by 1e-11": lambda y: y * (1 + 1e-11),
        "value off by 1e4 roundings": lambda y: y * (1 + 1e4 * 2.0**-53),
        "value off by 1e-7": lambda y: y * (1 + 1e-7),
        "value in single precision": lambda y: np.float64(np.float32(y)),
        "sign of the value": lambda y: -y,
        "value halved": lambda y: y / 2,
        "value an integer": lambda y: np.float64(np.rint(y)),
        "value zero": lambda y: 0.0 * y,
    }
    for kind, change in changes.items():
        for name, case in (("chain", at.SMALL), ("matrix", at.MATRIX), ("1e5", at.LARGE_WAVES)):
            only = ("value", "value_and_gradient")
            yield Fault(kind=kind, name=name, case=case, operators=only, make=of_value(change))
    yield Fault(
        kind="value wrong beside the gradient only", name="chain", case=at.SMALL, operators=("value_and_gradient",),
        make=of_value(lambda y: y * (1 + 1e-9), ("value_and_gradient",)),
    )  # fmt: skip


def products() -> Iterator[Fault]:
    """J v and wᵀ J that are correct only for some vectors."""

    def of_jvp(change: Callable[[Any, Any], Any]) -> Any:
        return wrapped(lambda operator, y, args, wrt: change(y, args[-1]), ("jvp",))

    def of_vjp(change: Callable[[Any, Any], Any]) -> Any:
        return wrapped(lambda operator, g, args, wrt: refilled(g, lambda flat: change(flat, args[-1])), ("vjp",))

    def size(v: Any) -> Any:
        return float(np.max([np.max(np.abs(part)) for part in v]))

    jvps: dict[str, Callable[[Any, Any], Any]] = {
        "J v quadratic in v": lambda y, v: y * size(v),
        "J v off by 1e-6": lambda y, v: y * (1 + 1e-6),
        "J v with its sign flipped": lambda y, v: -y,
        "J v of the absolute value of v": lambda y, v: abs(y),
        "J v with a constant": lambda y, v: y + 0.01,
        "J v of v rounded to a power of two": lambda y, v: y * 2.0 ** np.floor(np.log2(size(v))) / size(v),
        "J v wrong for large v": lambda y, v: y * (1 + (size(v) > 100)),
        "J v in single precision": lambda y, v: np.float64(np.float32(y)),
    }
    for kind, change in jvps.items():
        for name, case in (("chain", at.SMALL), ("couples", at.COUPLES), ("matrix", at.MATRIX)):
            yield Fault(kind=kind, name=name, case=case, operators=("jvp",), make=of_jvp(change))
    vjps: dict[str, Callable[[Any, Any], Any]] = {
        "wᵀ J ignores w": lambda g, w: g / np.asarray(w),
        "wᵀ J of the absolute value of w": lambda g, w: g * np.sign(np.asarray(w)),
        "wᵀ J quadratic in w": lambda g, w: g * np.asarray(w),
        "wᵀ J of w rounded to a power of two": lambda g, w: g * 2.0 ** np.floor(np.log2(abs(w))) / abs(np.asarray(w)),
        "wᵀ J wrong for w = 0": lambda g, w: g + (np.asarray(w) == 0),
    }
    for kind, of_vector in vjps.items():
        for name, case in (("chain", at.SMALL), ("matrix", at.MATRIX)):
            yield Fault(kind=kind, name=name, case=case, operators=("vjp",), make=of_vjp(of_vector))


def jacobians() -> Iterator[Fault]:
    def of_jacobian(change: Callable[[Any], Any]) -> Any:
        def changed(operator: str, result: Any, args: Any, wrt: Any) -> Any:
            (J,) = result
            J = J.toarray() if hasattr(J, "tocsc") else np.array(J)
            return (change(J.reshape(-1, J.shape[-1])).reshape(J.shape),)

        return wrapped(changed, ("jacobian",))

    def put(J: Any, row: int, column: int, value: float) -> Any:
        J[row, column] = value
        return J

    changes: dict[str, Callable[[Any], Any]] = {
        "Jacobian row zero": lambda J: np.vstack([J[:-1], 0 * J[-1:]]),
        "Jacobian rows exchanged": lambda J: np.vstack([J[1:2], J[:1], J[2:]]),
        "Jacobian columns exchanged": lambda J: J[:, [1, 0, *range(2, J.shape[1])]],
        "Jacobian right in the first output only": lambda J: np.vstack([J[:1], 1.01 * J[1:]]),
        "Jacobian wrong in the second output only": lambda J: np.vstack([J[:1], 1.001 * J[1:2], J[2:]]),
        "Jacobian entry missing": lambda J: put(J, 2, 3, 0.0) if J[2, 3] else put(J, 2, 2, 0.0),
        "Jacobian entry off by 1e-6": lambda J: put(J, 1, 1, J[1, 1] * (1 + 1e-6) + 1e-9),
        "Jacobian entry outside the pattern": lambda J: put(J, 0, 5, 1e-14),
        "Jacobian sign": lambda J: -J,
        "Jacobian rows reversed": lambda J: J[::-1],
        "Jacobian in single precision": lambda J: J.astype(np.float32).astype(np.float64),
    }
    for kind, change in changes.items():
        for name, case in (("residuals", at.RESIDUALS), ("sparse", at.SPARSE), ("many outputs", at.MANY_OUTPUTS)):
            if kind.endswith("pattern") and name == "many outputs":
                continue
            yield Fault(kind=kind, name=name, case=case, operators=("jacobian",), make=of_jacobian(change))
    yield Fault(
        kind="output in the middle wrong in all products", name="many outputs", case=at.MANY_OUTPUTS,
        operators=("jvp",),
        make=wrapped(lambda o, y, a, w: y * (1 + (np.arange(y.size) == 17).reshape(y.shape)), ("jvp",)),
    )  # fmt: skip


RESULTS = [
    *one_entry(),
    *whole_vectors(),
    *exchanges(),
    *small_numbers(),
    *matrices(),
    *values(),
    *products(),
    *jacobians(),
]
