"""Training step of a convolutional network on a batch of n images: its loss, whose gradient the step follows.

    f(θ) = cross-entropy of z,   z = pool(pool(x ⋆ W₁ + b₁) ⋆ W₂ + b₂) W₃ + b₃
    (x ⋆ W)_ijc = Σ_pqk x_(i+p)(j+q)k W_pqkc,   pool(y)_ijc = max(0, the largest of y_(2i+p)(2j+q)c for p, q = 0, 1)

for images of 10 × 10 pixels in four classes, kernels of 3 × 3, and three and six channels. The convolution gathers
the nine pixels under each position of the kernel in one row, for one matrix product.

LeCun, Bottou, Bengio and Haffner (1998), "Gradient-based learning applied to document recognition"; Chellapilla, Puri
and Simard (2006), "High performance convolutional neural networks for document processing", for the matrix product.
"""

import numpy as np

from adbench import Case

from ._networks import cross_entropy, one_hot

PIXELS, KERNEL, CHANNELS, CLASSES = 10, 3, (1, 3, 6), 4
OFFSETS = [(p, q) for p in range(KERNEL) for q in range(KERNEL)]
CORNERS = [(p, q) for p in range(2) for q in range(2)]


def f(xp, theta, x, labels):
    for layer in theta["convolutions"]:
        n, rows, columns, _ = x.shape
        rows, columns = rows - KERNEL + 1, columns - KERNEL + 1
        patches = xp.concat([x[:, p : p + rows, q : q + columns, :] for p, q in OFFSETS], axis=3)
        flat = xp.reshape(patches, (n * rows * columns, patches.shape[3]))
        x = xp.reshape(flat @ layer["weights"] + layer["offset"], (n, rows, columns, layer["offset"].shape[0]))
        a, b, c, d = (x[:, p::2, q::2, :] for p, q in CORNERS)
        x = xp.maximum(xp.maximum(xp.maximum(a, b), xp.maximum(c, d)), xp.asarray(0.0))
    last = theta["dense"]
    features = xp.reshape(x, (x.shape[0], x.shape[1] * x.shape[2] * x.shape[3]))
    return cross_entropy(xp, features @ last["weights"] + last["offset"], labels)


def gradient(theta, x, labels):
    kept = []
    for layer in theta["convolutions"]:
        n, rows, columns, width = x.shape
        rows, columns = rows - KERNEL + 1, columns - KERNEL + 1
        patches = np.concatenate([x[:, p : p + rows, q : q + columns] for p, q in OFFSETS], axis=3)
        y = patches @ layer["weights"] + layer["offset"]
        pooled = y.reshape(n, rows // 2, 2, columns // 2, 2, -1).max(axis=(2, 4), initial=0.0)
        kept.append((x.shape, patches, y, pooled))
        x = pooled
    features = x.reshape(len(x), -1)
    logits = features @ theta["dense"]["weights"] + theta["dense"]["offset"]
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    by_z = (shares / shares.sum(axis=1, keepdims=True) - labels) / len(x)
    dense = {"weights": features.T @ by_z, "offset": by_z.sum(axis=0)}
    by_x, convolutions = (by_z @ theta["dense"]["weights"].T).reshape(x.shape), []
    for layer, (shape, patches, y, pooled) in zip(theta["convolutions"][::-1], kept[::-1], strict=True):
        largest = pooled.repeat(2, axis=1).repeat(2, axis=2)
        by_y = np.where((y == largest) & (largest > 0), by_x.repeat(2, axis=1).repeat(2, axis=2), 0.0)
        flat = by_y.reshape(-1, by_y.shape[3])
        weights = patches.reshape(len(flat), -1).T @ flat
        convolutions.append({"weights": weights, "offset": flat.sum(axis=0)})
        by_patches, by_x, width = by_y @ layer["weights"].T, np.zeros(shape), shape[3]
        for k, (p, q) in enumerate(OFFSETS):
            by_x[:, p : p + y.shape[1], q : q + y.shape[2]] += by_patches[..., k * width : (k + 1) * width]
    return ({"convolutions": convolutions[::-1], "dense": dense},)


def layer(rng, inputs, outputs, gain=2.0):
    scale = (gain / inputs) ** 0.5
    return {"weights": rng.normal(0, scale, (inputs, outputs)), "offset": rng.normal(0.5, 0.2, outputs)}


def inputs(n, rng):
    a, b, c = CHANNELS
    return {
        "theta": {
            "convolutions": [layer(rng, KERNEL**2 * a, b), layer(rng, KERNEL**2 * b, c)],
            "dense": layer(rng, c, CLASSES, gain=0.1),  # or some images have no loss and no gradient
        },
        "x": rng.normal(size=(n, PIXELS, PIXELS, a)),
        "labels": one_hot(rng, n, CLASSES),
    }


CASE = Case(
    f=f,
    inputs=inputs,
    wrt=("theta",),
    sizes=(1, 10, 100, 1_000, 10_000),
    quick=(1, 2),
    gradient=gradient,
    flops=lambda n: n * (64 * 3 * (2 * 9 + 2) + 4 * 6 * (2 * 27 + 2) + 4 * (2 * 6 + 4)),
    tags=("machine-learning", "network", "nested"),
    suites=("machine-learning",),
)
