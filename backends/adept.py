"""Adept 2: records operations at every call by expression templates; reverse and forward."""

from pathlib import Path

from adbench import CppLibrary

HOME = "ADEPT_HOME"  # where a copy of your own is
LICENCE = "Apache-2.0"
BUILDS = True

LIBRARY = CppLibrary(
    Path(__file__).parent / "native" / "adept.hpp",
    needs="adept.h",
    prefixes=(f"${HOME}",),
    get="no package has it: build https://github.com/rjhogan/Adept-2 and set ADEPT_HOME to where it is installed",
    links=("adept",),
)
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
