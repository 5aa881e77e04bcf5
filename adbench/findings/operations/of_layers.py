"""What machine learning calls: normalisation, losses, attention, convolution, pooling."""

from __future__ import annotations

import math
from typing import Any

from adbench.findings.operations.operation import POSITIVE, REAL, UNIT, Domain, Family

F = "torch.nn.functional."
SAME = "(n)->(n)"
LOSS = "(n),(n)->()"
SIGN = Domain(-1.0, 1.0, special=(-1.0, 1.0), active=False)
PROBABILITIES = Domain(0.0, 1.0, kind="probabilities")


def _wide(xp: Any, x: Any) -> Any:
    return xp.expand_dims(x, axis=-1)


def _standardised(xp: Any, x: Any, epsilon: float, axis: int = -1) -> Any:
    centred = x - xp.expand_dims(xp.mean(x, axis=axis), axis=axis)
    return centred / xp.sqrt(xp.expand_dims(xp.mean(centred * centred, axis=axis), axis=axis) + epsilon)


def _log_softmax(xp: Any, x: Any) -> Any:
    shifted = x - _wide(xp, xp.max(x, axis=-1))
    return shifted - _wide(xp, xp.log(xp.sum(xp.exp(shifted), axis=-1)))


def _huber(xp: Any, error: Any, delta: float) -> Any:
    size = xp.abs(error)
    return xp.where(size <= delta, 0.5 * error * error, delta * (size - 0.5 * delta))


normal = Family("normalisation")
normal.add("layer_norm", lambda xp, x: _standardised(xp, x, 1e-5), SAME, torch=F + "layer_norm(x, x.shape[-1:])",
           jax="jax.nn.standardize(x, epsilon=1e-5)")  # fmt: skip
normal.add("layer_norm_without_epsilon", lambda xp, x: _standardised(xp, x, 0.0), "(3)->(3)",
           torch=F + "layer_norm(x, x.shape[-1:], eps=0.0)", jax="jax.nn.standardize(x, epsilon=0.0)")  # fmt: skip
normal.add("layer_norm_affine", lambda xp, x, y, z: _standardised(xp, x, 1e-5) * y + z, "(3),(3),(3)->(3)",
           torch=F + "layer_norm(x, (3,), y, z)", jax="jax.nn.standardize(x, epsilon=1e-5) * y + z",
           batch=False)  # fmt: skip
normal.add("batch_norm", lambda xp, x: _standardised(xp, x, 1e-5, axis=0), "(3,2)->(3,2)", batch=False,
           torch=F + "batch_norm(x, None, None, training=True)",
           jax="jax.nn.standardize(x, axis=0, epsilon=1e-5)")  # fmt: skip
normal.add("group_norm", lambda xp, x: _standardised(xp, x, 1e-5), "(1,4)->(1,4)", batch=False,
           torch=F + "group_norm(x, 1)", jax="jax.nn.standardize(x, epsilon=1e-5)")  # fmt: skip
normal.add("instance_norm", lambda xp, x: _standardised(xp, x, 1e-5), "(2,3)->(2,3)", batch=False,
           torch=F + "instance_norm(x[None])[0]", jax="jax.nn.standardize(x, epsilon=1e-5)")  # fmt: skip
normal.add("rms_norm", lambda xp, x: x / xp.sqrt(_wide(xp, xp.mean(x * x, axis=-1)) + 1e-6), SAME,
           torch=F + "rms_norm(x, x.shape[-1:], eps=1e-6)",
           jax="x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)")  # fmt: skip
normal.add("normalize", lambda xp, x: x / _wide(xp, xp.linalg.vector_norm(x, axis=-1)), "(3)->(3)",
           torch=F + "normalize(x, dim=-1)", jax="x / jnp.linalg.norm(x, axis=-1, keepdims=True)")  # fmt: skip
normal.add("local_response_norm", lambda xp, x: x / (1.0 + 1e-4 * x * x) ** 0.75, "(3)->(3)", batch=False,
           torch=F + "local_response_norm(x[None, :, None], 1)[0, :, 0]")  # fmt: skip

losses = Family("losses")
losses.add("mse_loss", lambda xp, x, y: xp.mean((x - y) ** 2), LOSS, torch=F + "mse_loss(x, y)",
           jax="jnp.mean((x - y) ** 2)", batch=False)  # fmt: skip
losses.add("l1_loss", lambda xp, x, y: xp.mean(xp.abs(x - y)), LOSS, torch=F + "l1_loss(x, y)",
           jax="jnp.mean(jnp.abs(x - y))", batch=False)  # fmt: skip
losses.add("huber_loss", lambda xp, x, y: xp.mean(_huber(xp, x - y, 1.0)), LOSS, torch=F + "huber_loss(x, y)",
           batch=False)  # fmt: skip
losses.add("smooth_l1_loss", lambda xp, x, y: xp.mean(_huber(xp, x - y, 0.5) / 0.5), LOSS, batch=False,
           torch=F + "smooth_l1_loss(x, y, beta=0.5)")  # fmt: skip
losses.add("cross_entropy", lambda xp, x, y: -xp.sum(y * _log_softmax(xp, x), axis=-1), LOSS, REAL, PROBABILITIES,
           torch=F + "cross_entropy(x, y)", jax="-jnp.sum(y * jax.nn.log_softmax(x), axis=-1)",
           batch=False)  # fmt: skip
losses.add("cross_entropy_of_class", lambda xp, x: -_log_softmax(xp, x)[..., 1], "(3)->()", batch=False,
           torch=F + "cross_entropy(x, torch.tensor(1))", jax="-jax.nn.log_softmax(x)[1]")  # fmt: skip
losses.add("label_smoothing", lambda xp, x: -0.9 * _log_softmax(xp, x)[..., 1]
           - 0.1 * xp.mean(_log_softmax(xp, x), axis=-1), "(3)->()", batch=False,
           torch=F + "cross_entropy(x, torch.tensor(1), label_smoothing=0.1)")  # fmt: skip
losses.add("binary_cross_entropy", lambda xp, x, y: -(xp.xlogy(y, x) + xp.xlog1py(1.0 - y, -x)), "(),()->()",
           UNIT, UNIT, torch=F + "binary_cross_entropy(x, y, reduction='none')",
           jax="-(jax.scipy.special.xlogy(y, x) + jax.scipy.special.xlog1py(1.0 - y, -x))")  # fmt: skip
losses.add("binary_cross_entropy_with_logits", lambda xp, x, y: xp.log1p_exp(x) - x * y, "(),()->()", REAL, UNIT,
           torch=F + "binary_cross_entropy_with_logits(x, y, reduction='none')",
           jax="jax.nn.softplus(x) - x * y")  # fmt: skip
losses.add("kl_div_loss", lambda xp, x, y: xp.sum(xp.xlogy(y, y) - y * x, axis=-1), LOSS, REAL, PROBABILITIES,
           torch=F + "kl_div(x, y, reduction='sum')", batch=False)  # fmt: skip
losses.add("poisson_nll_loss", lambda xp, x, y: xp.exp(x) - y * x, "(),()->()", REAL, POSITIVE,
           torch=F + "poisson_nll_loss(x, y, reduction='none')", jax="jnp.exp(x) - y * x")  # fmt: skip
losses.add("gaussian_nll_loss", lambda xp, x, y, z: 0.5 * (xp.log(z) + (x - y) ** 2 / z), "(3),(3),(3)->(3)", REAL,
           REAL, Domain(lower=0.01), torch=F + "gaussian_nll_loss(x, y, z, reduction='none')", batch=False)  # fmt: skip
losses.add("soft_margin_loss", lambda xp, x, y: xp.log1p_exp(-x * y), "(),()->()", REAL, SIGN, torch=F
           + "soft_margin_loss(x, y, reduction='none')", jax="jax.nn.softplus(-x * y)")  # fmt: skip
losses.add("hinge_embedding_loss", lambda xp, x: xp.mean(xp.maximum(1.0 - x, 0.0 * x)), "(3)->()", batch=False,
           torch=F + "hinge_embedding_loss(x, -torch.ones(3))",
           jax="jnp.mean(jax.nn.relu(1.0 - x))")  # fmt: skip
losses.add("margin_ranking_loss", lambda xp, x, y: xp.maximum(y - x + 0.5, 0.0 * x), "(3),(3)->(3)", batch=False,
           torch=F + "margin_ranking_loss(x, y, torch.ones(3), margin=0.5, reduction='none')",
           jax="jax.nn.relu(y - x + 0.5)")  # fmt: skip
losses.add("triplet_margin_loss", lambda xp, x, y, z: xp.maximum(xp.linalg.vector_norm(x - y + 1e-6)
           - xp.linalg.vector_norm(x - z + 1e-6) + 1.0, 0.0 * x[0]), "(3),(3),(3)->()", batch=False,
           torch=F + "triplet_margin_loss(x, y, z)")  # fmt: skip
losses.add("multi_margin_loss", lambda xp, x: (xp.maximum(1.0 - x[1] + x[0], 0.0 * x[0])
           + xp.maximum(1.0 - x[1] + x[2], 0.0 * x[0])) / 3.0, "(3)->()", batch=False,
           torch=F + "multi_margin_loss(x, torch.tensor(1))")  # fmt: skip
losses.add("ctc_of_one_frame", lambda xp, x: -_log_softmax(xp, x)[1], "(3)->()", batch=False, torch=F + "ctc_loss("
           "torch.log_softmax(x, -1)[None, None], torch.tensor([[1]]), (1,), (1,), reduction='sum')")  # fmt: skip

layers = Family("layers")


def _attention(xp: Any, x: Any, y: Any, z: Any) -> Any:
    scores = x @ xp.matrix_transpose(y) / math.sqrt(2.0)
    return xp.exp(_log_softmax(xp, scores)) @ z


layers.add("attention", _attention, "(3,2),(3,2),(3,2)->(3,2)", torch=F + "scaled_dot_product_attention(x, y, z)",
           jax="jax.nn.dot_product_attention(x[:, None], y[:, None], z[:, None])[:, 0]", batch=False)  # fmt: skip
layers.add("linear", lambda xp, x, y, z: x @ xp.matrix_transpose(y) + z, "(2,3),(2,3),(2)->(2,2)", batch=False,
           torch=F + "linear(x, y, z)", jax="x @ y.T + z")  # fmt: skip
layers.add("bilinear", lambda xp, x, y, z: xp.sum(xp.expand_dims(x, axis=-1) * (z * xp.expand_dims(y, axis=-2))),
           "(2),(3),(2,3)->()", batch=False, torch=F + "bilinear(x, y, z[None])[0]", jax="x @ z @ y")  # fmt: skip
layers.add("conv1d", lambda xp, x, y: xp.stack([x[0] * y[0] + x[1] * y[1], x[1] * y[0] + x[2] * y[1]]),
           "(3),(2)->(2)", batch=False, torch=F + "conv1d(x[None, None], y[None, None])[0, 0]",
           jax='jax.lax.conv(x[None, None], y[None, None], (1,), "VALID")[0, 0]')  # fmt: skip
layers.add("conv2d", lambda xp, x, y: xp.sum(x * y), "(2,2),(2,2)->()", batch=False,
           torch=F + "conv2d(x[None, None], y[None, None])[0, 0, 0, 0]",
           jax='jax.lax.conv(x[None, None], y[None, None], (1, 1), "VALID")[0, 0, 0, 0]')  # fmt: skip
layers.add("conv_transpose1d", lambda xp, x, y: xp.stack([x[0] * y[0], x[0] * y[1] + x[1] * y[0], x[1] * y[1]
           + x[2] * y[0], x[2] * y[1]]), "(3),(2)->(4)", batch=False,
           torch=F + "conv_transpose1d(x[None, None], y[None, None])[0, 0]",
           jax='jax.lax.conv_transpose(x[None, :, None], y[::-1, None, None], (1,), "VALID")[0, :, 0]')  # fmt: skip
layers.add("avg_pool1d", lambda xp, x: xp.stack([x[0] + x[1], x[2] + x[3]]) / 2.0, "(4)->(2)", batch=False,
           torch=F + "avg_pool1d(x[None, None], 2)[0, 0]",
           jax="jnp.mean(x.reshape(2, 2), axis=-1)")  # fmt: skip
layers.add("max_pool1d", lambda xp, x: xp.stack([xp.maximum(x[0], x[1]), xp.maximum(x[2], x[3])]), "(4)->(2)",
           batch=False, torch=F + "max_pool1d(x[None, None], 2)[0, 0]",
           jax="jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2,), (2,), 'VALID')")  # fmt: skip
layers.add("lp_pool1d", lambda xp, x: xp.stack([xp.sqrt(x[0] ** 2 + x[1] ** 2), xp.sqrt(x[2] ** 2 + x[3] ** 2)]),
           "(4)->(2)", batch=False, torch=F + "lp_pool1d(x[None, None], 2, 2)[0, 0]")  # fmt: skip
layers.add("glu", lambda xp, x: xp.stack([x[0] * xp.expit(x[2]), x[1] * xp.expit(x[3])]), "(4)->(2)", both=F + "glu(x)",
           batch=False)  # fmt: skip
layers.add("interpolate_linear", lambda xp, x: xp.stack([x[0], 0.5 * (x[0] + x[1]), x[1]]), "(2)->(3)", batch=False,
           torch=F + "interpolate(x[None, None], size=3, mode='linear', align_corners=True)[0, 0]",
           jax="jnp.interp(jnp.array([0.0, 0.5, 1.0]), jnp.arange(2.0), x)")  # fmt: skip
layers.add("gru_gate", lambda xp, x, y, z: xp.expit(x) * y + (1.0 - xp.expit(x)) * xp.tanh(z), "(),(),()->()",
           torch="torch.lerp(torch.tanh(z), y, torch.sigmoid(x))",
           jax="jax.nn.sigmoid(x) * y + (1.0 - jax.nn.sigmoid(x)) * jnp.tanh(z)")  # fmt: skip

FAMILIES = (normal, losses, layers)
