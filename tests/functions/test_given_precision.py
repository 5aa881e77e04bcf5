"""`check` in the precision of the arguments: what rounding explains is right, what it does not is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")

import autograd  # noqa: E402 - after the optional libraries
import autograd.numpy as anp  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from autograd.extend import defvjp, primitive  # noqa: E402

import adbench  # noqa: E402
from adbench.model.errors import UsageError  # noqa: E402
from adbench.model.namespace import PLAIN  # noqa: E402
from adbench.oracle.compute import reference  # noqa: E402
from adbench.oracle.evidence import BRAIN, DOUBLE, HALF, SINGLE, Precision, compare, judging_in  # noqa: E402
from adbench.oracle.operators import judge_entries  # noqa: E402
from adbench.oracle.reference import UNIT_ROUNDOFF, Known  # noqa: E402
from adbench.oracle.subject import Effort  # noqa: E402
from tests.oracle.scalars import subject_of  # noqa: E402
from tests.support.marks import one_in  # noqa: E402

FORMS = {"float32": SINGLE, "bfloat16": BRAIN, "float16": HALF}
pytestmark = pytest.mark.usefixtures("own_defaults")
X = np.array([0.3, -1.2, 2.5])


@pytest.mark.parametrize("kind", FORMS)
def test_rounding_to_a_type_is_that_of_torch(kind: str) -> None:
    rng, form, dtype = np.random.default_rng(0), FORMS[kind], getattr(torch, kind)
    x = rng.normal(size=4_000) * 2.0 ** rng.integers(-160, 140, 4_000)
    x = np.concatenate([x, [0.0, form.largest, form.largest * 1.001, form.smallest / 3, 1 + form.unit, np.inf]])
    expected = torch.tensor(x).to(dtype).double().numpy()
    assert np.array_equal(form.rounded(x), expected)
    assert [form.nearest(float(number)) for number in x] == expected.tolist()


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
def test_a_unit_in_the_last_place_is_the_distance_of_neighbours(form: Precision) -> None:
    for x in (1.0, 1.5, 3.0, form.smallest, 0.0, form.smallest / 4):
        assert form.rounded(x + form.ulp(x)) == x + form.ulp(x)
        assert form.rounded(x + 0.4 * form.ulp(x)) == x


def given(library: str, kind: str) -> Any:
    if library == "torch":
        return torch.tensor(X, dtype=getattr(torch, kind))
    return jnp.asarray(X, dtype=kind) if library == "jax" else X.astype(kind)


def torch_rule(factor: float) -> Callable[..., Any]:
    class Square(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * 2 * g * ctx.saved_tensors[0]

    return lambda x: Square.apply(x).sum()


def jax_rule(factor: float) -> Callable[..., Any]:
    @jax.custom_vjp
    def square(x: Any) -> Any:
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, g: (factor * 2 * g * x,))
    return lambda x: jnp.sum(square(x))


def autograd_rule(factor: float) -> Callable[..., Any]:
    @primitive  # type: ignore[untyped-decorator]  # autograd is not typed
    def square(x: Any) -> Any:
        return x * x

    defvjp(square, lambda value, x: lambda g: factor * 2 * g * x)
    return lambda x: anp.sum(square(x))


RULES = {"torch": torch_rule, "jax": jax_rule, "autograd": autograd_rule}
PAIRS = [(library, kind) for library in RULES for kind in FORMS if (library, kind) != ("autograd", "bfloat16")]


@pytest.mark.parametrize(("library", "kind"), PAIRS)
def test_a_right_rule_is_right_and_a_wrong_one_wrong_in_its_own_type(library: str, kind: str) -> None:
    assert autograd is not None
    right = adbench.check(RULES[library](1.0), given(library, kind))
    assert (right.word, right.precision) == ("right", kind), str(right)
    wrong = adbench.check(RULES[library](1 + 32 * FORMS[kind].unit), given(library, kind))
    assert wrong.is_wrong, str(wrong)


def test_a_cancellation_loses_digits_and_a_wrong_formula_is_wrong() -> None:
    def variance(x: Any) -> Any:
        return (x * x).mean() - x.mean() ** 2

    x = torch.tensor([1000, 1000.01, 1000.02])
    table = adbench.check(variance, x)
    assert table.word == "verified"
    assert table.digits < 3
    assert table.precision == "float32"
    assert adbench.check(variance, x.double()).word in ("right", "verified")
    wrong = adbench.check(
        lambda x: (x * x).mean() - x.mean().detach() * x.mean(), torch.tensor([1.0, 2.0, 4.0]), constants="forbid"
    )
    assert wrong.is_wrong


def test_a_product_that_is_exact_in_float64_is_rounded_in_float32() -> None:
    x = torch.tensor([0.1, 0.7, 1.3])
    table = adbench.check(lambda x: ((x * x) - x.detach() * x.detach() + 1.0).sum(), x)
    assert table.is_right, str(table)


def test_the_function_runs_with_the_users_types_and_defaults() -> None:
    seen = set()

    def of_torch(x: Any) -> Any:
        seen.add((x.dtype, torch.ones(1).dtype))
        return (x * x).sum()

    adbench.check(of_torch, torch.tensor([0.5]))
    assert (torch.float32, torch.float32) in seen

    def of_jax(x: Any) -> Any:
        seen.add((str(x.dtype), str(jnp.ones(1).dtype)))
        return jnp.sum(x * x)

    adbench.check(of_jax, jnp.asarray([0.5], dtype=jnp.float32))
    assert ("float32", "float32") in seen
    assert (torch.ones(1).dtype, str(jnp.ones(1).dtype)) == (torch.float32, "float32")


def test_float64_on_request() -> None:
    table = adbench.check(lambda x: (x * x).sum(), torch.tensor([0.5]), precision="float64")
    assert (table.word, table.precision) == ("right", "")
    assert "checked in float64 on the CPU, though given as float32: x" in table.notes


def test_a_module_keeps_its_types() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)).bfloat16()
    table = adbench.check(net, torch.tensor([[0.5, -0.25]], dtype=torch.bfloat16))
    assert (table.is_right, table.precision) == (True, "bfloat16"), str(table)
    assert net[0].weight.dtype == torch.bfloat16


def test_other_points_are_numbers_of_the_type() -> None:
    table = adbench.check(lambda x: (x**3).sum(), torch.tensor([0.5, 1.5], dtype=torch.bfloat16), points=4)
    assert table.is_right, str(table)
    assert len(table.rows) == 4


def test_an_overflow_in_float16_is_wrong() -> None:
    table = adbench.check(lambda x: torch.log(torch.exp(x).sum()), torch.tensor([12.0, 3.0], dtype=torch.float16))
    assert table.is_wrong  # infinite, where the truth is 12


def torch_noise(x: Any) -> Any:
    return (x + torch.rand(3, generator=torch.Generator().manual_seed(1))).square().sum()


def jax_noise(x: Any) -> Any:
    return ((x + jax.random.normal(jax.random.key(0), (3,), x.dtype)) ** 2).sum()


@pytest.mark.parametrize(("library", "noise"), [("torch", torch_noise), ("jax", jax_noise)])
def test_random_draws_that_are_others_in_float32_are_checked_in_float64(library: str, noise: Any) -> None:
    table = adbench.check(noise, given(library, "float32"))
    assert (table.word, table.proved) == ("right", True), table
    assert any("random draws are others in float32" in note for note in table.notes)
    same = adbench.check(lambda x: (x * (torch.rand(3) > 2)).sum(), given("torch", "float32"))
    assert same.title.endswith("in float32; truth proved")


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_rule_that_is_wrong_for_a_transposed_argument_is_wrong(kind: str) -> None:
    class Sine(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g.contiguous().as_strided(x.shape, x.stride()) * x.cos()

    x = torch.arange(6.0, dtype=getattr(torch, kind)).reshape(2, 3)
    weights = torch.arange(6.0).reshape(3, 2)
    assert adbench.check(lambda x: (Sine.apply(x) * weights).sum(), x.T).is_wrong
    assert adbench.check(lambda x: (Sine.apply(x) * weights.T).sum(), x).is_right


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "complex128"])
def test_a_jacobian_comes_from_products_where_torch_has_no_own(kind: str) -> None:
    """Of an old-style Function torch gives wᵀ J alone. The parts of complex numbers are not contiguous."""

    class Cube(torch.autograd.Function):
        factor = 3

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * (Cube.factor * x * x).conj()

    x = torch.tensor([0.25, -1.25, 0.75], dtype=getattr(torch, kind))
    matrix = torch.tensor([[1.0, 2, 3], [4, 5, 6]], dtype=x.dtype)
    assert adbench.check(lambda x: matrix @ Cube.apply(x), x).is_right
    Cube.factor = 2
    assert adbench.check(lambda x: matrix @ Cube.apply(x), x).is_wrong


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(UsageError, match="choose from given, float64"):
        adbench.check(lambda x: x.sum(), torch.tensor([0.5]), precision="float8")  # type: ignore[arg-type]


def torch_sine(first: float, second: float) -> Callable[..., Any]:
    """Σ sin x, whose first and second derivatives are multiplied by these."""

    class Cosine(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
        @staticmethod
        def forward(x: Any) -> Any:
            return torch.cos(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return -second * g * torch.sin(ctx.saved_tensors[0])

        @staticmethod
        def jvp(ctx: Any, v: Any) -> Any:
            return -second * v * torch.sin(ctx.saved_tensors[0])

    class Sine(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any) -> Any:
            return torch.sin(x)

        setup_context = Cosine.setup_context

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return first * g * Cosine.apply(ctx.saved_tensors[0])

        @staticmethod
        def jvp(ctx: Any, v: Any) -> Any:
            return first * v * Cosine.apply(ctx.saved_tensors[0])

    return lambda x: Sine.apply(x).sum()


def jax_sine(first: float, second: float) -> Callable[..., Any]:
    cosine, sine = jax.custom_jvp(jnp.cos), jax.custom_jvp(jnp.sin)
    cosine.defjvp(lambda x, v: (jnp.cos(*x), -second * v[0] * jnp.sin(*x)))
    sine.defjvp(lambda x, v: (jnp.sin(*x), first * v[0] * cosine(*x)))
    return lambda x: sine(x).sum()


SINES = {"torch": torch_sine, "jax": jax_sine}


@pytest.mark.parametrize("kind", one_in(2, ["bfloat16", "float16"]))
@pytest.mark.parametrize("library", SINES)
def test_vectors_are_numbers_of_16_bit_types_and_faults_along_them_are_found(library: str, kind: str) -> None:
    def words(first: float, second: float) -> dict[str, str]:
        modes = ("jvp", "hvp", "hessian")
        table = adbench.check(SINES[library](first, second), given(library, kind), modes=modes)
        return {row.mode: row.verdict.word for row in table.rows if row.verdict is not None}

    right = words(1.0, 1.0)  # rounding may hide the zeros of H
    assert (right["jvp"], right["hvp"]) == ("right", "right")
    assert right["hessian"] in ("right", "verified")
    assert words(1.5, 1.0)["jvp"] == "wrong"
    assert words(1.0, 1.5) == {"jvp": "right", "hvp": "wrong", "hessian": "wrong"}


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_every_derivative_is_judged_in_its_own_type_and_relations_hold(library: str, kind: str) -> None:
    sin = {"torch": torch.sin, "jax": jnp.sin}[library]
    table = adbench.check(lambda x: (sin(x) * x).sum(), given(library, kind), modes="all")
    assert table.is_right, str(table)
    assert {row.mode for row in table.lacking} <= {"hvp_forward_over_forward"}  # torch's dual numbers do not nest
    assert any("relations between calls hold" in note for note in table.notes)


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_a_rule_that_keeps_its_first_result_breaks_a_relation_in_its_own_type(kind: str) -> None:
    kept: dict[float, Any] = {}

    class Keeps(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return (x**3).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * kept.setdefault(float(x[0]), 3 * x * x)  # whatever the other entries

    table = adbench.check(lambda x: Keeps.apply(x), given("torch", kind), modes="all")
    (broken,) = (row for row in table.rows if row.mode == "relations")
    assert "the result is that of the inputs before" in broken.told


def test_rounding_in_the_reverse_sweep_that_the_forward_one_lacks_is_measured() -> None:
    def total(x: Any) -> Any:  # of softmax: 1 for each row. Forward, the derivative of v - max(v) is exactly 0
        v = torch.square(x)
        over, under = (torch.exp(v - torch.amax(v, -1, keepdim=True)) for _ in range(2))
        return (over / torch.sum(under, -1, keepdim=True)).sum()

    x = torch.tensor([[-1.8671875, -1.0703125], [2.515625, -1.0078125], [0.17871094, -1.796875]]).bfloat16()
    assert adbench.check(total, x).is_right


def test_terms_that_cancel_in_the_reverse_sweep_alone_are_rounded_there() -> None:
    def cancelled(x: Any, y: Any) -> Any:
        z = torch.minimum(x, y + x).sum(1)
        return (torch.xlogy(z, z) - torch.xlogy(z, z)).sum()

    y = torch.tensor([[2.0, 0.5], [0.0, 0.0]])
    assert not adbench.check(cancelled, torch.full((2, 2), 3.5).bfloat16(), y.bfloat16()).is_wrong

    class Leaks(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 0 * x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.expand(2, 2)

    x = torch.full((2, 2), 3.5).bfloat16()
    assert adbench.check(lambda x, y: cancelled(x, y) + Leaks.apply(y), x, y.bfloat16()).is_wrong

    def through_a_factor(
        x: Any,
    ) -> Any:  # softmax sums to 1, and the greatest entry less itself cancels in the sweep alone
        factor = torch.linalg.cholesky(torch.sinh(x) @ torch.sinh(x).T + torch.eye(2))
        first, second = (torch.exp(factor - factor.amax(0, keepdim=True)) for _ in range(2))
        return (first / second.sum(0, keepdim=True)).sum()

    x = torch.tensor([[-1.199, -1.0569], [-0.0334, 2.984]])
    assert not adbench.check(through_a_factor, x).is_wrong

    def vanishing(x: Any) -> Any:  # a b - b a is a rounding, and so are the two terms of its derivative
        return (torch.special.i0(torch.linalg.cross(x * x, x * x)) ** -2).sum()

    x = torch.tensor([[-1.70659995, 0.50440001, -2.18659997], [2.08789992, 0.0479, 1.5927]])
    assert not adbench.check(vanishing, x).is_wrong


def test_infinity_is_hidden_only_where_rounding_leaves_no_digit() -> None:
    for form, noise, word in ((BRAIN, 1.0, "blind"), (BRAIN, 1e-3, "wrong"), (DOUBLE, 1.0, "wrong")):
        with judging_in(form):
            known = Known(2.0, 2.0, noise=noise * UNIT_ROUNDOFF / form.unit)
            assert compare("x", (), np.inf, known, 2.0).word == word


def word_of(f: Callable[..., Any], x: float, got: float, form: Precision = BRAIN) -> str:
    """Of a derivative of f(xp, x) in bfloat16 or another type."""
    subject = subject_of(lambda x: f(PLAIN, x), (x,), (0,), text=f)
    known = reference(subject, Effort(precision=form))
    return judge_entries("gradient", (np.asarray(got),), known, within=form)[0].word


def test_no_number_is_wrong_where_rounding_may_meet_a_pole() -> None:
    """1 / y⁴ for y = 0.1 ± 0.2 has no variance: draws do not bound it."""

    def chaotic(xp: Any, x: Any) -> Any:
        for _ in range(3):
            x = xp.cos(x**-3) + x
        return x

    for number in (-0.55078125, -0.58203125):
        x = torch.tensor(number, dtype=torch.bfloat16, requires_grad=True)
        (gradient,) = torch.autograd.grad(chaotic(torch, x), x)
        assert word_of(chaotic, number, float(gradient)) == "blind"


def test_a_slope_that_underflows_has_lost_its_digits() -> None:
    """That of y⁻² at 2·10¹⁶ is 3·10⁻⁴⁹ in torch and jax, before the adjoints, 10¹⁸, scale it up."""

    def chained(xp: Any, x: Any) -> Any:
        for _ in range(3):
            x = xp.sinh(x**-2)
        return x

    assert word_of(chained, -2.4914000034332275, 0.0, SINGLE) == "blind"
    assert word_of(chained, -1.1171000003814697, 0.0, SINGLE) == "wrong"


def test_a_number_is_wrong_where_rounding_of_first_order_hides_its_digits() -> None:
    def cancelled(xp: Any, x: Any) -> Any:
        return xp.exp(x) * 3.0 - xp.exp(x) * 3.0 + 1e-4 * x

    assert word_of(cancelled, 1.0, 0.125) == "blind"
    assert word_of(cancelled, 1.0, 2.0) == "wrong"


def test_a_difference_of_equal_products_may_be_the_rounding_of_one() -> None:
    """torch's cross and programs that jax compiles round a b in a b - b a once, by fma, and leave 1e-8."""
    x = torch.tensor([2.3448, -2.5954, 1.0316])
    assert torch.linalg.cross(x, x).any()
    table = adbench.check(lambda x: torch.sinh(torch.linalg.cross(x, x) ** 2).sum(), x)
    assert table.is_right, str(table)
    x, y = torch.tensor([1.3, 0.7]), torch.tensor([2.1, -0.4])
    assert torch.addcmul(-(x * y), x, y).any()
    table = adbench.check(lambda x, y: torch.addcmul(-(x * y), x, y).sum(), x, y)
    assert table.is_right, str(table)
    u = jnp.asarray([0.12573022, -0.13210486], jnp.float32)
    table = adbench.check(lambda u, v: jnp.sinh((u[0] * v[0] - u[1] * v[1]) ** 2), u, u[::-1])
    assert table.is_right, str(table)


def test_the_gradient_of_a_variance_of_equal_numbers_has_the_rounding_of_their_mean() -> None:
    """torch's Σ 2 (x - mean) x' / (n - 1) is not 0 where the mean of x, x, … is not x."""

    def variance(x: Any) -> Any:
        return torch.var(torch.ones(6) * x)

    x = torch.tensor(0.502, requires_grad=True)
    assert torch.autograd.grad(variance(x), x)[0]
    assert not adbench.check(variance, x.detach()).is_wrong

    class Leaks(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 0 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 1e-4 * g

    assert adbench.check(lambda x: variance(x) + Leaks.apply(x), x.detach()).is_wrong
