"""Print the distributions here whose release is not the one of constraints.txt: python -m scripts.newest"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from scripts.backends_pages import pins


def changed() -> Iterator[str]:
    """One line for each distribution: name, pinned release, installed release."""
    for name, pinned in sorted(pins().items()):
        try:
            here = version(name)
        except PackageNotFoundError:
            continue
        if here != pinned:
            yield f"{name} {pinned} → {here}"


if __name__ == "__main__":
    lines = list(changed())
    print("\n".join(["Releases that changed since constraints.txt", *lines] if lines else ["No release has changed"]))
