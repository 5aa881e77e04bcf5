"""`adbench.check` of users' functions: any library, any arguments, and refusals."""

import dataclasses
import functools
import itertools
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import adbench
from adbench import FunctionCheck, UsageError
from adbench.functions import user_function
from adbench.functions.recognition import library_of

X = np.array([0.3, -1.2, 0.7])


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass(frozen=True)
class Scales:
    w: Any
    b: float
    name: str = "scales"


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Registered:
    w: Any
    power: int = dataclasses.field(metadata={"static": True}, default=2)


@jax.tree_util.register_pytree_node_class
class Unnamed:
    def __init__(self, w: Any) -> None:
        self.w = w

    def tree_flatten(self) -> Any:
        return (self.w,), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Any:
        return cls(*children)


def places(found: FunctionCheck) -> list[str]:
    return [entry.place for entry in found.entries]


# Arguments


def test_an_argument_that_is_not_the_first_may_be_called_xp() -> None:
    f = lambda x, xp, fp: jnp.interp(x, xp, fp)  # noqa: E731
    assert adbench.check(f, 0.3, np.array([0.0, 1.0]), np.array([2.0, 3.0])).is_right


@pytest.mark.parametrize("library", [np, anp])
def test_numbers_written_into_a_plain_array_get_the_advice_to_stack_them(library: Any) -> None:
    def f(x: Any) -> Any:
        squares = np.zeros(3)
        squares[0] = library.sin(x[0])
        return library.sum(squares)

    with pytest.raises(UsageError, match="collect the numbers in a list, and make it an array with stack"):
        adbench.check(f, X)


def test_every_floating_point_argument_is_active() -> None:
    """Once only the first was checked: a wrong second gradient passed."""

    def f(xp: Any, x: Any, n: int, y: float, *, z: Any, mode: str = "sum") -> Any:
        return getattr(xp, mode)(x**n) * y + z["a"][0] * z["b"]

    found = adbench.check(f, X, 2, 1.5, z={"a": [np.float64(0.5), "text"], "b": np.array(0.25)})
    assert places(found) == ["x[0]", "x[1]", "x[2]", "y", "z['a'][0]", "z['b']"]
    assert found.word == "right"
    assert found.proved


ARGUMENTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str, list[str]]] = {
    "a list of numbers": (lambda xp, x: xp.sum(x * x), ([1.0, 2],), "xp", ["x[0]", "x[1]"]),
    "a list of rows": (lambda xp, x: x[1, 0] * x[0, 1], ([[1.0, 2.0], [3.0, 4.0]],), "xp",
                       ["x[0, 0]", "x[0, 1]", "x[1, 0]", "x[1, 1]"]),
    "a named tuple": (lambda xp, p: p.left * p.right, (Pair(2.0, 3.0),), "xp", ["p.left", "p.right"]),
    "a dataclass": (lambda xp, p: xp.sum(p.w) * p.b, (Scales(X, 2.0),), "xp",
                    ["p.w[0]", "p.w[1]", "p.w[2]", "p.b"]),
    "a pytree of jax": (lambda p: jnp.sum(p.w**p.power), (Registered(jnp.ones(2)),), "jax", ["p.w[0]", "p.w[1]"]),
    "a pytree without names": (lambda p: p.w * 2, (Unnamed(jnp.array(1.5)),), "jax", ["p[0]"]),
    "arrays of jax": (lambda p, k: p["w"][k] * 3, ({"w": jnp.ones(2)}, jnp.array(1)), "jax",
                      ["p['w'][0]", "p['w'][1]"]),
    "tensors of torch": (lambda x, i: x[i].prod(), (torch.ones(2, requires_grad=True), torch.tensor([0, 1])), "torch",
                         ["x[0]", "x[1]"]),
    "None and functions": (lambda xp, x, g, none: g(x), (2.0, lambda y: y * y, None), "xp", ["x"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_arguments_of_each_librarys_types_are_accepted(kind: str, own_defaults: None) -> None:
    f, args, library, expected = ARGUMENTS[kind]
    assert library_of(f, args).name == library
    found = adbench.check(f, *args)
    assert found.word == "right", found
    assert places(found) == expected


def test_a_function_of_xp_may_call_what_numpy_lacks() -> None:
    """As the scripts of `adbench fuzz` do."""

    def f(xp: Any, x: Any) -> Any:
        return xp.sum(xp.digamma(x) * xp.erf(x) + xp.log1p_exp(x) - xp.lgamma(x) + xp.linalg.expm(x))

    found = adbench.check(f, np.array([[0.1, 0.7], [1.3, 0.4]]), backend="tape")
    assert found.word == "right"
    assert found.proved


def test_the_parameters_of_a_module_are_arguments(own_defaults: None) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Tanh())
    before = model[0].weight.detach().clone()

    def loss(model: Any, x: Any) -> Any:
        return model(x).sum()

    x = torch.tensor([0.3, 0.7])
    expected = ["model.0.weight[0, 0]", "model.0.weight[0, 1]", "model.0.bias[0]", "x[0]", "x[1]"]
    assert places(adbench.check(loss, model, x)) == expected
    whole = adbench.check(model, x)
    assert places(whole) == [f"output[0], {place.replace('x[', 'input[')}" for place in expected]
    assert model[0].weight.dtype == torch.float32
    assert torch.equal(model[0].weight, before)
    assert model[0].weight.grad is None


def test_modules_and_tensors_that_a_function_uses_are_copied_to_float64(own_defaults: None) -> None:
    model, weights = torch.nn.Linear(2, 2), torch.tensor([0.1, 0.2])

    def helper(y: Any) -> Any:
        return (y * weights).sum()

    found = adbench.check(lambda x: helper(model(x)), torch.tensor([0.3, 0.7]), precision="float64")
    assert found.word == "right"
    assert "float64 copies of these objects: weights, model" in found.notes[-1]
    assert model.weight.dtype == weights.dtype == torch.float32


class Holder:
    """It holds a float32 tensor in its attributes, alone and in containers, and itself."""

    def __init__(self) -> None:
        self.weight, self.itself = torch.tensor([0.25]), self
        self.parts = {"rates": [1.0, (self.weight,)]}

    def loss(self, x: Any) -> Any:
        return torch.nn.functional.prelu(x, self.weight).sum()

    def __call__(self, x: Any) -> Any:
        return torch.nn.functional.prelu(x, self.itself.parts["rates"][1][0]).sum()


def test_tensors_in_objects_and_containers_are_copied_too(own_defaults: None) -> None:
    holder = Holder()
    nested = {"a": holder}
    for f in (lambda x: holder.loss(x), holder.loss, holder, lambda x: nested["a"](x)):
        assert adbench.check(f, torch.tensor([1.0, -2.0])).is_right
    assert holder.weight.dtype == torch.float32
    assert holder.parts["rates"][1][0] is holder.weight


class Uncopied:
    """It holds no tensor, so that nobody needs a copy."""

    rate = 2.0

    def __init__(self) -> None:
        self.itself = self

    def __copy__(self) -> NoReturn:
        raise TypeError("no copies")


def test_an_object_without_tensors_is_not_copied(own_defaults: None) -> None:
    held = Uncopied()
    assert adbench.check(lambda x: (held.itself.rate * x).sum(), torch.tensor([1.0, -2.0])).is_right


def test_a_sparse_tensor_is_refused_in_one_line() -> None:
    sparse = torch.eye(2, dtype=torch.float64).to_sparse()
    with pytest.raises(UsageError, match=r"x is a sparse tensor .*; pass its values, and make it inside the function"):
        adbench.check(lambda x: x.to_dense().sum(), sparse)


def test_a_check_restores_the_defaults_of_jax_and_torch(own_defaults: None) -> None:
    threads = torch.get_num_threads()
    adbench.check(lambda xp, x: xp.sum(xp.sin(x)), X, backend="jax")
    adbench.check(lambda xp, x: xp.sum(xp.sin(x)), X, backend="torch")
    assert (jnp.ones(1).dtype, torch.ones(1).dtype) == (jnp.float32, torch.float32)
    assert torch.get_num_threads() == threads


WRT = [
    (0, ["x[0]", "x[1]"]), ("p", ["p['a']", "p['b'][0]"]), ("p['b'][0]", ["p['b'][0]"]),
    ((0, "p['a']"), ["x[0]", "x[1]", "p['a']"]), ("n", ["n"]),
]  # fmt: skip


@pytest.mark.parametrize(("wrt", "expected"), WRT)
def test_wrt_restricts_by_position_and_name(wrt: Any, expected: list[str]) -> None:
    def f(xp: Any, x: Any, p: Any, n: int) -> Any:
        return xp.sum(x) * p["a"] * p["b"][0] * n

    assert places(adbench.check(f, X[:2], {"a": 1.5, "b": (2.0, 7)}, 3, wrt=wrt)) == expected


# Which library


def of_numpy(x: Any) -> Any:
    return np.sum(x)


def of_autograd(x: Any) -> Any:
    return anp.sum(anp.sin(x))


def of_tape(x: Any) -> Any:
    from adbench import tape

    return tape.sum(tape.sin(x))


def of_jax_inside(x: Any) -> Any:
    import jax.numpy as inside

    return inside.sum(x)


class Callable_:  # noqa: N801
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, x: Any) -> Any:
        return self.scale * jnp.sum(x)

    def method(self, x: Any) -> Any:
        return self.scale * torch.sum(x)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Broken(Cube):
    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.nothing


LIBRARIES = {
    "numpy": (of_numpy, lambda x: x * x, len),
    "autograd": (of_autograd, lambda x: of_autograd(x)),
    "tape": (of_tape,),
    "jax": (of_jax_inside, jnp.sum, jax.jit(lambda x: x), jax.custom_jvp(lambda x: x), Callable_(1.0),
            functools.partial(of_jax_inside)),
    "torch": (torch.sum, Callable_(1.0).method, torch.nn.Linear(1, 1), Cube.apply),
    "xp": (lambda xp, x: x,),
}  # fmt: skip


def test_the_library_is_recognised_from_the_code() -> None:
    for name, functions in LIBRARIES.items():
        for f in functions:
            assert library_of(f).name == name, f  # type: ignore[operator]


def test_a_function_runs_on_the_backend_of_its_library() -> None:
    for f, name in ((of_numpy, "tape"), (of_autograd, "autograd"), (of_tape, "tape"), (Callable_(2.0), "jax")):
        found = adbench.check(f, X)
        assert (found.word, found.backend) == ("right", name), found


# Modes and points


def test_a_custom_derivative_is_compared_with_the_function_in_every_mode() -> None:
    found = adbench.check(Cube.apply, torch.tensor(1.5), modes="all", points=2)
    assert found.word == "right"
    assert {row.mode for row in found.rows} >= {"gradient", "vjp", "hvp_reverse_over_reverse", "hvp"}
    lacking = {row.mode: row.reason for row in found.lacking}
    assert "setup_context" in lacking["jvp"]
    assert {row.mode: row.how for row in found.rows}["hvp"] == "from hvp_reverse_over_reverse"
    assert "∅ jvp: RuntimeError" in str(found)


def test_a_custom_rule_that_is_wrong_in_the_fifth_digit_is_wrong() -> None:
    @jax.custom_vjp
    def cube(x: Any) -> Any:
        return x**3

    cube.defvjp(lambda x: (cube(x), x), lambda x, g: (3.0001 * x * x * g,))
    with pytest.raises(adbench.WrongGradient) as caught:
        adbench.assert_gradients(cube, 2.0)
    lines = str(caught.value).splitlines()
    assert lines[0] == "jax's gradient of cube"
    assert lines[1].startswith("✗ wrong: gradient of cube by jax")
    assert lines[4].split() == ["✗", "x", "12.0004", "12", "4.5"]
    with pytest.raises(adbench.WrongGradient, match="forward-mode"):  # requested, and missing
        adbench.assert_gradients(cube, 2.0, modes=("value", "jvp"))


def test_an_error_only_at_zero_is_found_and_points_outside_the_domain_are_counted() -> None:
    def relu(x: Any) -> Any:
        return jnp.where(x > 0, x**2, x**3)

    wrong_at_zero = jax.custom_jvp(relu)
    wrong_at_zero.defjvp(lambda x, v: (relu(*x), jnp.where(x[0] == 0, 1.0, jax.grad(relu)(*x)) * v[0]))
    assert adbench.check(wrong_at_zero, 0.5).word == "right"
    found = adbench.check(wrong_at_zero, 0.5, points=3)
    assert (found.word, found.deciding.point) == ("wrong", "zeros")
    found = adbench.check(lambda xp, x: xp.log(x), 0.5, points=3)
    assert (found.word, found.outside, len(found.rows)) == ("right", ("the other sign", "zeros"), 3)
    assert "2 points outside the function's domain left out: the other sign, zeros;" in " ".join(str(found).split())


def test_a_blind_derivative_fails_an_assertion_unless_allowed() -> None:
    def cancels(xp: Any, x: Any) -> Any:
        return (1.0 + x * x) - 1.0 - x * x + 1e-300 * x

    with pytest.raises(adbench.WrongGradient, match=r"\? blind: rounding hides the answer"):
        adbench.assert_gradients(cancels, 0.3)
    adbench.assert_gradients(cancels, 0.3, allow_blind=True)


# Its table, page and dict


def test_a_check_can_be_a_table_html_or_a_dict() -> None:
    def f(xp: Any, many: Any) -> Any:
        return xp.sum(many**2)

    found = adbench.check(f, {"<b>": np.arange(1.0, 41.0)}["<b>"])
    lines = str(found).splitlines()
    assert lines[0].startswith("✓ right: gradient of f by tape")
    assert lines[0].endswith("truth proved")
    assert lines[-1] == "  ... and 30 more, all right"
    sampled = " ".join(str(adbench.check(f, np.arange(1.0, 5001.0))).split())
    assert re.search(r"\.\.\. .*a sample.*; sums compare the other 4,9\d\d entries of many$", sampled)
    assert len(lines) == 1 + 1 + 1 + 10 + 1
    assert max(map(len, lines)) <= 80
    assert repr(found) == str(found)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["word"] == "right"
    named = adbench.check(lambda xp, p: xp.sum(p["<b>"] ** 2), {"<b>": X})
    assert "&lt;b&gt;" in named._repr_html_()
    assert "<b>'" not in named._repr_html_()
    with pytest.raises(AttributeError, match="no attribute 'wrod'"):
        _ = found.wrod


def test_long_tables_fit_a_terminal() -> None:
    def f(xp: Any, the_first_of_the_arguments: Any) -> Any:
        return xp.stack([xp.sum(leaf) for leaf in the_first_of_the_arguments["a rather long name of a parameter"]])

    argument = {"a rather long name of a parameter": (X / 3, X / 7)}
    found = adbench.check(f, argument, modes="all", points=2)
    assert max(map(len, str(found).splitlines())) <= 80, found


# Functions that cannot be checked


def reads_its_arguments_in_place(x: Any) -> Any:
    x += 1
    return np.sum(x * x)


BAD: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (lambda x: (3, None), (1.0,), "returns a tuple of 2 parts, none of them floating-point"),
    (lambda x: None, (1.0,), "returns None; end it with `return`"),
    (lambda x: "text", (1.0,), "returns str; return a number or an array"),
    (lambda x: 1j * x, (1.0,), "returns complex numbers, and tape computes with real ones; write it for jax"),
    (lambda x: 3, (1.0,), "returns int64, which has no derivative"),
    (lambda x: x > 0, (1.0,), "returns bool, which has no derivative"),
    (lambda x: object(), (1.0,), "returns object; return a number"),
    (lambda: 3.0, (), "the function got no arguments"),
    (lambda n: 2.0 * n, (3,), "no argument is floating-point.*they are int; write 3.0 instead of 3"),
    (lambda z: abs(z), (1j,), "takes complex numbers, and tape computes with real ones; write it for jax"),
    (lambda x, y: x, (1.0,), "cannot be called with these arguments: missing a required argument: 'y'"),
    (lambda x: x * random.random(), (1.0,), "is random: two calls at the same point gave"),
    (
        lambda x: torch.nn.functional.dropout(x).sum(),
        (torch.arange(40.0).exp(),),
        "is random.* a buffer that each call",
    ),
    (reads_its_arguments_in_place, (X,), r"changes its argument x in place"),
    (lambda p: p.pop("a") * 2.0, ({"a": 1.0},), r"changes its argument p\['a'\] in place"),
    (lambda x: x.mul_(2).sum(), (torch.ones(2),), "changes its argument x in place"),
    (lambda x: 1 / (x - x), (1.0,), r"raises ZeroDivisionError: .*\(test_check.py, line \d+\)"),
    (lambda x: x.cuda().sum(), (torch.ones(2),), "raises .*; adbench checks on the CPU"),
    (3, (1.0,), "int 3 is not callable"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("f", "args", "line"), BAD)
def test_an_uncheckable_function_is_a_one_line_error(f: Callable[..., Any], args: tuple[Any, ...], line: str) -> None:
    with pytest.raises(UsageError, match=line) as caught:
        adbench.check(f, *args)
    assert "\n" not in str(caught.value)


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"wrt": "y"}, "wrt: 'y' is not a floating-point argument; choose from x"),
    ({"wrt": (1,)}, "but there are 1 arguments"),
    ({"wrt": ()}, "wrt is empty"),
    ({"modes": ()}, "modes is empty"),
    ({"modes": "hesian"}, "no operator 'hesian'"),
    ({"modes": "hvp", "operator": "hvp"}, "conflict; leave operator out"),
    ({"points": 0}, "points is 0"),
    ({"backend": "nope"}, "no backend 'nope'"),
    ({"backend": "torch"}, "is written for jax, which the backend torch cannot differentiate"),
]


@pytest.mark.parametrize(("options", "line"), OPTIONS)
def test_invalid_options_are_a_one_line_error(options: dict[str, Any], line: str) -> None:
    with pytest.raises(UsageError, match=line):
        adbench.check(lambda x: jnp.sin(x), 1.0, **options)


def test_numpy_on_another_librarys_backend_gives_advice() -> None:
    with pytest.raises(UsageError, match="the function calls numpy: leave jax out, or write the function for jax"):
        adbench.check(lambda x: np.sin(x), 1.0, backend="jax")
    assert adbench.check(lambda x: x * x, 1.5, backend="jax").word == "right"


def test_lambdas_methods_partials_and_functions_that_read_files_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scale").write_text("2.5")
    torch_method = Callable_(3.0).method

    def reads(x: Any) -> Any:
        return float((tmp_path / "scale").read_text()) * x * x

    def prints(x: Any) -> Any:
        print("hello")
        return x * x

    for f in (reads, prints, functools.partial(lambda k, x: k * x * x, 3), lambda x: x * x):
        found = adbench.check(f, 1.5)
        assert found.word == "right", found
    assert capsys.readouterr().out == "hello\n"
    assert adbench.check(prints, 1.5).notes == ("the function prints; its output is shown once",)
    assert adbench.check(torch_method, torch.ones(2)).word == "right"
    assert adbench.check(functools.partial(lambda x, seed: x * seed, seed=3), 1.5).word == "right"


def test_a_function_that_differentiates_inside_is_checked() -> None:
    def slope(x: Any) -> Any:
        return torch.autograd.grad((x**3).sum(), x, create_graph=True)[0].sum()

    found = adbench.check(slope, torch.tensor([1.0, 2.0], requires_grad=True))
    assert found.is_right
    assert [entry.expected for entry in found.entries] == pytest.approx([6, 12])


def test_a_failure_in_the_value_is_the_librarys_limit_and_not_a_wrong_rule() -> None:
    """Batch normalisation writes into its buffers, which torch.func refuses."""
    model = torch.nn.BatchNorm1d(2)
    found = adbench.check(lambda x: model(x).pow(3).sum(), torch.randn(4, 2), modes=("gradient", "jvp"))
    assert (found.is_right, [row.mode for row in found.lacking]) == (True, ["jvp"])
    with pytest.raises(UsageError, match="has no attribute 'nothing'"):
        adbench.check(Broken.apply, torch.tensor(1.5))
    found = adbench.check(Broken.apply, torch.tensor(1.5), modes=("value", "gradient"))
    assert (found.word, found.deciding.mode) == ("wrong", "gradient")


def test_jax_functions_may_branch_on_data() -> None:
    found = adbench.check(lambda x: x**2 if x > 0 else x**3, jnp.array(1.5))
    assert (found.backend, found.is_right) == ("jax_eager", True)


def test_a_point_outside_the_domain_is_reported() -> None:
    assert adbench.check(lambda xp, x: xp.log(x), -1.0).notes[-1].startswith("the function has no finite value here")


def test_a_translation_with_another_value_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of adbench must not become a fault of the user's function."""

    def wrong(library: Any) -> Any:
        return lambda flat, examples: lambda xp, x: xp.sum(x * x) * (1 + 1e-6)

    monkeypatch.setattr(user_function, "translator_of", wrong)
    found = adbench.check(lambda x: jnp.sum(x * x), X)
    assert found.word in ("right", "verified")
    assert not found.proved
    assert "its translation has another value" in found.reason
    assert "truth from nine-point differences" in str(found)


def test_functions_that_stop_derivatives_are_not_judged_by_differences() -> None:
    """Values do not show a `detach`, so a correct library would be called wrong."""
    torch = pytest.importorskip("torch")

    def f(x: Any) -> Any:
        return (x * x.detach()).sum() + 0 * torch.linalg.eigvals(torch.outer(x, x)).abs().sum()

    found = adbench.check(f, torch.tensor([0.3, 1.2], dtype=torch.float64))
    assert (found.word, found.proved) == ("blind", False)
    assert "differences of its values ignore detach" in str(found).replace("\n    ", " ")


@pytest.mark.parametrize("x", [0.999999999, 1 - 1e-12, -0.9999, 0.3, 1e-10])
def test_the_inverse_error_function_of_jax_is_right_near_one(x: float) -> None:
    found = adbench.check(jax.scipy.special.erfinv, x)
    assert found.proved
    assert found.is_right, found


@pytest.mark.parametrize("name", ["argnums", "has_aux", "kwargs"])
def test_an_option_of_other_libraries_gets_the_name_of_ours(name: str) -> None:
    with pytest.raises(UsageError, match=rf"unexpected keyword argument '{name}'; .*wrt="):
        adbench.check(lambda x: x * x, 1.0, **{name: 0})


def test_a_module_in_training_is_random_and_the_advice_is_to_call_eval(own_defaults: None) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 40), torch.nn.Dropout(0.5))
    with pytest.raises(UsageError, match=r"is random: .*; call \.eval\(\) on the module"):
        adbench.check(module, torch.ones(3))
    assert "(in float64)" in adbench.check(torch.sum, torch.ones(3), precision="float64").title, "it is float32"
    assert "(in float64)" not in adbench.check(torch.sum, torch.ones(3, dtype=torch.float64)).title


@pytest.mark.parametrize(("size", "is_random"), [(2.0**-52, False), (1e-9, True)])
def test_calls_that_differ_by_rounding_are_not_random(size: float, is_random: bool) -> None:
    calls = itertools.count()

    def f(x: Any) -> Any:
        return x * (1.0 + size * (next(calls) % 2))

    if is_random:
        with pytest.raises(UsageError, match="is random"):
            adbench.check(f, np.array([1.0, 3.0]))
    else:
        checked = adbench.check(f, np.array([1.0, 3.0]))
        assert checked.verdict.word != "wrong", str(checked)
        assert "two calls at the same point differ, by no more than rounding" in checked.to_dict()["notes"]


def test_a_long_label_keeps_its_front_and_its_end() -> None:
    long = {"encoder" + "_of_the_first_layer" * 4: np.array([1.0, 2.0])}
    table = str(adbench.check(lambda p: sum(v @ v for v in p.values()), long))
    label = next(line for line in table.splitlines() if "…" in line)
    assert label.startswith("✓ p['encoder_of_the")
    assert re.search(r"…\S*_layer'\]\[0\] ", label)
