"""Adaptive integration with the Dormand-Prince pair of orders five and four; steps are halved or doubled.

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
"""Weights of the previous slopes at each stage; the last stage is the result of order five."""

NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
"""Time of each stage as a fraction of the step."""

ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
"""Weights of the difference between the results of order five and four."""

LONGER = 64.0
"""Double the next step if the error is this many times below the tolerance; a doubled step has 32 times the error."""

SHORTEST = 2.0**-20
"""Accept steps this short with any error, so that diverging solutions end too."""


def integrated(xp, slope, state, start, end, h, tolerance):
    """The state at `end` of s' = slope(time, s) from `state` at `start`, with steps of h times powers of two.

    `time()` computes the time when called.

    A step with Σ error² > tolerance² is repeated with half the size; the last step ends at `end`. All other sizes are
    piecewise constant, so the derivative is that of the accepted steps, without a stopped gradient.
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
            if not square >= (tolerance / LONGER) ** 2:  # with NaN, steps grow to the end
                h = h * 2
    return state


def mixed(weights, slopes):
    """Σ w_i k_i."""
    return sum((w * k for w, k in zip(weights[1:], slopes[1:], strict=True) if w), weights[0] * slopes[0])
