"""A finding: a program, a derivative and a library that gets it wrong there, with both numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from adbench.findings.programs.random_program import Program
from adbench.model.errors import BadFile
from adbench.model.serialization import converted
from adbench.model.settings import PROCESSOR
from adbench.vocabulary import FUNCTIONS

Kind = Literal["wrong", "nan", "raises", "crashes", "hangs", "differs"]
"""What the library does: a wrong number; NaN or infinity for a finite one; an exception; it dies; no answer; another
number than its eager or compiled variant where the true one is unknown."""

AT_ONE = frozenset(name for name, row in FUNCTIONS.items() if 1.0 in row.singular)
AT_ZERO = frozenset(name for name, row in FUNCTIONS.items() if 0.0 in row.singular)
"""Functions whose derivative is infinite there."""

VERTICAL_AT_ZERO = frozenset(
    {"negative_power", "half_power", "power", "power_0.5", "power_1.5"}
    | {"vector_norm", "frobenius_norm", "std", "std_axis", "dist"}
)
"""Other operations whose derivative is infinite where their operand or their value is 0."""

VERTICAL = (
    VERTICAL_AT_ZERO
    | {name for name, row in FUNCTIONS.items() if row.singular}
    | {"integer_power", "float_power", "power_of_any_base", "power_minus_0.5", "masked_sqrt"}
    | {"divide", "divide_constant", "atan2", "xlogy", "cdist", "normalize", "cosine_similarity", "lp_pool1d"}
)
"""Operations with an infinite derivative somewhere: 0 · inf is the NaN of most programs, whatever multiplies by 0."""


@dataclass(frozen=True)
class Finding:
    """A library's wrong derivative of a program at its inputs.

    operator   of adbench/model/operator.py: gradient, jvp, hvp_reverse_over_forward
    library    the name of the backend
    version    of its library
    got        the wrong number, or the exception's text; expected: the right one; place: which number it is
    words      the verdict in one sentence
    where      the source of the expected number: "power series over balls, proved"
    known      the backend's known bug that explains it, as "trap_x_sqrt_x: nan (owner/repository#7)", or ""
    peer       the variant from which it differs
    device     that the library computes on
    edge       whether an operation has no derivative at this point (a tie, √0), although the program has one;
               libraries differ there by convention
    origin     how to make it again: "adbench fuzz --seed 3, program 1204"
    """

    program: Program
    operator: str
    library: str
    kind: Kind
    got: str
    expected: str
    place: str
    words: str
    where: str = ""
    version: str = ""
    known: str = ""
    origin: str = ""
    edge: bool = False
    peer: str = ""
    device: str = PROCESSOR

    @property
    def key(self) -> tuple[str, ...]:
        """Findings with the same key count as one: library, kind, order of the derivative, and the operations."""
        order = "second" if self.operator.startswith("h") else "first"
        if self.kind == "raises":
            return self.library, self.kind, order, re.sub(r"[\d.]+", "", self.got)
        operations = set(self.program.operations)
        vertical = operations & VERTICAL if self.kind == "nan" else set()
        return self.library, self.kind, order, *sorted(vertical or operations)

    @property
    def of_nan(self) -> bool:
        """Whether the library returns a number where the true value is NaN."""
        return self.kind == "wrong" and self.expected == "nan"

    @property
    def what(self) -> str:
        """What is wrong: the operator, or only its value."""
        return "value" if self.place == "the value" else self.operator

    @property
    def title(self) -> str:
        """One line."""
        operations = " and ".join(dict.fromkeys(self.program.operations))
        verb = {"wrong": "is wrong", "nan": f"is {self.got}"}.get(self.kind, self.kind)
        return f"{self.library}: the {self.what} of {operations} {verb}"

    @property
    def file_stem(self) -> str:
        """A name for its files."""
        from adbench.catalog.generated_files import file_stem

        return file_stem("_".join((self.library, self.kind, self.operator, *dict.fromkeys(self.program.operations))))

    def to_plain(self) -> dict[str, Any]:
        """For JSON."""
        return dict(msgspec.to_builtins(self))

    @staticmethod
    def from_plain(plain: Mapping[str, Any]) -> Finding:
        """The inverse of `to_plain`. Raises ValueError."""
        return replace(converted(plain, Finding), program=program_of(plain["program"]))


def write(finding: Finding, file: Path) -> None:
    """The finding as a JSON file, one that `read` and `adbench minimise` take."""
    from adbench.model.atomic_file import write_whole

    write_whole(file, (json.dumps(finding.to_plain(), indent=1) + "\n").encode())


def read(file: Path) -> Finding:
    """The finding of a file. Raises BadFile."""
    try:
        return Finding.from_plain(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise BadFile(f"{file}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        is_json = not isinstance(error, json.JSONDecodeError | UnicodeDecodeError | RecursionError)
        fault = "valid JSON, but not a finding" if is_json else "not JSON"
        raise BadFile(f"{file}: {fault}: {error}; pass a JSON file that adbench fuzz wrote") from error


def program_of(plain: Any) -> Program:
    """The program in plain data, as `msgspec.to_builtins` writes it. Raises ValueError."""
    program = converted(plain, Program)
    return replace(program, inputs=tuple(one.at(one.native) for one in program.inputs))
