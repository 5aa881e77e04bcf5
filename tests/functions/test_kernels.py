"""A kernel against its definition: planted faults are wrong, right kernels raise no alarm."""

from __future__ import annotations

import itertools
import math
from types import FunctionType
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import adbench  # noqa: E402 - torch comes first
from adbench.execution.precision.enclosed import MOST, Enclosed  # noqa: E402
from adbench.model.errors import UsageError  # noqa: E402
from adbench.oracle.enclosures.ball_arrays import BallArray  # noqa: E402
from adbench.oracle.enclosures.enclosed_namespace import Enclosures  # noqa: E402
from adbench.oracle.enclosures.midpoint_radius import Enclosure  # noqa: E402
from adbench.oracle.series.namespace import namespace_of  # noqa: E402
from adbench.oracle.series.number import Real  # noqa: E402
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


def test_every_entry_of_a_large_kernel_is_proved() -> None:
    row = KERNELS["softmax"]
    x = torch.randn(200, 100, generator=torch.Generator().manual_seed(0)).bfloat16()
    right = adbench.check(kernel_of(row), x, definition=row.definition)
    assert right.is_right, str(right)
    assert right.rows[0].verdict is not None
    assert right.rows[0].verdict.checked == x.numel()
    assert right.proved
    assert "prove 20,000 of the value, 20,000 of x" in str(right).replace("\n    ", " ")
    assert "confirm them all" in str(right)

    def one_entry(g: Any) -> Any:
        spoiled = g.clone()
        spoiled[77, 31] *= 1.2
        return spoiled

    wrong = adbench.check(kernel_of(row, one_entry), x, definition=row.definition)
    assert wrong.is_wrong
    assert wrong.worst.place == "x[77, 31]"


class Solving(torch.autograd.Function):
    """A batch of linear solves by hand; one entry of a gradient is `factor` times the right one."""

    factor = 1.0

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        x = torch.linalg.solve(a, b)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, x = ctx.saved_tensors
        of_b = torch.linalg.solve(a.mT, g)
        of_a = -of_b @ x.mT
        of_a[1, 30, 50] *= Solving.factor
        return of_a, of_b


def solving(a: Any, b: Any) -> Any:
    return Solving.apply(a, b)


def test_every_entry_of_a_batch_of_large_systems_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    jax, draws = pytest.importorskip("jax"), torch.Generator().manual_seed(0)
    a, b = torch.randn(3, 60, 60, generator=draws) + 20 * torch.eye(60), torch.randn(3, 60, 2, generator=draws)
    for definition in (lambda a, b: torch.linalg.solve(a, b), lambda a, b: jax.numpy.linalg.solve(a, b)):
        monkeypatch.setattr(Solving, "factor", 1.0)
        right = adbench.check(solving, a, b, definition=definition)
        assert (right.is_wrong, right.proved) == (False, True), str(right)
        assert "prove 360 of the value, 10,800 of a" in " ".join(str(right).split())
        monkeypatch.setattr(Solving, "factor", 1.001)
        wrong = adbench.check(solving, a, b, definition=definition)
        assert (wrong.is_wrong, wrong.worst.place) == (True, "a[1, 30, 50]"), str(wrong)


def test_a_large_symmetric_argument_is_read_as_its_library_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adbench.execution.precision.kernel.MOST_PROVED", 0)
    x = torch.randn(30, 30, generator=torch.Generator().manual_seed(0))
    product = x @ x.mT + 30 * torch.eye(30)
    table = adbench.check(torch.linalg.cholesky, product + product.mT, definition=torch.linalg.cholesky)
    assert (table.is_wrong, table.proved) == (False, True), str(table)
    with pytest.raises(UsageError, match="contradicts its values"):
        adbench.check(torch.linalg.cholesky, product + torch.triu(x, 1), definition=torch.linalg.cholesky)


@pytest.mark.parametrize("name", ["layer norm", "cross entropy", "gelu", "swiglu", "attention"])
def test_enclosures_prove_the_definitions_of_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adbench.execution.precision.kernel.MOST_PROVED", 0)
    monkeypatch.setattr(namespace_of(Real), "deadline", -math.inf)  # left by a reference that took too long
    row = KERNELS[name]
    table = adbench.check(kernel_of(row), *arguments_of(row, torch.float32), definition=row.definition)
    assert (table.is_right, table.proved) == (True, True), str(table)


def test_the_tighter_of_two_proved_bounds_counts() -> None:
    of_balls = np.array([1.05, 2.1]), np.array([0.01, 0.2])
    both = Enclosed((np.array([1.0, 2.0]),), (np.array([0.1, 1e-9]),), "", {}, [of_balls])
    (mid,), (rad,) = both.tightest
    assert (mid.tolist(), rad.tolist()) == ([1.05, 2.0], [0.01, 1e-9])
    (mid,), (rad,) = Enclosed(both.mids, both.radii, "", {}).tightest
    assert (mid.tolist(), rad.tolist()) == ([1.0, 2.0], [0.1, 1e-9])


def normalised(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("kind", TYPES)
def test_a_large_kernel_is_judged_by_a_definition_of_another_library(kind: str) -> None:
    jax = pytest.importorskip("jax")
    row = KERNELS["softmax"]
    planted = kernel_of(row, rule=OWN_FAULTS["softmax", "missing term"])
    x = (3 * torch.randn(90, 60, generator=torch.Generator().manual_seed(0))).to(TYPES[kind])
    for definition in (normalised, lambda x: jax.nn.softmax(x, -1)):
        table = adbench.check(kernel_of(row), x, definition=definition)
        assert (table.is_right, table.proved) == (True, True), str(table)
        assert adbench.check(planted, x, definition=definition).is_wrong
    with pytest.raises(UsageError, match=r"is not proved .*write it for the kernel's library"):
        adbench.check(kernel_of(row), x, definition=lambda x: np.fft.fft(x).real)


@pytest.mark.parametrize("kind", [Enclosure, BallArray])
def test_enclosures_stop_before_they_take_too_much(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOST, kind, 5_000)
    x = torch.randn(90, 50, generator=torch.Generator().manual_seed(0)).bfloat16()
    table = adbench.check(torch.tanh, x, definition=torch.tanh)
    assert (table.is_right, table.proved) == (True, kind is BallArray), str(table)
    assert "more than 5,000" in " ".join(str(table).split())


def test_a_definition_without_enclosures_is_held_against_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Enclosures, "cumulative_prod")
    x = torch.rand(80, 60, generator=torch.Generator().manual_seed(0)).bfloat16()
    table = adbench.check(lambda x: x.cumprod(-1), x, definition=lambda x: x.cumprod(-1))
    assert (table.is_right, table.proved) == (True, False), str(table)


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


def test_integers_alone_are_refused() -> None:
    with pytest.raises(UsageError, match="q holds integers, which have no derivative; pass floating-point numbers"):
        adbench.check(lambda q: q.sum(), torch.ones(3, dtype=torch.int64), definition=lambda q: q.sum())


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


def test_options_without_meaning_for_a_kernel_are_refused() -> None:
    row = KERNELS["gelu"]
    for option in ({"modes": "all"}, {"precision": "float64"}, {"branchwise": True}, {"backend": "torch"}):
        with pytest.raises(UsageError, match="has no meaning with definition"):
            adbench.check(kernel_of(row), *arguments_of(row, torch.float32), definition=row.definition, **option)


def test_a_result_in_a_lower_type_than_the_arguments_is_judged_by_it() -> None:
    x = torch.tensor([0.3, 1.7, -2.4])
    table = adbench.check(lambda x: torch.tanh(x).bfloat16(), x, definition=torch.tanh)
    assert (table.is_right, table.precision) == (True, "bfloat16"), str(table)


def test_a_kernel_that_fails_in_a_later_call_is_wrong() -> None:
    calls = []

    def forgetful(x: Any) -> Any:
        calls.append(x)
        if len(calls) > 3:
            raise RuntimeError("workspace lost")
        return (x * x).sum()

    table = adbench.check(forgetful, torch.tensor([1.0, 2.0]), definition=lambda x: (x * x).sum())
    assert table.is_wrong
    assert "a later call of the kernel raises RuntimeError: workspace lost" in str(table)


def test_an_overflow_of_the_kernel_is_wrong_and_no_warning() -> None:
    x = torch.tensor([12.0, 3.0], dtype=torch.float16)
    assert adbench.check(lambda x: torch.exp(x).sum().log(), x, definition=lambda x: torch.logsumexp(x, 0)).is_wrong


def test_a_definition_in_numpy_keeps_whole_numbers() -> None:
    def definition(x: Any, t: Any) -> Any:
        rows = np.arange(3)
        return np.sum(np.log(np.sum(np.exp(x), axis=1)) - x[rows, t])

    x, t = torch.randn(3, 4, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 3, 1])
    table = adbench.check(
        lambda x, t: torch.nn.functional.cross_entropy(x, t, reduction="sum"), x, t, definition=definition
    )
    assert table.is_right, str(table)
    assert table.proved


def test_a_kernel_gets_the_strides_of_its_argument() -> None:
    strides = set()

    def kernel(x: Any) -> Any:
        strides.add(x.stride())
        return (x * x).sum()

    adbench.check(kernel, torch.randn(3, 5).T, definition=lambda x: (x * x).sum())
    assert {(1, 5), (6, 2)} <= strides


def test_a_large_mask_of_infinities_is_no_obstacle() -> None:
    x = torch.randn(90, 90, generator=torch.Generator().manual_seed(0))
    mask = torch.zeros(90, 90).masked_fill(torch.ones(90, 90, dtype=torch.bool).triu(1), -torch.inf)
    table = adbench.check(
        lambda x, mask: torch.softmax(x + mask, -1),
        x,
        mask,
        definition=lambda x, mask: torch.softmax(x + mask, -1),
        wrt="x",
    )
    assert table.is_right, str(table)


def test_a_large_kernel_in_float64_is_refused() -> None:
    x = torch.ones(5_000, dtype=torch.float64)
    with pytest.raises(UsageError, match=r"is not proved .*check it at fewer numbers"):
        adbench.check(lambda x: (x * x).sum(), x, definition=lambda x: (x * x).sum())


def test_a_definition_that_fails_in_the_kernels_type_is_named() -> None:
    def definition(x: Any) -> Any:
        if x.dtype == torch.bfloat16:
            raise TypeError("no bfloat16 here")
        return (x * x).sum()

    with pytest.raises(UsageError, match="the definition raises TypeError: no bfloat16 here"):
        adbench.check(lambda x: (x * x).sum(), torch.ones(5_000, dtype=torch.bfloat16), definition=definition)


def test_complex_results_need_a_definition_with_complex_results() -> None:
    with pytest.raises(UsageError, match="returns complex numbers, its definition <lambda> real ones"):
        adbench.check(lambda x: torch.complex(x, x).sum(), torch.ones(2), definition=lambda x: x.sum())
    z = torch.tensor([1 + 1j, 2 - 0.5j])
    assert adbench.check(lambda z: z * z, z, definition=lambda z: torch.square(z)).is_right
    wrong = adbench.check(lambda z: z * z.conj().resolve_conj(), z, definition=lambda z: torch.square(z))
    assert wrong.is_wrong


def test_assert_gradients_takes_a_definition() -> None:
    row = KERNELS["softmax"]
    adbench.assert_gradients(kernel_of(row), *arguments_of(row, torch.float32), definition=row.definition)
    planted = kernel_of(row, FAULTS["block edge"]())
    with pytest.raises(AssertionError, match="gradient of kernel against"):
        adbench.assert_gradients(planted, *arguments_of(row, torch.float32), definition=row.definition)


def test_a_kernel_may_refuse_numbers_outside_its_domain() -> None:
    def kernel(x: Any) -> Any:
        if (x <= 0.9).any():
            raise ValueError("x must be above 0.9")
        return torch.log(x).sum()

    table = adbench.check(kernel, torch.tensor([1.5, 1.7]), definition=lambda x: torch.log(x).sum())
    assert table.is_right, str(table)


def test_errors_of_a_derivative_that_is_zero_fit_into_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the definition's library, too: in units of the smallest number they have 44 digits."""
    monkeypatch.setattr("adbench.execution.precision.kernel.MOST_PROVED", 0)
    monkeypatch.setattr("adbench.execution.precision.enclosed.CONVENTIONS", {})
    symmetric = 60 * torch.eye(30) + torch.ones(30, 30)
    table = adbench.check(torch.linalg.cholesky, symmetric, definition=torch.linalg.cholesky)
    assert max(map(len, str(table).splitlines())) <= 80
    assert any(entry.expected == 0 for entry in table.shown()[0])


def test_a_definition_that_names_no_library_runs_in_the_type_of_the_kernel() -> None:
    """Also where several libraries are imported: torch's reverse sweep of it loses three digits in float32."""
    code = (lambda x: x.logcumsumexp(-1)).__code__
    f = FunctionType(code, {"torch": torch, "jax": pytest.importorskip("jax")})
    table = adbench.check(f, torch.randn(8, 24, 24, generator=torch.Generator().manual_seed(0)), definition=f)
    assert (table.is_wrong, table.proved) == (False, True), str(table)
