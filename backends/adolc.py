"""ADOL-C: records a tape of operations at every call, and sweeps it back."""

import sys
from pathlib import Path

from adbench import CppLibrary

DEBIAN = ("libadolc-dev",)
HOME = "ADOLC_HOME"  # where a copy of your own is
LICENCE = "EPL-1.0 OR GPL-2.0-or-later"
BUILDS = True

LIBRARY = CppLibrary(
    Path(__file__).parent / "native" / "adolc.hpp",
    needs="adolc/adolc.h",
    prefixes=(f"${HOME}",),
    get="apt install libadolc-dev",
    # Its pool of locations never shrinks, and every recording takes stock of all of it: a call after one with a million
    # variables takes 17 ms instead of 5 µs. A copy of the library for each prepared call is as a process for each.
    archives=("adolc",),
    flags=("-Wl,--exclude-libs,ALL",) if sys.platform == "linux" else (),  # else the copies would share its symbols
    private={".adolcrc": '"TAPE_DIR" "{scratch}"\n'},
)
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
