"""Checks of the memory methods on this machine: known amounts, allocated in fresh processes and read back.

Some methods cannot see some allocations (`SEEN`) and must read almost nothing there. A method that is neither correct
nor blind as stated gives wrong figures on this machine.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

from adbench.measure.machine import first_program
from adbench.measure.memory import Call, Method, environment, measure
from adbench.measure.readings import Figure

MEGABYTE = 2**20
TOLERANCE = 0.05
AMOUNTS = (64 * MEGABYTE, 192 * MEGABYTE)  # Python allocates small objects in pieces of a megabyte


def _numpy(amount: int) -> Call:
    import numpy

    return lambda: numpy.ones(amount // 8)


def _untouched(amount: int) -> Call:
    import numpy

    return lambda: numpy.empty(amount // 8)


def _torch(amount: int) -> Call:
    import torch

    return lambda: torch.ones(amount // 8, dtype=torch.float64)


def _jax(amount: int) -> Call:
    import jax

    jax.config.update("jax_enable_x64", True)
    filled = jax.jit(lambda x: x + jax.numpy.ones(amount // 8))
    return lambda: jax.block_until_ready(filled(1.0))


def _by_address(amount: int) -> Call:
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]

    def call() -> None:
        block = libc.malloc(amount)
        ctypes.memset(block, 1, amount)
        libc.free(block)

    return call


_SOURCE = """
#include <stdlib.h>
#include <string.h>
int work(size_t amount) {
    volatile char *block = malloc(amount); /* volatile: or the compiler sees that nobody needs it */
    if (!block) return -1;
    memset((char *)block, 1, amount);
    int last = block[amount - 1];
    free((char *)block);
    return last;
}
"""


def _library(amount: int) -> Call:
    with tempfile.TemporaryDirectory(prefix="adbench-") as folder:
        file = Path(folder) / "library.so"
        command = [str(compiler()), "-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", str(file)]
        subprocess.run(command, input=_SOURCE, text=True, capture_output=True, check=True)
        library = ctypes.CDLL(str(file))
    library.work.argtypes = [ctypes.c_size_t]
    return lambda: library.work(amount)


def _objects(amount: int) -> Call:
    one = sys.getsizeof(bytes(415))  # a multiple of 16, to which Python's allocator rounds up
    return lambda: [bytes(415) for _ in range(amount // (one + 8))]  # plus 8 bytes in the list


def _child(amount: int) -> Call:
    """A forked process that fills an anonymous mapping, and waits until it has been seen."""

    def call() -> None:
        pid = os.fork()
        if pid == 0:
            block = mmap.mmap(-1, amount)
            ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(block)), 1, amount)
            time.sleep(0.1)
            os._exit(0)
        os.waitpid(pid, 0)

    return call


ALLOCATORS: Mapping[str, Callable[[int], Call]] = {
    "numpy": _numpy,
    "torch": _torch,
    "jax": _jax,
    "C library": _library,
    "malloc by address": _by_address,
    "Python objects": _objects,
    "untouched array": _untouched,
    "child process": _child,
}
"""Name -> a function that makes a call with a peak of exactly this many bytes."""

SEEN: Mapping[Method, frozenset[str]] = {
    "allocated": frozenset(ALLOCATORS) - {"malloc by address", "child process"},
    "python": frozenset({"numpy", "Python objects", "untouched array"}),
    "resident": frozenset(ALLOCATORS) - {"untouched array"},
}


@dataclass(frozen=True)
class Reading:
    """A method's reading of `amount` bytes; `seen`: whether it can see this allocator."""

    allocator: str
    method: Method
    amount: int
    figure: Figure
    seen: bool

    @property
    def true(self) -> bool | None:
        """Whether the figure is within 5 % of the amount, or of nothing if not seen; None without a figure."""
        if self.figure.value is None:
            return None
        return abs(self.figure.value - (self.amount if self.seen else 0)) <= TOLERANCE * self.amount


def readings(
    allocators: Sequence[str] = tuple(ALLOCATORS),
    methods: Sequence[Method] = get_args(Method),
    amounts: Sequence[int] = AMOUNTS,
    *,
    timeout: float = 120.0,
) -> Iterator[Reading]:
    """Readings of every method for every installed allocator, each pair in a separate process."""
    for allocator in allocators:
        if missing(allocator) is not None:
            continue
        for method in methods:
            for amount, figure in zip(amounts, _fresh(allocator, method, amounts, timeout), strict=True):
                yield Reading(allocator, method, amount, figure, allocator in SEEN[method])


def missing(allocator: str) -> str | None:
    """Why this allocator cannot be tested here, or None."""
    if allocator in ("torch", "jax") and importlib.util.find_spec(allocator) is None:
        return f"{allocator} is not installed"
    return "there is no C compiler" if allocator == "C library" and compiler() is None else None


@cache
def compiler() -> str | None:
    """The C compiler: $CC, or the first of the usual names."""
    return first_program((os.environ.get("CC", ""), "cc", "gcc", "clang"))


def _fresh(allocator: str, method: Method, amounts: Sequence[int], timeout: float) -> list[Figure]:
    """The figures, from a separate process."""
    program = f"from {__name__} import answer; answer({allocator!r}, {method!r}, {tuple(amounts)!r})"
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", program],
            env={**os.environ, **environment(method), "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        figures: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else []
    except subprocess.TimeoutExpired:
        return [Figure(None, f"its process took longer than {timeout:g} s")] * len(amounts)
    if not figures:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return [Figure(None, f"its process ended with {done.returncode}: {last}")] * len(amounts)
    return [Figure(**figure) for figure in figures]


def answer(allocator: str, method: Method, amounts: Sequence[int]) -> None:
    """The program of the process: measure, and print the figures on one line."""
    figures = [measure(method, ALLOCATORS[allocator](amount)) for amount in amounts]
    print(json.dumps([vars(figure) for figure in figures]))
