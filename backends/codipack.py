"""CoDiPack 2 and 3: record a Jacobian tape with expression templates at every call; reverse and forward mode."""

from pathlib import Path

from adbench import CppLibrary

HOME = "CODIPACK_HOME"  # the folder of the user's copy
LICENCE = "GPL-3.0-or-later"
BUILDS = True
BATCHED = True

LIBRARY = CppLibrary(
    Path(__file__).parent / "native" / "codipack.hpp",
    needs="codi.hpp",
    prefixes=(f"${HOME}",),
    get="clone https://github.com/SciCompKL/CoDiPack and set CODIPACK_HOME to the clone",
)
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
