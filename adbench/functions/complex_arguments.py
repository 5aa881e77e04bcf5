"""Complex arguments as pairs of real leaves, and what libraries call the gradient in them.

A function of complex numbers is one of their real and imaginary parts. Its derivatives in these parts need no
convention, and every library can compute them with its own rules.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from adbench.functions.outputs import PARTS, Outputs, listed
from adbench.oracle.diagnosis.patterns import is_conjugate
from adbench.oracle.evidence import EntryEvidence
from adbench.oracle.leaves import is_symmetric

MINUS, PLUS = "∂f/∂z.real - i ∂f/∂z.imag", "∂f/∂z.real + i ∂f/∂z.imag"
OF_REAL_VALUES: Mapping[str, str] = {
    "jax": f"jax.grad returns {MINUS}, the conjugate of torch's gradient",
    "autograd": f"autograd's grad returns {MINUS}, the conjugate of torch's gradient",
    "torch": f"torch's gradient is {PLUS}, the conjugate of jax.grad",
}
OF_COMPLEX_VALUES: Mapping[str, str] = {
    "jax": "jax.grad(f, holomorphic=True) returns f'(z)",
    "autograd": "autograd's holomorphic_grad returns f'(z)",
    "torch": "torch's backward multiplies by the conjugate of f'(z)",
}
HOLOMORPHIC = "holomorphic here: f'(z) is ∂output.real/∂z.real + i ∂output.imag/∂z.real"
NOT_HOLOMORPHIC = (
    "not holomorphic, so it has no f'(z), and jax.grad(f, holomorphic=True) has no meaning: its real and imaginary "
    "parts are checked"
)
OF_PARTS = re.compile(r"(.*)\.(real|imag)((?:\[[\d, ]+\])?), (.*)\.(real|imag)((?:\[[\d, ]+\])?)")
SAME = 1e-6
"""The relative distance of derivatives that count as equal."""


def parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    """The real and the imaginary part of a complex number, array or tensor, with their names."""
    if hasattr(value, "resolve_conj"):  # of torch
        value = value.detach().resolve_conj()
    for name in PARTS:
        yield name, getattr(value, name)


def complex_of(real: Any, imag: Any) -> Any:
    """The complex number, array or tensor with these parts, of any library or of the oracle."""
    if (torch := sys.modules.get("torch")) and any(isinstance(part, torch.Tensor) for part in (real, imag)):
        return torch.complex(*map(torch.as_tensor, (real, imag)))
    if (jax := sys.modules.get("jax")) and any(isinstance(part, jax.Array) for part in (real, imag)):
        dtype = jax.numpy.result_type(real, imag)
        return jax.lax.complex(*(jax.numpy.asarray(part, dtype) for part in (real, imag)))
    if type(real) is type(imag) is float:
        return complex(real, imag)
    if not all(type(part) is np.ndarray or issubclass(type(part), np.floating) for part in (real, imag)):
        return real + 1j * imag  # of a library, or of the oracle
    made = np.empty(np.shape(real), np.result_type(real, imag, np.complex64))
    made.real, made.imag = real, imag
    return made[()]


def with_hermitian(point: Mapping[str, Any], given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The point with ½ (A + A^H) for the complex arguments of these names that are Hermitian matrices as given.

    Functions read one triangle of such a matrix, and libraries share its derivative between both.
    """
    kept = dict(point)
    for real, imag in ((f"{name}.real", f"{name}.imag") for name in names):
        here = np.asarray(given[imag])
        if is_symmetric(np.asarray(given[real])) and np.array_equal(here, -np.matrix_transpose(here)):
            for leaf, sign in ((real, 1), (imag, -1)):
                array = np.asarray(point[leaf])
                kept[leaf] = (array + sign * np.matrix_transpose(array)) / 2
    return kept


def remarks_on_parts(
    names: Sequence[str], outputs: Outputs | None, library: str, entries: Sequence[EntryEvidence]
) -> Iterator[str]:
    """Sentences below the table of a function with these complex arguments; entries: the compared numbers."""
    returns_complex = outputs is not None and outputs.complex
    convention = (OF_COMPLEX_VALUES if returns_complex else OF_REAL_VALUES).get(library, "")
    meaning = f"; {convention}" if convention else ""
    if is_conjugate(entries):
        yield "the result is the conjugate of the derivative: a rule lacks a conjugate, or has one too many"
    yield f"derivatives in the real and the imaginary parts of {listed(names)}{meaning}"
    if returns_complex and (holds := _is_holomorphic(entries)) is not None:
        yield HOLOMORPHIC if holds else NOT_HOLOMORPHIC


def _is_holomorphic(entries: Sequence[EntryEvidence]) -> bool | None:
    """Whether the true derivatives follow the equations of Cauchy and Riemann; None if too few are known."""
    known: dict[tuple[str, ...], dict[tuple[str, str], EntryEvidence]] = {}
    for entry in entries:
        if (found := OF_PARTS.fullmatch(entry.place)) and math.isfinite(entry.expected):
            known.setdefault(found.group(1, 3, 4, 6), {})[found[2], found[5]] = entry
    pairs = [(parts[PARTS], parts[PARTS[::-1]], -1) for parts in known.values() if len(parts) == 4]
    pairs += [(parts["real", "real"], parts["imag", "imag"], 1) for parts in known.values() if len(parts) == 4]
    if not pairs:
        return None
    return all(
        math.isclose(a.expected, sign * b.expected, rel_tol=SAME, abs_tol=a.bound + b.bound) for a, b, sign in pairs
    )
