"""action.yml: its published schema, and its scripts, which run here as GitHub runs them.

`Job` plays GitHub's part: it fills in `env` and evaluates `if`. `python3 -m venv` makes an environment with this Python
and a `pip` that installs nothing and writes down its arguments.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.support.files import CASE, RIGHT, git, repository, write

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
PYTHON = f"""#!/bin/bash
# python3 -m venv FOLDER
mkdir -p "$3/bin"
cat > "$3/bin/python" <<'END'
#!/bin/bash
if [ "$1 $2" = "-m pip" ]; then
  printf '%s\\n' "$PWD" "${{@:3}}" >> "$RUNNER_TEMP/pip.log"
else
  PYTHONPATH={ROOT} exec {sys.executable} "$@"
fi
END
chmod +x "$3/bin/python"
"""
EXPRESSION = re.compile(r"\$\{\{ (.*?) \}\}")
COMPARISON = re.compile(r"(\S+) (==|!=) '(.*)'")


@dataclass
class Job:
    """A job of GitHub's in a checkout that runs the action with these inputs.

    refused   whether GitHub refuses the upload of annotations
    """

    folder: Path
    checkout: Path
    inputs: dict[str, str] = field(default_factory=dict)
    refused: bool = False
    outputs: dict[str, str] = field(default_factory=dict)
    ran: list[str] = field(default_factory=list)
    log: str = ""

    def run(self) -> int:
        """The exit code of the first step that fails, as the job ends with it; else 0."""
        write_fake_python(self.folder / "bin")
        for step in STEPS:
            if "if" in step and not self.condition(step["if"]):
                continue
            self.ran.append(step["name"])
            if "uses" in step:
                self.outputs[f"steps.{step['id']}.outcome"] = "failure" if self.refused else "success"
            elif code := self.script(step):
                return code
        return 0

    @property
    def summary(self) -> str:
        """The job's summary."""
        return (self.folder / "summary").read_text("utf-8")

    def value(self, name: str) -> str:
        """The value of an expression, which is one name here."""
        if name.startswith("inputs."):
            default = ACTION["inputs"][name.removeprefix("inputs.")]["default"]
            default = "" if EXPRESSION.search(default) else default
            return self.inputs.get(name.removeprefix("inputs."), default)
        if name == "github.action_path":
            return str(ROOT)
        assert name.startswith("steps."), name
        return self.outputs.get(name, "")

    def condition(self, text: str) -> bool:
        """Whether `if` holds: comparisons with && between them."""
        parts = [COMPARISON.fullmatch(part) for part in text.split(" && ")]
        return all((self.value(part[1]) == part[3]) == (part[2] == "==") for part in parts if part or pytest.fail(text))

    def script(self, step: dict[str, Any]) -> int:
        """Run the step's script, and read what it writes to $GITHUB_OUTPUT."""
        output = self.folder / "output"
        output.write_text("")
        place = EXPRESSION.sub(lambda found: self.value(found[1]), step.get("working-directory", "."))
        environment = {
            name: EXPRESSION.sub(lambda found: self.value(found[1]), text) for name, text in step.get("env", {}).items()
        }
        file = self.folder / "step.sh"
        file.write_text(step["run"], "utf-8")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(file)],
            cwd=self.checkout / place,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith(("GITHUB", "GIT_"))},
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                "RUNNER_TEMP": str(self.folder),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        self.log += done.stdout + done.stderr
        for line in output.read_text("utf-8").splitlines():
            name, _, value = line.partition("=")
            self.outputs[f"steps.{step['id']}.outputs.{name}"] = value
        return done.returncode


def write_fake_python(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "python3").write_text(PYTHON, "utf-8")
    (folder / "python3").chmod(0o755)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A pull request that makes a backend wrong. Its checkout has one commit, so the base must be fetched."""
    origin, checkout = tmp_path / "origin", tmp_path / "checkout"
    write(origin / "sub", softplus=CASE, mine=RIGHT)
    base = repository(origin)
    git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    write(origin / "sub", mine=RIGHT.replace("1 / (1", "2 / (1"))
    git(origin, "commit", "-qam", "a change")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{origin}", "checkout")
    inputs = {"backends": "mine.py", "cases": "softplus.py", "working-directory": "sub", "install": "-e .\njax"}
    (tmp_path / "temp").mkdir()
    return Job(tmp_path / "temp", checkout, inputs | {"base": base, "arguments": "--operator gradient"})


def test_the_published_schema_accepts_it() -> None:
    schema = json.loads((ROOT / "tests/reports/schemas/github-action.json").read_text("utf-8"))
    jsonschema.validate(ACTION, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(ACTION | {"runs": {"using": "composite", "steps": [{"run": "true"}]}}, schema)


def test_no_input_becomes_part_of_a_script() -> None:
    for step in STEPS:
        assert "${{" not in step.get("run", ""), step["name"]
        assert subprocess.run(["bash", "-n"], input=step.get("run", ""), text=True, check=False).returncode == 0


def test_text_of_an_input_is_not_run(job: Job) -> None:
    attacks = ["$(touch ../pwned)", "; touch ../pwned ;", "`touch ../pwned`", "&& touch ../pwned", "x|touch ../pwned"]
    names = ("backends", "cases", "install", "arguments", "adbench", "base", "threshold", "fail-on", "budget")
    job.inputs |= dict(zip(names, itertools.cycle(attacks), strict=False))
    assert job.run() == 2, job.log
    assert not list(job.folder.parent.rglob("pwned"))
    assert "could not start, exit code 2" in job.summary
    assert "nothing is compared" in job.summary


@pytest.mark.slow  # measures twice; the other tests run every step but the comparison
def test_a_pull_request_that_breaks_a_gradient_fails_and_names_it(job: Job) -> None:
    job.inputs["budget"] = "15s"
    assert job.run() == 1, job.log
    assert "Note that annotations are missing" not in job.ran
    (file,) = job.folder.glob("adbench-*/check.sarif")
    sarif = json.loads(file.read_text("utf-8"))
    found = sarif["runs"][0]["results"]
    assert {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in found} == {"sub/mine.py"}
    assert "2 results, ✗ 2 wrong" in job.summary
    assert "now wrong" in job.summary
    assert "::error title=adbench::The check ended with exit code 1" in job.log
    assert "The comparison ended with exit code 1" in job.log
    installed = (job.folder / "pip.log").read_text("utf-8").split("\n")
    both = [str(job.checkout / "sub"), str(file.parent / "base/sub")]
    assert [line for line in installed if line in both] == both
    assert installed[1:8] == ["install", "--quiet", str(ROOT), "matplotlib", "-e", ".", "jax"]


@pytest.mark.exhaustive  # six processes under Callgrind
@pytest.mark.timeout(900)
def test_a_pull_request_that_adds_instructions_fails_if_the_gate_names_them(job: Job) -> None:
    write(job.checkout / "sub", mine=RIGHT.replace("1 / (1", "sum(0.0 * np.exp(-x) for _ in range(9)) + 1 / (1"))
    job.inputs |= {"budget": "5m", "fail-on": "correctness,instructions"}
    assert job.run() == 3, job.log
    assert "Instructions of a call (callgrind" in job.summary
    assert "more in 0" not in job.summary


@pytest.mark.slow  # a check
def test_a_fork_whose_annotations_are_refused_gets_a_note(job: Job) -> None:
    job.refused = True
    write(job.checkout / "sub", mine=RIGHT)
    job.inputs |= {"base": "0" * 40}
    assert job.run() == 0, job.log
    assert job.ran == [step["name"] for step in STEPS]
    assert "GitHub accepted no annotations" in job.summary
    assert "none wrong" in job.summary
    assert "could not be measured" in job.summary
