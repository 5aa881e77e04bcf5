"""Cross-entropy of a transformer block that predicts n + 1 tokens.

    y = x + Attention(N₁(x)),   u = y + G(N₂(y) W₁ + b₁) W₂ + b₂,   f(θ) = cross-entropy of N₃(u) W₃ + b₃

for embedded tokens x of eight numbers, six kinds of token, two heads under a causal mask and a hidden layer of width
16. N is the norm of a layer, scale ∘ (x - mean) / √(variance + 10⁻⁵) + offset in each row, and G the linear unit
½ x (1 + tanh(√(2/π) (x + 0.044715 x³))).

Radford et al. (2019), "Language models are unsupervised multitask learners", section 2.3: norms before each part and
after the last; Hendrycks and Gimpel (2016), "Gaussian error linear units", for G.
"""

import numpy as np

from adbench import Case

from ._networks import attention, cross_entropy, gelu, layer_norm, one_hot

WIDTH, HEADS, HIDDEN, KINDS = 8, 2, 16, 6


def f(xp, theta, x, visible, labels):
    def normed(values, name):
        return layer_norm(xp, values, theta[name]["scale"], theta[name]["offset"])

    def dense(values, name):
        return values @ theta[name]["weights"] + theta[name]["offset"]

    q, k, v = theta["query"], theta["key"], theta["value"]
    mixed = attention(xp, normed(x, "norm_1"), q, k, v, visible, HEADS)
    x = x + dense(mixed, "output")
    x = x + dense(gelu(xp, dense(normed(x, "norm_2"), "hidden")), "narrowing")
    return cross_entropy(xp, dense(normed(x, "norm_3"), "logits"), labels)


def inputs(n, rng):
    def weights(m, k):
        return rng.normal(0, m**-0.5, (m, k))

    def dense(m, k):
        return {"weights": weights(m, k), "offset": rng.normal(0, 0.5, k)}

    def norm():
        return {"scale": rng.normal(1, 0.2, WIDTH), "offset": rng.normal(0, 0.5, WIDTH)}

    tokens = n + 1
    return {
        "theta": {
            **{f"norm_{k}": norm() for k in (1, 2, 3)},
            **{name: weights(WIDTH, WIDTH) for name in ("query", "key", "value")},
            "output": dense(WIDTH, WIDTH),
            "hidden": dense(WIDTH, HIDDEN),
            "narrowing": dense(HIDDEN, WIDTH),
            "logits": dense(WIDTH, KINDS),
        },
        "x": rng.normal(size=(tokens, WIDTH)),
        "visible": np.tril(np.ones((tokens, tokens))),
        "labels": one_hot(rng, tokens, KINDS),
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("theta",),
    sizes=(1, 10, 100, 1_000),
    quick=(1, 2),
    flops=lambda n: (n + 1) * (8 * WIDTH**2 + 4 * WIDTH * HIDDEN + 200 + (n + 1) * (4 * WIDTH + 6 * HEADS)),
    tags=("machine-learning", "network", "nested", "masked"),
    suites=("machine-learning",),
)
