"""Stan Math: records scalar operations at every call, in an arena, and sweeps them back."""

from pathlib import Path

from adbench import CppLibrary

REQUIRES = ("httpstan",)  # the distribution that carries the headers of Stan Math, Boost, Eigen and TBB
HOME = "STAN_MATH_HOME"  # where a copy of your own is
LICENCE = "BSD-3-Clause"
BUILDS = True

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
