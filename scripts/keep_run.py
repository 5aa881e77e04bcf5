"""Put a run into docs/runs, for the site of results: python -m scripts.keep_run RUN NAME

The file gets no traceback, no path and no release of the kernel, which tell about the user and not about the libraries.
Review the run first: its noise floor, its label, and every result that is not correct.
"""

from __future__ import annotations

import gzip
import re
import sys
from dataclasses import replace
from pathlib import Path

from adbench.model.record import Run
from adbench.results.store import dumps, read_run

RUNS = Path(__file__).parents[1] / "docs" / "runs"
PATH = re.compile(r"(?<![\w.~/-])/(?:home|root|Users|tmp|var|work|opt|usr|mnt)/[^\s\"',]+")


def without_paths(run: Run) -> Run:
    """The run without the facts that only its user needs. Raises ValueError if a path is left."""
    records, threaded = (tuple(replace(r, stderr=None) for r in some) for some in (run.records, run.threaded))
    system = str(run.machine.get("system", "")).partition(" ")[0]
    settings = {name: value for name, value in run.settings.items() if name != "cache"}
    found = replace(
        run, records=records, threaded=threaded, settings=settings, machine=run.machine | {"system": system}
    )
    if left := PATH.search(dumps(found)):
        raise ValueError(f"the run still has a path: {left.group()}")
    return found


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m scripts.keep_run RUN NAME")
    text = dumps(without_paths(read_run(Path(sys.argv[1]))))
    file = RUNS / f"{sys.argv[2]}.json.gz"
    file.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(file)
