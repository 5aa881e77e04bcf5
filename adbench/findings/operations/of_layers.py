"""What machine learning calls: normalisation, losses, attention, convolution, pooling."""

from __future__ import annotations

from adbench.findings.operations.operation import POSITIVE, REAL, UNIT, Domain, Family

F = "torch.nn.functional."
SAME = "(n)->(n)"
LOSS = "(n),(n)->()"
SIGN = Domain(-1.0, 1.0, special=(-1.0, 1.0), active=False)
PROBABILITIES = Domain(0.0, 1.0, kind="probabilities")

normal = Family("normalisation")
normal.add("layer_norm", "standardised(xp, x, 1e-5)", SAME, torch=F + "layer_norm(x, x.shape[-1:])",
           jax="jax.nn.standardize(x, epsilon=1e-5)")  # fmt: skip
normal.add("layer_norm_without_epsilon", "standardised(xp, x, 0.0)", "(3)->(3)",
           torch=F + "layer_norm(x, x.shape[-1:], eps=0.0)", jax="jax.nn.standardize(x, epsilon=0.0)")  # fmt: skip
normal.add("layer_norm_affine", "standardised(xp, x, 1e-5) * y + z", "(3),(3),(3)->(3)",
           torch=F + "layer_norm(x, (3,), y, z)", jax="jax.nn.standardize(x, epsilon=1e-5) * y + z",
           batch=False)  # fmt: skip
normal.add("batch_norm", "standardised(xp, x, 1e-5, axis=0)", "(3,2)->(3,2)", batch=False,
           torch=F + "batch_norm(x, None, None, training=True)",
           jax="jax.nn.standardize(x, axis=0, epsilon=1e-5)")  # fmt: skip
normal.add("group_norm", "standardised(xp, x, 1e-5)", "(1,4)->(1,4)", batch=False, torch=F + "group_norm(x, 1)",
           jax="jax.nn.standardize(x, epsilon=1e-5)")  # fmt: skip
normal.add("instance_norm", "standardised(xp, x, 1e-5)", "(2,3)->(2,3)", batch=False,
           torch=F + "instance_norm(x[None])[0]", jax="jax.nn.standardize(x, epsilon=1e-5)")  # fmt: skip
normal.add("rms_norm", "x / xp.sqrt(as_column(xp, xp.mean(x * x, axis=-1)) + 1e-6)", SAME,
           torch=F + "rms_norm(x, x.shape[-1:], eps=1e-6)",
           jax="x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)")  # fmt: skip
normal.add("normalize", "x / as_column(xp, xp.linalg.vector_norm(x, axis=-1))", "(3)->(3)",
           torch=F + "normalize(x, dim=-1)", jax="x / jnp.linalg.norm(x, axis=-1, keepdims=True)")  # fmt: skip
normal.add("local_response_norm", "x / (1.0 + 1e-4 * x * x) ** 0.75", "(3)->(3)", batch=False,
           torch=F + "local_response_norm(x[None, :, None], 1)[0, :, 0]")  # fmt: skip

losses = Family("losses")
losses.add("mse_loss", "xp.mean((x - y) ** 2)", LOSS, torch=F + "mse_loss(x, y)", jax="jnp.mean((x - y) ** 2)",
           batch=False)  # fmt: skip
losses.add("l1_loss", "xp.mean(xp.abs(x - y))", LOSS, torch=F + "l1_loss(x, y)", jax="jnp.mean(jnp.abs(x - y))",
           batch=False)  # fmt: skip
losses.add("huber_loss", "xp.mean(huber(xp, x - y, 1.0))", LOSS, torch=F + "huber_loss(x, y)", batch=False)
losses.add("smooth_l1_loss", "xp.mean(huber(xp, x - y, 0.5) / 0.5)", LOSS, batch=False,
           torch=F + "smooth_l1_loss(x, y, beta=0.5)")  # fmt: skip
losses.add("cross_entropy", "-xp.sum(y * log_softmax(xp, x), axis=-1)", LOSS, REAL, PROBABILITIES,
           torch=F + "cross_entropy(x, y)", jax="-jnp.sum(y * jax.nn.log_softmax(x), axis=-1)",
           batch=False)  # fmt: skip
losses.add("cross_entropy_of_class", "-log_softmax(xp, x)[..., 1]", "(3)->()", batch=False,
           torch=F + "cross_entropy(x, torch.tensor(1))", jax="-jax.nn.log_softmax(x)[1]")  # fmt: skip
losses.add("label_smoothing", "-0.9 * log_softmax(xp, x)[..., 1] - 0.1 * xp.mean(log_softmax(xp, x), axis=-1)",
           "(3)->()", batch=False, torch=F + "cross_entropy(x, torch.tensor(1), label_smoothing=0.1)")  # fmt: skip
losses.add("binary_cross_entropy", "-(xp.xlogy(y, x) + xp.xlog1py(1.0 - y, -x))", "(),()->()", UNIT, UNIT,
           torch=F + "binary_cross_entropy(x, y, reduction='none')",
           jax="-(jax.scipy.special.xlogy(y, x) + jax.scipy.special.xlog1py(1.0 - y, -x))")  # fmt: skip
losses.add("binary_cross_entropy_with_logits", "xp.log1p_exp(x) - x * y", "(),()->()", REAL, UNIT,
           torch=F + "binary_cross_entropy_with_logits(x, y, reduction='none')",
           jax="jax.nn.softplus(x) - x * y")  # fmt: skip
losses.add("kl_div_loss", "xp.sum(xp.xlogy(y, y) - y * x, axis=-1)", LOSS, REAL, PROBABILITIES,
           torch=F + "kl_div(x, y, reduction='sum')", batch=False)  # fmt: skip
losses.add("poisson_nll_loss", "xp.exp(x) - y * x", "(),()->()", REAL, POSITIVE,
           torch=F + "poisson_nll_loss(x, y, reduction='none')", jax="jnp.exp(x) - y * x")  # fmt: skip
losses.add("gaussian_nll_loss", "0.5 * (xp.log(z) + (x - y) ** 2 / z)", "(3),(3),(3)->(3)", REAL, REAL,
           Domain(lower=0.01), torch=F + "gaussian_nll_loss(x, y, z, reduction='none')", batch=False)  # fmt: skip
losses.add("soft_margin_loss", "xp.log1p_exp(-x * y)", "(),()->()", REAL, SIGN,
           torch=F + "soft_margin_loss(x, y, reduction='none')", jax="jax.nn.softplus(-x * y)")  # fmt: skip
losses.add("hinge_embedding_loss", "xp.mean(xp.maximum(1.0 - x, 0.0 * x))", "(3)->()", batch=False,
           torch=F + "hinge_embedding_loss(x, -torch.ones(3))", jax="jnp.mean(jax.nn.relu(1.0 - x))")  # fmt: skip
losses.add("margin_ranking_loss", "xp.maximum(y - x + 0.5, 0.0 * x)", "(3),(3)->(3)", batch=False,
           torch=F + "margin_ranking_loss(x, y, torch.ones(3), margin=0.5, reduction='none')",
           jax="jax.nn.relu(y - x + 0.5)")  # fmt: skip
losses.add("triplet_margin_loss",
           "xp.maximum(xp.linalg.vector_norm(x - y + 1e-6) - xp.linalg.vector_norm(x - z + 1e-6) + 1.0, 0.0 * x[0])",
           "(3),(3),(3)->()", batch=False, torch=F + "triplet_margin_loss(x, y, z)")  # fmt: skip
losses.add("multi_margin_loss",
           "(xp.maximum(1.0 - x[1] + x[0], 0.0 * x[0]) + xp.maximum(1.0 - x[1] + x[2], 0.0 * x[0])) / 3.0", "(3)->()",
           batch=False, torch=F + "multi_margin_loss(x, torch.tensor(1))")  # fmt: skip
losses.add("ctc_of_one_frame", "-log_softmax(xp, x)[1]", "(3)->()", batch=False, torch=F + "ctc_loss("
           "torch.log_softmax(x, -1)[None, None], torch.tensor([[1]]), (1,), (1,), reduction='sum')")  # fmt: skip

layers = Family("layers")
layers.add("attention", "attention(xp, x, y, z)", "(3,2),(3,2),(3,2)->(3,2)", batch=False,
           torch=F + "scaled_dot_product_attention(x, y, z)",
           jax="jax.nn.dot_product_attention(x[:, None], y[:, None], z[:, None])[:, 0]")  # fmt: skip
layers.add("linear", "x @ xp.matrix_transpose(y) + z", "(2,3),(2,3),(2)->(2,2)", batch=False,
           torch=F + "linear(x, y, z)", jax="x @ y.T + z")  # fmt: skip
layers.add("bilinear", "xp.sum(xp.expand_dims(x, axis=-1) * (z * xp.expand_dims(y, axis=-2)))", "(2),(3),(2,3)->()",
           batch=False, torch=F + "bilinear(x, y, z[None])[0]", jax="x @ z @ y")  # fmt: skip
layers.add("conv1d", "xp.stack([x[0] * y[0] + x[1] * y[1], x[1] * y[0] + x[2] * y[1]])", "(3),(2)->(2)", batch=False,
           torch=F + "conv1d(x[None, None], y[None, None])[0, 0]",
           jax='jax.lax.conv(x[None, None], y[None, None], (1,), "VALID")[0, 0]')  # fmt: skip
layers.add("conv2d", "xp.sum(x * y)", "(2,2),(2,2)->()", batch=False,
           torch=F + "conv2d(x[None, None], y[None, None])[0, 0, 0, 0]",
           jax='jax.lax.conv(x[None, None], y[None, None], (1, 1), "VALID")[0, 0, 0, 0]')  # fmt: skip
layers.add("conv_transpose1d",
           "xp.stack([x[0] * y[0], x[0] * y[1] + x[1] * y[0], x[1] * y[1] + x[2] * y[0], x[2] * y[1]])", "(3),(2)->(4)",
           batch=False, torch=F + "conv_transpose1d(x[None, None], y[None, None])[0, 0]",
           jax='jax.lax.conv_transpose(x[None, :, None], y[::-1, None, None], (1,), "VALID")[0, :, 0]')  # fmt: skip
layers.add("avg_pool1d", "xp.stack([x[0] + x[1], x[2] + x[3]]) / 2.0", "(4)->(2)", batch=False,
           torch=F + "avg_pool1d(x[None, None], 2)[0, 0]", jax="jnp.mean(x.reshape(2, 2), axis=-1)")  # fmt: skip
layers.add("max_pool1d", "xp.stack([xp.maximum(x[0], x[1]), xp.maximum(x[2], x[3])])", "(4)->(2)", batch=False,
           torch=F + "max_pool1d(x[None, None], 2)[0, 0]",
           jax="jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2,), (2,), 'VALID')")  # fmt: skip
layers.add("lp_pool1d", "xp.stack([xp.sqrt(x[0] ** 2 + x[1] ** 2), xp.sqrt(x[2] ** 2 + x[3] ** 2)])", "(4)->(2)",
           batch=False, torch=F + "lp_pool1d(x[None, None], 2, 2)[0, 0]")  # fmt: skip
layers.add("glu", "xp.stack([x[0] * xp.expit(x[2]), x[1] * xp.expit(x[3])])", "(4)->(2)", both=F + "glu(x)",
           batch=False)  # fmt: skip
layers.add("interpolate_linear", "xp.stack([x[0], 0.5 * (x[0] + x[1]), x[1]])", "(2)->(3)", batch=False,
           torch=F + "interpolate(x[None, None], size=3, mode='linear', align_corners=True)[0, 0]",
           jax="jnp.interp(jnp.array([0.0, 0.5, 1.0]), jnp.arange(2.0), x)")  # fmt: skip
layers.add("gru_gate", "xp.expit(x) * y + (1.0 - xp.expit(x)) * xp.tanh(z)", "(),(),()->()",
           torch="torch.lerp(torch.tanh(z), y, torch.sigmoid(x))",
           jax="jax.nn.sigmoid(x) * y + (1.0 - jax.nn.sigmoid(x)) * jnp.tanh(z)")  # fmt: skip

FAMILIES = (normal, losses, layers)
