"""Layers of neural networks on the array API."""

import math

MASKED = -1e9  # a score whose weight underflows to zero, but that stays finite in differences, unlike -∞


def softmax(xp, x):
    """exp x_j / Σ_k exp x_k along the last axis; the largest is subtracted first, so that nothing overflows."""
    shares = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return shares / xp.sum(shares, axis=-1, keepdims=True)


def cross_entropy(xp, logits, labels):
    """-mean over rows of Σ_k labels_k log softmax(logits)_k; each row of labels sums to one."""
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)
    terms = xp.log(xp.sum(xp.exp(shifted), axis=-1)) - xp.sum(labels * shifted, axis=-1)
    return xp.sum(terms) / logits.shape[0]


def attention(xp, x, query, key, value, visible, heads):
    """Heads side by side: softmax(Q Kᵀ / √(d / heads), masked) V, with Q = x query, K = x key, V = x value.

    x is tokens × d; visible[i, j] > 0 where token i may look at token j.
    """
    tokens, width = x.shape
    inner = width // heads

    def split(weights):
        return xp.permute_dims(xp.reshape(x @ weights, (tokens, heads, inner)), (1, 0, 2))

    scores = split(query) @ xp.permute_dims(split(key), (0, 2, 1)) / math.sqrt(inner)
    weights = softmax(xp, xp.where(visible > 0, scores, MASKED))
    return xp.reshape(xp.permute_dims(weights @ split(value), (1, 0, 2)), (tokens, width))


def layer_norm(xp, x, scale, offset):
    """scale ∘ (x - mean) / √(variance + 10⁻⁵) + offset in each row."""
    centred = x - xp.sum(x, axis=-1, keepdims=True) / x.shape[-1]
    variance = xp.sum(centred * centred, axis=-1, keepdims=True) / x.shape[-1]
    return scale * centred / xp.sqrt(variance + 1e-5) + offset


def gelu(xp, x):
    """½ x (1 + tanh(√(2/π) (x + 0.044715 x³))), which approximates x Φ(x)."""
    return 0.5 * x * (1 + xp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def one_hot(rng, n, classes):
    """n random labels as rows with a single one."""
    labels = rng.integers(classes, size=n)
    return (labels[:, None] == range(classes)).astype("float64")
