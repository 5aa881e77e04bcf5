"""Compiled functions, and the dispatch of calls to recordings.

The *signature* of a call consists of the shapes and types of its arguments, and the values of settings (integers,
booleans, texts). Each signature has recordings, one for each path taken through the function. A call tries them in
turn; the guards of a recording check whether it is valid here. If none is valid, the function is recorded at this point
too.

The eager engine handles these calls only, and `explain()` gives the reason. With `eager=False` they raise
NotCompilableError. Every other error, of the compiler or of LLVM, is a fault and raises.

* a function that cannot be recorded
* more paths through the function than recordings
* no memory for the workspace
* a point that machine code leaves open: a singular matrix, equal eigenvalues, a rule called in Python that raises
* an error that the function raises while it is recorded; the eager engine raises it again
"""

from __future__ import annotations

import ctypes
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from adbench.tape.compiled.lowering.emission import ReturnCode
from adbench.tape.compiled.runtime.arguments import Assembly, CallDescription, FlatArguments, eager
from adbench.tape.compiled.runtime.entry import (
    CompiledEntry,
    DispatchTable,
    Native,
    NestedEntry,
    call_natively,
    not_here,
)
from adbench.tape.compiled.runtime.program import CompiledProgram, CompileOptions
from adbench.tape.compiled.trace.record_function import (
    Recording,
    RecordingRequest,
    record,
)
from adbench.tape.core.rule import TapeError
from adbench.tape.fast.collector import paused
from adbench.tape.levels import NotCompilableError
from adbench.tape.machine.layout import layouts_are_known


class RaisedError(Exception):
    """Raised from an error of the function, or of a rule called in Python."""


def _is_fault(error: BaseException) -> bool:
    """Whether the engine caused this error, and neither on purpose nor because of the numbers at this point.

    The innermost frame outside numpy and scipy decides. The eager engine has evaluated the same call without an error.
    """
    if isinstance(error, (TapeError, ArithmeticError, np.linalg.LinAlgError)):
        return False
    names = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = [name for name in names if name.partition(".")[0] not in ("numpy", "scipy")]
    return bool(ours) and ours[-1].startswith("adbench.tape.")


class Signature:
    """The recordings of one signature, and its native entry point."""

    def __init__(self, owner: Compiled, arguments: FlatArguments) -> None:
        self.owner = owner
        self.key = arguments.key
        self.programs: list[CompiledProgram] = []
        self.careful: list[CompiledProgram] = []
        self.dispatch = DispatchTable()
        self.eager_because = ""

    def answer(self, args: Sequence[Any], arguments: FlatArguments) -> Any:
        """The result, from a recording whose guards hold, a new recording, or the eager engine."""
        reason, error = "", None
        if not self.eager_because:
            try:
                result = self.native(args, arguments)
                if isinstance(result, tuple):
                    program, parts = result
                    return program.assembly(parts)
                reason = result
            except NotCompilableError as because:
                self.eager_because = str(because)
            except MemoryError as because:
                self.eager_because = (
                    f"not enough memory for the workspace: {because}; free memory or use smaller arrays"
                )
            except RaisedError as raised:
                error = raised.__cause__
        eager_result = eager(self.owner, args)  # it raises the function's own errors again
        if error is not None:
            if _is_fault(error):
                raise error
            self.eager_because = f"{type(error).__name__}: {error}"
        if not self.owner.options.eager:
            raise NotCompilableError(f"{self.owner.name} does not run as machine code: {reason or self.eager_because}")
        return eager_result

    def native(self, args: Sequence[Any], arguments: FlatArguments) -> tuple[CompiledProgram, list[Any]] | str:
        """The result of native code, or why the eager engine has to run."""
        outcome = self.attempt(self.programs, arguments)
        paths = f"more than {self.owner.options.recordings} paths through the function"
        if outcome is None:
            if len(self.programs) >= self.owner.options.recordings:
                self.owner.note(f"{paths}: further paths run eagerly; raise recordings=")
                return paths
            program = self.owner.compiled(arguments, careful=False)
            self.programs.append(program)
            self.open(program, arguments, args)
            outcome = self.attempt([program], arguments)
        if outcome == ReturnCode.NAN:
            outcome = self.attempt(self.careful, arguments)
            if outcome is None and len(self.careful) < self.owner.options.recordings:
                program = self.owner.compiled(arguments, careful=True)
                self.careful.append(program)
                self.dispatch.reserve(program.lowered.work)
                outcome = self.attempt([program], arguments)
        if outcome is None:
            return paths
        return outcome if isinstance(outcome, tuple) else "it leaves this point open, as for a singular matrix"

    def open(self, program: CompiledProgram, arguments: FlatArguments, args: Sequence[Any]) -> None:
        """Make the native entry point, or add the program to its table.

        An entry creates results of one shape, so it cannot run recordings whose results have others. A program with a
        sparse result has its entry alone, because lengths differ between patterns.
        """
        lowered, owner, assembly, first = program.lowered, self.owner, program.assembly, self.programs[0].assembly
        is_like_first = lowered.results == self.programs[0].lowered.results and assembly.is_like(first)
        if owner.options.batch or owner.reorders or not (program.matrices or is_like_first):
            self.dispatch.reserve(lowered.work)
            return
        dispatch = DispatchTable() if program.matrices else self.dispatch
        dispatch.add(program.address, lowered.work)
        self.dispatch.reserve(lowered.work)
        if layouts_are_known() and (program.matrices or program is self.programs[0]):
            inputs, results = arguments.in_order(lowered.inputs), lowered.results
            if arguments.is_flat and assembly.template is not None and not program.matrices:
                owner.add_entry(CompiledEntry(inputs, results, assembly.template, dispatch, owner.by_python, owner))
                return
            entry = CompiledEntry(inputs, results, tuple(assembly.order), dispatch, not_here, owner)
            owner.add_entry(NestedEntry(entry, args, assembly.finished, owner.by_python))

    def attempt(
        self, programs: Sequence[CompiledProgram], arguments: FlatArguments
    ) -> tuple[CompiledProgram, list[Any]] | ReturnCode | None:
        """Return the result of the first program whose guards hold, or None."""
        slots = (ctypes.c_int64 * max(len(arguments.data), 1))()
        numbers = (ctypes.c_double * len(slots)).from_buffer(slots)
        for k, x in enumerate(arguments.data):
            if type(x) is float:
                numbers[k] = x
            else:
                slots[k] = x.ctypes.data
        for program in programs:
            shapes = program.lowered.results
            results: list[Any] = [np.empty(s) if s else 0.0 for s in shapes]
            out = (ctypes.c_int64 * max(len(shapes), 1))(
                *(r.ctypes.data if s else 0 for r, s in zip(results, shapes, strict=True))
            )
            work = self.dispatch.borrow()
            try:
                code = program.run(ctypes.addressof(slots), ctypes.addressof(out), work)
            except Exception as error:  # a rule called in Python may raise anything; machine code raises nothing
                raise RaisedError from error
            finally:
                self.dispatch.give_back(work)
            if code == ReturnCode.GUARD:
                continue
            if code == ReturnCode.NAN and program not in self.careful:
                return ReturnCode.NAN
            if code == ReturnCode.ERROR:
                return ReturnCode.ERROR
            values = (ctypes.c_double * len(out)).from_buffer(out)
            return program, [r if s else values[k] for k, (r, s) in enumerate(zip(results, shapes, strict=True))]
        return None


class Compiled(CallDescription, Native):  # type: ignore[misc]
    """The result of `compile`: a function of the same arguments that runs as machine code.

    call       the native entry point, as a built-in function
    seconds    spent so far by phase: record, lower, compile
    notes      operations that run in the eager engine or in Python, and why
    """

    def __init__(
        self,
        f: Callable[..., Any],
        example: Sequence[Any],
        operator: str,
        wrt: Any,
        options: CompileOptions,
    ) -> None:
        super().__init__(f, example, operator, wrt, options)
        self.seconds: dict[str, float] = {"record": 0.0, "lower": 0.0, "compile": 0.0}
        self.notes: list[str] = []
        self._signatures: dict[Any, Signature] = {}
        self._entries: list[CompiledEntry | NestedEntry] = []
        self.by_python = self._by_python  # a single object, because entries store its address
        self.call: Callable[..., Any] = self.by_python

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The result of the operator at these arguments. Once there is an entry, CPython calls that instead."""
        return self.call(*args) if not named else self.by_python(*args, **named)

    def __repr__(self) -> str:
        return f"<compiled {self.operator} of {self.name}>"

    def _by_python(self, *args: Any, **named: Any) -> Any:
        if named:
            raise TypeError(f"{self.name}: give all arguments by position, got {', '.join(named)} by name")
        return self.answer(args)

    def answer(self, args: Sequence[Any]) -> Any:
        """The result, found by the signature of these arguments."""
        arguments = FlatArguments(self, args)
        return self.signature(arguments).answer(args, arguments)

    def signature(self, arguments: FlatArguments) -> Signature:
        """The signature of these arguments."""
        known = self._signatures.get(arguments.key)
        if known is None:
            known = self._signatures[arguments.key] = Signature(self, arguments)
        return known

    def add_entry(self, entry: CompiledEntry | NestedEntry) -> None:
        """Add the entry point of another signature; the previous entry passes other calls on to it."""
        if self._entries:
            self._entries[-1].pass_on(entry.call)
        else:
            self.call = entry.call
            if entry.vectorcall:
                call_natively(self, entry.vectorcall)
        self._entries.append(entry)

    def note(self, text: str) -> None:
        """Note an operation that is not native, once."""
        if text not in self.notes:
            self.notes.append(text)

    def request(self, arguments: FlatArguments) -> RecordingRequest:
        """The recording request for these arguments."""
        vector = tuple(arguments.data[arguments.inputs :]) if self.vectors else None
        return RecordingRequest(
            lambda given: self.f(*arguments.nested(given)),
            self.name,
            self.operator,
            tuple(arguments.examples),
            tuple(arguments.active),
            vector,
            self.options.checkpointed,
            self.options.sparse,
        )

    def compiled(self, arguments: FlatArguments, *, careful: bool) -> CompiledProgram:
        """A new program, recorded at these arguments."""
        with paused():
            with self.timed("record"):
                recording = self._record(arguments, careful)
            lanes = self.options.batch and not careful
            program = CompiledProgram(recording, self.options, self.timed, lanes=lanes)
        program.assembly = Assembly(self, program, arguments)
        for rule in program.lowered.python_calls:
            self.note(f"{rule}: has no native form, and is called in Python")
        for rule in () if recording.pattern is None else recording.pattern.opaque:
            self.note(f"{rule}: its results count as depending on all elements of its arguments in the pattern")
        return program

    def _record(self, arguments: FlatArguments, careful: bool) -> Recording:
        try:
            return record(self.request(arguments), careful=careful)
        except (NotCompilableError, MemoryError):
            raise
        except Exception as error:  # the function may raise anything; `Signature.answer` tells faults of ours apart
            raise RaisedError from error

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the block's duration to a phase's seconds."""
        start = time.perf_counter()
        with nullcontext() if self.options.watch is None else self.options.watch(phase):
            yield
        self.seconds[phase] += time.perf_counter() - start

    def nodes(self) -> int:
        """The number of recorded operations, including those of the sweep."""
        return sum(p.nodes for s in self._signatures.values() for p in (*s.programs, *s.careful))

    def explain(self) -> str:
        """Describe the recordings, and list what does not run as machine code, with reasons."""
        lines = []
        for signature in self._signatures.values():
            for program in (*signature.programs, *signature.careful):
                kind = "careful recording" if program in signature.careful else "recording"
                lines.append(
                    f"{kind} of {program.nodes} nodes under {program.guards} guards: {program.lowered.instructions} "
                    f"instructions, level {program.level}, {8 * program.lowered.work} bytes of workspace"
                )
                if program.way:
                    lines.append(f"    {program.way}")
                if program.pattern is not None:
                    lines.append(f"    {program.pattern}, by {program.products} products")
            if signature.eager_because:
                lines.append(f"runs in the eager engine: {signature.eager_because}")
        return "\n".join([f"{self.operator} of {self.name}", *lines, *self.notes])
