"""Stan Math: record scalar operations in an arena at every call and sweep them back."""

from dataclasses import replace
from pathlib import Path

from adbench import CppLibrary

REQUIRES = ("httpstan",)  # ships the headers of Stan Math, Boost, Eigen and TBB
HOME = "STAN_MATH_HOME"  # the folder of the user's copy
LICENCE = "BSD-3-Clause"
BUILDS = True
BATCHED = True

NATIVE = Path(__file__).parent / "native"
LIBRARY = CppLibrary(
    NATIVE / "stan_math.hpp",
    needs="stan/math.hpp",
    prefixes=(f"${HOME}", "httpstan:httpstan"),
    get="pip install httpstan",
    flags=("-D_REENTRANT",),
    links=("tbb",),
    precompile=True,
)
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy

NODES = replace(LIBRARY, header=NATIVE / "stan_math_nodes.hpp", precompile=False)
BUILTIN = replace(NODES, texts=NATIVE / "stan_math_builtin")
MATRIX = replace(NODES, texts=NATIVE / "stan_math_matrix")

VARIANTS = {
    "stan_math_builtin": {
        "SUMMARY": "Stan Math's built-in densities and functions: one node each, with hand-written partial "
        "derivatives.",
        "LIBRARY": BUILTIN,
        "FUNCTIONS": BUILTIN.functions,
        "prepare": BUILTIN.prepare,
        "build": BUILTIN.build,
    },
    "stan_math_matrix": {
        "SUMMARY": "Stan Math's matrix operations: one node per matrix operation instead of one per entry.",
        "LIBRARY": MATRIX,
        "FUNCTIONS": MATRIX.functions,
        "prepare": MATRIX.prepare,
        "build": MATRIX.build,
    },
}
