"""A user's code may raise SystemExit or KeyboardInterrupt. Both are failures of that code, not the end of the run; only
the person at the terminal interrupts it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A signal ended the run; `code` is the exit code that identifies it for a shell."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


class UserExit(Exception):
    """A user's code raised SystemExit or KeyboardInterrupt. The class of the instance has the name of what was raised,
    so that reports show it like every other exception."""


_NAMED = {kind: type(kind.__name__, (UserExit,), {}) for kind in (SystemExit, KeyboardInterrupt)}


def user_exit(error: SystemExit | KeyboardInterrupt) -> UserExit:
    """The same as an exception that code may handle, with its traceback."""
    kind = next(kind for kind in _NAMED if isinstance(error, kind))
    return _NAMED[kind](str(error) or "no message").with_traceback(error.__traceback__)


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Within the block, SystemExit and KeyboardInterrupt become UserExit. Ctrl-C stays a KeyboardInterrupt."""
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
