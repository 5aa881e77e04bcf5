"""Functions of torch tensors on the oracle's numbers: values, proved gradients, memory, control flow and refusals."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from adbench.oracle.compute import reference
from adbench.oracle.reference import Row
from adbench.oracle.subject import Effort
from tests.oracle.scalars import subject_of

torch = pytest.importorskip("torch")
F = torch.nn.functional

from adbench.functions.from_torch.torch_text import torch_text  # noqa: E402  imports torch

VECTOR = np.array([0.3, -1.2, 2.0])
MATRIX = np.array([[0.5, -0.8, 0.2], [1.1, 0.4, -0.3], [0.7, 0.9, 1.6]])
POSITIVE = np.array([0.7, 1.3, 2.2])
IMAGE = np.random.default_rng(0).normal(size=(1, 2, 4, 4))
KERNEL = np.random.default_rng(1).normal(size=(2, 2, 2, 2))

Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    """torch creates double precision, as when adbench calls a function."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def row_of(f: Function, args: Any) -> Row:
    """The row of the reference of f. Differences would be those of a constant."""
    subject = subject_of(lambda *_: 0.0, args, tuple(range(len(args))), text=torch_text(f, args))
    return reference(subject, Effort(max_seconds=30.0, max_entries=4, max_directions=1)).outputs[0][1]


def proved(f: Function, *args: Any) -> Row:
    """The row of the reference of f; fails if the reference is not proved."""
    row = row_of(f, args)
    assert row.proved, row.reason
    return row


def refused(f: Function, *args: Any) -> str:
    """The reason for a missing reference."""
    row = row_of(f, args)
    assert not row.proved
    return row.reason


def gradients(f: Function, *args: Any) -> tuple[float, list[Any]]:
    """The value, and torch's own gradients."""
    leaves = [torch.tensor(arg, requires_grad=True) for arg in args]
    value = f(*leaves)
    found = torch.autograd.grad(value, leaves, allow_unused=True)
    return value.item(), [np.zeros(np.shape(a)) if g is None else g.numpy() for a, g in zip(args, found, strict=True)]


def agrees(f: Function, *args: Any) -> None:
    """Assert that the proved value and gradient equal torch's."""
    row = proved(f, *args)
    value, found = gradients(f, *args)
    assert value == pytest.approx(row.value.lower, rel=1e-12, abs=1e-12)
    for leaf, gradient in zip(row.leaves, found, strict=True):
        for entry in leaf.entries:
            known = entry.derivative
            assert known.lower - 1e-9 <= gradient.reshape(-1)[entry.index] <= known.upper + 1e-9, entry


def mixed(operation: Function) -> Function:
    """The entries of the operation's results with different weights."""

    def f(*tensors: Any) -> Any:
        found = operation(*tensors)
        found = found if isinstance(found, tuple) else (found,)
        flat = torch.cat([part.reshape(-1) for part in found if part.is_floating_point()])
        return (flat * torch.cos(torch.arange(flat.numel()) + 1.0)).sum()

    return f


def cholesky_of_product(a: Any) -> Any:
    """The factor of a matrix that is symmetric and positive definite for every a."""
    return torch.linalg.cholesky(a @ a.mT + torch.eye(3))


def complex_in_place(x: Any) -> Any:
    """Complex numbers that are written one by one."""
    z = torch.zeros(3, dtype=torch.complex128)
    z[0] = torch.complex(x[0], x[1])
    z[1:] = torch.complex(x[1], x[0]) * x[1:] * 2j
    z.mul_(1 + 2j)
    return z.abs() ** 2 + (z * z).imag + torch.view_as_real(z.exp() / z)[:, 0]


ELEMENTWISE = {
    "bounded": lambda x: torch.erf(x) + torch.tanh(x) * torch.atan(x) + torch.sigmoid(x) ** 2,
    "growing": lambda x: torch.exp(x) + torch.expm1(x) * torch.cosh(x) - torch.exp2(x) / torch.sinh(x),
    "circular": lambda x: torch.sin(x) * torch.cos(x) + torch.tan(x) + torch.atan2(x, x * x) + torch.sinc(x),
    "logarithms": lambda x: torch.log1p(x * x) + torch.log(x.abs()) * torch.log2(x**2) + torch.xlogy(x, x * x),
    "gamma": lambda x: torch.lgamma(x) + torch.digamma(x * x) + torch.special.i0(x) + torch.special.zeta(3, x * x),
    "normal": lambda x: torch.special.log_ndtr(x) + torch.special.ndtr(x) + torch.special.erfcx(x),
    "rounded": lambda x: x.floor() * x + x.round() * x.frac() + x.remainder(0.7) + x.fmod(0.7) + x.trunc() * x.sign(),
    "chosen": lambda x: torch.where(x > 0, x, x * x) + x.clamp(-1, 1) + torch.maximum(x, 1 - x) + x.relu() + x.abs(),
    "activations": lambda x: F.gelu(x) + F.gelu(x, approximate="tanh") + F.silu(x) + F.elu(x) + F.selu(x) + F.mish(x),
    "kinks": lambda x: F.leaky_relu(x) + F.hardtanh(x) + F.hardswish(x) + F.softshrink(x) + F.relu6(x),
    "softplus beyond its threshold": lambda x: F.softplus(10.25 * x) + F.softplus(x, beta=3) + F.logsigmoid(x),
    "constants": lambda x: x * torch.arange(3) / 7 + torch.linspace(0, 1, 3) ** x.abs() + torch.full((3,), 0.1).sqrt(),
}
SHAPES = {
    "views": lambda a: torch.cat([a.mT.reshape(-1), a[1:, ::2].flatten(), a.diagonal(), a.unfold(0, 2, 1).flatten()]),
    "copies": lambda a: torch.stack([a.roll(1, 0), a.flip(1), a.tril(), F.pad(a, (1, 0), value=2.0)[:, :3]]),
    "indices": lambda a: a[torch.tensor([2, 0, 2])] * a[a > 0].sum() + a.gather(1, torch.tensor([[0], [2], [1]])),
    "scattered": lambda a: a.index_add(0, torch.tensor([1, 1]), a[:2]) + a.scatter_add(1, torch.zeros(3, 3).long(), a),
    "sums": lambda a: a.sum(0) + a.mean(1) * a.prod(0) + a.var(1) + a.std(0) + a.cumsum(0)[1] * a.cumprod(1)[2],
    "orders": lambda a: a.sort(dim=1, descending=True)[0] * a.max(0)[0] + a.topk(2)[0].sum() + a.median() * a.amin(1),
    "soft": lambda a: a.softmax(0) * a.log_softmax(1) + a.logsumexp(0) + a.logcumsumexp(1) + (50 * a).softmax(1),
    "products": lambda a: a @ a + torch.einsum("ij,kj->ik", a, a) + torch.outer(a[0], a[1]) + (a @ a[0]) * a.norm(),
    "batches": lambda a: torch.bmm(a[None].expand(2, 3, 3), torch.stack([a, a.mT])) + torch.addmm(a, a, a),
}  # fmt: skip


def lu_left(a: Any) -> Any:
    """X with X Aᴴ = B."""
    return torch.linalg.lu_solve(*torch.linalg.lu_factor(a), a.cos(), left=False, adjoint=True)


LINALG = {
    "cholesky": cholesky_of_product,
    "determinant": lambda a: torch.linalg.det(a) + torch.linalg.slogdet(a)[1] + torch.logdet(a @ a.mT),
    "solve": lambda a: torch.linalg.solve(a, a[0]) + torch.linalg.inv(a) + torch.linalg.lstsq(a, a[:, :1])[0],
    "exponential": torch.linalg.matrix_exp,
    "LU": lambda a: torch.linalg.lu(a)[2] + torch.linalg.lu_solve(*torch.linalg.lu_factor(a), a.sin()) * lu_left(a),
    "triangular": lambda a: torch.linalg.solve_triangular(a.triu(), a, upper=True),
    "eigenvalues": lambda a: torch.linalg.eigh(a + a.mT)[0] + torch.linalg.svdvals(a) + torch.linalg.qr(a)[1],
    "norms": lambda a: torch.linalg.vector_norm(a, 3) + torch.linalg.matrix_norm(a, "nuc") + torch.cdist(a, a + 1),
    "complex": lambda a: complex_in_place(a[0]),
    "Fourier": lambda a: torch.fft.fft(a).abs() + torch.fft.irfft(torch.fft.rfft(a, dim=0), n=3, dim=0),
}
LAYERS = {
    "convolution": lambda x, w: F.conv2d(x, w, torch.ones(2), stride=2, padding=1),
    "grouped convolution": lambda x, w: F.conv2d(x, w[:, :1], groups=2, dilation=2),
    "transposed convolution": lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
    "pools": lambda x, w: F.max_pool2d(x, 2) + F.avg_pool2d(x, 3, 2, 1) * w + F.adaptive_avg_pool2d(x, 2),
    "normalised": lambda x, w: F.layer_norm(x, (4,)) + F.group_norm(x, 2) + F.batch_norm(x, None, None, training=True),
    "interpolated": lambda x, w: F.interpolate(x, scale_factor=1.5, mode="bilinear") * w.sum(),
    "attention": lambda x, w: F.scaled_dot_product_attention(x, x.sin(), x.cos(), is_causal=True) * w.sum(),
}
TARGET = torch.tensor([0.5, 0.1, 0.9], dtype=torch.float64)
LOSSES = {
    "squares": lambda x: (
        F.mse_loss(x, TARGET) + F.l1_loss(x, TARGET) + F.huber_loss(x, TARGET) + F.smooth_l1_loss(x, TARGET)
    ),
    "classes": lambda x: (
        F.cross_entropy(x, torch.tensor(1)) + F.cross_entropy(x[None], TARGET[None], label_smoothing=0.1)
    ),
    "binary": lambda x: F.binary_cross_entropy(x.sigmoid(), TARGET) + F.binary_cross_entropy_with_logits(x, TARGET),
    "divergence": lambda x: F.kl_div(x.log_softmax(0), TARGET, reduction="sum") + F.poisson_nll_loss(x, TARGET),
    "margins": lambda x: F.triplet_margin_loss(x, TARGET, x**2) + F.soft_margin_loss(x, TARGET.sign()),
}


SLOW = {"attention", "copies", "gamma", "interpolated", "kinks", "mixed", "normalised", "transposed convolution"}


def names(table: dict[str, Function]) -> list[Any]:
    """The keys of a table as parameters."""
    return [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in table]


@pytest.mark.parametrize("name", names(ELEMENTWISE))
def test_elementwise_functions(name: str) -> None:
    agrees(mixed(ELEMENTWISE[name]), VECTOR)


@pytest.mark.parametrize("name", names(SHAPES))
def test_shapes_and_reductions(name: str) -> None:
    agrees(mixed(SHAPES[name]), MATRIX)


@pytest.mark.parametrize("name", names(LINALG))
def test_linear_algebra(name: str) -> None:
    agrees(mixed(LINALG[name]), MATRIX)


@pytest.mark.parametrize("name", names(LAYERS))
def test_layers(name: str) -> None:
    agrees(mixed(LAYERS[name]), IMAGE, KERNEL)


@pytest.mark.parametrize("name", names(LOSSES))
def test_losses(name: str) -> None:
    agrees(mixed(LOSSES[name]), VECTOR)


DISTRIBUTIONS = {
    "normal": lambda d, p: d.MultivariateNormal(p, torch.outer(p, p) + torch.eye(3)).log_prob(p * p),
    "gamma": lambda d, p: d.Gamma(p[0], p[1]).log_prob(p[2]) + d.Dirichlet(p).log_prob(p.softmax(0)),
    "transformed": lambda d, p: d.TransformedDistribution(d.Normal(p[0], 2.0), [d.SigmoidTransform()]).log_prob(
        p[1] / 3
    ),
    "mixed": lambda d, p: d.MixtureSameFamily(d.Categorical(p.softmax(0)), d.StudentT(p, p, p)).log_prob(p[0]),
    "divergence": lambda d, p: d.kl_divergence(d.Normal(p[0], p[1]), d.Normal(p[1], p[2])),
}


@pytest.mark.parametrize("name", names(DISTRIBUTIONS))
def test_distributions(name: str) -> None:
    agrees(lambda p: DISTRIBUTIONS[name](torch.distributions, p), POSITIVE)


def test_modules_through_functional_call() -> None:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2), torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers)
    parameters = {name: parameter.detach().numpy().copy() for name, parameter in net.named_parameters()}
    inputs = torch.randn(5, 3)

    def loss(*leaves: Any) -> Any:
        found = torch.func.functional_call(net, dict(zip(parameters, leaves, strict=True)), (inputs,))
        return F.cross_entropy(found, torch.tensor([0, 1, 1, 0, 1]))

    agrees(loss, *parameters.values())


def test_parameters_of_a_constant_module() -> None:
    torch.manual_seed(0)
    cell, norm = torch.nn.LSTM(3, 2), torch.nn.BatchNorm1d(3)
    before = norm.running_mean.clone()
    agrees(lambda x: cell(norm(torch.stack([x, x * x])))[0].pow(2).sum(), VECTOR)
    moved = norm.running_mean.clone()
    assert proved(lambda x: norm(torch.stack([x, x * x])).sum(), VECTOR).value.lower == 0.0
    assert not torch.equal(before, moved)  # torch's own calls changed it,
    assert torch.equal(norm.running_mean, moved)  # the oracle's do not


def test_packed_sequences() -> None:
    cell, rnn = torch.nn.LSTM(1, 2, dtype=torch.float64), torch.nn.utils.rnn

    def packed(x: Any) -> Any:
        found, _ = cell(rnn.pack_padded_sequence(torch.stack([x, x * x], 1)[..., None], [3, 2]))
        return rnn.pad_packed_sequence(found)[0].pow(2).sum()

    agrees(packed, VECTOR)


# Control flow -----------------------------------------------------------------------------------------------------


def stepping(x: Any) -> Any:
    """Branches, a loop with a condition, and a message."""
    total = x[0] * 0
    assert f"{x[2]:.2f} {total + 1}" == "2.00 1.0"
    while total < 5:
        total = total + (x * x).sum() if x[0] > 0 else total + 1
    return total * x[x.argmax()] if bool((x > 1).any()) else total


def test_control_flow_follows_the_numbers() -> None:
    agrees(stepping, VECTOR)


def test_each_side_of_a_branch_at_a_kink() -> None:
    row = proved(lambda x: 3 * x if x > 0 else -x, np.float64(0.0))
    known = row.leaves[0].entries[0].derivative
    assert (known.kind, known.lower, known.upper) == ("kink", -1.0, 3.0)


# Memory -----------------------------------------------------------------------------------------------------------


def through_views(x: Any) -> Any:
    """Writes through views show in the base, and writes to the base in its views."""
    base = torch.zeros(2, 3)
    row, column = base[0], base.mT[1]
    row.copy_(x)
    base[1] = x * x
    base.mul_(2)[:, 0] += x[1]
    column.view(-1)[1:].sin_()
    base.reshape(-1)[0] -= row[2]
    return (base**3).sum() + row.prod() + column.sum()


def in_place(x: Any) -> Any:
    """In-place operations of several kinds."""
    y = x.clone().unsqueeze_(0).transpose_(0, 1)
    y.clamp_(min=-1).add_(x[:, None], alpha=2)
    y[torch.tensor([0, 2])] = y[torch.tensor([2, 0])] * 3
    y.masked_fill_(y > 10, 1.5).index_add_(0, torch.tensor([1, 1]), y[:2].clone())
    y.squeeze_(1)
    return (y * y).sum() + y.prod()


@pytest.mark.parametrize("f", [through_views, in_place])
def test_views_and_their_bases_share_memory(f: Function) -> None:
    agrees(f, VECTOR)


def test_memory_from_outside_is_unchanged() -> None:
    outside = torch.ones(4)

    def f(x: Any) -> Any:
        part = outside[1:]
        torch.mul(x, 2.0, out=part)
        return (outside * outside).sum()

    row = proved(f, VECTOR)
    assert [e.derivative.lower for e in row.leaves[0].entries] == pytest.approx(8 * VECTOR)
    assert torch.equal(outside, torch.ones(4))


# Derivatives by intention -----------------------------------------------------------------------------------------


class WrongCube(torch.autograd.Function):  # type: ignore[name-defined,misc]
    """x³ with a wrong backward, by operations that torch does not record."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """x³."""
        ctx.save_for_backward(x)
        with torch.no_grad():
            found = x.detach().clone()
            found *= x.data
        return found * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Not 3 x²."""
        return 17 * gradient


def test_a_custom_function_counts_by_its_forward() -> None:
    row = proved(lambda x: WrongCube.apply(x).sum(), VECTOR)
    assert [e.derivative.lower for e in row.leaves[0].entries] == pytest.approx(3 * VECTOR**2, rel=1e-14)


def test_a_custom_operation_counts_by_its_function() -> None:
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x.detach() ** 3

    operation = torch.library.custom_op("adbench_tests::cube", cube, mutates_args=())
    row = proved(lambda x: operation(x).sum(), VECTOR)
    assert [e.derivative.lower for e in row.leaves[0].entries] == pytest.approx(3 * VECTOR**2, rel=1e-14)


def stopping(x: Any) -> Any:
    """Constants to the derivative, by every way of saying it."""
    with torch.no_grad():
        mean = x.mean()
        clamped = x.clone().clamp_(min=0.5)
    y = x * 1
    y.data.mul_(2)
    with torch.no_grad():
        filled = torch.zeros(3)
    filled[1:] = x[:2]
    return (
        (x * x.detach() * (x.sigmoid() - x.sigmoid().detach() + x.round().detach())).sum()
        + (y**3 + filled**2).sum()
        + ((x - mean) ** 2 * clamped * torch.detach(x)).sum()
    )


def test_detached_tensors_are_constants() -> None:
    agrees(stopping, VECTOR)


def physics(x: Any) -> Any:
    """A loss of a derivative."""
    x = x.clone().requires_grad_() if not x.requires_grad else x
    (slope,) = torch.autograd.grad(torch.tanh(x * x).sum(), x, create_graph=True)
    return (slope**2).sum()


def test_derivatives_inside() -> None:
    agrees(physics, VECTOR)
    agrees(lambda x: torch.func.hessian(lambda y: (y.sin() * y.exp()).sum())(x).sum(), VECTOR)
    agrees(lambda x: torch.vmap(torch.func.grad(lambda y: y.sin() * y))(x).sum(), VECTOR)


def test_numbers_drawn_from_a_seed() -> None:
    def noisy(x: Any) -> Any:
        torch.manual_seed(3)
        return (
            F.dropout(x * x, 0.5).sum()
            + (torch.randn(3) * x).sum()
            + torch.distributions.Normal(x, 2.0).rsample().sum()
        )

    agrees(noisy, VECTOR)


# Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (lambda x: x.float().sum().double(), "computes in float32 inside"),
        (lambda x: torch.zeros(3, dtype=torch.float32).copy_(x).sum().double(), "computes in float32 inside"),
        (lambda x: (x.sum() * torch.ones(3, dtype=torch.float32)).sum().double(), "computes in float32 inside"),
        (lambda x: torch.special.airy_ai(x).sum() * x.sum(), "aten.special_airy_ai.default"),
        (lambda x: torch._standard_gamma(x.exp()).sum() * x.sum(), "aten._standard_gamma.default"),
        (lambda x: torch.zeros(3).detach().copy_(x).sum(), "writes active numbers to a detached tensor"),
        (lambda x: x.view(torch.int64).sum() * x.sum(), "aten.view.dtype"),
    ],
)
def test_a_refusal_names_the_operation(f: Function, reason: str) -> None:
    assert reason in refused(f, VECTOR)


def test_constants_may_have_lower_precision() -> None:
    constant = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float32)
    agrees(lambda x: (constant.exp() * x).sum(), VECTOR)
