"""FastAD: build one expression template of the whole function, evaluate it forwards and backwards at every call."""

from pathlib import Path

from adbench import CppLibrary

HOME = "FASTAD_HOME"  # the folder of the user's copy
LICENCE = "MIT"
BUILDS = True
BATCHED = True

NATIVE = Path(__file__).parent / "native"
LIBRARY = CppLibrary(
    NATIVE / "fastad.hpp",
    needs="fastad",
    prefixes=(f"${HOME}",),
    get="install https://github.com/JamesYang007/FastAD and Eigen (apt install libeigen3-dev), and set FASTAD_HOME "
    "to the folder whose include/ has fastad",
    flags=("-idirafter", "/usr/include/eigen3"),  # Debian's Eigen, if no other is found first
    texts=NATIVE / "fastad",
)
FUNCTIONS = LIBRARY.functions
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
