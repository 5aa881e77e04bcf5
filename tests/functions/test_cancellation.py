"""The place in a program where rounding loses the digits."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest
import torch

import adbench

pytestmark = pytest.mark.usefixtures("own_defaults")
FILE = "test_cancellation.py"


def variance(xp: Any, x: Any) -> Any:
    mean = x.mean()
    squares = (x * x).mean()
    return squares - mean**2  # digits go here


def smaller_root(xp: Any, x: Any) -> Any:
    root = xp.sqrt(x[1] * x[1] - 4 * x[0] * x[2])
    sum_of_both = root - x[1]  # digits go here
    return xp.tanh(sum_of_both)


def centred(xp: Any, x: Any) -> Any:
    gap = x - x.mean()  # digits go here
    return gap[0] / xp.sqrt((gap * gap).sum())


def of_an_angle(xp: Any, x: Any) -> Any:
    turned = xp.sin(x[0] * 1000)  # digits go here
    return turned * xp.exp(x[1])


PLANTED: dict[str, tuple[Callable[..., Any], list[float], str]] = {
    "variance": (variance, [1000, 1000.01, 1000.02], "1000020 - 1000020 = 6.68e-05"),
    "root": (smaller_root, [1.0, 1000.0, 1.0], "in the derivative, 1.000002 - 1 = 2e-06"),
    "centred": (centred, [1000, 1000.01, 1000.03], "1000.01 - 1000.013 = -0.00334"),
    "angle": (of_an_angle, [3.14159274, 0.3], "sin(3141.593)"),
}


def line_of(f: Callable[..., Any]) -> str:
    lines, first = inspect.getsourcelines(f)
    number = next(number for number, line in enumerate(lines) if "digits go here" in line)
    return f"{FILE}, line {first + number} `{' '.join(lines[number].split())}`"


def checked(library: str, f: Callable[..., Any], x: list[float], kind: str = "float32") -> Any:
    if library == "torch":
        return adbench.check(lambda x: f(torch, x), torch.tensor(x, dtype=getattr(torch, kind)))
    return adbench.check(lambda x: f(jnp, x), jnp.asarray(x, dtype=kind))


@pytest.mark.parametrize("library", ["torch", "jax"])
@pytest.mark.parametrize("name", PLANTED)
def test_a_cancellation_is_named_by_its_line_and_its_numbers(library: str, name: str) -> None:
    f, x, operation = PLANTED[name]
    table = checked(library, f, x)
    assert table.word in ("verified", "blind"), str(table)
    (note,) = (note for note in table.notes if note.startswith("the digits go at"))
    assert f"{line_of(f)}: {operation}" in note


def test_two_cancellations_are_both_named() -> None:
    def both(xp: Any, x: Any) -> Any:
        one = (x[0] + 4096.0) - 4096.0
        other = (x[1] - 8192.0) + 8192.0
        return (one + other) ** 2

    (note,) = checked("torch", both, [0.3, 0.1]).notes
    assert note.count("line ") == 2, note


def growing(xp: Any, x: Any) -> Any:
    for _ in range(12):
        x = x * 1.3 + 0.1 * x * x / (1 + x)
    return x.sum()


@pytest.mark.parametrize(
    ("f", "x", "kind"), [(growing, [0.3, 1.7], "bfloat16"), (lambda xp, x: (x * x).sum(), [0.3, 1.7], "float32")]
)
def test_a_function_without_a_cancellation_names_none(f: Callable[..., Any], x: list[float], kind: str) -> None:
    table = checked("torch", f, x, kind)
    assert not any(note.startswith("the digits go") for note in table.notes), str(table)
