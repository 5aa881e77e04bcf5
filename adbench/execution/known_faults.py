"""Known faults: the files of each library, and what counts for a backend with the installed release.

`backends/known_faults/LIBRARY.toml` names a library as pip does. A user's backend may have the same folder next to its
file, or KNOWN in it. Cases are enough to read them: no library is loaded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from packaging.version import InvalidVersion, Version

from adbench.catalog.discovery import builtin_folder
from adbench.catalog.installed import installed_version
from adbench.catalog.source import Source
from adbench.model import tree
from adbench.model.backend import KnownBug, KnownBugs, Trap, are_concerned
from adbench.model.case import ARROW, THREAD, Case, parts_of_reason, reason_of
from adbench.model.errors import BadFile, contained
from adbench.model.settings import FLOAT64, PROCESSOR

FOLDER = "known_faults"
MOST_ENTRIES = 12  # of an array, written out
LONGEST = 160  # characters of a text from a file


class KnownFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An entry of a file of known faults.

    trap       the name of a trap, or of another case
    operators  names or globs of the wrong operators; none: the gradient, and whatever shows the same
    backends   that have the fault; none: those of the file
    device     the only one on which they have it, such as "cuda"; "": seen on the CPU, and expected on every device
    dtypes     the only types in which they have it, such as "bfloat16"; none: float64, and other types that show it
    got        what they return, "nan" or "raises"; without a reason, the case's own `faults` explain it
    thread     where it is discussed: "owner/repository#7", or "as …" for a thread of another library
    since      the first release with it; None: unknown, or all
    repaired   the first release without it; it may have another one instead, with this release as its `since`
    """

    trap: str
    operators: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    device: str = ""
    dtypes: tuple[str, ...] = ()
    got: str
    reason: str = ""
    thread: str = ""
    since: Version | None = None
    repaired: Version | None = None

    @property
    def place(self) -> tuple[Any, ...]:
        """Files are sorted by this."""
        return self.trap, self.operators, self.backends, self.device, self.dtypes, self.since or Version("0")

    def concerns(self, operator: str) -> bool:
        """Whether this operator is wrong."""
        return are_concerned(self.operators, operator)

    def occurs_in(self, release: Version | None) -> bool:
        """Whether this release of the library has the fault; every fault occurs in an unknown one."""
        if release is None:
            return True
        return (self.since is None or self.since <= release) and (self.repaired is None or release < self.repaired)


class FaultFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"faults": "fault"}):
    """A file of known faults.

    library    the distribution whose releases count
    backends   that have every fault which names no others
    checked    the releases in which every entry was looked at
    """

    library: str
    backends: tuple[str, ...]
    checked: tuple[Version, ...] = ()
    faults: tuple[KnownFault, ...] = ()


@dataclass(frozen=True)
class KnownFaults:
    """The faults of a backend that count for the installed release.

    unchecked   what to say of a wrong result that is not among them, if the faults were checked with other releases
    """

    bugs: tuple[KnownBug, ...] = ()
    unchecked: str = ""


def file_of(library: str, folder: Path | None = None) -> Path:
    """The file of a library's known faults, below a folder of backends."""
    return (folder or builtin_folder("backends")) / FOLDER / f"{library}.toml"


def read_file(path: Path) -> FaultFile:
    """The file's content. Raises BadFile in one line, with the place, for a wrong key, type, version or syntax."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=FaultFile, dec_hook=lambda kind, text: kind(text))
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise BadFile(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def text_of(file: FaultFile) -> str:
    """The text of a file, its entries sorted."""
    lines = [f"# Known faults of {file.library}, by trap and operator: docs/how-to/write-a-backend.md#known-faults"]
    lines += _lines(file)
    for fault in sorted(file.faults, key=lambda fault: fault.place):
        lines += ["", "[[fault]]", *_lines(fault)]
    return "\n".join([*lines, ""])


def _lines(entry: msgspec.Struct) -> Iterator[str]:
    for name in entry.__struct_fields__:
        if name != "faults" and (value := getattr(entry, name)):
            texts = list(map(str, value)) if isinstance(value, tuple) else str(value)
            yield f"{name} = {json.dumps(texts, ensure_ascii=False)}"


def of_backend(source: Source, cases: Mapping[str, Case], device: str = PROCESSOR, dtype: str = FLOAT64) -> KnownFaults:
    """The known faults of a backend on a device in a type, in its file and in those of its libraries. Raises BadFile
    for a bad file.
    """
    bugs = [_bug(key.split()[0], tuple(key.split()[1:]), text, cases) for key, text in source.known.items()]
    unchecked = ""
    for library in dict.fromkeys((*source.requires, source.variant_of or source.name)):
        path = file_of(library, Path(source.path).parent)
        if not path.is_file():
            continue
        file, release = read_file(path), _release(source, library)
        for fault in file.faults:
            is_mine = source.name in (fault.backends or file.backends) and fault.device in ("", device)
            is_mine = is_mine and dtype in (fault.dtypes or (dtype,))
            if is_mine and fault.occurs_in(release):
                text = reason_of(fault.got, fault.reason, fault.thread)
                advice = _advice(fault, file) if release else ""
                bug = _bug(fault.trap, fault.operators, text, cases, advice)
                bugs.append(replace(bug, device=fault.device))
        if release is not None and file.checked and release not in file.checked:
            last = max(file.checked)
            unchecked = unchecked or f"not known for {library} {release}; known faults were last checked with {last}"
    return KnownFaults(tuple(bugs), unchecked)


def _advice(fault: KnownFault, file: FaultFile) -> str:
    """Whether to upgrade; not to a release that has another fault in the same place instead."""
    others = (other for other in file.faults if other.trap == fault.trap and other.since == fault.repaired)
    return f"repaired in {file.library} {fault.repaired}: upgrade" if fault.repaired and not any(others) else ""


def _release(source: Source, library: str) -> Version | None:
    """The installed release of a required library, without a build's name; None if it is unknown."""
    text = None if source.own_copy or library not in source.requires else installed_version(library)
    with suppress(InvalidVersion):
        return Version(Version(text).public) if text else None
    return None


def _bug(name: str, operators: tuple[str, ...], text: str, cases: Mapping[str, Case], advice: str = "") -> KnownBug:
    got, why, thread = parts_of_reason(cases[name].known_fault(text) if name in cases else text)
    return KnownBug(name, operators, got, "; ".join(filter(None, (advice, why))), thread)


def on_traps(
    backends: Iterable[Source],
    cases: Mapping[str, Case],
    checked: Iterable[str],
    dtype: str = FLOAT64,
) -> KnownBugs:
    """For reports: the faults of these backends on traps, these traps and the checked ones, and how many a family has.

    Texts are shortened, and a fault without a thread has the trap's. Raises BadFile for a bad file.
    """
    cases = dict(cases)
    families = Counter(family_of(case) for case in cases.values() if case.is_trap)
    bugs_of = {}
    for source in backends:
        # A bad file is refused also of a backend that is not installed.
        bugs = of_backend(source, cases, source.device, dtype).bugs
        if not source.missing:
            bugs_of[source.label] = tuple(_shortened(bug, cases[bug.trap]) for bug in bugs if _is_trap(bug.trap, cases))
    named = dict.fromkeys((*checked, *(bug.trap for bugs in bugs_of.values() for bug in bugs)))
    traps = {name: described(cases[name]) for name in named if _is_trap(name, cases)}
    return KnownBugs(dict(families), traps, bugs_of)


def _is_trap(name: str, cases: Mapping[str, Case]) -> bool:
    return name in cases and cases[name].is_trap


def _shortened(bug: KnownBug, trap: Case) -> KnownBug:
    thread = bug.thread or _thread_of(trap)
    return replace(bug, got=bug.got[:LONGEST], reason=bug.reason[:LONGEST], thread=thread)


def described(case: Case) -> Trap:
    """A trap in words. Its expected gradient is in numbers where the case has one, else in the summary's words."""
    function, _, words = case.summary.removesuffix(".").partition(ARROW)
    return Trap(family_of(case), function[:LONGEST], (_gradient(case) or words)[:LONGEST])


def family_of(case: Case) -> str:
    """The name of its file, without "trap_"."""
    return Path(case.file).stem.removeprefix("trap_")


def _thread_of(case: Case) -> str:
    """The first thread that the trap's own record cites; it need not be the backend's."""
    cited = THREAD.search(case.f.__doc__ or "")
    return f"as {cited.group()}" if cited else ""


def _gradient(case: Case) -> str:
    """The gradient by hand, one text for each active input; "" if the case has no gradient."""
    if case.gradient is None:
        return ""
    try:
        with contained():
            names, args, _ = case.bind(case.sizes[0], 0)
            return " and ".join(map(_text, tree.leaves(case.gradient(**dict(zip(names, args, strict=True))))))
    except Exception:  # a user's own function; the check reports what is wrong with it
        return ""


def _text(value: Any) -> str:
    """A number, or an array as nested brackets."""
    array = np.asarray(value, dtype=np.float64)
    if array.size == 0:
        return "no entry"
    if array.size > MOST_ENTRIES:
        return f"{_text(array.ravel()[:3])[:-1]}, …) of shape {'×'.join(map(str, array.shape))}"
    return f"{float(array):.6g}" if array.ndim == 0 else f"({', '.join(map(_text, array))})"
