"""Sacado (Trilinos): record operations at every call; reverse mode with Rad, forward mode with Fad."""

from pathlib import Path

from adbench import CppLibrary

DEBIAN = ("libtrilinos-sacado-dev", "libtrilinos-kokkos-dev")
HOME = "SACADO_HOME"  # the folder of the user's copy
LICENCE = "LGPL-2.1-or-later"
BUILDS = True
BATCHED = True

LIBRARY = CppLibrary(
    Path(__file__).parent / "native" / "sacado.hpp",
    needs="Sacado_trad.hpp",
    prefixes=(f"${HOME}", "/usr"),
    include="include/trilinos",
    get="apt install --no-install-recommends libtrilinos-sacado-dev libtrilinos-kokkos-dev",
)
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
