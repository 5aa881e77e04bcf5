"""CITATION.cff, the conda recipe and the dependency groups say the same as pyproject.toml."""

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from adbench.cli import cli
from adbench.optional import EXTRAS
from adbench.version import __version__

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, GROUPS = PYPROJECT["project"], PYPROJECT["dependency-groups"]
SCHEMA = json.loads(Path(__file__).with_name("cff-1.2.0.schema.json").read_text(encoding="utf-8"))  # CC BY 4.0, by the
# authors of github.com/citation-file-format/citation-file-format
ON_CONDA = {"fastjsonschema": "python-fastjsonschema", "matplotlib": "matplotlib-base"}
"""Distribution -> its name on conda-forge, where that differs."""


def citation() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.load((ROOT / "CITATION.cff").read_text(encoding="utf-8"), yaml.BaseLoader)
    return loaded


def test_the_citation_is_valid_and_agrees_with_the_project() -> None:
    found = citation()
    validator = jsonschema.Draft7Validator(SCHEMA)
    validator.validate(found)
    assert (found["version"], found["license"]) == (__version__, PROJECT["license"])
    assert (found["abstract"], found["keywords"]) == (PROJECT["description"], PROJECT["keywords"])
    assert not validator.is_valid(found | {"authors": []})
    assert not validator.is_valid(found | {"license": "BSD"})


def on_conda(requirement: str) -> str:
    """A requirement as conda-forge writes it: "matplotlib>=3.8" -> "matplotlib-base >=3.8"."""
    name, bound = re.fullmatch(r"([\w.-]+)(>=[\d.]+)", requirement).groups()  # type: ignore[union-attr]
    return f"{ON_CONDA.get(name, name)} {bound}"


def rendered_recipe() -> dict[str, Any]:
    """The recipe, rendered; skips the test without rattler-build, except in CI."""
    try:
        import rattler_build
    except ImportError:
        if os.environ.get("CI"):
            raise
        pytest.skip("py-rattler-build is not installed")
    variants = rattler_build.Stage0Recipe.from_file(ROOT / "conda" / "recipe.yaml").render()
    assert len(variants) == 1
    found: dict[str, Any] = variants[0].recipe.to_dict()
    return found


def test_the_conda_recipe_renders_with_the_versions_of_the_project() -> None:
    found = rendered_recipe()
    assert found["package"] == {"name": PROJECT["name"], "version": __version__}
    assert found["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in PROJECT["scripts"].items()]
    python = PROJECT["requires-python"]
    assert set(found["requirements"]["run"]) == {f"python {python}", *map(on_conda, PROJECT["dependencies"])}


def test_the_conda_recipe_bounds_and_builds_as_the_project_says() -> None:
    """Read as plain YAML, so that it is also compared where rattler-build is missing."""
    found = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    needed = found["requirements"]
    assert set(needed["run"][1:]) == set(map(on_conda, PROJECT["dependencies"]))
    assert set(map(on_conda, PYPROJECT["build-system"]["requires"])) < set(needed["host"])
    of_extras = {one for extra in ("plots", "compiled", "scipy") for one in PROJECT["optional-dependencies"][extra]}
    assert set(needed["run_constraints"]) == set(map(on_conda, of_extras))
    assert f">={found['context']['python_min']}" == PROJECT["requires-python"]
    assert (found["context"]["version"], found["about"]["license"]) == (__version__, PROJECT["license"])
    assert found["about"]["summary"] == PROJECT["description"]


def test_no_requirement_is_in_two_dependency_groups() -> None:
    """Groups include each other instead: [dependency-groups] has no list twice, and no list of an extra."""
    plain = [one for group in GROUPS.values() for one in group if isinstance(one, str)]
    assert len(plain) == len(set(plain))
    included = [one["include-group"] for group in GROUPS.values() for one in group if isinstance(one, dict)]
    assert set(included) <= set(GROUPS)


def test_the_extra_of_each_optional_library_has_it_and_all_has_every_library() -> None:
    extras = PROJECT["optional-dependencies"]
    for library, extra in EXTRAS.items():
        names = {re.split(r"[\[<>=!~; ]", one, maxsplit=1)[0].replace("-", "_") for one in extras[extra]}
        assert library in names, f"the extra {extra} lacks {library}"
    assert not {one for one in PROJECT["dependencies"] if re.split("[<>=]", one)[0] in EXTRAS}
    everything = extras["all"][0].removeprefix("autodiff-bench[").removesuffix("]").split(",")
    assert set(extras) - set(everything) == {"aadc", "all", "benchmark", "dask", "drjit", "notebook", "tensorflow"}


def test_the_image_has_what_the_wheel_is_built_from_and_extras_that_exist() -> None:
    """Docker is not everywhere; its steps were tried by hand."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    extras = next(line for line in lines if line.startswith("ARG EXTRAS=")).partition("=")[2].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    ignored, *let_through = (
        line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] != "#"
    )
    assert ignored == "*"
    there = {line[1:] for line in let_through if line.startswith("!")}
    targets = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    built_from = {
        *targets["packages"],
        *targets["force-include"],
        *PROJECT["license-files"],
        PROJECT["readme"],
        "reports",
    }
    assert there == {*built_from, "pyproject.toml", "constraints.txt"}
    assert all((ROOT / name).exists() for name in there)


def test_the_hook_for_pre_commit_is_valid_and_is_a_command() -> None:
    from pre_commit.clientlib import load_manifest

    (hook,) = load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    command, *words = hook["entry"].split()
    assert PROJECT["scripts"][command] == "adbench.cli:main"
    page = (ROOT / "docs" / "how-to" / "run-in-ci.md").read_text(encoding="utf-8")
    config = yaml.safe_load(page.partition("## Before each commit")[2].partition("```yaml\n")[2].partition("```")[0])
    (used,) = config["repos"][0]["hooks"]
    assert used["id"] == hook["id"]
    assert re.search(used["files"], "model.py")
    context = cli.commands[words[0]].make_context(words[0], [*words[1:], *used["args"]])
    assert (context.params["function"], context.params["at"]) == ("model:softplus", ("1.0",))
