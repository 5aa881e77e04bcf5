"""All tests of the engine run with the machine code for scalars; `test_scalar_code` compares it with Python."""

import pytest

from adbench.tape.machine import loading


@pytest.fixture(autouse=True, scope="session")
def machine_code():
    assert loading.load_machine_code() == ""
