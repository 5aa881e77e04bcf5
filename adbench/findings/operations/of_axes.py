"""Operations along the last axis of an array: reductions, scans, sorting, indexing, transforms."""

from __future__ import annotations

import math

from adbench.findings.operations.operation import POSITIVE, REAL, Family

SAME = "(n)->(n)"
ONE = "(n)->()"
PAIR = "(n),(n)->()"
FOUR = "(4)->(4)"
F = "torch.nn.functional."

reductions = Family("reductions")
reductions.add("sum", "xp.sum(x, axis=-1)", ONE, both="torch.sum(x, dim=-1)")
reductions.add("mean", "xp.mean(x, axis=-1)", ONE, both="torch.mean(x, dim=-1)")
reductions.add("prod", "xp.prod(x, axis=-1)", ONE, both="torch.prod(x, dim=-1)")
reductions.add("max", "xp.max(x, axis=-1)", ONE, torch="torch.amax(x, dim=-1)", jax="jnp.max(x, axis=-1)")
reductions.add("min", "xp.min(x, axis=-1)", ONE, torch="torch.amin(x, dim=-1)", jax="jnp.min(x, axis=-1)")
reductions.add("var", "xp.var(x, axis=-1)", ONE, torch="torch.var(x, dim=-1, correction=0)", jax="jnp.var(x, axis=-1)")
reductions.add("std", "xp.std(x, axis=-1)", ONE, torch="torch.std(x, dim=-1, correction=0)", jax="jnp.std(x, axis=-1)")
reductions.add("sample_variance", "xp.var(x, axis=-1, correction=1)", "(3)->()", torch="torch.var(x, dim=-1)",
               jax="jnp.var(x, axis=-1, ddof=1)")  # fmt: skip
reductions.add("logsumexp", "logsumexp(xp, x)", ONE, torch="torch.logsumexp(x, dim=-1)",
               jax="jax.scipy.special.logsumexp(x, axis=-1)")  # fmt: skip
reductions.add("vector_norm", "xp.linalg.vector_norm(x, axis=-1)", ONE, torch="torch.linalg.vector_norm(x, dim=-1)",
               jax="jnp.linalg.norm(x, axis=-1)")  # fmt: skip
for power in (1, 3, 4):
    reductions.add(f"vector_norm_{power}", f"xp.sum(xp.abs(x) ** {power}, axis=-1) ** (1 / {power})", ONE,
                   torch=f"torch.linalg.vector_norm(x, ord={power}, dim=-1)",
                   jax=f"jnp.linalg.norm(x, ord={power}, axis=-1)")  # fmt: skip
reductions.add("vector_norm_infinite", "xp.max(xp.abs(x), axis=-1)", ONE,
               torch='torch.linalg.vector_norm(x, ord=float("inf"), dim=-1)',
               jax="jnp.linalg.norm(x, ord=jnp.inf, axis=-1)")  # fmt: skip
reductions.add("half_square_of_norm", "0.5 * xp.sum(x * x, axis=-1)", ONE,
               torch="0.5 * torch.linalg.vector_norm(x, dim=-1) ** 2",
               jax="0.5 * jnp.linalg.norm(x, axis=-1) ** 2")  # fmt: skip
reductions.add("norm_of_axis", "xp.linalg.vector_norm(x, axis=-1)", ONE, torch="torch.norm(x, dim=-1)")
reductions.add("median", "xp.sort(x, axis=-1)[..., 1]", "(3)->()", torch="torch.median(x, dim=-1).values",
               jax="jnp.median(x, axis=-1)")  # fmt: skip
reductions.add("quantile", "0.5 * (xp.sort(x, axis=-1)[..., 0] + xp.sort(x, axis=-1)[..., 1])", "(3)->()",
               both="torch.quantile(x, 0.25, dim=-1)")  # fmt: skip
reductions.add("ptp", "xp.max(x, axis=-1) - xp.min(x, axis=-1)", ONE, jax="jnp.ptp(x, axis=-1)",
               torch="torch.amax(x, dim=-1) - torch.amin(x, dim=-1)")  # fmt: skip
reductions.add("nansum", "xp.sum(x, axis=-1)", ONE, both="torch.nansum(x, dim=-1)")
reductions.add("nanmean", "xp.mean(x, axis=-1)", ONE, both="torch.nanmean(x, dim=-1)")
reductions.add("trapezoid", "xp.sum(0.5 * (x[..., 1:] + x[..., :-1]), axis=-1)", "(3)->()",
               torch="torch.trapezoid(x, dim=-1)", jax="jax.scipy.integrate.trapezoid(x, axis=-1)")  # fmt: skip
reductions.add("polyval", "(x[0] * y + x[1]) * y + x[2]", "(3),()->()", torch="(x[0] * y + x[1]) * y + x[2]",
               jax="jnp.polyval(x, y)", batch=False)  # fmt: skip

pairs = Family("reductions of two arrays")
pairs.add("vecdot", "xp.sum(x * y, axis=-1)", PAIR, torch="torch.linalg.vecdot(x, y)", jax="jnp.vecdot(x, y)")
pairs.add("cosine_similarity", "xp.sum(x * y, axis=-1) / (xp.linalg.vector_norm(x, axis=-1) * "
          "xp.linalg.vector_norm(y, axis=-1))", PAIR, torch=F + "cosine_similarity(x, y, dim=-1)")  # fmt: skip
pairs.add("pairwise_distance", "xp.linalg.vector_norm(x - y + 1e-6, axis=-1)", PAIR,
          torch=F + "pairwise_distance(x, y)")  # fmt: skip
pairs.add("dist", "xp.linalg.vector_norm(x - y, axis=-1)", PAIR, torch="torch.dist(x, y)", jax="jnp.linalg.norm(x - y)",
          batch=False)  # fmt: skip
pairs.add("cdist", "xp.linalg.vector_norm(xp.expand_dims(x, axis=-2) - xp.expand_dims(y, axis=-3), axis=-1)",
          "(m,n),(k,n)->(m,k)", torch="torch.cdist(x, y)",
          jax="jnp.linalg.norm(x[..., :, None, :] - y[..., None, :, :], axis=-1)")  # fmt: skip
pairs.add("logsumexp_weighted", "xp.log(xp.sum(y * xp.exp(x - kept(xp, xp.max, x)), axis=-1)) + xp.max(x, axis=-1)",
          PAIR, REAL, POSITIVE, jax="jax.scipy.special.logsumexp(x, axis=-1, b=y)",
          torch="torch.logsumexp(x + torch.log(y), dim=-1)")  # fmt: skip

scans = Family("scans and softmax")
scans.add("cumsum", "xp.cumulative_sum(x, axis=-1)", SAME, both="torch.cumsum(x, dim=-1)")
scans.add("cumprod", "scan(xp, x, lambda p, q: p * q)", "(3)->(3)", both="torch.cumprod(x, dim=-1)")
scans.add("cummax", "scan(xp, x, xp.maximum)", "(3)->(3)", torch="torch.cummax(x, dim=-1).values",
          jax="jax.lax.cummax(x, axis=x.ndim - 1)")  # fmt: skip
scans.add("cummin", "scan(xp, x, xp.minimum)", "(3)->(3)", torch="torch.cummin(x, dim=-1).values",
          jax="jax.lax.cummin(x, axis=x.ndim - 1)")  # fmt: skip
scans.add("logcumsumexp", "scan(xp, x, xp.logaddexp)", "(3)->(3)", torch="torch.logcumsumexp(x, dim=-1)",
          jax="jax.lax.cumlogsumexp(x, axis=x.ndim - 1)")  # fmt: skip
scans.add("softmax", "xp.exp(x - xp.expand_dims(logsumexp(xp, x), axis=-1))", SAME, torch="torch.softmax(x, dim=-1)",
          jax="jax.nn.softmax(x)")  # fmt: skip
scans.add("log_softmax", "x - xp.expand_dims(logsumexp(xp, x), axis=-1)", SAME, torch="torch.log_softmax(x, dim=-1)",
          jax="jax.nn.log_softmax(x)")  # fmt: skip
scans.add("softmin", "xp.exp(-x - xp.expand_dims(logsumexp(xp, -x), axis=-1))", SAME, torch=F + "softmin(x, dim=-1)",
          jax="jax.nn.softmax(-x)")  # fmt: skip
scans.add("diff", "x[..., 1:] - x[..., :-1]", "(3)->(2)", both="torch.diff(x)")
scans.add("gradient", "xp.stack([x[..., 1] - x[..., 0], (x[..., 2] - x[..., 0]) / 2, x[..., 2] - x[..., 1]], axis=-1)",
          "(3)->(3)", torch="torch.gradient(x, dim=-1)[0]", jax="jnp.gradient(x, axis=-1)")  # fmt: skip

orders = Family("sorting, indexing and segments")
orders.add("sort", "xp.sort(x, axis=-1)", SAME, torch="torch.sort(x, dim=-1).values", jax="jnp.sort(x, axis=-1)")
orders.add("top_2", "columns(xp, xp.sort(x, axis=-1), 2, 1)", "(3)->(2)", torch="torch.topk(x, 2).values",
           jax="jax.lax.top_k(x, 2)[0]")  # fmt: skip
orders.add("gather", "columns(xp, x, 0, 0, 2)", "(3)->(3)", torch="x[..., torch.tensor([0, 0, 2])]",
           jax="x[..., jnp.array([0, 0, 2])]")  # fmt: skip
orders.add("index_select", "columns(xp, x, 2, 2, 1)", "(3)->(3)",
           torch="torch.index_select(x, -1, torch.tensor([2, 2, 1]))",
           jax="jnp.take(x, jnp.array([2, 2, 1]), axis=-1)")  # fmt: skip
orders.add("segment_sum", "xp.stack([x[0] + x[1], 0.0 * x[0], x[2]])", "(3)->(3)", batch=False,
           torch="torch.zeros(3).index_add(0, torch.tensor([0, 0, 2]), x)",
           jax="jax.ops.segment_sum(x, jnp.array([0, 0, 2]), 3)")  # fmt: skip
orders.add("scatter_add", "xp.stack([x[0] + y[0] + y[1], x[1], x[2] + y[2]])", "(3),(3)->(3)", batch=False,
           torch="x.scatter_add(0, torch.tensor([0, 0, 2]), y)", jax="x.at[jnp.array([0, 0, 2])].add(y)")  # fmt: skip
orders.add("scatter_multiply", "xp.stack([x[0] * y[0] * y[1], x[1], x[2] * y[2]])", "(3),(3)->(3)", batch=False,
           torch='x.scatter_reduce(0, torch.tensor([0, 0, 2]), y, "prod")',
           jax="x.at[jnp.array([0, 0, 2])].multiply(y, mode='drop')")  # fmt: skip
orders.add("scatter_max", "xp.stack([xp.maximum(xp.maximum(x[0], y[0]), y[1]), x[1], xp.maximum(x[2], y[2])])",
           "(3),(3)->(3)", batch=False, torch='x.scatter_reduce(0, torch.tensor([0, 0, 2]), y, "amax")',
           jax="x.at[jnp.array([0, 0, 2])].max(y)")  # fmt: skip
orders.add("segment_prod", "xp.stack([x[0] * x[1], x[2]])", "(3)->(2)", batch=False,
           torch='torch.ones(2).scatter_reduce(0, torch.tensor([0, 0, 1]), x, "prod")',
           jax="jax.ops.segment_prod(x, jnp.array([0, 0, 1]), 2)")  # fmt: skip
orders.add("segment_max", "xp.stack([xp.maximum(x[0], x[1]), x[2]])", "(3)->(2)", batch=False,
           torch='torch.segment_reduce(x, "max", lengths=torch.tensor([2, 1]))',
           jax="jax.ops.segment_max(x, jnp.array([0, 0, 1]), 2)")  # fmt: skip
orders.add("scatter_mean", "xp.stack([0.5 * (x[0] + x[1]), x[2]])", "(3)->(2)", batch=False,
           torch='torch.zeros(2).scatter_reduce(0, torch.tensor([0, 0, 1]), x, "mean", '
           'include_self=False)')  # fmt: skip
orders.add("put_along_axis", "xp.stack([y[0], x[1], y[1]])", "(3),(2)->(3)", batch=False,
           torch="x.scatter(0, torch.tensor([0, 2]), y)", jax="x.at[jnp.array([0, 2])].set(y)")  # fmt: skip
orders.add("roll", "columns(xp, x, 2, 0, 1)", "(3)->(3)", both="torch.roll(x, 1, -1)")
orders.add("flip", "columns(xp, x, 2, 1, 0)", "(3)->(3)", torch="torch.flip(x, (-1,))", jax="jnp.flip(x, -1)")
orders.add("interp", "x[..., 0] + 0.25 * (x[..., 1] - x[..., 0])", "(3)->()", batch=False,
           jax="jnp.interp(0.25, jnp.arange(3.0), x)")  # fmt: skip
orders.add("where", "xp.maximum(x, 0.0 * x) + y", "(n),(n)->(n)", both="torch.where(x > 0, x + y, y)")
orders.add("repeat", "columns(xp, x, 0, 0, 1, 1, 2, 2)", "(3)->(6)", torch="torch.repeat_interleave(x, 2, dim=-1)",
           jax="jnp.repeat(x, 2, axis=-1)")  # fmt: skip
orders.add("pad_reflect", "columns(xp, x, 1, 0, 1, 2, 1)", "(3)->(5)", batch=False,
           torch=F + "pad(x[None], (1, 1), mode='reflect')[0]", jax="jnp.pad(x, 1, mode='reflect')")  # fmt: skip

transforms = Family("transforms")
transforms.add("rfft_real", "xp.real(xp.fft.rfft(x))", "(4)->(3)", both="torch.fft.rfft(x).real")
transforms.add("rfft_imag", "xp.imag(xp.fft.rfft(x))", "(4)->(3)", both="torch.fft.rfft(x).imag")
transforms.add("power_spectrum", "xp.real(xp.fft.fft(x)) ** 2 + xp.imag(xp.fft.fft(x)) ** 2", FOUR,
               torch="torch.fft.fft(x).abs() ** 2", jax="jnp.abs(jnp.fft.fft(x)) ** 2")  # fmt: skip
transforms.add("fft_real", "xp.real(xp.fft.fft(x))", FOUR, both="torch.fft.fft(x).real")
transforms.add("ifft_imag", "xp.imag(xp.fft.ifft(x))", FOUR, both="torch.fft.ifft(x).imag")
transforms.add("convolve", "xp.stack([sum(x[i] * y[k - i] for i in range(3) if 0 <= k - i < 2) for k in range(4)])",
               "(3),(2)->(4)", batch=False, jax="jnp.convolve(x, y)",
               torch=F + "conv1d(x[None, None], y.flip(0)[None, None], padding=1)[0, 0]")  # fmt: skip
transforms.add("dct_weights", "xp.stack([xp.sum(x * xp.asarray(weights), axis=-1) for weights in ((2.0, 2.0, 2.0), "
               f"({math.sqrt(3.0)}, 0.0, -{math.sqrt(3.0)}), (1.0, -2.0, 1.0))], axis=-1)", "(3)->(3)",
               jax="jax.scipy.fft.dct(x)")  # fmt: skip

shapes = Family("shapes and products")
shapes.add("outer", "xp.expand_dims(x, axis=-1) * xp.expand_dims(y, axis=-2)", "(m),(k)->(m,k)",
           both="torch.outer(x, y)", batch=False)  # fmt: skip
shapes.add("cross", "xp.stack([x[..., 1] * y[..., 2] - x[..., 2] * y[..., 1], x[..., 2] * y[..., 0] - x[..., 0] * "
           "y[..., 2], x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]], axis=-1)", "(3),(3)->(3)",
           torch="torch.linalg.cross(x, y)", jax="jnp.cross(x, y)")  # fmt: skip
shapes.add("matmul", "x @ y", "(m,n),(n,k)->(m,k)", both="torch.matmul(x, y)")
shapes.add("kron", "xp.reshape(xp.expand_dims(x, axis=-1) * y, (6,))", "(3),(2)->(6)", both="torch.kron(x, y)",
           batch=False)  # fmt: skip
shapes.add("einsum", "xp.sum(xp.expand_dims(x, axis=-1) * y, axis=-2)", "(m,n),(n,k)->(m,k)",
           both='torch.einsum("ij,jk->ik", x, y)', batch=False)  # fmt: skip
shapes.add("tensordot", "xp.sum(x * y)", "(m,n),(m,n)->()", batch=False, torch="torch.tensordot(x, y, dims=2)",
           jax="jnp.tensordot(x, y, axes=2)")  # fmt: skip
shapes.add("tril", "xp.tril(x)", "(n,n)->(n,n)", both="torch.tril(x)")
shapes.add("diagonal", "xp.stack([x[..., k, k] for k in range(3)], axis=-1)", "(3,3)->(3)",
           torch="torch.diagonal(x, dim1=-2, dim2=-1)", jax="jnp.diagonal(x, axis1=-2, axis2=-1)")  # fmt: skip
shapes.add("trace", "x[0, 0] + x[1, 1] + x[2, 2]", "(3,3)->()", both="torch.trace(x)", batch=False)
shapes.add("vander", "xp.stack([x * x, x, 1.0 + 0.0 * x], axis=-1)", "(3)->(3,3)", both="torch.vander(x)", batch=False)
shapes.add("cov", "(x - kept(xp, xp.mean, x)) @ xp.matrix_transpose(x - kept(xp, xp.mean, x)) / 2.0", "(2,3)->(2,2)",
           both="torch.cov(x)", batch=False)  # fmt: skip
shapes.add("corrcoef", "correlation(xp, x[0] - xp.mean(x[0]), x[1] - xp.mean(x[1]))", "(2,3)->()",
           both="torch.corrcoef(x)[0, 1]", batch=False)  # fmt: skip


FAMILIES = (reductions, pairs, scans, orders, transforms, shapes)
