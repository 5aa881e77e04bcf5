"""Compiled functions: record a function once, and run it as machine code.

    call = compile(f, x)
    value, gradient = call(x)

See docs/explanation/compiled.md.
"""

from adbench.optional import require

for _name in ("llvmlite", "scipy"):  # before the modules that import them
    require(_name, "adbench.tape.compile")

from adbench.tape.compiled.compilation import compile  # noqa: E402
from adbench.tape.compiled.runtime.compiled_call import Compiled  # noqa: E402

__all__ = ["Compiled", "compile"]
