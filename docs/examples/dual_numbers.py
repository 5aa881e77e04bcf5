"""Dual numbers in C++: forward mode by operator overloading."""

from pathlib import Path

from adbench import CppLibrary

BUILDS = True

LIBRARY = CppLibrary(Path(__file__).with_suffix(".hpp"))
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
