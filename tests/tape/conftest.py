"""All tests of the engine run with the machine code for scalars; `test_scalar_code` compares it with Python."""

import sys

import pytest

from adbench.tape.fast import switch


@pytest.fixture(autouse=True, scope="session")
def machine_code():
    reason = switch.load_machine_code()
    assert not reason or sys.version_info[:2] != (3, 11), reason
