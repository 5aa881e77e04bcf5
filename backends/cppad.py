"""CppAD: record a tape of operations at every call and sweep it back."""

from pathlib import Path

from adbench import CppLibrary

REQUIRES = ("cmeel-cppad",)
HOME = "CPPAD_HOME"  # the folder of the user's copy
LICENCE = "EPL-2.0 OR GPL-2.0-or-later"
BUILDS = True
BATCHED = True

LIBRARY = CppLibrary(
    Path(__file__).parent / "native" / "cppad.hpp",
    needs="cppad/cppad.hpp",
    prefixes=(f"${HOME}", "cmeel-cppad:cmeel.prefix"),
    get="pip install cmeel-cppad",
    links=("cppad_lib",),
    common=True,
    precompile=True,
)
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy

VARIANTS = {
    "cppad_optimised": {
        "SUMMARY": "CppAD: reuse one optimised recording; record again only when a constant or a comparison's outcome "
        "changes.",
        "prepare": LIBRARY.as_variant(2).prepare,
    },
    "cppad_reuse": {
        "SUMMARY": "CppAD: reuse one recording; record again only when a constant or a comparison's outcome changes.",
        "prepare": LIBRARY.as_variant(1).prepare,
    },
}
