"""What to bisect: from the words of a user to releases, a request for one cell, and environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from adbench.bisection import releases
from adbench.bisection.environments import Environments, Installer, environments_of
from adbench.bisection.judge import CONTROL
from adbench.bisection.releases import Release
from adbench.catalog.selection import resolve
from adbench.catalog.source import Source
from adbench.execution.session import prepare
from adbench.model.errors import UsageError
from adbench.results.run_files import files_of


@dataclass(frozen=True)
class Question:
    """What to find: the release at which a cell becomes wrong or slower.

    releases      oldest first; one end is `good`, the other `bad`. If BAD is older, a fix is searched
    request       of the cell: fields of `Request`
    margin        BAD must be slower by more; None to judge correctness
    first_result  judge the time until the first result, instead of that of later calls
    files         digests of the case and the backend
    """

    library: str
    releases: tuple[Release, ...]
    good: str
    bad: str
    backend: str
    request: dict[str, Any]
    margin: float | None = None
    first_result: bool = False
    files: tuple[str, ...] = ()

    @property
    def finds_fix(self) -> bool:
        """Whether BAD is older than GOOD."""
        return self.releases[0].name == self.bad


def asked(
    library: str,
    good: str,
    bad: str,
    *,
    case: str,
    size: str,
    backend: str | None = None,
    operator: str | None = None,
    slower: float | None = None,
    first_result: bool = False,
    versions: str | None = None,
    wheels: Path | None = None,
    commits: Path | None = None,
    build: str | None = None,
    extras: Sequence[str] = (),
    installer: Installer | None = None,
    keep: int = 10 * 2**30,
) -> tuple[Question, Environments]:
    """The question and the environments of a user's options, as `adbench bisect` has them.

    Only the user's case file is executed. Raises UsageError (also as UnknownName, BadFile) if it is not possible.
    """
    if sum(option is not None for option in (versions, wheels, commits)) > 1:
        raise UsageError("--versions, --wheels and --commits contradict each other; give one of them")
    if (commits is None) != (build is None):
        raise UsageError("--commits and --build go together: --commits . --build 'pip install .'")
    cell = {"cases": [whole(case)], "sizes": [size], "operators": [operator] if operator else []}
    request, source, files = _request(cell, whole(backend) if backend else backend_of(library), slower is not None)
    if commits is not None:
        every, good, bad = releases.of_commits(commits, good, bad)
    elif wheels is not None:
        every = releases.of_wheels(library, wheels)
    elif versions is not None:
        every = releases.of_list(library, versions.split(","))
    else:
        every = releases.of_index(library, good, bad)
    chosen = tuple(releases.between(every, good, bad))
    question = Question(library, chosen, good, bad, source.name, request, slower, first_result, files)
    return question, environments_of(library, source.requires, extras, installer, keep, commits, build or "")


def whole(text: str) -> str:
    """A path as an absolute one; a name as it is."""
    return str(Path(text).resolve()) if text.endswith(".py") or "/" in text else text


def backend_of(library: str) -> str:
    """The backend of a library, but not a variant of it. Raises UsageError for a library without one."""
    wanted = canonicalize_name(library)
    for name, source in resolve().catalog.backends.items():
        if source.variant_of is None and source.requires and canonicalize_name(source.requires[0]) == wanted:
            return name
    raise UsageError(f"no backend belongs to {library}; give one with -b, a name or a file")


def _request(cell: dict[str, Any], backend: str, timed: bool) -> tuple[dict[str, Any], Source, tuple[str, ...]]:
    """The request that checks or times one cell, its backend, and the digests of its files."""
    request = {**cell, "backends": [backend], "time": timed, "memory": False, "quick": not timed}
    session = prepare(**request)
    cases, names = ({getattr(job, kind) for job in session.plan.jobs} for kind in ("case", "backend"))
    if len(cases) != 1 or len(names) != 1:
        raise UsageError(f"bisect needs one case and one backend; got {len(cases)} and {len(names)}")
    source = session.catalog.backends[names.pop()]
    digests = tuple(sorted(files_of(session.catalog, [source.name], cases)["digests"].values()))
    if not timed:
        return request, source, digests
    if source.name == CONTROL:
        raise UsageError(f"times are relative to {CONTROL}; give another backend")
    operators = [job.operator for job in session.plan.jobs]
    chosen = "gradient" if "gradient" in operators else operators[-1]
    return request | {"operators": [chosen], "backends": [backend, CONTROL], "reference": CONTROL}, source, digests
