"""Compiled functions: a function recorded once, and run as machine code.

    call = compile(f, x)
    value, gradient = call(x)

See docs/engine/compiled.md.
"""

from adbench.tape.compiled.runtime.compiled_call import Compiled, compile

__all__ = ["Compiled", "compile"]
