"""Folders and files that cannot be read are one line, exit code 2, whatever the reason."""

import os
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adbench.catalog.ad_hoc import named_function
from adbench.catalog.discovery import catalog
from adbench.model.errors import BadFile
from tests.support.command import adbench, adbench_in_a_process
from tests.support.files import CASE, write


def refuse(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let the system refuse to list folders and to inspect files of these names, as for another user: tests may run as
    root, whom no permission stops."""
    for module, function in ((os, "listdir"), (os, "stat"), (os, "scandir")):
        real = getattr(module, function)

        def guarded(path: object = ".", *args: object, real: object = real, **more: object) -> object:
            if isinstance(path, str | Path) and Path(path).name in names:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *args, **more)  # type: ignore[operator]

        monkeypatch.setattr(module, function, guarded)


@pytest.mark.parametrize("kind", ["cases", "backends"])
def test_a_folder_that_may_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    (tmp_path / "locked").mkdir()
    for name in ("listdir", "scandir"):  # the second by Python 3.13
        monkeypatch.setattr(os, name, _but_for_locked(getattr(os, name)))
    done = adbench(tmp_path, "list", kind, f"--{kind}", "locked")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "locked: cannot be read: Permission denied; change its permissions" in done.err
    with pytest.raises(BadFile, match="Permission denied"):
        catalog(case_paths=[tmp_path / "locked"])


def _but_for_locked(listing: Callable[..., Any]) -> Callable[..., Any]:
    def listed(path: Any = ".") -> Any:
        if not isinstance(path, int) and Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return listing(path)

    return listed


@pytest.mark.parametrize(
    "asked", [["check", "-c", "locked/x.py"], ["check", "--function", "locked/x.py:f", "--at", "1"]]
)
def test_a_file_in_a_folder_that_may_not_be_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    write(tmp_path / "locked", x=CASE)
    refuse(monkeypatch, "x.py")
    done = adbench(tmp_path, *asked)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "x.py: " in done.err
    assert "Permission denied" in done.err


CIRCLE = (
    "adbench: circle: no such file or folder of cases, it is a link to circle\n"
    if sys.version_info >= (3, 13)  # which no longer refuses to resolve it
    else "adbench: circle: cannot be read: Symlink loop from "
)


def test_broken_links_and_circles_of_links(tmp_path: Path) -> None:
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    for name, message in (
        ("broken", "adbench: broken: no such file or folder of cases, it is a link to nowhere\n"),
        ("circle", CIRCLE),
    ):
        done = adbench(tmp_path, "list", "cases", "--cases", name)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert message in done.err
        done = adbench(tmp_path, "check", "--function", f"{name}/f.py:f", "--at", "1")
        assert (done.code, done.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
def test_names_in_any_script_work_in_any_locale(tmp_path: Path, locale: dict[str, str]) -> None:
    folder = write(tmp_path / "übung", größe="import numpy as np\ndef maß(x):\n    return np.sin(x)\n")
    done = adbench_in_a_process(folder, "check", "--function", "größe.py:maß", "--at", "1.0", **locale)
    assert done.code == 0, done.out + done.err
    missing = adbench_in_a_process(folder, "check", "--function", "größe.py:mäß", "--at", "1.0", **locale)
    assert (missing.code, missing.err.count("\n")) == (2, 1)
    assert "has no function or object 'mäß'; did you mean maß? it has maß" in missing.err.replace(
        "there are:", "it has"
    )


def test_a_name_is_found_in_each_form_of_unicode(tmp_path: Path) -> None:
    write(tmp_path, eins="def größe(x):\n    return x * x\n")
    for form in ("NFC", "NFD"):
        name = unicodedata.normalize(form, f"{tmp_path}/eins.py:größe")
        assert named_function(name, (str(tmp_path),), "--function")(3.0) == 9.0


def test_a_name_that_no_encoding_has_is_refused_for_that_reason(tmp_path: Path) -> None:
    done = adbench(tmp_path, "check", "--function", "a.py:f\udcff", "--at", "1")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "is not valid utf-8; give a name that is" in done.err
