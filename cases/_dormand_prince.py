"""Adaptive integration by the pair of orders five and four of Dormand and Prince, its steps halved and doubled.

Dormand & Prince (1980), "A family of embedded Runge-Kutta formulae", Journal of Computational and Applied Mathematics
6, 19-26: RK5(4)7M, table 2.
Hairer, Nørsett & Wanner (1993), "Solving ordinary differential equations I", second edition, table 5.2.
"""

STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
"""What the slopes so far count for in each further place; the last place is the result of order five."""

NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
"""How far within the step each of these places is."""

ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
"""The result of order five less that of order four."""

LONGER = 64.0
"""A step whose error is so many times smaller than it may be is followed by one of twice its size: that has 32 times
the error."""

SHORTEST = 2.0**-20
"""A step so short is taken whatever its error: what grows beyond all bounds has an end too."""


def integrated(xp, slope, state, start, end, h, tolerance):
    """The state at `end` of s' = slope(time, s), from `state` at `start`, with steps of h times powers of two.

    `time()` costs only where it is asked.

    A step with Σ error² > tolerance² is tried again with half of its size; the last one is as long as there is time.
    So all other sizes are constants between jumps: the derivative is that of the steps taken, and there is no gradient
    to stop.
    """
    time, first, done = start, slope(lambda: start, state), False
    while not done:
        done = not time + h < end  # NaN ends it too
        size = end - time if done else h
        slopes = [first]
        for row, node in zip(STAGES, NODES, strict=True):
            there = state + size * mixed(row, slopes)
            slopes.append(slope(lambda begun=time, part=node * size: begun + part, there))
        error = size * mixed(ERROR, slopes)
        square = xp.sum(error * error)
        if square > tolerance**2 and h > SHORTEST:
            h, done = h / 2, False
        else:
            time, state, first = time + h, there, slopes[-1]
            if not square >= (tolerance / LONGER) ** 2:  # NaN is soon at the end
                h = h * 2
    return state


def mixed(weights, slopes):
    """Σ w_i k_i."""
    return sum((w * k for w, k in zip(weights[1:], slopes[1:], strict=True) if w), weights[0] * slopes[0])
