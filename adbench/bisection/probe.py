"""Check or measure one cell, in the environment of a release.

    python -P -m adbench.bisection.probe < REQUEST      fields of `Request` as JSON; writes the run to stdout

Imports nothing that the release's environment may lack.
"""

import json
import sys
from contextlib import closing, redirect_stdout

from adbench.execution import interrupt
from adbench.execution.session import prepare
from adbench.model.errors import AdbenchError
from adbench.results.store import dumps


def main() -> None:
    """Execute the request of stdin."""
    interrupt.listen()
    with redirect_stdout(sys.stderr):  # the output of a user's function is not a result
        try:
            session = prepare(**json.load(sys.stdin))
            with closing(session.events()) as events:
                for _ in events:
                    pass
        except AdbenchError as error:
            sys.exit(f"error: {' '.join(str(error).split())}")
        except interrupt.Interrupted as interrupted:
            sys.exit(interrupted.code)
    sys.stdout.write(dumps(session.result()))


if __name__ == "__main__":
    main()
