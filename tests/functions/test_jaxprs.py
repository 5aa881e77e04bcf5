"""References of jax functions: the same values and derivatives, and control flow that follows the numbers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import adbench
from adbench.functions.from_jax.jax_primitives import words
from adbench.functions.from_jax.jaxprs import jax_text
from adbench.model.errors import Unsupported
from adbench.oracle.compute import reference
from adbench.oracle.reference import Reference
from adbench.oracle.subject import Effort
from tests.oracle.scalars import subject_of

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

X = np.array([0.3, 1.2, 0.7])
A = np.array([[2.0, 0.3, 0.1], [0.4, 1.5, 0.2], [0.1, 0.25, 3.0]])
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
IDS = np.array([0, 1, 0])


@pytest.fixture(autouse=True)
def _double_precision() -> Any:
    with jax.enable_x64(True):
        yield


def truth(f: Callable[..., Any], *args: Any, values: Callable[..., Any] | None = None) -> Reference:
    """The reference of f in all its arguments; ``values``: f in numpy."""
    plain = values or (lambda *leaves: np.asarray(jax.jit(f)(*leaves)))
    shape = jax.eval_shape(f, *args).shape
    subject = subject_of(plain, args, range(len(args)), text=jax_text(f, args), shape=shape)
    return reference(subject, Effort(max_outputs=400, max_directions=0, max_seconds=60))


def differing(f: Callable[..., Any], args: Sequence[Any], names: Sequence[str]) -> dict[str, str]:
    """The numbers of f where the reference differs from jax, or is not proved."""
    traced = jax.jit(f)  # once
    twice = jax.jacfwd(lambda *a: (traced(*a),) * 2, tuple(range(len(args))), has_aux=True)
    both = jax.jit(twice, compiler_options=QUICKLY)
    jacobians, values = both(*args)
    found = truth(traced, *args, values=lambda *a: np.asarray(both(*a)[1]))
    wrong = {}
    for (output, row), name in zip(found.outputs, names, strict=True):
        ours = [entry.derivative.lower for leaf in row.leaves for entry in leaf.entries]
        theirs = np.concatenate([np.asarray(part)[output].ravel() for part in jacobians])
        if not row.proved or any(entry.derivative.kind != "smooth" for leaf in row.leaves for entry in leaf.entries):
            wrong[name] = f"not proved: {row.reason}"
        elif not np.allclose(row.value.lower, values[output], rtol=1e-12, atol=1e-14):
            wrong[name] = f"value {row.value.lower}, jax has {values[output]}"
        elif not np.allclose(ours, theirs, rtol=1e-9, atol=1e-12):
            wrong[name] = f"gradient {ours}, jax has {theirs}"
    return wrong


def agree(functions: Mapping[str, Callable[..., Any]], *args: Any) -> None:
    """All of these functions, as one, so that jax compiles once."""
    assert not differing(lambda *a: jnp.stack([f(*a) for f in functions.values()]), args, list(functions))


def entries(f: Callable[..., Any], *args: Any) -> list[tuple[float, float]]:
    """Both ends of each derivative of a scalar function, all of them proved."""
    ((_, row),) = truth(f, *args).outputs
    assert row.proved, row.reason
    return [(e.derivative.lower, e.derivative.upper) for leaf in row.leaves for e in leaf.entries]


def derivative(f: Callable[..., Any], x: float) -> float:
    ((lower, upper),) = entries(f, x)
    assert lower == upper
    return lower


# The sweep -------------------------------------------------------------------------------------------------------


UNARY = words(
    "abs arccos arcsin arcsinh arctan arctanh cbrt ceil cos cosh deg2rad exp exp2 expm1 floor i0 log "
    "log10 log1p log2 nan_to_num negative reciprocal rint round sign sin sinc sinh sqrt square tan tanh "
    "trunc"
)
BINARY = words(
    "add arctan2 copysign divide floor_divide fmax fmin fmod hypot logaddexp maximum minimum mod "
    "multiply power remainder subtract"
)
NEURAL = words(
    "celu elu gelu hard_sigmoid hard_silu hard_tanh leaky_relu log_sigmoid mish relu relu6 selu sigmoid "
    "silu soft_sign softplus squareplus"
)
SPECIAL = words(
    "digamma entr erf erfc erfinv exp1 expi expit gamma gammaln i0e i1 i1e log_ndtr logit ndtr ndtri spence"
)


def test_the_elementwise_functions_of_jax_numpy() -> None:
    functions = {name: getattr(jnp, name) for name in UNARY}
    functions |= {
        "negative remainder": lambda x: jnp.fmod(x - 2.5, x),
        "negative modulo": lambda x: jnp.mod(x - 2.5, x),
    }
    functions |= {"arccosh": lambda x: jnp.arccosh(x + 1), "float_power": lambda x: jnp.float_power(x, 2.3)}
    functions |= {name: partial(lambda f, x: f(2.5 - x, x), getattr(jnp, name)) for name in BINARY}
    agree(functions, 0.37)


def test_some_special_functions() -> None:
    agree({name: getattr(jax.scipy.special, name) for name in ("erfinv", "gammaln", "log_ndtr", "digamma")}, 0.37)


@pytest.mark.slow
def test_special_functions_and_those_of_neural_networks() -> None:
    special = jax.scipy.special
    functions = {name: getattr(special, name) for name in SPECIAL}
    functions |= {f"nn.{name}": getattr(jax.nn, name) for name in NEURAL}
    functions |= {
        "betainc": lambda x: special.betainc(1.5, 2.5, x),
        "betaln": lambda x: special.betaln(x, 2.5),
        "gammainc": lambda x: special.gammainc(1.5, x),
        "gammaincc": lambda x: special.gammaincc(1.5, x),
        "multigammaln": lambda x: special.multigammaln(x + 2, 3),
        "polygamma": lambda x: special.polygamma(2, x),
        "xlogy": lambda x: special.xlogy(x, 1 + x),
        "zeta": lambda x: special.zeta(2.5, x),
    }
    agree(functions, 0.37)


def test_arrays() -> None:
    rows = {
        "at add": lambda x, a: jnp.prod(jnp.ones(4).at[jnp.array([1, 2, 1])].add(x)),
        "at multiply": lambda x, a: jnp.sum(a.at[1].multiply(3.0) ** 2),
        "at set": lambda x, a: jnp.prod(jnp.ones(4).at[jnp.array([1, 2, 9])].set(x)),
        "concatenate": lambda x, a: jnp.prod(jnp.concatenate([x, x[1:], a[0]])),
        "cumsum": lambda x, a: jnp.sum(lax.cumsum(x, reverse=True) ** 2),
        "dynamic_slice": lambda x, a: jnp.prod(lax.dynamic_slice(a, (jnp.argmax(x), 7), (2, 2))),
        "dynamic_update_slice": lambda x, a: jnp.sum(lax.dynamic_update_slice(a, x[None] ** 2, (1, 0)) ** 2),
        "gather": lambda x, a: jnp.prod(a[jnp.array([0, 2, -1]), IDS]),
        "random": lambda x, a: jnp.sum(jax.random.normal(jax.random.key(1), (3,)) * x),
        "segment_sum": lambda x, a: jnp.sum(jax.ops.segment_sum(a, IDS, 2) ** 2),
        "softmax": lambda x, a: jnp.sum(jax.nn.softmax(x) ** 2),
        "sort": lambda x, a: jnp.sum(jnp.sort(a, axis=0) * x),
        "top_k": lambda x, a: jnp.sum(lax.top_k(a, 2)[0] * jnp.arange(2)),
        "vmap": lambda x, a: jnp.sum(jax.vmap(jnp.dot)(a, a * x)),
        "where": lambda x, a: jnp.sum(jnp.where(a > 0.35, jnp.sqrt(a), 0.0)),
    }
    agree(rows, X, A)


@pytest.mark.slow
def test_further_array_functions() -> None:
    rows = {
        "convolve": lambda x, a: jnp.sum(jnp.convolve(x, a[0]) ** 2),
        "cummax": lambda x, a: lax.cummax(x)[2] * x[0],
        "cumprod": lambda x, a: jnp.sum(jnp.cumprod(x)),
        "einsum": lambda x, a: jnp.einsum("ij,j,i->", a, x, x),
        "fft": lambda x, a: jnp.sum(jnp.abs(jnp.fft.fft(x)) ** 3),
        "interp": lambda x, a: jnp.interp(x[2], jnp.arange(3.0), a[0]),
        "irfft": lambda x, a: jnp.sum(jnp.fft.irfft(jnp.fft.rfft(x)[:2] * 2) ** 3),
        "logsumexp": lambda x, a: jax.nn.logsumexp(x),
        "max pool": lambda x, a: jnp.sum(lax.reduce_window(a, -jnp.inf, lax.max, (2, 2), (1, 1), "SAME") ** 2),
        "median": lambda x, a: jnp.median(a) + jnp.quantile(x, 0.3),
        "norm": lambda x, a: jnp.linalg.norm(a) + jnp.std(x),
        "pad": lambda x, a: jnp.sum(jnp.pad(x, 2, "reflect") * jnp.arange(7)),
        "segment_max": lambda x, a: jnp.sum(jax.ops.segment_max(x, IDS, 2) ** 2),
        "argsort": lambda x, a: jnp.sum(x[jnp.argsort(-x)] * jnp.arange(3)),
        "take": lambda x, a: jnp.take(x, jnp.searchsorted(jnp.sort(x), 0.5)),
        "tile, roll": lambda x, a: jnp.sum(jnp.tile(x, 2).reshape(3, 2).T * jnp.roll(a, 1)[:2]),
    }
    agree(rows, X, A)


def test_linear_algebra() -> None:
    linalg = jnp.linalg
    spd = lambda a: a @ a.T + jnp.eye(3)  # noqa: E731
    agree(
        {
            "cholesky": lambda x, a: jnp.sum(linalg.cholesky(spd(a)) * a),
            "solve": lambda x, a: jnp.sum(linalg.solve(a, x) ** 2),
            "multivariate normal": lambda x, a: jax.scipy.stats.multivariate_normal.logpdf(x, a[0], spd(a)),
        },
        X,
        A,
    )


@pytest.mark.slow
def test_further_linear_algebra_and_convolutions() -> None:
    a3 = jnp.eye(3)
    agree(
        {
            "eigh": lambda x, a: jnp.sum(jnp.linalg.eigh(a @ a.T + jnp.eye(3))[0] * x),
            "inv": lambda x, a: jnp.sum(jnp.linalg.inv(a) * a.T),
            "qr": lambda x, a: jnp.sum(jnp.linalg.qr(a)[1] * a),
            "slogdet": lambda x, a: jnp.linalg.slogdet(jnp.kron(a, jnp.eye(2)))[1],
            "svd": lambda x, a: jnp.sum(jnp.linalg.svd(a, compute_uv=False) * x),
            "det": lambda x, a: jnp.linalg.det(jnp.kron(a, a3[:2, :2]) + 0.1),
            "eigenvectors": lambda x, a: jnp.sum(jnp.linalg.eigh(a + a.T)[1][:, 0] ** 2 * x),
            "expm": lambda x, a: jnp.sum(jax.scipy.linalg.expm(a)),
            "lstsq": lambda x, a: jnp.sum(jnp.linalg.lstsq(a, x)[0]),
            "matrix_power": lambda x, a: jnp.sum(jnp.linalg.matrix_power(a, 3)),
            "pinv": lambda x, a: jnp.sum(jnp.linalg.pinv(a)),
            "triangular": lambda x, a: jnp.sum(jax.scipy.linalg.solve_triangular(a, x, lower=True, trans=1)),
            "tridiagonal": lambda x, a: jnp.sum(lax.linalg.tridiagonal_solve(x * 0.1, x + 2, x * 0.2, a)),
            "convolution": lambda x, a: jnp.sum(
                lax.conv_general_dilated(
                    jnp.tile(a, (1, 4, 2, 2)), jnp.tile(x, (4, 2, 2, 1)), (1, 2), ((1, 0), (-1, 2)), (2, 1), (1, 2),
                    feature_group_count=2,
                ) ** 2
            ),
            "average pool": lambda x, a: jnp.sum(lax.reduce_window(a, 0.0, lax.add, (2, 2), (1, 1), "VALID") ** 3),
            "fft2": lambda x, a: jnp.sum(jnp.abs(jnp.fft.ifft2(jnp.fft.fft2(a) ** 2)) ** 2),
            "map_coordinates": lambda x, a: jax.scipy.ndimage.map_coordinates(x, [jnp.array([0.7])], 1)[0],
            "associative_scan": lambda x, a: lax.associative_scan(jnp.matmul, jnp.stack([a, a, a]))[2].sum(),
        },
        X,
        A,
    )  # fmt: skip


DENSITIES: Mapping[str, tuple[float, ...]] = {
    "beta": (1.5, 2.5), "cauchy": (), "chi2": (2.5,), "expon": (), "gamma": (1.5,), "gennorm": (1.5,), "laplace": (),
    "logistic": (), "norm": (), "t": (3.5,), "truncnorm": (-1.0, 2.0), "vonmises": (1.5,), "wrapcauchy": (0.5,),
}  # fmt: skip


@pytest.mark.slow
def test_densities_and_distribution_functions() -> None:
    functions = {}
    for name, parameters in DENSITIES.items():
        for kind in ("logpdf", "cdf", "logsf"):
            function = getattr(getattr(jax.scipy.stats, name), kind, None)
            if function is not None:
                functions[f"{name}.{kind}"] = lambda x, f=function, p=parameters: f(x, *p)
    functions["gamma in its shape"] = lambda x: jax.scipy.stats.gamma.logpdf(0.7, x)
    functions["poisson"] = lambda x: jax.scipy.stats.poisson.logpmf(3, x)
    functions["dirichlet"] = lambda x: jax.scipy.stats.dirichlet.logpdf(jnp.array([0.2, 0.3, 0.5]), x * jnp.array(X))
    agree(functions, 0.37)


# Control flow ----------------------------------------------------------------------------------------------------


def newton(x: Any) -> Any:
    """√x by Newton's method, until convergence."""
    return lax.while_loop(lambda s: jnp.abs(s * s - x) > 1e-9, lambda s: (s + x / s) / 2, x + 1.0)


def oscillator(x: Any) -> Any:
    """The end of a pendulum's path, by Runge-Kutta steps."""

    def step(state: Any, h: Any) -> Any:
        slope = lambda s: jnp.stack([s[1], -jnp.sin(s[0])])  # noqa: E731
        middle = state + h / 2 * slope(state)
        new = state + h * slope(middle)
        return new, new[0]

    end, path = lax.scan(step, jnp.stack([x[0], x[1]]), jnp.linspace(0.05, 0.2, 8), reverse=True)
    return end[0] * x[2] + jnp.sum(path * jnp.arange(8))


def test_loops_and_branches() -> None:
    agree(
        {
            "cond": lambda x: lax.cond(x[0] > 1, jnp.sin, jnp.cos, x[0] * x[1]),
            "fori_loop": lambda x: lax.fori_loop(0, 5, lambda i, c: c * x[0] + i, x[1]),
            "map": lambda x: jnp.prod(lax.map(lambda t: lax.cond(t > 0.5, jnp.sin, jnp.exp, t), x)),
            "nested jit, checkpoint": lambda x: jax.jit(jax.checkpoint(jax.jit(lambda y: jnp.sum(y**3))))(x),
            "oscillator": oscillator,
            "random in a loop": lambda x: lax.scan(
                lambda c, key: (c + x[0] * jax.random.uniform(key), None), x[1], jax.random.split(jax.random.key(0), 4)
            )[0],
            "switch": lambda x: lax.switch(jnp.int32(x[1]), [jnp.sin, jnp.cos, jnp.tan], x[2]),
            "gradient inside": lambda x: jnp.sum(jax.grad(lambda y: jnp.sum(jnp.sin(y) ** 3))(x)),
        },
        X,
    )


def test_a_while_loop_depends_on_the_numbers() -> None:
    assert math.isclose(derivative(newton, 2.0), 0.5 / math.sqrt(2.0), rel_tol=1e-9)
    assert derivative(lambda x: lax.while_loop(lambda c: c < 9, lambda c: c * x, x), 2.0) == 4 * 2.0**3


def test_both_sides_of_a_branch_appear_at_its_edge() -> None:
    assert entries(lambda x: lax.cond(x > 1, lambda y: 3 * y, lambda y: y + 2, x), 1.0) == [(1.0, 3.0)]
    assert entries(lambda x: jnp.sort(x)[0], np.array([2.0, 2.0])) == [(0.0, 1.0)] * 2
    assert entries(lambda x: jnp.copysign(2.0, x) * x, 0.0) == [(-2.0, 2.0)]
    assert entries(lambda x: x[jnp.argmax(x)], np.array([2.0, 2.0])) == [(0.0, 1.0)] * 2


def test_an_edge_inside_a_loop_is_found() -> None:
    """At 3 the loop ends after one or two steps, with equal results."""

    def loop(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + x, c[1] + (c[0] - 3) ** 2 + x), (x, 0.0))[1]

    ((_, row),) = truth(loop, 3.0).outputs
    found = row.leaves[0].entries[0].derivative
    assert (found.kind, found.lower, found.upper) == ("kink", 0.0, 1.0)


# Derivatives of the user ------------------------------------------------------------------------------------------


def wrong_sine() -> Callable[..., Any]:
    @jax.custom_vjp
    def sine(x: Any) -> Any:
        return lax.stop_gradient(jnp.sin(x)) * x

    sine.defvjp(lambda x: (sine(x), x), lambda x, g: (7.0 * g,))
    return sine


def test_custom_rules_are_not_used() -> None:
    sine = wrong_sine()

    @jax.custom_jvp
    def cube(x: Any) -> Any:
        return x**3

    cube.defjvp(lambda x, v: (cube(x[0]), 7.0 * v[0]))
    expected = math.cos(0.5) * 0.5 + math.sin(0.5) + 0.75
    assert math.isclose(derivative(lambda x: sine(x) + jax.jit(cube)(x), 0.5), expected, rel_tol=1e-15)


def test_stop_gradient_makes_a_constant() -> None:
    assert derivative(lambda x: lax.stop_gradient(x) * x, 0.5) == 0.5
    assert derivative(lambda x: x + lax.stop_gradient(jnp.round(x) - x), 0.3) == 1.0


def test_numbers_without_leaves_are_computed_exactly() -> None:
    """√2 is not rounded: the bar of f' = 3 at 50 digits needs the exact number."""
    ((_, row),) = truth(lambda x: (jnp.sqrt(2.0) ** 2 + 1) * x - 3 * x, 5.0).outputs
    assert abs(row.value.lower) < 1e-40
    assert row.value.bar < 1e-40


# Refusals --------------------------------------------------------------------------------------------------------


def printed(x: Any) -> Any:
    jax.debug.print("{}", x)
    return x


def without_sign(x: Any) -> Any:
    return lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.uint64) & (2**63 - 1), jnp.float64)


REFUSED: Mapping[str, tuple[Callable[..., Any], str]] = {
    "single precision": (lambda x: jnp.sin(x.astype(jnp.float32)), "float32 inside: jax's primitive `convert_element"),
    "half": (lambda x: jnp.sum(jnp.ones(3, jnp.bfloat16) * x.astype(jnp.bfloat16)), "bfloat16 inside"),
    "loop of floats": (
        lambda x: lax.fori_loop(0, 3, lambda i, c: c * x.astype(jnp.float32), jnp.float32(1)), "float32 inside"
    ),
    "fewer bits": (lambda x: lax.reduce_precision(x, 5, 10), "`reduce_precision`"),
    "unknown": (lambda x: lax.nextafter(x, 1.0), "jax's primitive `nextafter`"),
    "complex": (lambda x: jnp.real(jnp.arcsin(x + 1j)), "`asin` of complex numbers"),
    "callback": (lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), "float64"), x), "`pure_callback`"),
    "root": (lambda x: lax.custom_root(lambda y: y * y - x, 1.0, lambda f, y: y, lambda g, y: y), "custom_root"),
    "iterative": (lambda x: jax.scipy.sparse.linalg.cg(lambda v: v * x, jnp.ones(65))[0].sum(), "iterative solver"),
    "bits": (lambda x: lax.fori_loop(0, 2, lambda i, c: without_sign(c), x), "`bitcast_convert_type` to a floating"),
    "python": (lambda x: x if x > 0 else -x, "jax cannot trace the function: Attempted boolean conversion"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_the_reason_names_the_missing_primitive(name: str) -> None:
    function, reason = REFUSED[name]
    with pytest.raises(Unsupported, match=reason.replace("(", r"\(")):
        jax_text(function, [0.5])


def test_a_missing_primitive_in_an_unused_branch_is_harmless() -> None:
    f = lambda x: lax.cond(x > 0, jnp.sin, lambda y: lax.nextafter(y, 1.0), x)  # noqa: E731
    assert derivative(f, 0.5) == math.cos(0.5)
    ((_, row),) = truth(f, -0.5).outputs
    assert not row.proved
    assert "nextafter" in row.reason


def test_constants_may_be_in_single_precision() -> None:
    weights = jnp.array([0.1, 0.2], jnp.float32)
    assert derivative(lambda x: jnp.sum(weights * x), 0.5) == float(weights[0]) + float(weights[1])


def test_a_table_may_be_in_single_precision() -> None:
    """Outside of jax's float64 mode, `jnp.array` is in float32."""
    table = jnp.array([0.1, 0.2, 0.7], jnp.float32)
    assert derivative(lambda x: table[(x * 2).astype(int)] * x, 0.6) == float(table[1])
    assert derivative(lambda x: jnp.sum(table @ jnp.stack([x, x, x])), 0.6) == float(np.sum(table, dtype=float))


def test_a_search_in_a_table() -> None:
    table = np.array([-1.0, 0.0, 1.0])
    assert derivative(lambda x: jnp.searchsorted(table, x) * x**2, 0.5) == 2.0
    assert derivative(lambda x: jnp.sum(jnp.nonzero(table < x, size=2)[0]) * x**2, 0.5) == 1.0


def test_the_derivative_of_a_gamma_draw_is_unknown() -> None:
    """At the same probability; differences of the rejection's values would contradict it."""
    found = adbench.check(lambda a: jax.random.gamma(jax.random.key(0), a), 2.5)
    assert found.word == "blind"
    assert "pass the numbers drawn" in " ".join(str(found).split())


def test_an_iterative_solver_is_judged_by_the_solution_unless_it_stops_early() -> None:
    """Conjugate gradients, whose default tolerance of 1e-5 moved differences of the values by 5 %."""
    a, b = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]]), np.array([1.0, 2.0, -1.0])
    solve = jax.scipy.sparse.linalg.cg
    found = adbench.check(lambda a, b: jnp.sum(solve(lambda v: a @ v, b)[0] ** 2), a, b)
    assert (found.word, found.proved) == ("right", True), found
    found = adbench.check(lambda a, b: jnp.sum(solve(lambda v: a @ v, b, maxiter=1)[0] ** 2), a, b)
    assert found.word == "blind"
    assert "give it a smaller tolerance" in " ".join(str(found).split())


def test_prints_are_left_out() -> None:
    assert derivative(printed, 0.5) == 1.0


def test_a_hundred_steps_of_twenty_operations_are_fast_enough_for_a_proof() -> None:
    """A slow translation gives no proof: the reference falls back to differences."""

    def step(c: Any, t: Any) -> Any:
        for _ in range(10):
            c = c * 0.9 + t
        return c, None

    with warnings.catch_warnings():
        assert math.isclose(derivative(lambda x: lax.scan(step, x, jnp.arange(100.0))[0], 0.4), 0.9**1000, rel_tol=1e-9)
