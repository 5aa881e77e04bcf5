"""The library of a function that uses only methods of its arguments, given arrays of numpy or numbers."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adbench
from tests.support.command import adbench as command

X = np.array([1.0, 2.5])

OF_TORCH = """
import math
import numpy as np
import torch
def clone(x): return x.clone().norm()
def common(x): return (x**2).sum() / math.sqrt(2.0)
def spread(x): return x.std()
def of_arrays(x: np.ndarray): return (x**2).sum()
def of_numpy(x): return np.sum(x**2) * x.std()
def sliced(x): return x.astype(float)[::-1].sum() + x[0] ** 2
"""
OF_JAX = "import jax\ndef at(x): return x.at[0].set(2.0).sum()\ndef cube(x): return x**3\n"
OF_BOTH = """
import jax, torch, only_torch
def clone(x): return x.clone().norm()
def dim(x): return x.sum(dim=0)
def at(x): return x.at[0].set(2.0).sum()
def common(x): return (x**2).sum()
def annotated(x: torch.Tensor): return (x**2).sum()
def quoted(x: "list[jax.Array]"): return (x[0] ** 2).sum()
def called(x): return only_torch.spread(x)
"""
OF_NONE = "def clone(x): return x.clone().norm()\ndef at(x): return x.at[0].set(2.0).sum()\n"

EXPECTED = {
    "only_torch": {"clone": "torch", "common": "torch", "spread": "torch", "of_numpy": "tape", "sliced": "tape",
                   "of_arrays": "tape"},
    "only_jax": {"at": "jax", "cube": "jax"},
    "uses_both": {"clone": "torch", "dim": "torch", "at": "jax", "common": "tape", "annotated": "torch",
                  "quoted": "jax", "called": "torch"},
    "uses_neither": {"clone": "torch", "at": "jax"},
}  # fmt: skip


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Any]:
    texts = {"only_torch": OF_TORCH, "only_jax": OF_JAX, "uses_both": OF_BOTH, "uses_neither": OF_NONE}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return lambda module, name: getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(("module", "name"), [(module, name) for module in EXPECTED for name in EXPECTED[module]])
def test_a_function_of_methods_gets_arguments_of_its_own_library(
    modules: Callable[[str, str], Any], module: str, name: str
) -> None:
    at: Any = [X] if name == "quoted" else 1.5 if name == "cube" else X
    found = adbench.check(modules(module, name), at)
    assert (found.word, found.proved, found.backend) == ("right", True, EXPECTED[module][name])


@pytest.mark.parametrize(("name", "backend"), [("clone", "torch"), ("common", "torch"), ("common", "jax"),
                                               ("common", "autograd"), ("common", "tape"), ("at", "jax")])  # fmt: skip
def test_a_named_backend_decides_the_library_of_the_arguments(
    modules: Callable[[str, str], Any], name: str, backend: str
) -> None:
    found = adbench.check(modules("uses_both", name), X, backend=backend)
    assert (found.word, found.backend) == ("right", backend)
    assert found.library.split()[0] == backend


def test_a_named_backend_does_not_get_arguments_of_another_library(modules: Callable[[str, str], Any]) -> None:
    with pytest.raises(adbench.UsageError, match=r"at raises AttributeError: 'Tensor' object has no attribute 'at'"):
        adbench.check(modules("uses_neither", "at"), X, backend="torch")
    with pytest.raises(adbench.UsageError, match="annotated is written for torch, which the backend jax"):
        adbench.check(modules("uses_both", "annotated"), X, backend="jax")
    with pytest.raises(adbench.UsageError, match="the function calls numpy: leave torch out"):
        adbench.check(modules("only_torch", "of_numpy"), X, backend="torch")


@pytest.mark.slow
def test_the_command_line_and_runs_decide_alike(modules: Callable[[str, str], Any], tmp_path: Path) -> None:
    for options in ([], ["-b", "torch"]):
        done = command(tmp_path, "check", "--function", "uses_neither.py:clone", "--at", "[1, 2.5]", *options)
        assert "✓ right: gradient of clone by torch" in done.out, done.err
    run = adbench.run((modules("uses_both", "common"), X), ["torch"], time=False, operators="gradient")
    assert [record.outcome.word for record in run.records] == ["right"]


@pytest.mark.slow
def test_a_library_imported_for_a_second_try_keeps_its_defaults(tmp_path: Path) -> None:
    (tmp_path / "uses_neither.py").write_text(OF_NONE)
    lines = ["import sys, adbench, uses_neither", "f, g = uses_neither.clone, uses_neither.at",
             "print(adbench.check(f, [1.0, 2.5]).word, 'torch' in sys.modules)",
             "print(adbench.check(g, [1.0, 2.5]).word, sys.modules['jax'].config.jax_enable_x64)",
             "print(sys.modules['torch'].get_default_dtype())"]  # fmt: skip
    environment = {**os.environ, "JAX_ENABLE_X64": "0"}
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        cwd=tmp_path, capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["right True", "right False", "torch.float32"]
