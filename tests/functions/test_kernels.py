"""A kernel against its definition: planted faults are wrong, right kernels raise no alarm."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import adbench  # noqa: E402 - torch comes first
from adbench.model.errors import UsageError  # noqa: E402
from tests.functions.kernels import FAULTS, KERNELS, OWN_FAULTS, arguments_of, kernel_of  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_defaults")
TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
QUICK = {("softmax", "bfloat16"), ("attention", "float32"), ("cross entropy", "float16")}
QUICK_FAULTS = {
    ("softmax", "block edge"),
    ("rms norm", "wrong row"),
    ("gelu", "stale buffer"),
    ("softmax", "missing term"),
}


def slow_unless(quick: bool, *values: Any) -> Any:
    return pytest.param(*values, id="-".join(map(str, values)), marks=() if quick else pytest.mark.slow)


@pytest.mark.parametrize(
    ("name", "kind"), [slow_unless(pair in QUICK, *pair) for pair in itertools.product(KERNELS, TYPES)]
)
def test_a_right_kernel_raises_no_alarm(name: str, kind: str) -> None:
    row = KERNELS[name]
    table = adbench.check(kernel_of(row), *arguments_of(row, TYPES[kind]), definition=row.definition)
    assert table.is_right, str(table)
    assert table.proved
    assert table.precision == kind


@pytest.mark.parametrize(
    ("name", "fault"),
    [slow_unless(pair in QUICK_FAULTS, *pair) for pair in (*itertools.product(KERNELS, FAULTS), *OWN_FAULTS)],
)
def test_a_fault_in_the_backward_pass_is_wrong(name: str, fault: str) -> None:
    row = KERNELS[name]
    planted = kernel_of(row, rule=OWN_FAULTS.get((name, fault)), fault=FAULTS[fault]() if fault in FAULTS else None)
    # A stale buffer holds what the call before put there, so the kernel was called at other numbers.
    arguments = arguments_of(row, torch.bfloat16)
    before = [part.clone().requires_grad_() for part in arguments_of(row, torch.bfloat16, seed=1)]
    planted(*before).sum().backward()
    table = adbench.check(planted, *arguments, definition=row.definition)
    assert table.is_wrong, str(table)


def test_the_table_names_the_errors_of_kernel_and_definition_in_units_in_the_last_place() -> None:
    row = KERNELS["softmax"]
    table = adbench.check(kernel_of(row), *arguments_of(row, torch.bfloat16), definition=row.definition)
    assert "ulp  explained  definition" in str(table)
    entry = next(one for one in table.to_dict()["rows"][0]["entries"] if one["expected"])
    unit = 2.0 ** (np.floor(np.log2(abs(entry["expected"]))) - 7)
    assert entry["ulp"] == pytest.approx(abs(entry["got"] - entry["expected"]) / unit)
    assert entry["ulp"] < entry["tolerated_ulp"]


def test_a_large_kernel_is_compared_entry_by_entry_with_float64() -> None:
    row = KERNELS["softmax"]
    x = torch.randn(200, 100, generator=torch.Generator().manual_seed(0)).bfloat16()
    right = adbench.check(kernel_of(row), x, definition=row.definition)
    assert right.is_right, str(right)
    assert right.rows[0].verdict is not None
    assert right.rows[0].verdict.checked == x.numel()
    assert not right.proved

    def one_entry(g: Any) -> Any:
        spoiled = g.clone()
        spoiled[77, 31] *= 1.2
        return spoiled

    wrong = adbench.check(kernel_of(row, one_entry), x, definition=row.definition)
    assert wrong.is_wrong
    assert wrong.worst.place == "x[77, 31]"


def test_a_definition_whose_gradient_contradicts_its_values_is_refused() -> None:
    row = KERNELS["softmax"]
    x = torch.randn(100, 100, generator=torch.Generator().manual_seed(0))
    with pytest.raises(UsageError, match="contradicts its values"):
        adbench.check(kernel_of(row), x, definition=lambda x: torch.softmax(x, -1) + x.detach())


def test_a_kernel_that_reads_beyond_its_array_is_wrong() -> None:
    def reads_on(x: Any) -> Any:  # one number too many, as for want of a mask
        longer = x.as_strided((x.shape[0] + 1,), (1,), x.storage_offset())
        return (longer * longer).sum()

    table = adbench.check(reads_on, torch.tensor([1.0, 2.0]), definition=lambda x: (x * x).sum())
    assert table.is_wrong


def test_a_kernel_that_changes_its_argument_is_wrong() -> None:
    class Overwrites(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return (x * x).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            gradient = 2 * g * x
            x.data.zero_()
            return gradient

    table = adbench.check(Overwrites.apply, torch.tensor([1.0, 2.0]), definition=lambda x: (x * x).sum())
    assert table.is_wrong
    assert "changes its argument x" in str(table)


def test_a_kernel_of_jax_with_a_definition_in_numpy() -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    @jax.custom_vjp
    def kernel(x: Any) -> Any:
        return jnp.log1p(jnp.exp(x))

    kernel.defvjp(lambda x: (kernel(x), x), lambda x, g: (g * jax.nn.sigmoid(x),))
    x = jnp.array([0.5, -1.0, 3.0], dtype=jnp.bfloat16)
    table = adbench.check(kernel, x, definition=lambda x: np.log1p(np.exp(x)))
    assert table.is_right, str(table)
    assert table.precision == "bfloat16"


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        (lambda x: x.sum(), "both must return the same"),
        (lambda x, y: x * y, "cannot be called with these arguments"),
    ],
)
def test_a_definition_of_something_else_is_refused(definition: Any, words: str) -> None:
    row = KERNELS["gelu"]
    with pytest.raises(UsageError, match=words):
        adbench.check(kernel_of(row), *arguments_of(row, torch.float32), definition=definition)
