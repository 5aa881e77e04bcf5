"""Plain C++ with a hand-written gradient: the best that the C++ libraries could reach."""

from pathlib import Path

from adbench import CppLibrary

LICENCE = "BSD-3-Clause"  # ours
ROLE = "comparison"
BUILDS = True
BATCHED = True

LIBRARY = CppLibrary(Path(__file__).parent / "native" / "cpp_hand.hpp", by_hand=True)
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
