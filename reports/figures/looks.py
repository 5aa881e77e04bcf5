"""A backend's colour, marker and dashes: the same on every page, in every chart and in every run.

A library has a colour. Its variants share it and differ by marker and dashes. Libraries that share a colour begin with
another marker, so that nobody has to tell two lines apart by colour alone. The colours follow Okabe and Ito's palette,
darkened or lightened to a contrast of at least 3:1 with the paper.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cache

from adbench.model.settings import PROCESSOR, backend_and_device

COLOURS: tuple[tuple[str, str], ...] = (
    ("#0072b2", "#56a8e0"),  # blue
    ("#d55e00", "#f0813c"),  # vermilion
    ("#008a66", "#2fc49d"),  # green
    ("#b8578c", "#e39ac2"),  # purple
    ("#a87300", "#e69f00"),  # orange
    ("#3a93cc", "#9ad4f5"),  # sky blue
    ("#4a4f55", "#c3c8cc"),  # grey
    ("#857b00", "#e8de5a"),  # yellow
    ("#6a51a3", "#b9a7ec"),  # violet
    ("#8c4a2f", "#d8a184"),  # brown
    ("#14171a", "#f2f4f3"),  # black: adbench's compiled engine alone
)
"""On light and on dark paper. style_rules() gives them to the style sheets of all pages as --s0, --s1, ..."""

MARKERS, DASHES = 8, 4

FAMILIES = (
    # (colour, first marker, the library and its variants)
    (0, 0, "tape tape_forward tape_closures tape_builtin tape_checkpointed tape_compact tape_dense"),
    (10, 1, "tape_compiled tape_compiled_fast_math"),
    (1, 2, "jax jax_eager jax_native"),
    (2, 3, "torch torch_func torch_compile"),
    (3, 4, "autograd"),
    (4, 5, "casadi casadi_mx casadi_c"),
    (5, 1, "complex_step"),
    (6, 7, "finite_differences finite_differences_5 finite_differences_9"),
    (7, 1, "pytensor pytensor_numba"),
    (8, 0, "sympy"),
    (8, 4, "mygrad"),
    (9, 3, "numba_hand"),
    (9, 5, "heyoka"),
    (6, 1, "num_dual"),
    (1, 5, "cppad cppad_reuse cppad_optimised"),
    (2, 6, "adolc adolc_reuse"),
    (3, 0, "stan_math stan_math_matrix stan_math_builtin"),
    (4, 1, "codipack"),
    (5, 2, "sacado"),
    (7, 4, "adept"),
    (8, 7, "enzyme_ad"),
    (9, 0, "fastad"),
    (6, 4, "cpp_plain cpp_hand cpp_simd"),
    (1, 0, "jaxadi"),
    (1, 7, "asdex"),
    (2, 0, "mlx"),
    (3, 2, "drjit"),
    (4, 3, "tensorflow tensorflow_eager tensorflow_xla"),
    (5, 5, "xad"),
    (7, 6, "numdifftools"),
    (8, 2, "aadc"),
)
KNOWN = {
    name: (colour, (first + k) % MARKERS, k % DASHES)
    for colour, first, names in FAMILIES
    for k, name in enumerate(names.split())
}


@dataclass(frozen=True)
class Look:
    """Numbers of a colour (of COLOURS), of a marker and of a dash pattern (of plots.py)."""

    colour: int
    marker: int
    dashes: int


@cache
def look(backend: str) -> Look:
    """The look of a backend: listed, or made from its name; `jax_mine` and `jax (cuda)` take the colour of jax."""
    if backend in KNOWN:
        return Look(*KNOWN[backend])
    if backend_and_device(backend)[1] != PROCESSOR:
        own = look(backend_and_device(backend)[0])
        return Look(own.colour, (own.marker + MARKERS // 2) % MARKERS, (own.dashes + DASHES // 2) % DASHES)
    number = zlib.crc32(backend.encode("utf-8", "surrogatepass"))
    library = max((name for name in KNOWN if backend.startswith(f"{name}_")), key=len, default=None)
    colour = KNOWN[library][0] if library else number % (len(COLOURS) - 1)
    return Look(colour, number // 16 % MARKERS, number // 256 % DASHES)


def style_rules() -> str:
    """The rules that a page's style sheet begins with: each colour as a variable and as that of a series."""
    variables = " ".join(f"--s{k}: light-dark({light}, {dark});" for k, (light, dark) in enumerate(COLOURS))
    series = "\n".join(f".series.s{k} {{ color: var(--s{k}); }}" for k in range(len(COLOURS)))
    return f":root {{ {variables} }}\n{series}\n"
