"""Functions of complex numbers: derivatives in real and imaginary parts, by the conventions of three libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")

import autograd.numpy as anp  # noqa: E402 - after the optional libraries
import jax.numpy as jnp  # noqa: E402
from autograd.extend import defvjp, primitive  # noqa: E402

import adbench  # noqa: E402
from adbench.functions.derivative_table import FunctionCheck  # noqa: E402
from adbench.model.errors import UsageError  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_defaults")
SLOW = pytest.mark.slow
RNG = np.random.default_rng(44)
Z = np.array([0.3 + 0.5j, -1.2 + 0.4j])
A = RNG.normal(size=(2, 2)) + 1j * RNG.normal(size=(2, 2))
H = A @ A.conj().T + np.eye(2)
H = (H + H.conj().T) / 2

B = RNG.normal(size=(3, 2)) + 1j * RNG.normal(size=(3, 2))

Function = Callable[..., Any]
ARRAY: Mapping[str, Callable[[Any], Any]] = {"jax": jnp.asarray, "torch": torch.tensor, "autograd": np.asarray}
SPACE = {"jax": jnp, "torch": torch, "autograd": anp}


def lu_of(xp: Any, a: Any) -> Any:
    return torch.linalg.lu(a)[1:] if xp is torch else jax.scipy.linalg.lu(a)[1:]


def of_rank_1(xp: Any, a: Any) -> Any:
    """u σ vᴴ of the largest singular value: the phases of the vectors cancel."""
    u, sizes, vh = xp.linalg.svd(a, full_matrices=False)
    return u[:, :1] * sizes[0] @ vh[:1]


RIGHT: Mapping[str, tuple[Callable[[Any], Function], tuple[Any, ...]]] = {
    "abs²": (lambda xp: lambda z: xp.sum(xp.abs(z) ** 2), (Z,)),
    "angle": (lambda xp: lambda z: xp.sum(xp.angle(z)), (Z,)),
    "conj": (lambda xp: lambda z: xp.conj(z) * z**2, (Z,)),
    "exp": (lambda xp: lambda z: xp.exp(z) / z, (Z,)),
    "log": (lambda xp: lambda z: xp.log(z), (Z,)),
    "sqrt": (lambda xp: lambda z: xp.sqrt(z), (Z,)),
    "trigonometric": (lambda xp: lambda z: xp.sin(z) * xp.cos(z) + xp.tanh(z), (Z,)),
    "powers": (lambda xp: lambda z: z**0.5 + z ** (1 + 2j), (Z,)),
    "matmul": (lambda xp: lambda a, z: xp.sum(xp.abs(a @ z) ** 2), (A, Z)),
    "einsum": (lambda xp: lambda a, z: xp.abs(xp.einsum("ij,j,i->", a, z, xp.conj(z))), (A, Z)),
    "fft": (lambda xp: lambda z: xp.sum(xp.abs(xp.fft.fft(z)) ** 2), (Z,)),
    "inverse fft": (lambda xp: lambda z: xp.fft.ifft(z), (Z,)),
    "solve": (lambda xp: lambda a, z: xp.sum(xp.abs(xp.linalg.solve(a, z))), (A, Z)),
    "inverse": (lambda xp: lambda a: xp.sum(xp.abs(xp.linalg.inv(a))), (A,)),
    "determinant": (lambda xp: lambda a: xp.linalg.det(a), (A,)),
    "log-determinant": (lambda xp: lambda a: xp.linalg.slogdet(a)[1], (A,)),
    "eigenvalues": (lambda xp: lambda a: xp.linalg.eigvals(a), (A,)),
    "Hermitian eigenvalues": (lambda xp: lambda a: xp.linalg.eigvalsh(a), (H,)),
    "Cholesky": (lambda xp: lambda a: xp.sum(xp.abs(xp.linalg.cholesky(a))), (H,)),
    "LU": (lambda xp: lambda a: xp.real(lu_of(xp, a)[1][0, 1]), (A,)),
    "QR": (lambda xp: lambda b: xp.linalg.qr(b)[1][0, 1], (B,)),
    "QR of a wide matrix": (lambda xp: lambda b: xp.sum(xp.abs(xp.linalg.qr(b.T)[1]) ** 2), (B,)),
    "singular values": (lambda xp: lambda b: xp.linalg.svd(b, full_matrices=False)[1], (B,)),
    "best of rank 1": (lambda xp: lambda b: xp.abs(of_rank_1(xp, b.T)[1, 2]) ** 2, (B,)),
    "a dict": (lambda xp: lambda p: p["z"] * p["x"], ({"z": Z, "x": 2.0},)),
}
OF_AUTOGRAD = ("abs²", "exp", "matmul", "fft", "inverse fft", "solve")
"""Other rules of autograd lack complex numbers."""
CHEAP = ("abs²", "log", "fft", "eigenvalues")
"""Those that jax does in every run of the tests: it compiles each function."""
CASES = [
    *(pytest.param("jax", name, marks=() if name in CHEAP else SLOW) for name in RIGHT),
    *(("torch", name) for name in RIGHT),
    *(("autograd", name) for name in OF_AUTOGRAD),
]


def checked(library: str, f: Function, *args: Any, dtype: str = "complex128", **options: Any) -> FunctionCheck:
    def given(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: given(part) for name, part in value.items()}
        return ARRAY[library](np.asarray(value, dtype=dtype)) if isinstance(value, np.ndarray) else value

    with jax.enable_x64(True):
        return adbench.check(f, *map(given, args), **options)


@pytest.mark.parametrize(("library", "name"), CASES)
def test_right_functions_are_right_and_proved(library: str, name: str) -> None:
    make, args = RIGHT[name]
    check = checked(library, make(SPACE[library]), *args)
    assert check.is_right, str(check)
    assert check.proved, str(check)


@pytest.mark.parametrize(("library", "name"), [("jax", "log"), ("jax", "fft"), ("torch", "einsum"), ("torch", "solve")])
def test_complex64_is_judged_in_float32(library: str, name: str) -> None:
    make, args = RIGHT[name]
    check = checked(library, make(SPACE[library]), *args, dtype="complex64")
    assert check.precision == "float32"
    assert check.is_right, str(check)
    assert check.proved, str(check)


def test_every_mode_and_other_points_are_right() -> None:
    check = checked("torch", lambda z: torch.real(torch.exp(z) * z).sum(), Z, modes="all", points=2)
    assert check.is_right, str(check)
    check = checked("jax", lambda z: jnp.sum(jnp.abs(z) ** 2), Z, modes=["jvp", "vjp", "hvp"])
    assert check.is_right, str(check)


def test_hermitian_matrices_stay_hermitian_at_other_points() -> None:
    check = checked("torch", lambda a: torch.linalg.eigvalsh(a).sum(), H, points=3)
    assert check.is_right, str(check)
    assert len(check.values) == 3


# Planted faults -----------------------------------------------------------------------------------------------------

FAULTS: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "conjugate": lambda g, slope, conj: g * conj(slope),
    "sign": lambda g, slope, conj: -g * slope,
    "imaginary part": lambda g, slope, conj: g * slope.real,
    "cotangent": lambda g, slope, conj: g.real * slope,
}
"""A rule for a holomorphic function, in the convention of jax and autograd: g times f'(z)."""


def faulty(library: str, fault: str | None) -> Function:
    """z³ with a rule that has this fault."""
    wrong = FAULTS[fault] if fault else lambda g, slope, conj: g * slope
    if library == "torch":

        class Cube(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
            @staticmethod
            def forward(ctx: Any, z: Any) -> Any:
                ctx.save_for_backward(z)
                return z * z * z

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (z,) = ctx.saved_tensors
                return wrong(g, (3 * z * z).conj(), torch.conj)  # torch's convention

        return Cube.apply  # type: ignore[no-any-return]
    if library == "jax":
        made = jax.custom_vjp(lambda z: z * z * z)
        made.defvjp(lambda z: (z * z * z, z), lambda z, g: (wrong(g, 3 * z * z, jnp.conj),))
        return made  # type: ignore[no-any-return]
    rule = primitive(lambda z: z * z * z)
    defvjp(rule, lambda value, z: lambda g: wrong(g, 3 * z * z, np.conj))
    return rule  # type: ignore[no-any-return]


@pytest.mark.parametrize("fault", [None, *FAULTS])
@pytest.mark.parametrize("library", ["jax", "torch", "autograd"])
def test_a_rule_with_a_planted_fault_is_wrong(library: str, fault: str | None) -> None:
    cube, xp = faulty(library, fault), SPACE[library]
    check = checked(library, lambda z: cube(z), Z)
    assert check.is_wrong == (fault is not None), str(check)
    assert ("the conjugate of the derivative" in " ".join(check.notes)) == (fault == "conjugate")
    single = checked(library, lambda z: xp.sum(xp.abs(cube(z)) ** 2), Z, dtype="complex64")
    assert single.precision == "float32"
    assert single.is_wrong == (fault is not None), str(single)


def test_the_conjugate_of_a_gradient_is_named() -> None:
    f = jax.custom_vjp(lambda z: jnp.sum(jnp.abs(z) ** 2))
    f.defvjp(lambda z: (jnp.sum(jnp.abs(z) ** 2), z), lambda z, g: (2 * g * z,))  # torch's convention
    check = checked("jax", f, Z)
    assert check.is_wrong
    assert "z.imag" in str(check.worst)
    assert check.notes[0].startswith("the result is the conjugate of the derivative")
    assert "∂f/∂z.real - i ∂f/∂z.imag, the conjugate of torch's gradient" in check.notes[1]


# Notes of the table -----------------------------------------------------------------------------------------------


def test_the_table_states_the_convention_and_whether_the_function_is_holomorphic() -> None:
    of_torch = checked("torch", lambda z: torch.abs(z).sum(), Z)
    assert "torch's gradient is ∂f/∂z.real + i ∂f/∂z.imag" in of_torch.notes[0]
    assert {entry.place for entry in of_torch.entries} == {"z.real[0]", "z.real[1]", "z.imag[0]", "z.imag[1]"}
    assert "f'(z) is" in checked("jax", jnp.exp, Z).notes[1]
    assert "not holomorphic" in checked("jax", lambda z: jnp.conj(z) * z, Z).notes[1]


def test_a_complex_number_of_python_and_one_part_alone() -> None:
    check = adbench.check(lambda z: torch.exp(z).real, 0.2 + 0.1j, wrt="z.imag", backend="torch")
    assert check.is_right
    assert [entry.place for entry in check.entries] == ["z.imag"]
    assert checked("jax", lambda z: jnp.exp(z), Z, output="imag", wrt="z").is_right


@pytest.mark.parametrize(
    ("f", "args", "message"),
    [
        (lambda z: np.abs(z).sum(), (Z,), "takes complex numbers, and tape computes with real ones; write it for jax"),
        (lambda n: torch.sum(n), (torch.tensor(3),), "no argument is floating-point"),
        (lambda z: torch.abs(z) > 1, (torch.tensor(Z),), "returns bool, which has no derivative"),
        (lambda z: z.sum(), (torch.tensor(Z),), None),
    ],
)
def test_bad_input_is_one_line(f: Function, args: tuple[Any, ...], message: str | None) -> None:
    if message is None:
        assert adbench.check(f, *args).is_right
        return
    with pytest.raises(UsageError, match=message) as refused:
        adbench.check(f, *args)
    assert "\n" not in str(refused.value)
