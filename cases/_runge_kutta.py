"""The classical fourth-order Runge-Kutta method (Kutta 1901) with n equal steps."""


def integrated(xp, slope, state, start, end, steps):
    """The state at `end` of s' = slope(time, s) from `state` at `start`; `time()` computes the time when called."""
    h = (end - start) / steps

    def step(i, s):
        k1 = slope(lambda: start + h * i, s)
        k2 = slope(lambda: start + h * (i + 0.5), s + h / 2 * k1)
        k3 = slope(lambda: start + h * (i + 0.5), s + h / 2 * k2)
        k4 = slope(lambda: start + h * (i + 1), s + h * k3)
        return s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return xp.loop(step, state, steps)
