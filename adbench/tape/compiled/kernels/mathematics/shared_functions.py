"""Kernels: one source for single numbers and for vectors, so that both give the same bits.

A `Kernel` writes its instructions for any width. Loops over arrays contain them. For single numbers, the program has
one function for each kernel, and calls it: an operation costs one instruction to compile. Long programs, compiled
without optimisation, call functions that are compiled once per process. Fast-math does not apply to kernels, because
their steps depend on exact rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm

from adbench.tape.machine.llvm import Loaded
from adbench.tape.machine.simd import Code, Module, Name, Simd, X

INLINE = 2_500
"""The most instructions of kernels in one module; later ones are calls, because LLVM's time grows with the module."""

ATTRIBUTES = "nounwind willreturn memory(none)"
_loaded: dict[str, Loaded] = {}


class Kernel:
    """A function of one or more numbers with one or more results, such as sine and cosine.

    write   (k, *arguments) -> the results; it must not depend on the width or on the lane
    """

    def __init__(self, name: str, arguments: int, results: int, write: Callable[..., Sequence[X]]) -> None:
        self.name, self.arguments, self.results, self.write = name, arguments, results, write

    def __call__(self, k: Simd, *names: Name) -> tuple[Name, ...]:
        """The results. Those of an earlier call on the same arguments are used again."""
        key = (self.name, k.width, names)
        known = k.code.known.get(key)
        if known is None:
            module = k.code.module
            is_vector = k.width > k.code.width and not module.shares_kernels and module.inlined < INLINE
            inline = k.code.is_kernel or is_vector
            known = k.code.known[key] = self._inline(k, names) if inline else self.call(k, names)
        return known

    def _inline(self, k: Simd, names: Sequence[Name]) -> tuple[Name, ...]:
        before = len(k.code.lines)
        exact = k.exact()
        results = tuple(x.name for x in self.write(exact, *map(exact.x, names)))
        k.code.module.inlined += len(k.code.lines) - before
        return results

    def call(self, k: Simd, names: Sequence[Name]) -> tuple[Name, ...]:
        """The results, by a call of a function."""
        module, symbol, kind = k.code.module, f"adbench_{self.name}_{k.width}", self._kind(k)
        if module.shares_kernels:
            self._load(symbol, k.width)
            module.declare(symbol, f"{kind} {{}}({', '.join([k.real] * self.arguments)})", ATTRIBUTES)
        elif symbol not in module.kernels:
            module.kernels.add(symbol)
            self._define(module, symbol, k.width, "internal ")
        result = k.code.emit(f"call {kind} @{symbol}({', '.join(f'{k.real} {n}' for n in names)})")
        if self.results == 1:
            return (result,)
        return tuple(k.code.emit(f"extractvalue {kind} {result}, {i}") for i in range(self.results))

    def _kind(self, k: Simd) -> str:
        """The LLVM type of the results."""
        return k.real if self.results == 1 else f"{{ {', '.join([k.real] * self.results)} }}"

    def _define(self, module: Module, symbol: str, width: int, linkage: str = "") -> None:
        code = Code(module)
        code.is_kernel = True
        k = Simd(code, width).exact()
        names = [f"%x{i}" for i in range(self.arguments)]
        results = [x.name for x in self.write(k, *map(k.x, names))]
        kind, whole = self._kind(k), "poison"
        for i, result in enumerate(results):
            whole = result if len(results) == 1 else code.emit(f"insertvalue {kind} {whole}, {k.real} {result}, {i}")
        code.do(f"ret {kind} {whole}")
        parameters = ", ".join(f"{k.real} {n}" for n in names)
        module.function(f"{linkage}{kind} @{symbol}({parameters}) {ATTRIBUTES}", code)

    def _load(self, symbol: str, width: int) -> None:
        """Compile the shared function at its first use in the process."""
        if symbol not in _loaded:
            module = Module()
            self._define(module, symbol, width)
            _loaded[symbol] = Loaded(module.text(), [], level=2)
            llvm.add_symbol(symbol, _loaded[symbol].address(symbol))


@dataclass(frozen=True)
class Part:
    """The function that writes one of the results of a kernel."""

    kernel: Kernel
    number: int

    def __call__(self, k: Simd, *names: Name) -> Name:
        """Write the kernel, or use its results again."""
        return self.kernel(k, *names)[self.number]


def kernel(name: str, arguments: int = 1, results: int = 1) -> Callable[[Callable[..., Sequence[X]]], Kernel]:
    """Make a kernel of the function that writes it."""
    return lambda write: Kernel(name, arguments, results, write)


def rarely(k: Simd, condition: Name, usual: Sequence[X], rare: Kernel, *arguments: X) -> tuple[X, ...]:
    """The usual results, but those of another kernel in lanes where a condition holds; if none, it costs a branch."""
    results = unless(k, condition, [x.name for x in usual], lambda: rare.call(k, [x.name for x in arguments]))
    return tuple(map(k.x, results))


def unless(k: Simd, condition: Name, usual: Sequence[Name], rare: Callable[[], Sequence[Name]]) -> list[Name]:
    """The usual numbers, but in lanes where a condition holds the numbers of `rare`."""
    code = k.code
    before, away, after = code.block, code.label(), code.label()
    code.do(f"br i1 {k.any(condition)}, label %{away}, label %{after}, !prof !1")
    code.begin(away)
    chosen = [k.select(condition, other, x) for other, x in zip(rare(), usual, strict=True)]
    code.do(f"br label %{after}")
    code.begin(after)
    return [
        code.emit(f"phi {k.real} [ {one}, %{before} ], [ {other}, %{away} ]")
        for one, other in zip(usual, chosen, strict=True)
    ]
