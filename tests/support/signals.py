"""Signals as the processes hear them that tests start, however the tests themselves were started."""

import signal


def let_children_hear() -> None:
    """Processes started after this call receive SIGINT and SIGHUP, even if this process ignores them.

    `./scripts/test &` in a script and nohup ignore these signals. A child inherits that, but no handler: with one that
    does nothing, this process goes on ignoring the signal, and the child begins as on a terminal.
    """
    for name in ("SIGINT", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
