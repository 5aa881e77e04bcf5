"""Loss of a long short-term memory (LSTM) network over a sequence of n frames.

    f = σ(x ∘ W_f + B_f),   i = σ(h ∘ W_i + B_i),   o = σ(x ∘ W_o + B_o),   g = tanh(h ∘ W_c + B_c)
    c ← c ∘ f + i ∘ g,      h ← o ∘ tanh c

Two stacked layers with diagonal weights (∘ is elementwise). The first layer's x is frame ∘ in; the second layer's h
gives y = h ∘ out + offset, which predicts the next frame:

    f(main, extra) = -mean over frames and entries of  next ∘ (y - log(2 + Σ exp y))

The "LSTM" of the suites ADBench and gradbench; Hochreiter and Schmidhuber (1997) for the network with full weights.
"""

from adbench import Case

LAYERS, WIDTH = 2, 4


def sigmoid(xp, x):
    return 1 / (1 + xp.exp(-x))


def f(xp, main, extra, hidden, memory, frames):
    steps, width = frames.shape[0] - 1, frames.shape[1]

    def layer(weights, offsets, h, c, x):
        forget = sigmoid(xp, x * weights[0] + offsets[0])
        ingate = sigmoid(xp, h * weights[1] + offsets[1])
        outgate = sigmoid(xp, x * weights[2] + offsets[2])
        change = xp.tanh(h * weights[3] + offsets[3])
        c = c * forget + ingate * change
        return outgate * xp.tanh(c), c

    def step(t, state):
        h, c, total = state
        x, hs, cs = frames[t] * extra[0], [], []
        for k in range(main.shape[0]):
            x, memory = layer(main[k, 0], main[k, 1], h[k], c[k], x)
            hs.append(x)
            cs.append(memory)
        y = x * extra[1] + extra[2]
        total = total + xp.sum(frames[t + 1] * (y - xp.log(2 + xp.sum(xp.exp(y)))))
        return xp.stack(hs), xp.stack(cs), total

    _, _, total = xp.loop(step, (hidden, memory, 0.0), steps)
    return -total / (steps * width)


CASE = Case(
    f=f,
    inputs=lambda n, rng: {
        "main": rng.normal(size=(LAYERS, 2, 4, WIDTH)),
        "extra": rng.normal(size=(3, WIDTH)),
        "hidden": rng.normal(0, 0.5, (LAYERS, WIDTH)),
        "memory": rng.normal(0, 0.5, (LAYERS, WIDTH)),
        "frames": rng.uniform(0.1, 1.0, (n + 1, WIDTH)),
    },
    wrt=("main", "extra"),
    sizes=(1, 10, 100, 1_000),
    quick=(2,),
    flops=lambda n: n * WIDTH * (LAYERS * 22 + 8),
    tags=("loop", "network"),
    suites=("adbench", "gradbench"),
)
