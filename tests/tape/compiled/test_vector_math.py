"""Vector kernels compared with fifty digits: at most two units in the last place, with limits at the ends of the
range."""

import mpmath
import numpy as np
import pytest

from adbench import tape

EXACT = {
    "exp": mpmath.exp,
    "expm1": mpmath.expm1,
    "log": mpmath.log,
    "log1p": mpmath.log1p,
    "tanh": mpmath.tanh,
    "expit": lambda x: 1 / (1 + mpmath.exp(-x)),
}
RANGES = {
    "exp": [(-745.0, 709.7), (-1.0, 1.0), (-1e-8, 1e-8)],
    "expm1": [(-40.0, 709.0), (-1.0, 1.0), (-1e-8, 1e-8)],
    "log": [(1e-310, 1e300), (0.5, 2.0), (1 - 1e-7, 1 + 1e-7), (1e-320, 1e-308)],
    "log1p": [(-0.999999, 5.0), (-1e-7, 1e-7), (1.0, 1e18)],
    "tanh": [(-20.0, 20.0), (-1.0, 1.0), (-1e-7, 1e-7)],
    "expit": [(-700.0, 40.0), (-1.0, 1.0)],
}


def errors_in_last_place(name, x):
    """The distance to the truth in units of the truth's last place."""
    ours = tape.compile(getattr(tape, name), x, operator="value")(x)
    with mpmath.workdps(50):
        truth = [EXACT[name](mpmath.mpf(float(v))) for v in x]
        units = [mpmath.mpf(np.spacing(abs(float(t)))) for t in truth]
        return np.array([float(abs(mpmath.mpf(float(o)) - t) / u) for o, t, u in zip(ours, truth, units, strict=True)])


@pytest.mark.parametrize("name", EXACT)
def test_a_kernel_is_right_to_two_units_in_the_last_place(name):
    rng = np.random.default_rng(1)
    for low, high in RANGES[name]:
        wide = low > 0 and high / low > 1e3
        x = np.exp(rng.uniform(np.log(low), np.log(high), 1003)) if wide else rng.uniform(low, high, 1003)
        assert errors_in_last_place(name, x).max() <= 2.0, (name, low, high)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", EXACT)
def test_the_ends_of_the_range_are_numpys(name):
    x = np.resize(
        [np.inf, -np.inf, np.nan, 0.0, -0.0, 710.0, 709.8, -746.0, -1000.0, 1e308, 5e-324, -5e-324, -1.0, 1.0], 40
    )
    ours = tape.compile(getattr(tape, name), x, operator="value")(x)
    theirs = getattr(tape, name)(x)
    np.testing.assert_allclose(ours, theirs, rtol=1e-15, atol=5e-324)
    if name != "expit":
        np.testing.assert_array_equal(
            np.signbit(ours), np.signbit(theirs) & ~np.isnan(theirs) | np.signbit(ours) & np.isnan(ours)
        )
