"""Compiled functions: record a function once, and run it as machine code.

    call = compile(f, x)
    value, gradient = call(x)

See docs/explanation/compiled.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from adbench.optional import require
from adbench.sealed_folder import SealedFolder

for _name in ("llvmlite", "scipy"):  # before the modules that import them
    require(_name, "adbench.tape.compile")

from adbench.tape.compiled.batch.batched_call import Batched  # noqa: E402
from adbench.tape.compiled.runtime.compiled_call import Compiled  # noqa: E402
from adbench.tape.compiled.runtime.program import CompileOptions, Watch  # noqa: E402

__all__ = ["Compiled", "compile"]

CODE_LIMIT = 512 * 2**20
"""Bytes of machine code that a cache keeps."""


def compile(
    f: Callable[..., Any],
    *example: Any,
    operator: str = "value_and_gradient",
    wrt: int | Sequence[int] | None = None,
    fast_math: bool = False,
    level: int | None = None,
    checkpointed: bool = False,
    recordings: int = 32,
    watch: Watch = None,
    cache: str | os.PathLike[str] | None = None,
    sparse: bool = False,
    threads: int = 1,
    batch: bool = False,
    shared: int | Sequence[int] = (),
    eager: bool = True,
) -> Compiled:
    """Compile f to machine code. call(*args) returns the same as the eager functional.

    example        arguments of a call at which to record: numbers, arrays, or nests of them. Others (integers, texts)
                   are settings, part of the program. An integer to differentiate in counts as a float
    operator       value_and_gradient: (f, gradient); value, gradient; vjp, jvp, hvp: these take a vector as the last
                   argument, and an example of it as the last example; jacobian: (f, J); hessian: (f, gradient, H)
    wrt            positions of the arguments to differentiate in; by default all that hold floats. The gradient is a
                   tuple with one entry per argument, or for a single argument the gradient itself
    fast_math      lets LLVM reorder sums and fuse products: rounding differs, and NaN and infinities are not handled
    level          of optimisation, 0 to 3; by default chosen by the length of the program
    checkpointed   loops store only some states for the reverse sweep, and recompute the others
    recordings     the most paths through the function kept for each signature
    watch          watch("record"), "lower" and "compile" return contexts in which these phases run, for timing
    cache          a folder of yours that stores machine code for later processes; by default nothing is stored
    sparse         for jacobian and hessian: each matrix, or each block for nests and several arguments, is a
                   `scipy.sparse.csr_array` of (elements of the value, or of the input; elements of the input)
    threads        the most threads for a loop over a large array; the result has the same bits for any number
    batch          evaluate N points in one call: every array, in the example too, has a leading axis of N, and so has
                   every result. Same bits as N calls. Settings have no such axis
    shared         with batch: positions of arguments that all points share, without that axis
    eager          whether the eager engine handles calls that cannot run as machine code; if not, they raise
                   NotCompilableError
    """
    if type(threads) is not int or threads < 1:
        raise ValueError(f"compile: threads: expected a whole number of at least 1, got {threads!r}")
    try:
        opened = None if cache is None else SealedFolder(cache, limit=CODE_LIMIT)
    except ValueError as error:
        raise ValueError(f"compile: cache: {error}") from error
    options = CompileOptions(fast_math, level, checkpointed, recordings, watch, opened, sparse, threads, batch, eager)
    if batch:
        if sparse:
            raise ValueError("compile: batch: sparse results have no leading axis; leave out sparse=")
        compiled: Compiled = Batched(f, example, operator, wrt, options, shared)
    elif shared != ():
        raise ValueError("compile: shared: expected batch=True")
    else:
        compiled = Compiled(f, example, operator, wrt, options)
    compiled.call(*example)
    return compiled
