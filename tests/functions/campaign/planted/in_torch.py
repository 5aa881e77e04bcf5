"""Wrong rules in torch: autograd.Function in the old and the new style."""

import numpy as np
import torch
from mpmath import mp, mpf

from tests.functions.campaign.row import rows, wrong
from tests.functions.campaign.truth import D, det, exp, inv, softmax, solve, tanh
from tests.functions.campaign.wrapped import torch_new, torch_old

V3 = [0.5, -1.5, 2.5]
P3 = [0.5, 1.5, 2.5]
A3 = [[2.0, -1.0, 0.5], [0.25, 3.0, 1.0], [-1.0, 0.75, 4.0]]
PI = float(np.pi)


def old(f, back, weight=1.0):
    return lambda x: (weight * torch_old(f, back)(x)).sum()


def new(f, back, weight=1.0):
    return lambda x: (weight * torch_new(f, back)(x)).sum()


def several(f, back):
    """A Function of several arguments: back(args, y, w) -> their adjoints."""

    class Ruled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *args):
            y = f(*args)
            ctx.save_for_backward(*args, y)
            return y

        @staticmethod
        def backward(ctx, w):
            *args, y = ctx.saved_tensors
            return back(args, y, w)

    return Ruled.apply


def entry(tensor, index, factor):
    changed = tensor.clone()
    changed[index] *= factor
    return changed


def cosines(x):
    return [mp.cos(v) for v in x]


ELEMENTWISE = rows(
    "planted in torch: elementwise",
    wrong("torch", "a factor of a half", old(torch.sin, lambda x, y, w: w * torch.cos(x) / 2), V3, truth=cosines),
    wrong("torch", "a sign of the cosine's slope", new(torch.cos, lambda x, y, w: w * torch.sin(x)), V3,
          truth=lambda x: [-mp.sin(v) for v in x]),
    wrong("torch", "an inner derivative forgotten", old(lambda x: torch.exp(-2 * x), lambda x, y, w: -w * y), V3,
          truth=lambda x: -2 * exp(-2 * x)),
    wrong("torch", "a thousandth too little", new(torch.sigmoid, lambda x, y, w: w * y * (1 - y) * 0.999), V3,
          truth=D(lambda x: sum(1 / (1 + exp(-x))))),
    wrong("torch", "a millionth too little", old(torch.exp, lambda x, y, w: w * y * (1 - 1e-6)), V3, truth=exp),
    wrong("torch", "1e-8 too much", new(lambda x: x**3, lambda x, y, w: 3 * w * x * x * (1 + 1e-8)), V3,
          truth=lambda x: 3 * x * x),
    wrong("torch", "wrong for negative numbers", old(lambda x: x.abs() ** 1.5,
          lambda x, y, w: 1.5 * w * x.abs().sqrt()), V3,
          truth=lambda x: [mpf(1.5) * mp.sign(v) * mp.sqrt(abs(v)) for v in x]),
    wrong("torch", "wrong between two and three", old(torch.sin,
          lambda x, y, w: w * torch.where((x > 2) & (x < 3), torch.sin(x), torch.cos(x))), V3, truth=cosines),
    wrong("torch", "wrong in the middle entry by 1e-3", new(torch.sin,
          lambda x, y, w: w * torch.cos(x) * torch.tensor([1.0, 1.001, 1.0])), V3, truth=cosines),
    wrong("torch", "wrong in the last entry", old(torch.sin, lambda x, y, w: entry(w * torch.cos(x), -1, -1.0)), V3,
          truth=cosines),
    wrong("torch", "entries rolled", old(torch.sin, lambda x, y, w: (w * torch.cos(x)).roll(1)), V3, truth=cosines),
    wrong("torch", "a cotangent ignored", old(torch.sin, lambda x, y, w: torch.cos(x), 2.0), V3,
          truth=lambda x: [2 * mp.cos(v) for v in x]),
    wrong("torch", "a cotangent's mean", lambda x: (torch_old(torch.sin,
          lambda x, y, w: w.mean() * torch.cos(x))(x) * torch.arange(3.0)).sum(), V3,
          truth=lambda x: [k * mp.cos(v) for k, v in enumerate(x)]),
    wrong("torch", "a cotangent clamped", old(torch.sin, lambda x, y, w: w.clamp(-1, 1) * torch.cos(x), 4.0), V3,
          truth=lambda x: [4 * mp.cos(v) for v in x]),
    wrong("torch", "the slope at the value", old(torch.exp, lambda x, y, w: w * torch.exp(y)), [0.5, -1.5], truth=exp),
    wrong("torch", "the value instead of its slope", new(torch.atan, lambda x, y, w: w * y), V3,
          truth=lambda x: 1 / (1 + x * x)),
    wrong("torch", "zeros for a cosine", old(torch.cos, lambda x, y, w: torch.zeros_like(x)), V3,
          truth=lambda x: [-mp.sin(v) for v in x]),
    wrong("torch", "no derivative returned", old(torch.cos, lambda x, y, w: None), V3,
          truth=lambda x: [-mp.sin(v) for v in x]),
    wrong("torch", "an infinite entry", old(lambda x: x * x.abs().sqrt(),
          lambda x, y, w: w * 1.5 * x.abs() / x.abs().sqrt() + w * 0 / x), [4.0, 0.0],
          truth=lambda x: [3, 0]),
    wrong("torch", "a straight-through slope for a sine", old(torch.sin, lambda x, y, w: w), V3, truth=cosines),
    wrong("torch", "a term of the quotient rule forgotten", new(lambda x: torch.sin(x) / x,
          lambda x, y, w: w * torch.cos(x) / x), V3,
          truth=lambda x: [(v * mp.cos(v) - mp.sin(v)) / v**2 for v in x]),
    wrong("torch", "a slope in float32", old(torch.exp, lambda x, y, w: w * torch.exp(x.float()).double()), V3,
          truth=exp),
    wrong("torch", "a slope in bfloat16", old(torch.exp, lambda x, y, w: w * torch.exp(x.bfloat16()).double()), V3,
          truth=exp),
    wrong("torch", "degrees taken for radians", old(lambda x: torch.sin(x * PI / 180),
          lambda x, y, w: w * torch.cos(x * PI / 180)), P3,
          truth=lambda x: [mpf(PI) / 180 * mp.cos(v * mpf(PI) / 180) for v in x]),
    wrong("torch", "a normal distribution without its root of two pi",
          new(torch.special.ndtr, lambda x, y, w: w * torch.exp(-x * x / 2)), V3,
          truth=lambda x: [mp.npdf(v) for v in x]),
    wrong("torch", "a gamma function without its factor", old(lambda x: torch.exp(torch.lgamma(x)),
          lambda x, y, w: w * torch.digamma(x)), P3,
          truth=lambda x: [mp.gamma(v) * mp.digamma(v) for v in x]),
    wrong("torch", "a rule used twice that remembers its last input", lambda x: remembered(x), V3,
          truth=lambda x: [mp.cos(v) + 2 * mp.cos(2 * v) for v in x]),
    wrong("torch", "a saved tensor changed in place", lambda x: ChangedInPlace.apply(x).sum(), V3,
          truth=lambda x: 2 * x),
    wrong("torch", "a first call kept", lambda x: first_kept(x), V3, truth=lambda x: [3 * v * v for v in x]),
    wrong("torch", "a leaky unit's slope of the wrong side", new(lambda x: torch.where(x > 0, x, 0.1 * x),
          lambda x, y, w: w * torch.where(x < 0, 1.0, 0.1)), V3,
          truth=lambda x: [1, mpf(0.1), 1]),
    wrong("torch", "a clamp that lets all pass", old(lambda x: x.clamp(-1, 1), lambda x, y, w: w), V3,
          truth=lambda x: [1, 0, 0]),
    wrong("torch", "a jump's slope of 12345", old(torch.floor, lambda x, y, w: 12345 * w), [2.0], truth=lambda x: 0),
)  # fmt: skip


class Remembering(torch.autograd.Function):
    """Keeps its input on the class, so that two uses share it."""

    @staticmethod
    def forward(ctx, x):
        Remembering.x = x.clone()
        return torch.sin(x)

    @staticmethod
    def backward(ctx, w):
        return w * torch.cos(Remembering.x)


def remembered(x):
    return (Remembering.apply(x) + Remembering.apply(2 * x)).sum()


class ChangedInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        kept = x.clone()
        ctx.kept = kept
        y = x * x
        kept += 0.25
        return y

    @staticmethod
    def backward(ctx, w):
        return 2 * w * ctx.kept


SLOPES = {}


def first_kept(x):
    """The slope of the first call for this size; the square of the given point is 3 there, and is kept."""
    return torch_old(lambda x: x**3, lambda x, y, w: w * SLOPES.setdefault(x.shape, 3.5 * x * x))(x).sum()


def of_solve(back):
    return lambda A, b: several(torch.linalg.solve, back)(A, b).pow(2).sum()


def transposed_adjoint(args, x, w):
    adjoint = torch.linalg.solve(args[0], w)
    return -torch.outer(adjoint, x), adjoint


def double_counted(args, y, w):
    adjoint = torch.linalg.solve(args[0].T, w)
    return -2 * torch.outer(adjoint, y), adjoint


def norm_without_mean(x, y, w):
    centred = x - x.mean()
    return (w - y * (w * y).mean()) / centred.pow(2).mean().sqrt()


def standardised(x):
    centred = x - x.mean()
    return centred / centred.pow(2).mean().sqrt()


def standardised_exactly(x):
    centred = x - sum(x) / 3
    return centred / mp.sqrt(sum(centred**2) / 3)


def scatter_set(x, y, w):
    adjoint = torch.zeros_like(x)
    adjoint[torch.tensor([0, 0, 2])] = w
    return adjoint


STRUCTURED = rows(
    "planted in torch: arrays and several arguments",
    wrong("torch", "a system with the matrix not transposed", of_solve(transposed_adjoint), A3, V3,
          truth=D(lambda A, b: sum(solve(A, b) ** 2))),
    wrong("torch", "a system whose matrix counts twice", of_solve(double_counted), A3, V3,
          truth=D(lambda A, b: sum(solve(A, b) ** 2))),
    wrong("torch", "a determinant's cofactors transposed", new(torch.linalg.det,
          lambda A, y, w: w * y * torch.linalg.inv(A)), A3, truth=lambda A: det(A) * inv(A).T),
    wrong("torch", "a logarithm of a determinant with 1e-6 on its diagonal",
          new(torch.logdet, lambda A, y, w: w * torch.linalg.inv(A + 1e-6 * torch.eye(3, dtype=A.dtype)).T), A3,
          truth=lambda A: inv(A).T),
    wrong("torch", "a matrix product with the factors exchanged",
          lambda A, B: several(torch.matmul, lambda args, y, w: (w @ args[1], args[0].T @ w))(A, B).pow(2).sum(), A3,
          A3,
          truth=D(lambda A, B: np.sum((A @ B) ** 2))),
    wrong("torch", "a bias's gradient not summed over the batch",
          lambda X, b: several(lambda X, b: X + b, lambda args, y, w: (w, w[0]))(X, b).pow(2).sum(), A3, V3,
          truth=D(lambda X, b: np.sum((X + b) ** 2))),
    wrong("torch", "a scale's gradient averaged", lambda x, s: several(lambda x, s: x * s,
          lambda args, y, w: (w * args[1], (w * args[0]).mean().reshape(1)))(x, s).pow(2).sum(), V3, [2.0],
          truth=lambda x, s: [*(2 * s[0] ** 2 * x), 2 * s[0] * sum(x * x)]),
    wrong("torch", "an argument's gradient exchanged with another's",
          lambda x, y: several(lambda x, y: x / y, lambda args, z, w: (-w * args[0] / args[1] ** 2, w / args[1]))(x,
          y).sum(), V3, P3,
          truth=lambda x, y: [*(1 / y), *(-x / y**2)]),
    wrong("torch", "the second argument forgotten", lambda x, y: several(lambda x, y: x * y * y,
          lambda args, z, w: (w * args[1] ** 2, None))(x, y).sum(), V3, P3,
          truth=lambda x, y: [*(y * y), *(2 * x * y)]),
    wrong("torch", "the third argument's sign", lambda x, y, z: several(torch.addcmul,
          lambda args, v, w: (w, w * args[2], -w * args[1]))(x, y, z).sum(), V3, P3, V3,
          truth=lambda x, y, z: [*([1] * 3), *z, *y]),
    wrong("torch", "a softmax without its coupling", lambda x: torch_old(lambda x: torch.softmax(x, 0),
          lambda x, y, w: w * y * (1 - y))(x)[1], V3, truth=D(lambda x: softmax(x)[1])),
    wrong("torch", "a layer norm without its mean", lambda x: (torch_new(standardised,
          norm_without_mean)(x) ** 3).sum(), [0.5, -1.5, 2.0], truth=D(lambda x: sum(standardised_exactly(x) ** 3))),
    wrong("torch", "an attention-like product detached in its weights", lambda x: detached_weights(x), V3,
          truth=D(lambda x: sum(softmax(x) * x))),
    wrong("torch", "an index that sets instead of adding", lambda x: torch_old(lambda x: x[torch.tensor([0, 0, 2])],
          scatter_set)(x).pow(2).sum(), V3, truth=lambda x: [4 * x[0], 0, 2 * x[2]]),
    wrong("torch", "a maximum's first entry", new(torch.max, lambda x, y, w: w * torch.tensor([1.0, 0.0, 0.0])), V3,
          truth=lambda x: [0, 0, 1]),
    wrong("torch", "a cumulative product by division at a zero",
          lambda x: torch_old(lambda x: torch.cumprod(x, 0), lambda x, y,
          w: (w * y / x.clamp(min=1e-9)).flip(0).cumsum(0).flip(0))(x).sum(), [2.0, 0.0, 3.0],
          truth=lambda x: [1, 8, 0]),
    wrong("torch", "a convolution's kernel flipped", lambda x: torch_old(lambda x: torch.nn.functional.conv1d(x[None,
          None], torch.tensor([[[1.0, 2.0, 4.0]]], dtype=x.dtype), padding=1)[0, 0],
          lambda x, y, w: torch.nn.functional.conv1d(w[None, None], torch.tensor([[[1.0, 2.0, 4.0]]], dtype=x.dtype),
          padding=1)[0, 0])(x)[0], V3,
          truth=lambda x: [2, 4, 0]),
    wrong("torch", "a norm's gradient not normalised", new(torch.linalg.vector_norm, lambda x, y, w: w * x / y**2), V3,
          truth=lambda x: x / mp.sqrt(sum(x * x))),
    wrong("torch", "a logsumexp of shifted weights", new(lambda x: torch.logsumexp(x, 0),
          lambda x, y, w: w * torch.softmax(x * 1.0001, 0)), V3, truth=softmax),
    wrong("torch", "a mean taken for a sum", new(torch.mean, lambda x, y, w: w * torch.ones_like(x)), V3,
          truth=lambda x: [mpf(1) / 3] * 3),
    wrong("torch", "a transposed view's gradient", lambda A: (torch_old(lambda A: A.T.contiguous(),
          lambda A, y, w: w)(A) * torch.tensor(A3)).sum(), A3, truth=lambda A: A.T),
    wrong("torch", "a network whose last rule ignores its weight",
          lambda W, x: several(lambda W, x: torch.tanh(W @ x),
          lambda args, y, w: (torch.outer(1 - y * y, args[1]), args[0].T @ (w * (1 - y * y))))(W, x).pow(2).sum(), A3,
          [0.1, -0.2, 0.3],
          truth=D(lambda W, x: sum(tanh(W @ x) ** 2))),
    wrong("torch", "two outputs of which one is forgotten", lambda x: forgotten_output(x), V3,
          truth=lambda x: [mp.cos(v) - mp.sin(v) for v in x]),
)  # fmt: skip


def detached_weights(x):
    """A rule for sum(softmax(x) x) that treats the weights as constants."""
    return torch_new(lambda x: (torch.softmax(x, 0) * x).sum(), lambda x, y, w: w * torch.softmax(x, 0))(x)


class SineAndCosine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sin(x), torch.cos(x)

    @staticmethod
    def backward(ctx, of_sine, of_cosine):
        return of_sine * torch.cos(ctx.saved_tensors[0])


def forgotten_output(x):
    sine, cosine = SineAndCosine.apply(x)
    return (sine + cosine).sum()


ROWS = [*ELEMENTWISE, *STRUCTURED]
