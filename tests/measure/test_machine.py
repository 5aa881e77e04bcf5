"""What is said about the machine, and what is not."""

import getpass
import json
import platform

from adbench.measure import machine


def test_the_description_is_plain_data_without_names_of_host_or_user() -> None:
    text = json.dumps(machine.describe())
    assert platform.node() not in text
    assert f'"{getpass.getuser()}"' not in text
    assert platform.python_version() in text


def test_threads_are_fixed_for_every_library_that_reads_an_environment() -> None:
    one = machine.thread_environment(1)
    assert one["OMP_NUM_THREADS"] == one["OPENBLAS_NUM_THREADS"] == one["MKL_NUM_THREADS"] == "1"
    assert "multi_thread_eigen=false" in one["XLA_FLAGS"]
    assert "multi_thread_eigen=true" in machine.thread_environment(2)["XLA_FLAGS"]
