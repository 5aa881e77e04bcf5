"""Wrong rules in torch, in the old and the new style of functions, and in modules."""

import numpy as np
import torch
from mpmath import mp, mpf
from torch.nn import functional

from tests.functions.campaign.row import elsewhere, rows, wrong
from tests.functions.campaign.truth import D, det, exp, inv, lse, singular_values, solve, tanh
from tests.functions.campaign.wrapped import torch_new, torch_old

A3 = [[2.0, 0.5, -1.0], [0.25, 1.5, 0.75], [1.0, -0.5, 3.0]]
M23 = [[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]]
X4 = [0.75, -1.25, 3.0, 0.5]
P4 = [0.75, 1.25, 3.0, 0.5]


def of(f, *backs):
    """An old-style function of several arguments: back(args, y, w) -> the adjoint of one."""

    class Ruled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *args):
            y = f(*args)
            ctx.save_for_backward(*args, y)
            return y

        @staticmethod
        def backward(ctx, w):
            *args, y = ctx.saved_tensors
            return tuple(back(args, y, w) for back in backs)

    return Ruled.apply


def new(f, *backs):
    """The same in the new style."""

    class Ruled(torch.autograd.Function):
        @staticmethod
        def forward(*args):
            return f(*args)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs, output)

        @staticmethod
        def backward(ctx, w):
            *args, y = ctx.saved_tensors
            return tuple(back(args, y, w) for back in backs)

    return Ruled.apply


def pushed(f, slope, push):
    """With a forward mode of its own."""

    class Ruled(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return f(x)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, w):
            return w * slope(*ctx.saved_tensors)

        @staticmethod
        def jvp(ctx, v):
            return push(*ctx.saved_tensors, v)

    return Ruled.apply


def total(f, *weights):
    weight = torch.tensor(weights, dtype=torch.float64) if weights else 1.0
    return lambda *args: (weight * f(*args)).sum()


def each(slope):
    return lambda x: [slope(v) for v in x]


def by_numpy(f, slope):
    """A function computed by numpy, with a rule."""

    class Ruled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.from_numpy(np.asarray(f(x.detach().numpy())))

        @staticmethod
        def backward(ctx, w):
            (x,) = ctx.saved_tensors
            return w * slope(x)

    return Ruled.apply


SIMPLE = rows(
    "fresh: planted in torch, of one tensor",
    wrong("torch", "a sigmoid's slope in the new style", torch_new(torch.sigmoid, lambda x, y, w: w * y * (1 - x)), 1.5,
          truth=lambda x: 1 / (2 + 2 * mp.cosh(x))),
    wrong("torch", "a tangent without its square", torch_old(torch.tan, lambda x, y, w: w * (1 + y)), 0.5,
          truth=lambda x: 1 / mp.cos(x) ** 2),
    wrong("torch", "a square root's slope from the argument", torch_old(torch.sqrt, lambda x, y, w: w / (2 * x)), 3.0,
          truth=lambda x: 1 / (2 * mp.sqrt(x))),
    wrong("torch", "an error of 1e-6", torch_new(torch.log, lambda x, y, w: w / x * (1 - 1e-6)), 3.0,
          truth=lambda x: 1 / x),
    wrong("torch", "an error of 1e-8", torch_old(torch.exp, lambda x, y, w: w * y * (1 + 1e-8)), 0.3, truth=mp.exp),
    wrong("torch", "an error of 1e-3", torch_old(torch.atan, lambda x, y, w: w / (1 + x * x) * 1.001), 0.3,
          truth=lambda x: 1 / (1 + x * x)),
    wrong("torch", "a logarithm plus one without its one", torch_old(torch.log1p, lambda x, y, w: w / x), 3.0,
          truth=lambda x: 1 / (1 + x)),
    wrong("torch", "an expm1 by its value", torch_new(torch.expm1, lambda x, y, w: w * y), 0.3, truth=mp.exp),
    wrong("torch", "a sine's slope in float32", torch_old(torch.sin, lambda x, y, w: w * torch.cos(x.float()).double()),
          0.3, truth=mp.cos),
    wrong("torch", "a slope in half precision", torch_old(torch.tanh, lambda x, y,
          w: w * (1 - (y * y).half().double())), 0.3, truth=lambda x: 1 / mp.cosh(x) ** 2),
    wrong("torch", "a cotangent ignored", total(torch_old(torch.sin, lambda x, y, w: torch.cos(x)), 1.0, -2.0, 0.5,
          3.0), X4,
          truth=lambda x: [k * mp.cos(v) for k, v in zip([1, -2, 0.5, 3], x, strict=True)]),
    wrong("torch", "a cotangent reversed", total(torch_old(torch.sin, lambda x, y, w: w.flip(0) * torch.cos(x)), 1.0,
          -2.0, 0.5, 3.0), X4,
          truth=lambda x: [k * mp.cos(v) for k, v in zip([1, -2, 0.5, 3], x, strict=True)]),
    wrong("torch", "a cotangent rounded", total(torch_new(torch.sin, lambda x, y, w: w.round() * torch.cos(x)), 1.0,
          -2.0, 0.75, 3.0), X4,
          truth=lambda x: [k * mp.cos(v) for k, v in zip([1, -2, 0.75, 3], x, strict=True)]),
    wrong("torch", "one entry of zero", total(torch_old(torch.exp, lambda x, y, w: w * y * torch.tensor([1.0, 1.0, 0.0,
          1.0]))), X4, truth=exp),
    wrong("torch", "the smallest entry wrong", total(torch_old(lambda x: x**7, lambda x, y,
          w: w * 7 * x**6 * torch.tensor([1.0, 1.0, 1.0, 1.001]))), X4, truth=lambda x: 7 * x**6),
    wrong("torch", "an entry beside one of 1e12", total(torch_old(lambda x: x**4, lambda x, y,
          w: w * 4 * x**3 + torch.tensor([0.0, 1e-7])), 1.0, 1.0), [1e4, 0.5], truth=lambda x: 4 * x**3),
    wrong("torch", "a leaky unit with another leak", total(torch_new(lambda x: functional.leaky_relu(x, 0.1), lambda x,
          y, w: w * torch.where(x > 0, 1.0, 0.01))), X4,
          truth=each(lambda v: mpf(1) if v > 0 else mpf(0.1))),
    wrong("torch", "a unit whose branches are exchanged", total(torch_old(functional.elu, lambda x, y,
          w: w * torch.where(x < 0, 1.0, torch.exp(x)))), X4, truth=each(lambda v: mpf(1) if v > 0 else mp.exp(v))),
    wrong("torch", "a clamp that lets pass", total(torch_new(lambda x: x.clamp(-1.0, 1.0), lambda x, y, w: w)), X4,
          truth=lambda x: [1, 0, 0, 1]),
    wrong("torch", "a rounding that lets pass by its rule", total(torch_new(torch.round, lambda x, y, w: w)),
          [0.3, 1.7], truth=lambda x: [0, 0]),
    wrong("torch", "a gradient reversed by a weight", torch_old(lambda x: x * 1.0, lambda x, y, w: -0.5 * w), 0.3,
          truth=lambda x: 1),
    wrong("torch", "a gradient clipped by its norm", total(torch_old(lambda x: x**2, lambda x, y,
          w: 2 * x * w / torch.linalg.vector_norm(2 * x * w).clamp(min=1.0))), X4, truth=lambda x: 2 * x),
    wrong("torch", "a NaN where zero is right", total(torch_old(lambda x: x * x.abs(), lambda x, y,
          w: w * (x.abs() + x * x / x.abs()))), [0.0, 1.5], truth=lambda x: 2 * abs(x)),
    wrong("torch", "a constant inside a rule of squares", torch_old(lambda x: (x**2 + 3 * x) ** 2, lambda x, y,
          w: w * 2 * (x**2 + 3 * x) * (2 * x)), 0.3, truth=lambda x: 2 * (x**2 + 3 * x) * (2 * x + 3)),
    wrong("torch", "a Huber unit's slope beyond its ends", total(torch_old(lambda x: torch.where(x.abs() < 1, x * x / 2,
          x.abs() - 0.5), lambda x, y, w: w * x)), X4, truth=each(lambda v: v if abs(v) < 1 else mp.sign(v))),
    wrong("torch", "an arc cosine with a sign", torch_old(torch.acos, lambda x, y, w: w / torch.sqrt(1 - x * x)), 0.99,
          truth=lambda x: -1 / mp.sqrt(1 - x * x)),
    wrong("torch", "a backward mode of one half beside a right forward mode",
          pushed(torch.sin, lambda x: torch.cos(x) / 2, lambda x, v: v * torch.cos(x)), 0.3, truth=mp.cos),
    wrong("torch", "a function of numpy with a factor", by_numpy(np.cosh, lambda x: 1.01 * torch.sinh(x)), 0.8,
          truth=mp.sinh),
    wrong("torch", "a function of numpy with 1e-5", by_numpy(lambda x: np.sin(x) ** 2,
          lambda x: torch.sin(2 * x) * (1 + 1e-5)), 0.8, truth=lambda x: mp.sin(2 * x)),
    elsewhere("torch", "wrong below zero", total(torch_old(lambda x: x**3, lambda x, y, w: w * 3 * x * x.abs())),
          [0.8, 1.1], truth=lambda x: 3 * x**2, points=8),
    elsewhere("torch", "wrong at zeros", total(torch_old(torch.cos, lambda x, y, w: -w * torch.where(x == 0, 1.0,
          torch.sin(x)))), [0.8, 1.1], truth=each(lambda v: -mp.sin(v)), points=8),
)  # fmt: skip


def inverse_not_transposed(args, y, w):
    return -y @ w @ y


def determinant_of_two(args, y, w):
    (a,) = args
    return w * torch.stack([torch.stack([a[1, 1], -a[0, 1]]), torch.stack([-a[1, 0], a[0, 0]])])


class Scaled(torch.nn.Module):
    """A module whose weight's adjoint is not reduced to its mean's part."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.5, -1.0, 2.0, 1.5], dtype=torch.float64))

    def forward(self, x):
        return (
            of(lambda x, s: x * s, lambda a, y, w: w * a[1], lambda a, y, w: w * a[0] * 1.0001)(x, self.weight) ** 2
        ).sum()


WEIGHTS = [mpf("0.5"), mpf(-1), mpf(2), mpf("1.5")]


SEVERAL = rows(
    "fresh: planted in torch, of several tensors and matrices",
    wrong("torch", "a product with exchanged adjoints", of(torch.mul, lambda a, y, w: w * a[0], lambda a, y,
          w: w * a[1]), 0.7, 1.9, truth=lambda x, y: [y, x]),
    wrong("torch", "a quotient's second adjoint without a sign", new(torch.div, lambda a, y, w: w / a[1], lambda a, y,
          w: w * y / a[1]), 0.7, 1.9, truth=lambda x, y: [1 / y, -x / y**2]),
    wrong("torch", "a power whose exponent counts as constant", new(torch.pow, lambda a, y,
          w: w * a[1] * a[0] ** (a[1] - 1), lambda a, y, w: torch.zeros_like(w)), 1.7, 2.2,
          truth=lambda x, y: [y * x ** (y - 1), x**y * mp.log(x)]),
    wrong("torch", "an adjoint of None", of(lambda x, y: torch.sin(x) * y, lambda a, y, w: w * torch.cos(a[0]) * a[1],
          lambda a, y, w: None), 0.7, 1.9, truth=lambda x, y: [mp.cos(x) * y, mp.sin(x)]),
    wrong("torch", "a second argument's error of 1e-7", new(lambda x, y: torch.exp(x * y), lambda a, z, w: w * z * a[1],
          lambda a, z, w: w * z * a[0] * (1 + 1e-7)), 0.7, 1.9,
          truth=lambda x, y: [y * mp.exp(x * y), x * mp.exp(x * y)]),
    wrong("torch", "a broadcast scalar averaged", lambda s, x: of(lambda s, x: s * x, lambda a, y, w: (w * a[1]).mean(),
          lambda a, y, w: w * a[0])(s, x).sum(), 0.7, X4, truth=lambda s, x: [sum(x), *[s] * 4]),
    wrong("torch", "a broadcast bias by its last row", lambda X, b: of(lambda X, b: X + b, lambda a, y, w: w, lambda a,
          y, w: w[-1])(X, b).pow(2).sum(), M23, [0.5, 1.0, -2.0],
          truth=D(lambda X, b: np.sum((X + b) ** 2))),
    wrong("torch", "a linear layer with its weight's adjoint transposed", lambda A, x: of(lambda A, x: A @ x, lambda a,
          y, w: torch.outer(a[1], w), lambda a, y, w: a[0].T @ w)(A, x).pow(2).sum(), A3, [0.5, 1.0, -2.0],
          truth=D(lambda A, x: sum((A @ x) ** 2))),
    wrong("torch", "a linear layer with its input's adjoint not transposed", lambda A, x: new(lambda A, x: A @ x,
          lambda a, y, w: torch.outer(w, a[1]), lambda a, y, w: a[0] @ w)(A, x).pow(2).sum(), A3, [0.5, 1.0, -2.0],
          truth=D(lambda A, x: sum((A @ x) ** 2))),
    wrong("torch", "an inverse with nothing transposed", lambda A: of(torch.linalg.inv, inverse_not_transposed)(A)[0,
          2], A3, truth=D(lambda A: inv(A)[0, 2])),
    wrong("torch", "a determinant's cofactors with a place exchanged", of(torch.linalg.det, determinant_of_two),
          [[2.0, 0.5], [-1.5, 3.0]], truth=lambda A: det(A) * inv(A).T),
    wrong("torch", "a solution without its sign", lambda A, b: of(torch.linalg.solve, lambda a, x,
          w: torch.outer(torch.linalg.solve(a[0].T, w), x), lambda a, x, w: torch.linalg.solve(a[0].T, w))(A, b).sum(),
          A3,
          [0.5, 1.0, -2.0], truth=D(lambda A, b: sum(solve(A, b)))),
    wrong("torch", "a nuclear norm by its singular vectors exchanged", of(lambda A: torch.linalg.matrix_norm(A, "nuc"),
          lambda a, y, w: w * (torch.linalg.svd(a[0])[0] @ torch.linalg.svd(a[0])[2]).T), A3,
          truth=D(lambda A: sum(singular_values(A)))),
    wrong("torch", "a softmax without its shared part", lambda x: torch_old(lambda x: torch.softmax(x, 0), lambda x, y,
          w: w * y * (1 - y))(x)[2], X4, truth=D(lambda x: mp.exp(x[2] - lse(x)))),
    wrong("torch", "a logarithm of a softmax without its sum", lambda x: torch_new(lambda x: torch.log_softmax(x, 0),
          lambda x, y, w: w - torch.exp(y))(x)[2] * 2, X4, truth=D(lambda x: 2 * (x[2] - lse(x)))),
    wrong("torch", "a variance with the other divisor", torch_old(lambda x: x.var(), lambda x, y,
          w: w * 2 * (x - x.mean()) / 4), X4, truth=lambda x: 2 * (x - sum(x) / 4) / 3),
    wrong("torch", "a norm of a power without its root", torch_old(lambda x: x.pow(3).sum() ** (1 / 3), lambda x, y,
          w: w * x**2 / y), P4, truth=D(lambda x: sum(x**3) ** (1 / mpf(3)))),
    wrong("torch", "a maximum by its value everywhere", torch_old(lambda x: x.max(), lambda x, y,
          w: w * (x > 0).double()), X4, truth=lambda x: [0, 0, 1, 0]),
    wrong("torch", "a product by itself over each, wrong by 1e-9 with a zero", torch_old(lambda x: x.prod(), lambda x,
          y, w: w * y / (x + 1e-9)), [2.0, 0.0, 3.0], truth=lambda x: [0, 6, 0]),
    wrong("torch", "a gather whose repeated places count once", lambda x: torch_old(lambda x: x[torch.tensor([1, 1,
          3])], lambda x, y, w: torch.zeros_like(x).index_put((torch.tensor([1, 1, 3]),), w))(x).pow(2).sum(), X4,
          truth=lambda x: [0, 4 * x[1], 0, 2 * x[3]]),
    wrong("torch", "a cumulative sum of adjoints forwards", total(torch_old(lambda x: x.cumsum(0), lambda x, y,
          w: w.cumsum(0)), 1.0, 2.0, 3.0, 4.0), X4, truth=lambda x: [10, 9, 7, 4]),
    wrong("torch", "a reshape by columns", lambda x: (torch_old(lambda x: x.reshape(2, 2), lambda x, y,
          w: w.T.reshape(4))(x) * torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)).sum(), X4,
          truth=lambda x: [1, 2, 3, 4]),
    wrong("torch", "a module's weight by 1e-4", lambda m, x: m(x), Scaled(), X4, truth=lambda m,
          x: [*(2 * x**2 * WEIGHTS), *(2 * x * np.array(WEIGHTS) ** 2)]),
    wrong("torch", "a recurrent step with its state's adjoint halved", lambda h, x: recurrent(h, x), 0.3, X4,
          truth=D(lambda h, x: recurrent_exactly(h, x))),
    wrong("torch", "a mean of squares with a part constant",
          torch_new(lambda x: ((x - x.mean()) ** 2).mean() * x.mean(), lambda x, y,
          w: w * 2 * (x - x.mean()) * x.mean() / 4), X4,
          truth=D(lambda x: sum((x - sum(x) / 4) ** 2) / 4 * sum(x) / 4)),
    wrong("torch", "a distance whose second adjoint is the first", of(lambda x, y: torch.linalg.vector_norm(x - y),
          lambda a, d, w: w * (a[0] - a[1]) / d, lambda a, d, w: w * (a[0] - a[1]) / d), X4, P4[::-1],
          truth=D(lambda x, y: mp.sqrt(sum((x - y) ** 2)))),
    wrong("torch", "an attention's scale forgotten backwards", lambda q: new(lambda q: torch.softmax(torch.tensor(A3,
          dtype=torch.float64) @ q / 2, 0)[0], lambda a, y, w: w * y * (torch.tensor(A3,
          dtype=torch.float64)[0] - torch.softmax(torch.tensor(A3, dtype=torch.float64) @ a[0] / 2,
          0) @ torch.tensor(A3, dtype=torch.float64)))(q),
          [0.5, 1.0, -2.0], truth=D(lambda q: mp.exp((np.array(A3) @ q)[0] / 2 - lse(np.array(A3) @ q / 2)))),
    wrong("torch", "a network whose rule is wrong deep inside", lambda x: torch.tanh(torch_old(torch.tanh, lambda x, y,
          w: w * (1 - y**2) * 1.00002)(torch.tanh(x))).sum(), X4, truth=D(lambda x: sum(tanh(tanh(tanh(x)))))),
    wrong("torch", "a transform of Fourier's adjoint conjugated", lambda x: torch_old(lambda x: torch.fft.fft(x).imag,
          lambda x, y, w: torch.fft.fft(w.to(torch.complex128)).real)(x)[1], X4,
          truth=lambda x: [-mp.sin(mp.pi * k / 2) for k in range(4)]),
)  # fmt: skip


def recurrent(h, x):
    step = of(lambda h, x: torch.tanh(h + x), lambda a, y, w: w * (1 - y * y) / 2, lambda a, y, w: w * (1 - y * y))
    for k in range(4):
        h = step(h, x[k])
    return h


def recurrent_exactly(h, x):
    for v in x:
        h = mp.tanh(h + v)
    return h


ROWS = [*SIMPLE, *SEVERAL]
