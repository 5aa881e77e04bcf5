"""Every exception the harness raises on purpose.

AdbenchError
├── UsageError        the request is impossible; the command line prints the reason and exits with 2
│   ├── UnknownName   no case or backend of that name
│   ├── BadFile       a case, backend or run file that cannot be used
│   └── BadOutput     the output folder cannot be written
└── Unsupported       a backend cannot do what a case needs; becomes a record with this reason, never a failure
    └── MissingFunction
"""

from __future__ import annotations

from collections.abc import Iterable


class AdbenchError(Exception):
    """Anything adbench raises on purpose; its text is one line written for a person."""


class UsageError(AdbenchError):
    """The request is impossible. The text says what was wrong, what was found, and what to do."""


class UnknownName(UsageError, LookupError):
    """No such case or backend; the message lists those there are."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        there_are = ", ".join(sorted(known)) or "none"
        super().__init__(f"no {kind} {name!r}; there are: {there_are}")


class BadFile(UsageError):
    """A file that adbench was given cannot be used; the message names the file and the fault."""


class BadOutput(UsageError):
    """The output folder cannot be made or written."""


class Unsupported(AdbenchError):
    """A backend cannot do this. Raise it from `prepare` or from inside a call; reports show the reason unchanged."""


class MissingFunction(Unsupported, AttributeError):
    """The backend's namespace lacks a function that the case calls.

    Also an AttributeError, so that `hasattr(xp, "cholesky")` means what it says.
    """
