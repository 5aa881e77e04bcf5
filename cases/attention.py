"""Squared error of multi-head self-attention with a causal mask on documents packed into n tokens.

    f(W_Q, W_K, W_V, W_O) = ½ mean over entries of (A W_O - target)²
    A = the heads' softmax(Q Kᵀ / √d, masked) V side by side,   Q = x W_Q,   K = x W_K,   V = x W_V

for tokens of eight numbers and two heads of width d = 4. Token i looks at token j if j comes no later and belongs to
the same document; -10⁹ hides other scores. A token always sees itself, so no row of the mask is empty.

Vaswani et al. (2017), "Attention is all you need", equation 1 and section 3.2.3.
"""

import math

import numpy as np

from adbench import Case

from ._networks import MASKED, attention

WIDTH, HEADS = 8, 2
DOCUMENT = 0.1  # the share of tokens that begin a document


def f(xp, query, key, value, output, x, visible, target):
    error = attention(xp, x, query, key, value, visible, HEADS) @ output - target
    return 0.5 * xp.sum(error * error) / (x.shape[0] * WIDTH)


def gradient(query, key, value, output, x, visible, target):
    n, inner = x.shape[0], WIDTH // HEADS
    together = np.zeros((n, WIDTH))
    shares = np.zeros((HEADS, n, n))
    for h in range(HEADS):
        head = slice(h * inner, (h + 1) * inner)
        scores = (x @ query)[:, head] @ (x @ key)[:, head].T / math.sqrt(inner)
        scores = np.where(visible > 0, scores, MASKED)
        for i in range(n):
            row = np.exp(scores[i] - scores[i].max())
            shares[h, i] = row / row.sum()
        together[:, head] = shares[h] @ (x @ value)[:, head]
    by_out = (together @ output - target) / (n * WIDTH)
    by_together = by_out @ output.T
    by_q, by_k, by_v = np.zeros((n, WIDTH)), np.zeros((n, WIDTH)), np.zeros((n, WIDTH))
    for h in range(HEADS):
        head = slice(h * inner, (h + 1) * inner)
        by_shares = by_together[:, head] @ (x @ value)[:, head].T
        along = (by_shares * shares[h]).sum(axis=1).reshape((n, 1))
        by_scores = shares[h] * (by_shares - along) / math.sqrt(inner)
        by_q[:, head] = by_scores @ (x @ key)[:, head]
        by_k[:, head] = by_scores.T @ (x @ query)[:, head]
        by_v[:, head] = shares[h].T @ by_together[:, head]
    return x.T @ by_q, x.T @ by_k, x.T @ by_v, together.T @ by_out


def visible(rng, n):
    """1 where a token may look: not later, and in the same of several documents of random lengths."""
    begins = rng.uniform(size=n) < DOCUMENT
    begins[:2] = False  # the first document has two tokens at least: with one, queries and keys do nothing
    document = np.cumsum(begins)
    return np.tril(document[:, None] == document).astype(np.float64)


def inputs(n, rng):
    tokens = n + 1
    weights = {name: rng.normal(0, WIDTH**-0.5, (WIDTH, WIDTH)) for name in ("query", "key", "value", "output")}
    x, target = rng.normal(size=(2, tokens, WIDTH))
    return {**weights, "x": x, "visible": visible(rng, tokens), "target": target}


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("query", "key", "value", "output"),
    sizes=(1, 10, 100, 1_000),
    quick=(1, 8),
    gradient=gradient,
    flops=lambda n: (n + 1) * (8 * WIDTH**2 + (n + 1) * (4 * WIDTH + 6 * HEADS)),
    tags=("machine-learning", "network", "masked"),
    suites=("machine-learning",),
)
