"""C++ with gradients vectorised by hand and by the compiler, with glibc's vectorised functions: the best on arrays.

`native/cpp_simd` has gradients for ten cases, with the options of -ffast-math. They are listed one by one, because gcc
links -ffast-math itself with code that turns off subnormal numbers in the whole process.
"""

from pathlib import Path

from adbench import CppLibrary

LICENCE = "BSD-3-Clause"  # ours
VARIANT_OF = "cpp_hand"
BUILDS = True
BATCHED = True

NATIVE = Path(__file__).parent / "native"
LIBRARY = CppLibrary(
    NATIVE / "cpp_hand.hpp",
    needs="bits/math-vector.h",
    get="it needs glibc's libmvec: Linux on x86-64",
    flags=(
        *("-fassociative-math", "-freciprocal-math", "-fno-signed-zeros", "-fno-trapping-math", "-ffinite-math-only"),
        *("-fno-math-errno", "-D__FAST_MATH__", "-mprefer-vector-width=512", "-ffp-contract=fast"),
    ),
    links=("mvec", "m"),
    by_hand=True,
    texts=NATIVE / "cpp_simd",
)
FUNCTIONS = LIBRARY.functions
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
