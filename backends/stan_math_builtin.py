"""Stan Math's built-in densities and functions: one node each, with hand-written partial derivatives."""

from dataclasses import replace
from pathlib import Path

from .stan_math import LIBRARY as SCALAR

VARIANT_OF = "stan_math"
BUILDS = True
BATCHED = True

NATIVE = Path(__file__).parent / "native"
LIBRARY = replace(SCALAR, header=NATIVE / "stan_math_nodes.hpp", texts=NATIVE / "stan_math_builtin", precompile=False)
FUNCTIONS = LIBRARY.functions
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
