"""Backends of Python libraries: own operators are correct, missing functions are refused in one line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from adbench.catalog import installed
from adbench.catalog.discovery import catalog
from tests.backends.loaded import checked

NOT_IN_CI = ("aadc", "drjit", "tensorflow", "tensorflow_eager", "tensorflow_xla")  # not part of the extra `all`

# backend, case, operator: correct by the library's own operator
CORRECT = [
    ("drjit", "lotka_volterra", "gradient"),
    ("num_dual", "lotka_volterra", "gradient"),
    ("xad", "projectile", "gradient"),
]
SLOWLY_CORRECT = [
    ("aadc", "lotka_volterra", "gradient"),
    ("asdex", "bundle_adjustment", "jacobian"),
    ("asdex", "helmholtz_energy", "hessian"),
    ("asdex", "lennard_jones", "jacobian"),
    ("drjit", "normal_log_density", "gradient"),
    ("jaxadi", "rosenbrock", "gradient"),
    ("mlx", "helmholtz_energy", "hvp"),
    ("mlx", "rosenbrock", "gradient"),
    ("numdifftools", "bundle_adjustment", "jacobian"),
    ("numdifftools", "rosenbrock", "gradient"),
    ("tensorflow", "lotka_volterra", "gradient"),
    ("tensorflow", "helmholtz_energy", "hessian"),
    ("tensorflow_eager", "helmholtz_energy", "hvp"),
    ("tensorflow_xla", "normal_log_density_loop", "gradient"),
    ("xad", "normal_log_density_loop", "gradient"),
]
REFUSED = [
    ("aadc", "projectile", "gradient", "depends on data"),
    ("asdex", "rosenbrock", "gradient", "asdex has no gradient"),
    ("drjit", "cholesky", "gradient", "Dr.Jit has no cholesky"),
    ("jaxadi", "projectile", "gradient", "depends on data"),
    ("jaxadi", "trap_hypot_large", "gradient", "no translation of casadi's OP_HYPOT"),
    ("mlx", "cholesky", "gradient", "Not implemented for Cholesky"),
    ("tensorflow", "projectile", "gradient", "tf.function"),
    ("xad", "helmholtz_energy", "hvp", "first-order numbers only"),
]


def require(name: str) -> None:
    """Skip the test without the library; fail where CI installs it."""
    source = catalog().backends[name]
    reason = f"{name}: {source.not_installed}" if source.missing else ""
    if not reason and name == "drjit":
        reason = unusable()
    if reason and os.environ.get("CI") and name not in NOT_IN_CI:
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


def unusable(**environment: str) -> str:
    """Why Dr.Jit cannot run, as its backend finds out in a process with these variables."""
    program = "from adbench.catalog.discovery import catalog, load\nprint(load(catalog().backends['drjit']).unusable())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return done.stdout.strip()


def check(name: str, case: str, operator: str) -> None:
    require(name)
    record = checked(name, case, operator)
    assert (record.status, record.how) == ("ok", "native"), record.reason


@pytest.mark.parametrize(("name", "case", "operator"), CORRECT)
def test_the_librarys_own_operator_is_correct(name: str, case: str, operator: str) -> None:
    check(name, case, operator)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "case", "operator"), SLOWLY_CORRECT)
def test_other_operators_of_the_library_are_correct(name: str, case: str, operator: str) -> None:
    check(name, case, operator)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "case", "operator", "reason"), REFUSED)
def test_a_missing_function_is_unsupported_in_one_line(name: str, case: str, operator: str, reason: str) -> None:
    require(name)
    record = checked(name, case, operator)
    assert record.status == "unsupported"
    assert reason in str(record.reason)
    assert "\n" not in str(record.reason)


def test_drjit_without_llvm_says_what_to_install() -> None:
    if catalog().backends["drjit"].missing:
        require("drjit")
    assert unusable(DRJIT_LIBLLVM_PATH="/missing/libLLVM.so").startswith("Dr.Jit found no LLVM library; apt install")


def test_tensorflow_counts_as_installed_under_its_other_name(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"tensorflow-cpu": "2.21.0"}

    def version(name: str) -> str:
        if name not in versions:
            raise installed.importlib.metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(installed.importlib.metadata, "version", version)
    assert installed.installed_version("tensorflow") == "2.21.0"
    assert installed.installed_version("jax") is None
