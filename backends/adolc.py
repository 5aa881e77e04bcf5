"""ADOL-C: record a tape of operations at every call and sweep it back."""

import sys
from pathlib import Path

from adbench import CppLibrary

DEBIAN = ("libadolc-dev",)
HOME = "ADOLC_HOME"  # the folder of the user's copy
LICENCE = "EPL-1.0 OR GPL-2.0-or-later"
BUILDS = True
BATCHED = True

LIBRARY = CppLibrary(
    Path(__file__).parent / "native" / "adolc.hpp",
    needs="adolc/adolc.h",
    prefixes=(f"${HOME}",),
    get="apt install libadolc-dev",
    # The pool of locations never shrinks, and every recording scans it: after a recording with a million variables a
    # call takes 17 ms instead of 5 µs. So each prepared call loads its own copy of the library.
    archives=("adolc",),
    flags=("-Wl,--exclude-libs,ALL",) if sys.platform == "linux" else (),  # or the copies would share symbols
    private={".adolcrc": '"TAPE_DIR" "{scratch}"\n'},
)
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy

VARIANTS = {
    "adolc_reuse": {
        "SUMMARY": "ADOL-C: reuse one recording; record again only when a constant or a comparison's outcome changes.",
        "prepare": LIBRARY.as_variant(1).prepare,
    },
}
