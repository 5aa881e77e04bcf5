"""Plain C++: the value without derivatives, the lower bound for the C++ libraries."""

from pathlib import Path

from adbench import CppLibrary

LICENCE = "BSD-3-Clause"  # ours
ROLE = "comparison"
BUILDS = True
BATCHED = True

LIBRARY = CppLibrary(Path(__file__).parent / "native" / "cpp_plain.hpp")
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
