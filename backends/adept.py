"""Adept 2: record with expression templates at every call; reverse and forward mode."""

from pathlib import Path

from adbench import CppLibrary

HOME = "ADEPT_HOME"  # the folder of the user's copy
LICENCE = "Apache-2.0"
BUILDS = True
BATCHED = True

LIBRARY = CppLibrary(
    Path(__file__).parent / "native" / "adept.hpp",
    needs="adept.h",
    prefixes=(f"${HOME}",),
    get="build https://github.com/rjhogan/Adept-2 and set ADEPT_HOME to its install folder",
    links=("adept",),
)
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
