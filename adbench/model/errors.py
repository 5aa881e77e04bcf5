"""Exceptions that the harness raises on purpose.

AdbenchError
├── UsageError        the request is impossible; the command line prints the reason and exits with 2
│   ├── UnknownName   no case or backend of that name
│   ├── BadFile       a case, backend or run file that cannot be used
│   └── BadOutput     the output folder cannot be written
├── LostCluster       the cluster was lost during a run; finished records are kept; exit code 4
└── Unsupported       a backend cannot do what a case needs; recorded with this reason, not as a failure
    └── MissingFunction
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from types import FrameType


class AdbenchError(Exception):
    """Base of all errors that adbench raises on purpose; the message is one line for users."""

    is_refusal = True  # for the oracle, which may not import this module


class UsageError(AdbenchError):
    """The request is impossible. The message says what was wrong, what was found, and what to do."""

    def _render_traceback_(self) -> list[str]:
        """In a notebook, show the message without a traceback."""
        return [f"{type(self).__name__}: {self}"]


MOST_LISTED = 20
"""The most names that a message lists."""

ALIKE = 0.55
"""The least similarity of a suggested name."""


class UnknownName(UsageError, LookupError):
    """Unknown case, backend, operator, ...; the message names the nearest ones, and lists all names if they are few.

    of   what lacks the name, such as a module; "" for adbench
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], of: str = "") -> None:
        names = sorted(known)
        complaint = f"{of and f'{of} has '}no {kind} {name!r}"
        if nearest := nearest_names(name, names):
            complaint += f"; did you mean {' or '.join(', '.join(nearest).rsplit(', ', 1))}?"
        if len(names) <= MOST_LISTED:
            every = f"{'it has' if of else 'there are:'} {', '.join(names) or 'none'}"
        else:
            is_listed = kind in ("case", "backend")
            every = f"adbench list {kind}s shows all {len(names)}" if is_listed else f"there are {len(names)}"
        super().__init__(f"{complaint} {every}" if nearest else f"{complaint}; {every}")


def nearest_names(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names most similar to ``name``, the most similar first."""
    wanted = name.lower().strip("*?")
    scored = sorted((-_similarity(wanted, other.lower()), other) for other in known)
    return [other for score, other in scored[:most] if -score >= ALIKE]


def _similarity(wanted: str, other: str) -> float:
    """Similarity from 0 to 1: of the letters in order; more if one name is the beginning or a part of the other."""
    ratio = SequenceMatcher(None, wanted, other).ratio()
    if len(wanted) > 1 and (other.startswith(wanted) or wanted.startswith(other)):
        return 0.9 + ratio / 10
    if len(wanted) > 2 and wanted in other:
        return 0.8 + ratio / 10
    return ratio


class BadFile(UsageError):
    """A given file cannot be used; the message names the file and the fault."""


class BadOutput(UsageError):
    """The output folder cannot be made or written."""


class LostCluster(AdbenchError):
    """The connection to the cluster was lost during a run, which can be resumed."""


class Unsupported(AdbenchError):
    """A backend cannot do this. Raise it from `prepare` or from inside a call; reports show the reason unchanged."""


class MissingFunction(Unsupported, AttributeError):
    """The backend's namespace lacks a function of the case.

    Also an AttributeError, so that `hasattr(xp, "cholesky")` works.
    """


class Interrupted(KeyboardInterrupt):
    """A signal ended the run; `code` is the exit code that identifies it for a shell."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


class UserExit(Exception):
    """A user's code raised SystemExit or KeyboardInterrupt. The class of the instance has the name of that exception,
    so that reports show it like every other exception."""


_NAMED: Mapping[type[BaseException], type[UserExit]] = {
    kind: type(kind.__name__, (UserExit,), {}) for kind in (SystemExit, KeyboardInterrupt)
}


def user_exit(error: SystemExit | KeyboardInterrupt) -> UserExit:
    """The exit as an exception that code may handle, with its traceback."""
    kind = next(kind for kind in _NAMED if isinstance(error, kind))
    return _NAMED[kind](str(error) or "no message").with_traceback(error.__traceback__)


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """For calls of a user's code: within the block, SystemExit and KeyboardInterrupt become UserExit.

    Ctrl-C stays a KeyboardInterrupt.
    """
    with _marked_signals() as marked:
        try:
            yield
        except Interrupted:
            raise
        except (SystemExit, KeyboardInterrupt) as error:
            if isinstance(error, KeyboardInterrupt) and not marked:
                raise
            raise user_exit(error) from error


@contextlib.contextmanager
def _marked_signals() -> Iterator[bool]:
    """Let Ctrl-C raise Interrupted; gives whether every KeyboardInterrupt that is none comes from code."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread():  # no signal arrives here
        yield True
    elif handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
        try:
            yield True
        finally:
            signal.signal(signal.SIGINT, handler)
    else:  # ours raise Interrupted; another may raise anything
        yield handler is signal.SIG_IGN or getattr(handler, "__module__", "").startswith("adbench.")


def _interrupt(number: int, _: FrameType | None) -> None:
    raise Interrupted(number)
