"""Stan Math: record scalar operations in an arena at every call and sweep them back."""

from pathlib import Path

from adbench import CppLibrary

REQUIRES = ("httpstan",)  # ships the headers of Stan Math, Boost, Eigen and TBB
HOME = "STAN_MATH_HOME"  # the folder of the user's copy
LICENCE = "BSD-3-Clause"
BUILDS = True
BATCHED = True

LIBRARY = CppLibrary(
    Path(__file__).parent / "native" / "stan_math.hpp",
    needs="stan/math.hpp",
    prefixes=(f"${HOME}", "httpstan:httpstan"),
    get="pip install httpstan",
    flags=("-D_REENTRANT",),
    links=("tbb",),
    precompile=True,
)
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
