"""What every test needs: nothing of the user's is read or written."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """References are kept in a folder that the whole test run shares, not in the user's cache."""
    folder: Path = tmp_path_factory.getbasetemp().parent / "adbench-references"
    monkeypatch.setenv("ADBENCH_CACHE", str(folder))
