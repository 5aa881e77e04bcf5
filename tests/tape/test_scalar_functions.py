"""Functions of scalars whose partials are written out give what their rules give: values, derivatives and warnings."""

import itertools
import math
import warnings

import numpy as np
import pytest

from adbench import tape
from adbench.tape.fast import scalar_functions, switch
from adbench.tape.fast.scalar_functions import ROWS, row

TINY, HUGE = 5e-324, 1.7976931348623157e308
SPECIAL = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.0, math.inf, -math.inf, math.nan, TINY, -TINY, 2.3e-308, HUGE, -HUGE),
    *(1e-200, 1e200, -1e160, 1e308, 360.0, -360.0, 709.7, 710.0, -745.0, -1100.0, 1100.0, 27.3, 0.9999999999999999),
]
ORDINARY = [0.3, 0.71, 0.95, 1.3, 2.9, 17.2, -0.4, -2.6]
ONE = [rule for rule in ROWS if len(row(rule)) == 2]
INSIDE = {tape.arccosh: 1.3, tape.log1m_exp: -0.3}
"""A point in the domain of functions that 0.3 is outside of."""
TWO = [rule for rule in ROWS if len(row(rule)) == 3]


def observed(f, *args):
    """The result of a call and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = f(*args)
    return result, sorted({str(w.message) for w in caught})


def by_number(f, args):
    return tape.gradient(lambda x: f(*x), args)


def by_array(f, args):
    """The same from arrays of one element, whose functions are numpy's."""
    val, grad = tape.gradient(lambda x: tape.sum(f(*x)), tuple(np.array([a]) for a in args))
    return val, tuple(g[0] for g in grad)


def same(ours, theirs, ulps):
    """Whether two results are equal, up to rounding where both are ordinary numbers; nan equals nan."""
    pairs = np.array([[ours[0], *ours[1]], [theirs[0], *theirs[1]]])
    return np.allclose(*pairs, rtol=ulps * 2.3e-16, atol=TINY, equal_nan=True)


@pytest.mark.parametrize("rule", ONE, ids=lambda rule: rule.name)
def test_a_function_of_one_scalar_equals_the_array_path_at_special_points(rule):
    for x in SPECIAL + ORDINARY:
        (ours, w), (theirs, v) = observed(by_number, rule, (x,)), observed(by_array, rule, (x,))
        assert same(ours, theirs, 8), (x, ours, theirs)
        assert w == v, (x, w, v)


@pytest.mark.parametrize("rule", TWO, ids=lambda rule: rule.name)
def test_a_function_of_two_scalars_equals_the_array_path_at_special_points(rule):
    for x, y in itertools.product(SPECIAL + ORDINARY[:4], repeat=2):
        if rule is tape.power and (x, y) == (-math.inf, 0.5):
            continue  # numpy takes the square root for one exponent, nan, but not for an array of them
        if rule is tape.log_diff_exp and x == y == math.inf:
            continue  # a difference of numbers does not warn
        if rule is tape.power and y == 0.0 and not abs(x) > 1e-308:
            continue  # a number takes 0 from y = 0, an array 0 · (1/x)
        (ours, w), (theirs, v) = observed(by_number, rule, (x, y)), observed(by_array, rule, (x, y))
        assert same(ours, theirs, 64), ((x, y), ours, theirs)  # two ways to a power near 1e308
        assert w == v, ((x, y), w, v)


@pytest.mark.parametrize("rule", TWO, ids=lambda rule: rule.name)
def test_a_constant_argument_is_as_good_as_a_variable(rule):
    for x, y in itertools.product(SPECIAL + ORDINARY[:4], repeat=2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            val, (in_x, in_y) = by_number(rule, (x, y))
            first = tape.gradient(lambda v, y=y: rule(v, y), x)
            second = tape.gradient(lambda v, x=x: rule(x, v), y)
        assert same((first[0], [first[1]]), (val, [in_x]), 8)
        assert same((second[0], [second[1]]), (val, [in_y]), 8)


@pytest.mark.parametrize("rule", ROWS, ids=lambda rule: rule.name)
def test_a_plain_float_gives_the_number_of_a_variable_with_numpys_type_and_warnings(rule):
    points = itertools.product(SPECIAL + ORDINARY, repeat=1) if rule in ONE else itertools.product(SPECIAL, repeat=2)
    for args in points:
        (plain, w) = observed(rule, *args)
        (recorded, _), v = observed(by_number, rule, args)
        assert isinstance(plain, np.float64)
        np.testing.assert_allclose(plain, recorded, rtol=2e-15 if {*args} & {*SPECIAL} else 0.0, err_msg=str(args))
        with switch.switched_off():
            expected, expected_warnings = observed(rule, *args)
        np.testing.assert_allclose(plain, expected, rtol=2e-15, atol=TINY, err_msg=str(args))
        if not math.isinf(args[0] - args[-1]):  # numpy's logaddexp warns of this intermediate overflow
            assert w == v == expected_warnings, args


@pytest.mark.parametrize("rule", ROWS, ids=lambda rule: rule.name)
def test_ordinary_points_leave_a_record_that_holds_its_partials(rule):
    args = (INSIDE.get(rule, 0.3),) if rule in ONE else (0.71, 0.3)
    with tape.nested() as recording:
        rule(*map(tape.Var, args))
        assert type(recording[-1][-2]) is float


def test_integer_constants_are_numbers():
    for f in (lambda x: tape.maximum(x, 2), lambda x: tape.hypot(3, x), lambda x: x**3, lambda x: 2**x, abs):
        val, grad = tape.gradient(f, 1.5)
        assert type(val) is float
        assert type(grad) is float
    assert tape.gradient(lambda x: tape.maximum(x, 2), 1.5) == (2.0, 0.0)
    assert tape.gradient(lambda x: tape.maximum(2, x), 2.5) == (2.5, 1.0)


def test_a_small_partial_is_not_lost_before_a_large_factor():
    """1/x underflows, so its product with 1e200 would be 0."""
    assert tape.gradient(lambda x: 1e150 * (1e150 * tape.log(x)), 1.3e308)[1] == pytest.approx(1e-8 / 1.3, rel=1e-15)
    assert tape.gradient(lambda x: tape.reciprocal(x) * 1e300, 1e160)[1] == pytest.approx(-1e-20, rel=1e-14)


def test_a_scalar_of_another_level_is_a_constant():
    d = lambda f, x: tape.gradient(f, x)[1]  # noqa: E731
    assert d(lambda x: x * d(lambda y: tape.power(x, y), 1.0), 2.0) == pytest.approx(4 * math.log(2.0) + 2, rel=1e-14)
    for rule in ONE:
        x = INSIDE.get(rule, 0.3)
        second = tape.jvp(lambda v, rule=rule: tape.gradient(rule, v)[1], x, 1.0)[1]
        assert d(lambda v, rule=rule: d(rule, v), x) == pytest.approx(second, rel=1e-12)


def test_a_closed_tape_is_an_error_in_every_function():
    with tape.nested():
        x = tape.Var(0.5)
    for rule in (tape.sin, tape.power, tape.log):
        with pytest.raises(tape.ClosedTapeError, match=rule.name):
            rule(*[x] * (len(row(rule)) - 1))


def test_functions_are_written_out_at_their_first_call():
    with switch.switched_off():
        assert tape.gammaln.run == tape.gammaln.evaluate
    assert tape.gammaln.run.__name__ == "run"
    tape.gammaln(0.5)
    assert tape.gammaln.run is scalar_functions.written_out(tape.gammaln)


def test_partials_come_from_the_rule_unless_the_row_has_them():
    assert row(tape.sqrt) == ("sqrt(a)", "0.5 / val")
    assert row(tape.reciprocal) == ("1.0 / a", "-val * val")
    assert row(tape.power) == ("pow(a, b)", "b * (pow((a), (b - 1.0)))", "val * (log((a)))")
    assert row(tape.hypot) == ("hypot(a, b)", "a / val", "b / val")
    assert row(tape.absolute) == ROWS[tape.absolute]
