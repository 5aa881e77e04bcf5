"""A worker's control group ends what left its tree, where the system lets this process make groups."""

import os
from pathlib import Path

import pytest

from adbench.execution.workers.control_group import PREFIX, ControlGroup
from adbench.execution.workers.process import WorkerLost, WorkerProcess, WorkerStart
from tests.execution.test_processes import gone, load


@pytest.fixture
def group() -> ControlGroup:
    made = ControlGroup.make("test")
    if made is None:
        pytest.skip("this process may not make control groups here")
    return made


def test_a_daemon_whose_reaper_was_killed_ends_with_its_worker(tmp_path: Path, group: ControlGroup) -> None:
    group.remove()
    kill = "import os, signal, time; os.kill(os.getppid(), signal.SIGKILL); time.sleep(600)"
    with WorkerProcess(WorkerStart()) as worker:
        home = group.path.with_name(f"{PREFIX}{os.getpid()}-{worker._mark}")
        assert home.is_dir()
        with pytest.raises(WorkerLost, match="died of SIGKILL"):
            load(worker, tmp_path, f"daemon({str(tmp_path / 'pid')!r}); {kill}")
    assert gone(int((tmp_path / "pid").read_text()))
    assert not home.exists()


def hierarchy(folder: Path, files: tuple[str, ...]) -> tuple[Path, Path]:
    """/proc and /sys of a process in the group /a; a new group gets no files, as in an ordinary folder."""
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text("3:cpu:/b\n0::/a\n")
    home = folder / "sys/fs/cgroup/a"
    home.mkdir(parents=True)
    for name in files:
        (home / name).write_text("")
    return folder / "proc", folder / "sys"


@pytest.mark.parametrize("files", [(), ("cgroup.procs",)])
def test_without_a_hierarchy_or_a_way_to_end_groups_there_is_no_group(tmp_path: Path, files: tuple[str, ...]) -> None:
    proc, sys = hierarchy(tmp_path, files)
    assert ControlGroup.make("it", proc=proc, sys=sys) is None
    assert sorted(path.name for path in (sys / "fs/cgroup/a").iterdir()) == sorted(files)


def test_groups_that_a_killed_runner_left_are_removed(tmp_path: Path) -> None:
    proc, sys = hierarchy(tmp_path, ("cgroup.procs",))
    left, used = (sys / "fs/cgroup/a" / f"{PREFIX}{pid}-it" for pid in (2**30, os.getpid()))
    left.mkdir()
    used.mkdir()
    ControlGroup.make("another", proc=proc, sys=sys)
    assert used.is_dir()
    assert not left.exists()
