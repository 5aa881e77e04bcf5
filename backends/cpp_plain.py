"""Plain C++ with the system's compiler: the value, and no derivative; the floor that the C++ libraries stand on."""

from pathlib import Path

from adbench import CppLibrary

LICENCE = "BSD-3-Clause"  # ours
BUILDS = True

LIBRARY = CppLibrary(Path(__file__).parent / "native" / "cpp_plain.hpp")
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
