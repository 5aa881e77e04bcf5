"""What was published beside what we measure, as Markdown: python scripts/published.py RUN... > docs/published.md"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from adbench.results.store import read_run  # noqa: E402  # found by the line above
from reports import published  # noqa: E402

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python scripts/published.py RUN... (folders of runs, or their run.json)")
    print(published.render([read_run(Path(name)) for name in sys.argv[1:]]), end="")
