"""Plain C++ with a gradient by hand, where a case's twin has one: what the C++ libraries could reach."""

from pathlib import Path

from adbench import CppLibrary

LICENCE = "BSD-3-Clause"  # ours
BUILDS = True

LIBRARY = CppLibrary(Path(__file__).parent / "native" / "cpp_hand.hpp", by_hand=True)
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
