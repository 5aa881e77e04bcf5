"""Cross-entropy of a multilayer perceptron on a batch of n samples.

    f(θ) = 1/n Σ_i log Σ_k exp z_ik - z_i,label(i),   z = max(0, max(0, x W₁ + b₁) W₂ + b₂) W₃ + b₃

for samples x of eight numbers in four classes, with two hidden layers of width 16 and θ a list of {weights, offset}.

Goodfellow, Bengio and Courville (2016), "Deep Learning", chapter 6: the gradient is back-propagation, algorithm 6.4.
"""

from itertools import pairwise

import numpy as np

from adbench import Case

from ._networks import cross_entropy, one_hot

WIDTHS = (8, 16, 16, 4)


def f(xp, theta, x, labels):
    *hidden, last = theta
    for layer in hidden:
        x = xp.maximum(x @ layer["weights"] + layer["offset"], xp.asarray(0.0))
    return cross_entropy(xp, x @ last["weights"] + last["offset"], labels)


def gradient(theta, x, labels):
    inputs = [x]
    for layer in theta[:-1]:
        inputs.append(np.maximum(inputs[-1] @ layer["weights"] + layer["offset"], 0.0))
    logits = inputs[-1] @ theta[-1]["weights"] + theta[-1]["offset"]
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    by_z = (shares / shares.sum(axis=1, keepdims=True) - labels) / len(x)
    found = []
    for layer, given in zip(theta[::-1], inputs[::-1], strict=True):
        found.append({"weights": given.T @ by_z, "offset": by_z.sum(axis=0)})
        by_z = by_z @ layer["weights"].T * (given > 0)
    return (found[::-1],)


def inputs(n, rng):
    theta = []
    for m, k in pairwise(WIDTHS):
        scale = (0.5 if k == WIDTHS[-1] else 2) / m  # larger logits leave some samples without a gradient
        theta.append({"weights": rng.normal(0, scale**0.5, (m, k)), "offset": rng.normal(0, 0.5, k)})
    return {"theta": theta, "x": rng.normal(size=(n, WIDTHS[0])), "labels": one_hot(rng, n, WIDTHS[-1])}


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("theta",),
    sizes=(1, 10, 100, 1_000, 10_000, 100_000),
    quick=(1, 10),
    gradient=gradient,
    flops=lambda n: n * sum(2 * m * k + 2 * k for m, k in pairwise(WIDTHS)),
    tags=("machine-learning", "network", "nested"),
    suites=("machine-learning",),
)
