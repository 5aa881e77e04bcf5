"""FastAD: an expression template of the whole function, built once, evaluated forwards and back at every call."""

from pathlib import Path

from adbench import CppLibrary

HOME = "FASTAD_HOME"  # where a copy of your own is
LICENCE = "MIT"
BUILDS = True

NATIVE = Path(__file__).parent / "native"
LIBRARY = CppLibrary(
    NATIVE / "fastad.hpp",
    needs="fastad",
    prefixes=(f"${HOME}",),
    get="no package has it: install https://github.com/JamesYang007/FastAD and Eigen (apt install libeigen3-dev), and "
    "set FASTAD_HOME to the folder whose include/ has fastad",
    flags=("-idirafter", "/usr/include/eigen3"),  # Debian's Eigen, unless another is found first
    texts=NATIVE / "fastad",
)
FUNCTIONS = LIBRARY.functions
prepare, build, to_native, to_numpy = LIBRARY.prepare, LIBRARY.build, LIBRARY.to_native, LIBRARY.to_numpy
