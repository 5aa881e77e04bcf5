"""`[tool.adbench.COMMAND]` in pyproject.toml has default options: the command line wins, and a slip is one line."""

from pathlib import Path

import pytest

from tests.support.command import adbench

MODEL = "def energy(x, y):\n    return x * x * y\n\n\ndef other(x):\n    return x * x\n"


def written(folder: Path, table: str) -> Path:
    (folder / "model.py").write_text(MODEL)
    (folder / "pyproject.toml").write_text(f"[project]\nname = 'mine'\n\n[tool.adbench.{table}\n")
    return folder


def test_options_in_the_file_are_used_also_below_its_folder(tmp_path: Path) -> None:
    written(tmp_path, 'check]\nfunction = "model.py:energy"\nat = [3, 4.5]\njson = false')
    done = adbench(tmp_path, "check")
    assert (done.code, done.err) == (0, "")
    assert "✓ the value  40.5" in done.out
    (tmp_path / "below").mkdir()
    assert "below/model.py" in adbench(tmp_path / "below", "check").err, "paths are those of the working folder"


@pytest.mark.parametrize(
    ("table", "words", "shown"),
    [
        ('check]\nfunction = "model:energy"\nat = [3, 4]', ["check", "--at", "5", "2"], "✓ the value   50"),
        (
            'check]\nfunction = "model:energy"\nat = [3, 4]',
            ["check", "--plan", "--function=model:other", "--at", "6"],
            "other",
        ),
        ('check]\nfunction = "model:energy"\nat = [3, 4]', ["check", "--plan", "-c", "rosenbrock"], "rosenbrock"),
        ("check]\ncase = 'rosenbrock'", ["check", "--plan", "--function", "model:other", "--at", "6"], "other"),
        ("check]\nconstants = 'forbid'\ncase = 'recurrence'", ["check", "--plan"], "recurrence"),
        ("run]\nquick = true\ncase = ['rosenbrock']", ["run", "--plan"], "up to 5 launches"),
        ("run]\nquick = true\ncase = ['rosenbrock']", ["run", "--plan", "--rigorous"], "up to 20 launches"),
        (
            "run]\nquick = true\ncase = ['rosenbrock']",
            ["--no-defaults", "run", "--plan", "-c", "sums"],
            "up to 8 launches",
        ),
        ("run]\nlaunches = 3", ["run", "--plan", "-c", "sums", "--launches", "4"], "4 launches"),
        ("list]\nlong = true\nmarkdown = true", ["list", "backends", "--json"], '"name": "tape"'),
    ],
)
def test_the_command_line_wins(tmp_path: Path, table: str, words: list[str], shown: str) -> None:
    done = adbench(written(tmp_path, table), *words)
    assert done.code == 0, done.err
    assert shown in done.out


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("chekc]\npoints = 2", "adbench has no command 'chekc'; did you mean check?"),
        ("check]\npoinst = 2", "adbench check --help has no option 'poinst'; did you mean points?"),
        ("check]\nold = 'x'", "adbench check --help has no option 'old'"),
        (
            "check]\npoints = 'x'",
            "Invalid value for '--points': 'x' is not a valid whole number. It is the default in",
        ),
        ("check]\npoints = [1, 2]", "[tool.adbench.check] points = [1, 2]: this option has one value"),
        ("check]\ncase = {a = 1}", "[tool.adbench.check] case = {'a': 1}: write a text or a number, or a list of them"),
        ("check]\ndetails = 1", "[tool.adbench.check] details = 1: this option takes no value; write true or false"),
        ("check]\nmem-limit = 'x'", "pyproject.toml: --mem-limit: 'x' is not an amount of memory; write 4G or 512M"),
        ("check", "pyproject.toml: cannot be read: "),
    ],
)
def test_a_slip_in_the_file_is_one_line(tmp_path: Path, table: str, message: str) -> None:
    done = adbench(written(tmp_path, table), "check")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err
    assert "pyproject.toml" in done.err
    assert adbench(tmp_path, "check", "--help").code == 0


def test_the_example_of_the_page_is_accepted(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "run.md").read_text("utf-8")
    example = page.partition("## Default options")[2].partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "pyproject.toml").write_text(example)
    (tmp_path / "model.py").write_text("def loss(x, y):\n    return (x * x).sum() * y\n")
    done = adbench(tmp_path, "check")
    assert (done.code, done.err) == (0, "")
    assert "✓ the value  2.5" in done.out
    plan = adbench(tmp_path, "run", "--plan", "-c", "sums", "-b", "tape").out
    assert "tape" in plan
    assert "memory" not in plan
