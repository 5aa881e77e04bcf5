"""The locations of a block's values, even if used far from their definition.

LLVM is slow at allocating registers over thousands of instructions. So a value used far away is spilled to memory at
its definition and reloaded at its use. This also allows cutting a long program into several functions: after a cut, all
needed values are in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.storage import Buffer, Location, Registers, Uniform
from adbench.tape.compiled.trace.symbol import Symbol
from adbench.tape.core.rule import Value
from adbench.tape.machine.simd import Code, Name, Simd

SPILL_DISTANCE = 300
"""Instructions after which a value is reloaded from memory."""


class ValueLocations:
    """Values by the number of their symbol.

    locations    of each value
    uses         the number of operations that still need it; in a straight program, the last of them
    done         a value is needed if `uses` is greater: 0, or in a straight program the current operation
    wanted       the values that are outputs
    defined_at   the line of the program after which it exists
    near         the same, or the line of its last reload
    recent       the values computed since the last cut
    slots        where it is spilled, if it is
    """

    def __init__(self, emission: Emission) -> None:
        self.emission = emission
        self.scalar = Simd(emission.code, emission.width)
        self.locations: dict[int, Location] = {}
        self.uses: dict[int, int] = {}
        self.done = 0
        self.wanted: set[int] = set()
        self.defined_at: dict[int, int] = {}
        self.near: dict[int, int] = {}
        self.recent: list[int] = []
        self.slots: dict[int, int] = {}

    def location(self, x: Value) -> Location:
        """The location of a value, reloaded if it was used long ago."""
        if type(x) is not Symbol:
            return self.emission.constant(x)
        n = x.number
        location = self.locations[n]
        near, begun = self.near.get(n), self.emission.lines
        if near is None or isinstance(location, Buffer):
            return location
        if near < begun or begun + len(self.emission.code.lines) - near > SPILL_DISTANCE:
            location = self.locations[n] = self.reload(n)
        return location

    def number(self, x: Value) -> Name:
        """The name of a number, reloaded if it was used long ago."""
        if type(x) is float:
            return self.code.constant(x)
        location = self.location(x)
        return location.element if type(location) is Registers else self.emission.first(location)

    def define(self, n: int) -> None:
        """Note that a value exists from here on."""
        self.near[n] = self.defined_at[n] = self.emission.lines + len(self.emission.code.lines)
        self.recent.append(n)

    @property
    def code(self) -> Code:
        """The current function."""
        return self.emission.code

    def reload(self, n: int) -> Location:
        """Read the elements from memory, after spilling them at their definition."""
        location = self.locations[n]
        names = self.spill(n, location)
        code, again = self.code, []
        for k, name in enumerate(names):
            if not name.startswith("%"):
                again.append(name)
                continue
            number = code.load(code.element("%work", str(self.slots[n] + k)))
            again.append(self.emission.as_boolean(number) if location.boolean else number)
        self.near[n] = self.emission.lines + len(code.lines)
        if isinstance(location, Uniform):
            return Uniform(again[0], location.shape, location.boolean)
        return Registers(tuple(again), location.shape, location.boolean)

    def spill(self, n: int, location: Location) -> Sequence[Name]:
        """Store the elements right after their definition, unless already stored; return their names."""
        names = (location.element,) if isinstance(location, Uniform) else location.elements  # type: ignore[union-attr]
        if n in self.slots:
            return names
        self.slots[n] = self.emission.workspace.unused(len(names))
        real = self.code.real
        late = self.code.late.setdefault(self.defined_at[n] - self.emission.lines, [])
        for k, name in enumerate(names):
            if not name.startswith("%"):
                continue
            key = f"{self.slots[n] + k}"
            if location.boolean:
                late.append(f"  %n{key} = uitofp {self.code.bit} {name} to {real}")
                name = f"%n{key}"
            late.append(f"  %m{key} = getelementptr inbounds {real}, ptr %work, i64 {key}")
            late.append(f"  store {real} {name}, ptr %m{key}, align 8")
        return names

    def cut(self) -> None:
        """Continue in a new function, if no needed value is on this function's stack."""
        needed = [n for n in self.recent if self.uses.get(n, 0) > self.done or n in self.wanted]
        if not all(self.emission.is_anchored(self.locations[n]) for n in needed):
            return
        for n in needed:
            if n not in self.slots and not isinstance(self.locations[n], Buffer):
                self.spill(n, self.locations[n])
        self.recent.clear()
        self.emission.cut()
        self.scalar = Simd(self.code, self.emission.width)
