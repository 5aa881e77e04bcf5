"""Compiled functions: record a function once, and run it as machine code.

    call = compile(f, x)
    value, gradient = call(x)

See docs/explanation/compiled.md.
"""

from adbench.tape.compiled.compilation import compile
from adbench.tape.compiled.runtime.compiled_call import Compiled

__all__ = ["Compiled", "compile"]
