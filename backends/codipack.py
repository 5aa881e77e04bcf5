"""CoDiPack 2 and 3: records a tape of Jacobians at every call by expression templates; reverse and forward."""

from pathlib import Path

from adbench import CppLibrary

HOME = "CODIPACK_HOME"  # where a copy of your own is
LICENCE = "GPL-3.0-or-later"
BUILDS = True

LIBRARY = CppLibrary(
    Path(__file__).parent / "native" / "codipack.hpp",
    needs="codi.hpp",
    prefixes=(f"${HOME}",),
    get="no package has it: clone https://github.com/SciCompKL/CoDiPack and set CODIPACK_HOME to the clone",
)
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
