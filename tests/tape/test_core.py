"""The core is short, knows no function, and gives the same results without fast paths."""

import ast
import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import adbench.tape.core
from adbench import tape
from adbench.tape.compiled.kernels.natives import NATIVE
from adbench.tape.core.recording import ASK
from adbench.tape.fast import switch
from adbench.tape.numpy_names import PUBLIC, ROWS, UFUNCS, function

CORE = Path(adbench.tape.core.__file__).parent
NEXT_TO_CORE = {"adbench.tape.values", "adbench.tape.trees", "adbench.tape.levels"}
"""Plain values, nests of values, and open tapes; these modules know no functions either."""


def imports_of(file: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    names = {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)}
    names |= {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    return {name for name in names if name.startswith("adbench")}


def test_the_core_is_short_enough_to_read_in_an_hour():
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in CORE.glob("*.py")) <= 640


def test_the_core_imports_no_family_of_functions():
    files = [*CORE.glob("*.py"), *(CORE.parent / f"{name.rpartition('.')[2]}.py" for name in NEXT_TO_CORE)]
    others = {name for file in files for name in imports_of(file) if not name.startswith("adbench.tape.core.")}
    assert others == NEXT_TO_CORE


def test_importing_the_engine_loads_neither_scipy_nor_llvm():
    program = "import sys, adbench.tape; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {name.partition(".")[0] for name in loaded} & {"scipy", "llvmlite", "mpmath", "jax", "torch"}


# The core alone

X = np.array([0.7, 1.9, 1.3])
B = np.array([[2.0, 0.3, 0.1], [0.2, 1.5, 0.4], [0.5, 0.1, 3.0]])


def recurrence(x):
    s = x[0]
    for _ in range(8):
        s = s + (x[1] * s + 2) / (1.0 + x[2] * s) - (3 - s) * 0.1 + 1 / s - 0.01 * (-s) ** 2
    return s


def assigned(x):
    y = tape.zeros_like(x)
    for i in range(3):
        y[i] = x[2 - i] ** 2.0 * x[i]
    return tape.sum(y * x[1:2])


FUNCTIONS = {
    "scalars": recurrence,
    "array and scalars": lambda x: tape.sum((x - x[0]) / x[1] + x[2] * x - X * x + 2.0 / x - 1.0),
    "broadcasting": lambda x: tape.sum(x[:, None] * B + tape.maximum(x, B) ** x[:, None]),
    "reductions": lambda x: tape.logsumexp(x) + tape.max(x) * tape.std(x) + tape.prod(x) + tape.mean(x**3),
    "special": lambda x: tape.sum(tape.erf(x) * tape.gammaln(x) + tape.expit(x) / tape.arctan2(x, X[::-1])),
    "indexing": lambda x: tape.sum(x[[0, 0, 2]] ** 2) * x[-1] + tape.sort(x)[1] * tape.sum(x[x > 1.0]),
    "assignment": assigned,
    "matrices": lambda x: x @ tape.linalg.solve(B + tape.outer(x, x), x) + tape.linalg.slogdet(B * x)[1],
    "einsum": lambda x: tape.einsum("i,ij,j->", x, B, tape.cumprod(x)),
    "joining": lambda x: tape.sum(tape.stack([x[0], x[1] * x[2], 3.0]) * tape.concatenate([x, x])[2:5]),
    "density": lambda x: tape.normal_lpdf(X, x[0], x[1]) + tape.log_sum_exp(x[0], x[2]),
    "numpy's names": lambda x: np.sum(np.exp(-(x**2)) * np.where(x > 1.0, x, np.sin(x))) + np.linalg.norm(x),
    "nested": lambda x: tape.sum(tape.gradient(lambda y: tape.sum(y**3 * x), x)[1] * x),
    "independent": lambda x: 3.0,
}


def everything(f):
    """The value and all derivatives of a function."""
    v = np.array([0.3, -0.2, 1.0])
    w = np.array([0.4, 1.1, -0.7])
    several = lambda x: x * f(x)  # noqa: E731
    return [
        *tape.gradient(f, X),
        *tape.jvp(f, X, v),
        *tape.vjp(several, X, w),
        *tape.hvp(f, X, v),
        *tape.jacobian(several, X, "reverse"),
        *tape.jacobian(several, X, "forward"),
        tape.hessian(f, X)[2],
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_core_alone_gives_the_same_results(name):
    f = FUNCTIONS[name]
    expected = everything(f)
    with switch.switched_off():
        alone = everything(f)
    for ours, theirs in zip(alone, expected, strict=True):
        assert type(ours) is type(theirs)
        scale = np.max(np.abs(theirs)) + 1.0  # sums may run in another order
        np.testing.assert_allclose(ours, theirs, rtol=4e-15, atol=4e-15 * scale)


def _rational(x, y):
    return (x - 3.0) * y / (2.0 - x * y) + 1.0 / (y - 0.5) - (-x + 2) / tape.sqrt(1.0 + x * x) + 0.5 * (x * x - y)


@pytest.mark.parametrize("inner", ["forward", "reverse"])
@pytest.mark.parametrize("outer", ["forward", "reverse"])
def test_nested_derivatives_of_numbers_equal_those_of_the_core_alone(inner, outer):
    slope = {
        "forward": lambda f, x: tape.jvp(f, x, 1.0)[1],
        "reverse": lambda f, x: tape.gradient(f, x)[1],
    }

    def twice(x, y):
        return slope[outer](lambda a: a * slope[inner](lambda b: _rational(a, b) * a, y + 0.0 * a), x)

    points = [(0.7, 1.3), (-2.0, 0.25), (1e-3, 40.0)]
    fast = [twice(*point) for point in points]
    with switch.switched_off():
        np.testing.assert_allclose(fast, [twice(*point) for point in points], rtol=1e-13)


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (lambda x: x * tape.sqrt(x), 0.0, 0.0),  # 0 · inf
        (lambda x: tape.sqrt(x) * tape.sqrt(x), 0.0, 1.0),  # the square of a root
        (lambda x: x / x, 0.0, 0.0),
        (lambda x: 1.0 / (1.0 + tape.exp(x)), 400.0, -np.exp(-400.0)),  # its divisor's square overflows
        (lambda x: 2 - x, 1, -1.0),
        (lambda x: (x - 1.0) / 0.0, 2.0, np.inf),
    ],
)
def test_forward_mode_of_numbers_leaves_singular_points_to_the_rules(f, x, slope):
    with np.errstate(all="ignore"):
        assert tape.jvp(f, float(x), 1.0)[1] == pytest.approx(slope, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("fast", [True, False])
def test_a_root_in_forward_mode_sees_the_product_that_an_outer_level_records(fast):
    """cosh √x² has the second derivative 1 at 0, where the chain rule alone gives 0 · ∞."""
    with contextlib.nullcontext() if fast else switch.switched_off():
        second = tape.gradient(lambda x: tape.jvp(lambda y: tape.cosh(tape.sqrt(y * y)), x, 1.0)[1], 0.0)[1]
    assert np.isnan(second) or second == pytest.approx(1.0)


def test_switching_fast_paths_off_leaves_only_the_core():
    """Records have one form without partials, the sweep is the plain one, and everything is restored afterwards."""

    def record():
        with tape.nested() as recording:
            x, y = tape.Var(2.0), tape.Var(np.ones(3))
            tape.sum(x * x + 2.0 * (y - x) + y[0]).grad()
            return [r[5] is ASK and r[4] is not None for r in recording], recording.edges()

    with_fast_paths = record()
    assert not all(with_fast_paths[0])
    with switch.switched_off():
        alone = record()
    assert all(alone[0])
    assert alone[1] == with_fast_paths[1] == 11
    assert record() == with_fast_paths


def test_the_core_alone_reports_errors():
    one_way = tape.function_gradients(np.sin, forward=(lambda v, t, x: t,), name="one_way")
    short = tape.function_gradients(lambda a: a * 1.0, reverse=(lambda v, adj, a: adj[:1],), name="short")
    with switch.switched_off():
        with pytest.raises(tape.RuleError, match="one_way has no reverse mode"):
            tape.gradient(one_way, 1.0)
        with pytest.raises(tape.RuleError, match=r"short.*argument 0.*expected \(3,\), got \(1,\)"):
            tape.gradient(lambda x: tape.sum(short(x)), X)
        kept = []
        tape.gradient(lambda x: kept.append(x) or x, 1.0)
        with pytest.raises(tape.ClosedTapeError, match="multiply"):
            kept[0] * 2.0


def test_zero_times_infinity_is_handled_by_a_plug_in():
    f, x = lambda x: tape.sum(x * tape.sqrt(x)), np.array([0.0, 1.0])
    assert tape.gradient(f, x)[1].tolist() == [0.0, 1.5]
    assert tape.jvp(f, x, np.ones(2))[1] == 1.5
    with switch.switched_off():
        np.testing.assert_array_equal(tape.gradient(f, x)[1], [np.nan, 1.5])
        assert np.isnan(tape.jvp(f, x, np.ones(2))[1])


# One row for a function


@pytest.fixture
def exp10():
    """A new function, defined by one row and removed afterwards."""
    row = function(
        scipy.special.exp10, lambda val, adj, _x: adj * (val * np.log(10.0)), aliases="ten_to_the", native="exp10"
    )
    yield row
    ROWS.remove(row)
    NATIVE.pop(row, None)
    UFUNCS.pop(scipy.special.exp10)
    for name in ("exp10", "ten_to_the"):
        PUBLIC.pop(name)


def test_one_row_registers_a_function_everywhere(exp10):
    x, slope = np.array([0.3, -1.2]), 10.0 ** np.array([0.3, -1.2]) * np.log(10.0)
    assert tape.exp10 is tape.ten_to_the is exp10
    assert {"exp10", "ten_to_the"} <= set(dir(tape))
    for f in (tape.exp10, scipy.special.exp10):
        np.testing.assert_allclose(tape.gradient(lambda v, f=f: tape.sum(f(v)), x)[1], slope, rtol=1e-15)
        np.testing.assert_allclose(tape.jvp(f, x, np.ones(2))[1], slope, rtol=1e-15)
    call = tape.compile(lambda v: tape.sum(tape.exp10(v)), x)
    np.testing.assert_allclose(call(x)[1], slope, rtol=1e-14)
    assert "Python" not in call.explain()
    assert "exp10" in str(tape.explain(tape.exp10, 0.5).forward())


def test_names_come_from_rows():
    for row in ROWS:
        assert row.name in tape.__all__
    assert {"acos", "atan2", "abs", "fabs", "pow", "mod", "round", "multiply_log", "lgamma"} <= set(tape.__all__)
    assert tape.acos is tape.arccos
    assert set(tape.__all__) <= set(dir(tape))
    with pytest.raises(AttributeError, match="no attribute 'cosine'"):
        tape.cosine  # noqa: B018
