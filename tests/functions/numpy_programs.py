"""Programs in plain numpy, autograd, scipy and adbench.tape of one vector of six numbers, by name."""

import functools
import math
from dataclasses import dataclass

import autograd.numpy as anp
import autograd.scipy.linalg as autograd_linalg
import autograd.scipy.special as autograd_special
import autograd.scipy.stats as autograd_stats
import numpy as np
import scipy
import scipy.linalg as sl
import scipy.special as sp
import scipy.stats as ss
from autograd.extend import defvjp, primitive
from scipy.special import logsumexp as lse

from adbench import tape
from adbench.tape import function_gradients, pqr

X = np.array([0.3, 1.2, -0.73, 2.13, 0.9, -1.38])
P = np.abs(X) + 0.2
A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])


def m(x):
    return x.reshape(2, 3)


def a(x):
    return A + np.diag(x[:3] ** 2)


# Programs of several lines


def add_at(x):
    out = np.zeros_like(x)
    np.add.at(out, [0, 0, 1, 2, 3, 3], x)
    return out


def sort_in_place(x):
    y = x.copy()
    y.sort()
    return y * np.arange(6)


def write_by_mask(x):
    y = x.copy()
    y[y < 0] = 0.0
    y[1] += 2
    return y


def fill_zeros(x):
    out = np.zeros(6)
    for i in range(6):
        out[i] = x[i] ** 2
    return out / (1 + out)


def fill_zeros_like(x):
    y = np.zeros_like(x)
    for i in range(6):
        y[i] = x[i] * 2
    return 1 / (y + 2.9)


def empty_of_dtype(x):
    y = np.empty(3, dtype=x.dtype)
    y[:] = x[:3]
    return y


def in_place(x):
    y = x * 1
    y += 1
    y *= x
    y -= x[0]
    y /= 2
    y **= 2
    return y


def fill_diagonal(x):
    b = np.zeros((3, 3))
    np.fill_diagonal(b, x[:3])
    return b @ x[3:]


def copy_to(x):
    b = np.empty(3)
    np.copyto(b, x[:3])
    return b


def multiply_out(x):
    b = np.empty(6)
    np.multiply(x, 2, out=b)
    return b


def put(x):
    y = x.copy()
    np.put(y, [0, 1], [x[2], 5.0])
    return y


def with_text(x):
    assert f"{x[0]:.1f} {x[1]!r} {x}"
    return x * 2


def halved(x):
    total, step = 0.0, abs(x[3])
    while step > 1e-3:
        total = total + math.sqrt(step) if step < 1 else total + step
        step = step / 3
    return max(total, 0.1)


def with_local_imports(x):
    from math import sin

    import numpy as other

    z = other.zeros(2)
    z[1] = sin(x[0])
    return z.sum()


def as_float(x):
    values = np.asarray(x, dtype=float)
    assert isinstance(values[0], float)
    return float(values[0]) * np.float64(values[1])


def decorated(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)

    return wrapper


@decorated
def through_a_decorator(x):
    y = np.zeros(2)
    y[0] = x[0]
    return y.sum()


@functools.lru_cache
def remembered(x):
    return x**2


@dataclass(frozen=True)
class Model:
    weight: float = 2.0

    def __call__(self, x):
        out = np.zeros(2)
        out[0], out[1] = x[0] * self.weight, x[1]
        return out.prod()

    def twice(self, x):
        return MODEL(x) + self(x)

    @classmethod
    def of_two(cls, x):
        return math.sin(x[0]) * cls().weight


MODEL = Model()


def factorial_of(x, n):
    return math.exp(x[0]) if n == 0 else factorial_of(x, n - 1) * n


# Functions with custom derivatives, all wrong


@primitive
def wrong_primitive(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = math.exp(x[i])
    return out


defvjp(wrong_primitive, lambda ans, x: lambda g: g * 0)

wrong_rule = function_gradients(
    lambda x: np.exp(x) * np.array([1.0 for _ in x]), (lambda val, adj, x: adj * 0.0,), name="wrong_rule"
)


@pqr.compute_gradient
def wrong_gradient(x):
    v = 1 / (1 + np.exp(-x))
    return v, lambda: v * 0


WRONG_RULES = {
    "autograd's primitive": (wrong_primitive, np.exp(X)),
    "tape.function_gradients": (wrong_rule, np.exp(X)),
    "pqr.compute_gradient": (wrong_gradient, 0.25 / np.cosh(X / 2) ** 2),
}

NUMPY = {
    "sum": lambda x: np.sum(m(x), axis=0),
    "sum by position": lambda x: np.sum(m(x), 0, float, None, True),
    "sum initial": lambda x: np.sum(x, initial=2.0),
    "sum where": lambda x: np.sum(x, where=x > 0),
    "x.sum keepdims": lambda x: m(x).sum(axis=1, keepdims=True),
    "prod": np.prod,
    "mean": lambda x: np.mean(m(x), axis=1),
    "x.mean": lambda x: m(x).mean(0),
    "var ddof": lambda x: np.var(x, ddof=1),
    "x.std": lambda x: x.std(),
    "max": lambda x: np.max(m(x), axis=0),
    "amin": np.amin,
    "ptp": np.ptp,
    "argmax": lambda x: x[np.argmax(x)] + x[x.argmin()] ** 2,
    "cumsum": np.cumsum,
    "cumsum axis": lambda x: m(x).cumsum(axis=1),
    "cumprod": np.cumprod,
    "add.reduce": lambda x: np.add.reduce(m(x)),
    "logaddexp.reduce": np.logaddexp.reduce,
    "maximum.accumulate": np.maximum.accumulate,
    "multiply.outer": lambda x: np.multiply.outer(x, x[:2]),
    "subtract.outer": lambda x: np.subtract.outer(x, np.ones(2)),
    "add.at": add_at,
    "diff": lambda x: np.diff(x, n=2),
    "trapezoid": lambda x: np.trapezoid(x**2, dx=0.1),
    "convolve": lambda x: np.convolve(x, [1.0, 2, 3], "same"),
    "correlate": lambda x: np.correlate(x, x[:3], "valid"),
    "interp x": lambda x: np.interp(x, [-1, 0.1, 1.0], [2.0, 3, 5]),
    "interp values": lambda x: np.interp(0.5, np.array([-1, 0, 1.0]), x[:3]),
    "gradient": lambda x: np.gradient(x, 0.5),
    "gradient at coordinates": lambda x: np.gradient(x, np.arange(6.0) ** 2, edge_order=2),
    "gradient of axes": lambda x: np.gradient(m(x))[1],
    "where": lambda x: np.where(x > 0, np.log(np.abs(x)), x**2),
    "select": lambda x: np.select([x > 1, x > 0], [x**2, x**3], default=x),
    "piecewise": lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda t: -t, lambda t: t**2]),
    "clip": lambda x: np.clip(x, -1, 1),
    "x.clip": lambda x: x.clip(0),
    "sort": lambda x: np.sort(x) * np.arange(6),
    "x.sort": sort_in_place,
    "median": np.median,
    "median axis": lambda x: np.median(m(x), axis=0),
    "percentile": lambda x: np.percentile(x, 30),
    "quantile": lambda x: np.quantile(m(x), 0.6, axis=1),
    "concatenate": lambda x: np.concatenate([x, [1.0], x * 2]),
    "stack": lambda x: np.stack([x, x**2], axis=1),
    "hstack": lambda x: np.hstack([x, 2.0]),
    "column_stack": lambda x: np.column_stack([x, x]),
    "append": lambda x: np.append(x, 0.0) / (x[0] + np.append(x, 0.0) ** 2),
    "insert": lambda x: np.insert(x, 1, x[0]),
    "pad": lambda x: np.pad(x, 2, mode="edge"),
    "roll": lambda x: np.roll(x, 2),
    "tile": lambda x: np.tile(x, 2),
    "split": lambda x: np.split(x, 3)[1],
    "block": lambda x: np.block([[m(x), m(x)]]),
    "outer": lambda x: np.outer(x, x),
    "inner": lambda x: np.inner(x, x),
    "dot": lambda x: np.dot(m(x), x[:3]),
    "x.dot": lambda x: x.dot(x),
    "matmul": lambda x: m(x) @ m(x).T,
    "einsum": lambda x: np.einsum("ij,kj->ik", m(x), m(x)),
    "einsum optimize": lambda x: np.einsum("ij,jk,k->i", m(x), m(x).T, x[:2], optimize=True),
    "tensordot": lambda x: np.tensordot(m(x), m(x), axes=([1], [1])),
    "kron": lambda x: np.kron(x[:2], x[2:]),
    "cross": lambda x: np.cross(x[:3], x[3:]),
    "trace": lambda x: np.trace(m(x)[:, :2]),
    "diag": lambda x: np.diag(x) @ x,
    "tril": lambda x: np.tril(m(x)),
    "meshgrid": lambda x: np.meshgrid(x, x)[0],
    "ravel": lambda x: np.ravel(m(x), order="F"),
    "moveaxis": lambda x: np.moveaxis(m(x), 0, 1),
    "take_along_axis": lambda x: np.take_along_axis(x, np.argsort(x), 0),
    "fancy index": lambda x: x[[0, 2, 2]] * x[np.array([1, 1, 0])],
    "mask": lambda x: x[x > 0] ** 2,
    "mask written": write_by_mask,
    "slice": lambda x: x[::-2],
    "ellipsis": lambda x: m(x)[..., 1],
    "newaxis": lambda x: x[:, None] * x[None, :],
    "np.ix_": lambda x: np.outer(x, x)[np.ix_([0, 1], [2, 3])],
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 6)),
    "round": lambda x: np.round(x, 1) * x,
    "sign": lambda x: np.sign(x) * np.floor(x) * x,
    "mod": lambda x: x % 0.7 + np.fmod(x, 0.7) + np.divmod(x, 0.7)[1] + np.modf(x)[0] + x // 0.5 * x,
    "power": lambda x: np.power(np.abs(x), 1.5) + np.float_power(x, 3) + np.square(x),
    "two numbers": lambda x: np.hypot(x, 2.0) + np.arctan2(x, x[::-1]) + np.logaddexp2(x, 1.0) + np.logaddexp(x, 1.0),
    "choices": lambda x: np.fmax(x, 0.1) + np.heaviside(x, 0.5) * x + np.copysign(x, -1.0) + np.minimum(x, 0.5),
    "exponentials": lambda x: np.exp2(x) + np.log2(np.abs(x)) + np.expm1(x) + np.sinc(x) + np.i0(x) + np.ldexp(x, 3),
    "angles": lambda x: np.deg2rad(x) + np.tan(x) + np.arcsinh(x) + np.arctan(x) + np.tanh(x) + np.cbrt(x),
    "nan functions": lambda x: np.nan_to_num(x) * (np.nansum(x) + np.nanmean(x) + np.nanmax(x) + np.nanstd(x)),
    "polyval": lambda x: np.polyval([1.0, 2.0, 3.0], x) + np.polyval(x, 0.5),
    "polyfit": lambda x: np.polyfit(np.arange(6.0), x, 2),
    "vander": lambda x: np.vander(x, 3),
    "cov": lambda x: np.cov(m(x)),
    "corrcoef": lambda x: np.corrcoef(x[:5] ** 2, x[1:]),
    "average": lambda x: np.average(x, weights=np.arange(6) + 1.0),
    "unwrap": lambda x: np.unwrap(x * 5),
    "apply_along_axis": lambda x: np.apply_along_axis(lambda r: r.sum() * r, 1, m(x)),
    "vectorize": lambda x: np.vectorize(lambda t: t**2 if t > 0 else -t)(x),
    "linspace": lambda x: np.linspace(x[0], x[1], 5) + np.logspace(x[0], x[1], 5),
    "zeros_like": fill_zeros_like,
    "zeros": fill_zeros,
    "full": lambda x: np.full(3, x[1]) * np.full_like(x[:3], x[0]),
    "x.dtype": empty_of_dtype,
    "bincount": lambda x: np.bincount([0, 1, 1, 0, 2, 2], weights=x),
    "histogram": lambda x: np.histogram(x, bins=[-2.0, 0.0, 1.0, 3.0], weights=x)[0],
    "whole numbers": lambda x: x * (np.count_nonzero(x > 0) + np.digitize(x, [0.0, 1.0]) + int(x[3]) + round(x[1])),
    "conditions": lambda x: x * (np.any(x > 1) + (x > -3).all() + np.isclose(x, 0.3) + np.isfinite(x)),
    "searchsorted": lambda x: x[:2] * np.searchsorted(np.sort(x), 0.5),
    "choose": lambda x: np.choose([0, 1, 0, 1, 0, 1], [x, x**2]),
    "fft": lambda x: np.abs(np.fft.fft(x)) ** 2,
    "irfft": lambda x: np.fft.irfft(np.fft.rfft(x) * 2),
    "fft2": lambda x: np.real(np.fft.fft2(m(x))),
    "complex": lambda x: np.abs(np.exp(1j * x) + 1),
    "solve": lambda x: np.linalg.solve(a(x), x[3:]),
    "inv": lambda x: np.linalg.inv(a(x)),
    "det": lambda x: np.linalg.det(a(x)),
    "slogdet": lambda x: np.linalg.slogdet(a(x)).logabsdet + np.linalg.slogdet(a(x))[1],
    "cholesky": lambda x: np.linalg.cholesky(a(x)),
    "eigvalsh": lambda x: np.linalg.eigvalsh(a(x)) + np.linalg.eigh(a(x))[0],
    "svd": lambda x: np.linalg.svd(m(x), compute_uv=False) + np.linalg.svd(m(x), full_matrices=False)[1],
    "qr": lambda x: np.linalg.qr(m(x).T)[1],
    "norm": lambda x: np.linalg.norm(x, 1) + np.linalg.norm(m(x), axis=1) + np.linalg.norm(m(x), np.inf),
    "norm 2": lambda x: np.linalg.norm(x) * np.linalg.norm(m(x), 2) * np.linalg.norm(m(x), "nuc"),
    "lstsq": lambda x: np.linalg.lstsq(m(x).T, x[3:], rcond=None)[0],
    "pinv": lambda x: np.linalg.pinv(m(x)),
    "matrix_power": lambda x: np.linalg.matrix_power(a(x), 3),
    "cond": lambda x: np.linalg.cond(a(x)),
    "multi_dot": lambda x: np.linalg.multi_dot([m(x), A, m(x).T]),
    "in place": in_place,
    "python's own": lambda x: sum(x) * max(x) + min(x) + sorted(x)[2] + abs(x[0]) + len(x) * x.size,
    "list of numbers": lambda x: np.array([xi**2 for xi in x]),
    "rows": lambda x: np.stack([r / r.sum() for r in m(x)]),
    "as float": as_float,
    "atleast_2d": lambda x: np.atleast_2d(x).astype(float) * 2,
    "fill_diagonal": fill_diagonal,
    "copyto": copy_to,
    "out": multiply_out,
    "where with out": lambda x: np.log(x, where=x > 0, out=np.zeros_like(x)),
    "put": put,
    "item": lambda x: x.item(0) * np.array(x.tolist()),
    "printed": with_text,
    "while": halved,
    "local imports": with_local_imports,
    "decorator": through_a_decorator,
    "lru_cache": lambda x: remembered(x[0]) + remembered(x[1]),
    "callable object": MODEL,
    "bound method": Model().twice,
    "class method": Model.of_two,
    "recursion": lambda x: factorial_of(x, 3),
    "partial": functools.partial(lambda c, x: np.sum(np.array([x[0], c * x[1]])), 3.0),
    "math": lambda x: math.erf(x[0]) + math.log(x[1], 2) + math.hypot(x[2], x[3]) + math.fsum(x) + math.atan2(x[0], 2),
}

SPECIAL_FUNCTIONS = {
    "errors": lambda x: sp.erf(x) + sp.erfc(x) + sp.erfcx(x) + sp.erfinv(np.tanh(x)) + sp.erfcinv(1 + np.tanh(x)),
    "gammas": lambda x: sp.gammaln(x**2 + 0.5) + sp.digamma(x**2 + 1) + sp.gamma(x**2 + 1) + sp.rgamma(x + 4),
    "betas": lambda x: sp.beta(x**2 + 1, 2.0) + sp.betaln(x**2 + 1, 2.0) + sp.poch(x + 4, 2.0) + sp.binom(x + 4, 2),
    "logistic": lambda x: sp.expit(x) + sp.logit(sp.expit(x)) + sp.log_expit(x) + sp.ndtri(sp.expit(x)),
    "normal": lambda x: sp.ndtr(x) + sp.log_ndtr(x),
    "entropies": lambda x: sp.entr(x**2) + sp.rel_entr(x**2, x**2 + 1) + sp.kl_div(x**2, 1.0) + sp.xlogy(x**2, x**2),
    "losses": lambda x: sp.huber(1.0, x) + sp.pseudo_huber(1.0, x) + sp.boxcox(x**2, 0.3) + sp.inv_boxcox(x**2, 0.5),
    "near zero": lambda x: sp.exprel(x) + sp.cosm1(x) + sp.log1p(x**2) + sp.xlog1py(x, x**2) + sp.boxcox1p(x**2, 0.5),
    "bessel": lambda x: sp.i0(x) + sp.j0(x**2) + sp.i0e(x) + sp.i1e(x) + sp.k0(x**2) + sp.k1(x**2) + sp.y0(x**2),
    "bessel of order": lambda x: sp.jv(1.5, x**2) + sp.kve(1, x**2) + sp.ive(1, x**2),
    "integrals": lambda x: sp.expi(x) + sp.exp1(x**2) + sp.zeta(x**2 + 2) + sp.exp10(x) + sp.sinc(x),
    "logsumexp": lambda x: lse(x) + lse(m(x), axis=0)[0] + lse(x, b=P),
    "softmax": lambda x: sp.softmax(m(x), axis=1) + sp.log_softmax(m(x), axis=1),
    "polygamma": lambda x: sp.polygamma(2, x**2 + 1) + sp.multigammaln(x[0] + 4, 3) + sp.comb(x + 4, 2),
    "sl.cholesky": lambda x: sl.cholesky(a(x)) + scipy.linalg.cholesky(a(x), lower=True),
    "sl.solve": lambda x: sl.solve_triangular(A, x[3:], lower=True) + sl.solve(a(x), x[3:], assume_a="pos"),
    "sl.cho_solve": lambda x: (
        sl.cho_solve(sl.cho_factor(a(x)), x[3:]) + sl.cho_solve(sl.cho_factor(a(x), lower=True), x[3:])
    ),
    "sl.inv": lambda x: sl.inv(a(x)) * sl.det(a(x)) + sl.eigvalsh(a(x)) + sl.svdvals(a(x)),
    "sl.expm": lambda x: (
        sl.expm(m(x).T @ np.tril(A)[1:] / 4) + np.outer(x[:3], tape.expm(np.outer(x[:2], x[4:]))[0, :1])
    ),
    "sl.block_diag": lambda x: sl.block_diag(m(x), A),
    "norm": lambda x: ss.norm.logpdf(x, 0.5, scale=2.0) + ss.norm.pdf(x) + ss.norm.cdf(x, 1.0) + ss.norm.logsf(x),
    "heavy tails": lambda x: ss.t.logpdf(x, 4.0, loc=0.5, scale=2.0) + ss.cauchy.logpdf(x),
    "positive": lambda x: (
        ss.gamma.logpdf(x**2, 2.0, scale=1.5) + ss.expon.logpdf(x**2, scale=2.0) + ss.chi2.pdf(x**2, 3.0)
    ),
    "other densities": lambda x: ss.beta.logpdf(sp.expit(x), 2.0, 3.0) + ss.laplace.logpdf(x) + ss.logistic.logpdf(x),
    "poisson": lambda x: ss.poisson.logpmf(np.arange(6), x**2 + 1),
}

AUTOGRAD = {
    "functions": lambda x: anp.sum(anp.tanh(x) ** 2) + anp.sinc(x)[0] + anp.dot(x, x),
    "array": lambda x: anp.linalg.norm(anp.array([x[0], x[1] ** 2])),
    "concatenate": lambda x: anp.concatenate([x, anp.ones(2)]),
    "stack": lambda x: anp.stack([x, x]),
    "solve": lambda x: anp.linalg.solve(A + anp.diag(x[:3] ** 2), x[3:]),
    "special": lambda x: autograd_special.gammaln(x**2 + 1) + autograd_special.erf(x) + autograd_special.logsumexp(x),
    "norm": lambda x: autograd_stats.norm.logpdf(x, 0.1, 2.0) + autograd_stats.norm.cdf(x),
    "t": lambda x: autograd_stats.t.logpdf(x, 3.0),
    "solve_triangular": lambda x: autograd_linalg.solve_triangular(a(x), x[3:], lower=True),
}

COUNTS = np.array([0, 1, 1, 0, 1, 1])

TAPE = {
    "functions": lambda x: tape.sum(tape.sin(x) * tape.log1p(x**2)) + tape.mean(x) + tape.std(x),
    "stack": lambda x: tape.stack([x[0], x[1]]) + tape.asarray([x[0], x[1] * 2]),
    "zeros": lambda x: tape.zeros(3) + x[:3],
    "solve": lambda x: tape.solve(A + tape.diag(x[:3] ** 2), x[3:]) + tape.linalg.solve(a(x), x[3:]),
    "matrices": lambda x: tape.inv(a(x)) + tape.cholesky(a(x)) + tape.eigvalsh(a(x)),
    "determinants": lambda x: tape.det(a(x)) + tape.log_determinant(a(x)) + tape.norm(x) + tape.quad_form(A, x[:3]),
    "special": lambda x: tape.erf(x) + tape.gammaln(x**2 + 1) + tape.digamma(x**2 + 1) + tape.polygamma(x**2 + 1, 1),
    "softmax": lambda x: tape.softmax(x) + tape.log_softmax(x) + tape.logsumexp(x),
    "where": lambda x: tape.where(x > 0, x**2, 0.0) + tape.maximum(x, 0.0) + tape.max(x) + tape.cumsum(x),
    "loop": lambda x: tape.loop(lambda i, s: s * x[1] + 1, x[0], 4),
    "normal": lambda x: tape.normal_lpdf(x, 0.5, x[1]) + tape.lognormal_lpdf(x**2, 0.0, x[1]),
    "heavy tails": lambda x: tape.student_t_lpdf(x, 3.0, 0.5, x[1]) + tape.cauchy_lpdf(x, 0.0, x[1]),
    "positive": lambda x: tape.gamma_lpdf(x**2, 2.0, x[1]) + tape.exponential_lpdf(x**2, x[1]),
    "beta": lambda x: tape.beta_lpdf(tape.expit(x), 2.0, x[1]) + tape.binomial_lpmf(2, 5, tape.expit(x)),
    "counts": lambda x: tape.poisson_lpmf(np.arange(6), x**2 + 1) + tape.poisson_log_lpmf(np.arange(6), x),
    "bernoulli": lambda x: tape.bernoulli_lpmf(COUNTS, tape.expit(x)) + tape.bernoulli_logit_lpmf(COUNTS, x),
    "categorical": lambda x: tape.categorical_logit_lpmf(2, x) + tape.categorical_lpmf(COUNTS, tape.softmax(x)),
    "multi_normal": lambda x: (
        tape.multi_normal_lpdf(m(x), np.zeros(3), A * x[1]) + tape.multi_normal_prec_lpdf(x[:3], x[3:], A)
    ),
    "multi_normal_cholesky": lambda x: tape.multi_normal_cholesky_lpdf(x[:3], x[3:], np.linalg.cholesky(A)),
    "dirichlet": lambda x: tape.dirichlet_lpdf(np.array([0.2, 0.3, 0.5]), x[:3] ** 2 + 1),
}

PROGRAMS = {
    f"{library}: {name}": program
    for library, table in (("numpy", NUMPY), ("scipy", SPECIAL_FUNCTIONS), ("autograd", AUTOGRAD), ("tape", TAPE))
    for name, program in table.items()
}
