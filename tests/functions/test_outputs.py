"""Functions that return several results, and functions of integers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import adbench
from adbench import tape
from tests.support.command import adbench as command

X = np.array([0.3, 1.7])


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Found:
    loss: Any
    steps: int


NESTED: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "jax": (lambda x: (jnp.sum(x**2), {"loss": jnp.sin(x[0]), "n": 3, "k": jnp.argmax(x)}), ["[0]", "[1]['loss']"]),
    "torch": (lambda x: {"loss": (x**2).sum(), "aux": [torch.sin(x[0]), None, "text"]}, ["['loss']", "['aux'][0]"]),
    "autograd": (lambda x: (anp.sum(x**2), anp.sin(x[0])), ["[0]", "[1]"]),
    "numpy": (lambda x: Pair(np.sum(x**2), np.sin(x[0])), [".left", ".right"]),
    "tape": (lambda x: [tape.sum(x**2), tape.sin(x[0])], ["[0]", "[1]"]),
    "xp": (lambda xp, x: (xp.sum(x**2), xp.sin(x[0])), ["[0]", "[1]"]),
    "a dataclass": (lambda x: (Found(jnp.sum(x**2), 3), jnp.sin(x[0])), ["[0].loss", "[1]"]),
    "a constant": (lambda x: (np.sum(x**2), 3.0), ["[0]", "[1]"]),
}


@pytest.mark.parametrize("name", NESTED)
def test_every_floating_point_part_of_a_result_is_checked_by_its_name(name: str) -> None:
    f, outputs = NESTED[name]
    found = adbench.check(f, X, modes="all")
    assert (found.word, found.proved) == ("right", True), found
    jacobian = next(row for row in found.rows if row.mode == "jacobian")
    assert [entry.place for entry in jacobian.entries] == [f"output{one}, x[{k}]" for one in outputs for k in (0, 1)]
    assert f"checked outputs: output{outputs[0]}, output{outputs[1]}" in found.notes


@pytest.mark.parametrize("output", [1, "1", "[1]", "output[1]"])
def test_one_output_is_chosen(output: Any) -> None:
    found = adbench.check(lambda x: (jnp.sum(x), jnp.sum(x**2)), X, output=output)
    assert (found.word, found.deciding.mode, [entry.got for entry in found.entries]) == (
        "right",
        "gradient",
        [0.6, 3.4],
    )
    assert "checked outputs: output[1]" in found.notes


@pytest.mark.parametrize(
    ("output", "places"),
    [("loss", ["x[0]", "x[1]"]), ("aux", ["output['aux']['w'][0], x[0]", "output['aux']['w'][0], x[1]",
                                          "output['aux']['w'][1], x[0]", "output['aux']['w'][1], x[1]"])],
)  # fmt: skip
def test_an_output_is_named_by_its_key(output: str, places: list[str]) -> None:
    found = adbench.check(lambda x: {"loss": jnp.sum(x), "aux": {"w": 2 * x, "n": 3}}, X, output=output)
    assert found.word == "right"
    assert [entry.place for entry in found.entries] == places


def two_sums(factor: float) -> Callable[[Any], Any]:
    """x² and sin x, whose rule is wrong in the second by a factor."""

    @jax.custom_vjp
    def both(x: Any) -> Any:
        return jnp.sum(x**2), {"sines": jnp.sin(x)}

    both.defvjp(lambda x: (both(x), x), lambda x, g: (2 * g[0] * x + factor * g[1]["sines"] * jnp.cos(x),))
    return lambda x: both(x)


def test_an_error_in_one_output_is_found_and_named() -> None:
    assert adbench.check(two_sums(1.0), X).word == "right"
    found = adbench.check(two_sums(1.1), X)
    assert found.is_wrong
    assert "the worst is output[1]['sines'][1], x[1]: got" in found.sentence
    assert {entry.place for entry in found.entries if entry.word == "wrong"} == {
        "output[1]['sines'][0], x[0]", "output[1]['sines'][1], x[1]",
    }  # fmt: skip
    adbench.assert_gradients(two_sums(1.1), X, output=0)
    with pytest.raises(adbench.WrongGradient, match=r"output\[1\]\['sines'\]"):
        adbench.assert_gradients(two_sums(1.1), X)


@pytest.mark.parametrize(
    ("f", "output", "line"),
    [
        (
            lambda x: {"loss": x.sum(), "n": 3},
            "n",
            r"output: 'n' is not a floating-point part .*choose from \['loss'\]",
        ),
        (lambda x: (x.sum(), x[0]), 2, r"output: 2 is not a floating-point part of what .*choose from \[0\], \[1\]"),
        (lambda x: x.sum(), 0, "output is 0, but <lambda> returns one float64; leave output out"),
        (lambda x: (3, x.shape), None, "returns a tuple of 2 parts, none of them floating-point"),
    ],
)
def test_an_output_that_does_not_exist_is_a_one_line_error(f: Any, output: Any, line: str) -> None:
    with pytest.raises(adbench.UsageError, match=line) as caught:
        adbench.check(f, X, output=output)
    assert "\n" not in str(caught.value)


MINE = """
import numpy as np
def f(x): return np.sum(x**2), {"y": np.sin(x)}
def square(x): return np.sum(x**2)
"""


@pytest.mark.slow
def test_the_command_line_names_and_chooses_outputs(tmp_path: Path) -> None:
    (tmp_path / "outputs_of_cli.py").write_text(MINE)
    check = functools.partial(command, tmp_path, "check", "--function", "outputs_of_cli.py:f", "--at", "[1, 2]")
    done = check()
    assert done.code == 0, done.out
    assert "output[1]['y'][0], x[0]" in done.out
    done = check("--output", "0")
    assert done.out.startswith("✓ right: gradient of f by tape; truth proved")
    done = check("--output", "2")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "output: '2' is not a floating-point part of what f returns; choose from [0], [1]['y']" in done.err
    assert command(tmp_path, "check", "-c", "hypot", "--output", "1").err.startswith(
        "adbench: --output needs a function"
    )


# Integers


WHOLE: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "an array": (lambda x: np.sum(x**2), np.array([1, 2]), "int64"),
    "a list": (lambda x: np.sum(np.asarray(x) ** 2) if isinstance(x, list) else np.sum(x**2), [1, 2], "integers"),
    "of torch": (lambda x: (x**2).sum(), torch.tensor([1, 2]), "int64"),
    "of jax": (lambda x: jnp.sum(x**2), jnp.array([1, 2], dtype=jnp.int32), "int32"),
    "in a dict": (lambda x: np.sum(x["w"] ** x["n"]), {"w": np.array([1, 2]), "n": 2}, "int64"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_arrays_of_integers_become_floats_if_nothing_is_floating_point(name: str) -> None:
    f, x, kind = WHOLE[name]
    found = adbench.check(f, x)
    assert (found.word, [entry.got for entry in found.entries]) == ("right", [2.0, 4.0])
    assert any(note.startswith(f"checked in float64 on the CPU, though given as {kind}: x") for note in found.notes)


def test_integers_next_to_floats_stay_integers() -> None:
    found = adbench.check(lambda x, i, n: np.sum(x[i] ** n), np.array([1.0, 2.0]), np.array([0, 0]), 2)
    assert (found.word, [entry.got for entry in found.entries]) == ("right", [4.0, 0.0])
    assert found.notes == ()
    with pytest.raises(adbench.UsageError, match=r"they are int; write 3.0 instead of 3"):
        adbench.check(lambda n: 2.0 * n, 3)


def test_indices_that_became_floats_are_explained() -> None:
    def f(x: Any, i: Any) -> Any:
        return np.sum(x[i] ** 2)

    x, i = np.array([1, 2]), np.array([0, 0])
    with pytest.raises(adbench.UsageError, match=r"raises IndexError: .*name those to differentiate in wrt"):
        adbench.check(f, x, i)
    assert adbench.check(f, x, i, wrt="x").word == "right"


def test_a_file_of_integers_is_read_as_from_python(tmp_path: Path) -> None:
    (tmp_path / "outputs_of_cli.py").write_text(MINE)
    np.save(tmp_path / "x.npy", np.array([1, 2]))
    done = command(tmp_path, "check", "--function", "outputs_of_cli.py:square", "--at", "@x.npy")
    assert done.code == 0, done.out + done.err
    assert "though given as int64: x" in done.out
