"""Where the values of a block are, also when they are used far from where they were made.

LLVM takes long to find out what to keep in registers over thousands of instructions. So a value that is used far away
is written to memory where it was made, and read again where it is used. That also lets a long program be cut in
functions of their own: what is needed behind a cut lies in memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from adbench.tape.compiled.kernels.simd import Code, Lanes, Name
from adbench.tape.compiled.lowering.emission import Emission
from adbench.tape.compiled.lowering.storage import Big, Place, Small, Uniform
from adbench.tape.compiled.trace.symbol import Symbol
from adbench.tape.core.rule import Value

FAR = 300
"""Instructions after which a value is read from memory again."""


class Reach:
    """Values by the number of their symbol.

    places   where each value is
    uses     how many operations still need it
    wanted   those that are needed in the end
    """

    def __init__(self, emission: Emission) -> None:
        self.emission = emission
        self.lane = Lanes(emission.code, 1)
        self.places: dict[int, Place] = {}
        self.uses: dict[int, int] = {}
        self.wanted: set[int] = set()
        self.made_at: dict[int, tuple[Code, int]] = {}
        self.near: dict[int, int] = {}
        self.slots: dict[int, int] = {}

    def place(self, x: Value) -> Place:
        """Where a value is."""
        if type(x) is not Symbol:
            return self.emission.constant(x)
        n = x.number
        place = self.places[n]
        near = self.near.get(n)
        if near is not None and len(self.emission.code.lines) - near > FAR and not isinstance(place, Big):
            place = self.places[n] = self.read_again(n)
        return place

    @property
    def code(self) -> Code:
        """The function that is being written."""
        return self.emission.code

    def read_again(self, n: int) -> Place:
        """The elements read from memory; they are written there right behind where they were made."""
        place = self.places[n]
        names = (place.element,) if isinstance(place, Uniform) else place.elements  # type: ignore[union-attr]
        if n not in self.slots:
            self.slots[n] = self.emission.workspace.unused(len(names))
            self.write_late(n, names, place.boolean)
        code, again = self.code, []
        for k, name in enumerate(names):
            if not name.startswith("%"):
                again.append(name)
                continue
            address = code.emit(f"getelementptr inbounds double, ptr %work, i64 {self.slots[n] + k}")
            number = code.emit(f"load double, ptr {address}, align 8")
            again.append(code.emit(f"fcmp une double {number}, 0.0") if place.boolean else number)
        self.near[n] = len(code.lines)
        if isinstance(place, Uniform):
            return Uniform(again[0], place.shape, place.boolean)
        return Small(tuple(again), place.shape, place.boolean)

    def write_late(self, n: int, names: Sequence[Name], boolean: bool) -> None:
        """Stores elements where they were made."""
        code, line = self.made_at[n]
        late = code.late.setdefault(line, [])
        for k, name in enumerate(names):
            if not name.startswith("%"):
                continue
            key = f"{self.slots[n] + k}"
            if boolean:
                late.append(f"  %n{key} = uitofp i1 {name} to double")
                name = f"%n{key}"
            late.append(f"  %m{key} = getelementptr inbounds double, ptr %work, i64 {key}")
            late.append(f"  store double {name}, ptr %m{key}, align 8")

    def cut(self) -> None:
        """Goes on in a new function, if nothing that is needed lies on the stack of this one."""
        needed = [n for n, place in self.places.items() if self.uses.get(n, 0) > 0 or n in self.wanted]
        if not all(self.emission.is_anchored(self.places[n]) for n in needed):
            return
        for n in needed:
            place = self.places[n]
            if not isinstance(place, Big) and n not in self.slots:
                names = (place.element,) if isinstance(place, Uniform) else place.elements
                self.slots[n] = self.emission.workspace.unused(len(names))
                self.write_late(n, names, place.boolean)
            self.near[n] = -FAR - 1
        self.emission.cut()
        self.lane = Lanes(self.code, 1)
