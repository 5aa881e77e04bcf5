"""`--device` of conform, fuzz, minimise and `check --function`, and arguments that are on a device: computed there.

The devices are a second one that jax makes of the CPU, and one that torch lets Python define.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from adbench.findings.conform.judgement import Fault
from adbench.findings.finding import Finding, write
from adbench.findings.programs.random_program import Input, Program, Step
from adbench.findings.programs.reproduction import issue
from adbench.findings.scripts import of_fault, of_finding
from tests.support.command import adbench

HERE = Path(__file__).parent
FAKE, JAX, TORCH = (str(HERE / f"{name}.py") for name in ("fake_device", "jax_second", "torch_second"))
SECOND = f"""
import sys
from adbench.catalog.discovery import load
from adbench.catalog.source import Source
SOURCE = Source("backends", "torch_second", {TORCH!r}, builtin=False, devices=("cuda",))
load(SOURCE)
import torch
"""
SINE = Finding(
    Program((Input.of(1.5),), (Step("sin", "xp.sin({0})", (0,)),)),
    *("gradient", "torch", "wrong", "1.0", "0.0707372016677029", "x0", "x0 is wrong"),
    device="cuda",
)


def printed(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "asked",
    [
        ("conform", "-b", FAKE, "--operation", "gelu"),
        ("fuzz", "-b", FAKE, "--programs", "1"),
        ("check", "-b", FAKE, "--function", "f.py:f", "--at", "1.0"),
        ("minimise", "finding.json"),
    ],
    ids=lambda asked: asked[0],
)
def test_an_absent_device_is_one_line_and_exit_code_2(asked: Sequence[str], tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def f(xp, x):\n    return xp.exp(x)\n")
    write(replace(SINE, library=FAKE), tmp_path / "finding.json")
    how = () if asked[0] == "minimise" else ("--device", "cuda")
    done = adbench(tmp_path, *asked, *how, FAKE_DEVICE="0 0 absent")
    name = "fake_device (cuda)" if asked[0] == "check" else "fake_device"
    reason = f"{name}: no CUDA device: the fake sees cpu only; use --device cpu"
    assert (done.code, done.out, done.err) == (2, "", f"adbench: {reason}\n")


def test_fuzz_does_not_hide_the_device_from_its_workers(tmp_path: Path) -> None:
    """As `NO_GPU` does, which the fake device obeys."""
    done = adbench(tmp_path, "fuzz", "-b", FAKE, "--programs", "1", "--device", "cuda")
    assert (done.code == 2, "no CUDA device" in done.err) == (False, False), done.err


def test_a_device_that_a_library_lacks_is_exit_code_2(tmp_path: Path) -> None:
    for command in (("conform", "--operation", "gelu"), ("fuzz", "--programs", "1")):
        done = adbench(tmp_path, *command, "-b", "tape", "--device", "cuda")
        assert (done.code, done.err) == (2, "adbench: tape: it has no device cuda; use --device cpu\n")


def test_a_kernel_needs_its_device(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("import torch\n\n\ndef k(x):\n    return torch.exp(x)\n")
    done = adbench(
        tmp_path, "check", "--function", "k.py:k", "--definition", "k.py:k", "--at", "1.0", "--device", "cuda"
    )
    reason = "torch: no CUDA device: torch sees cpu only; use --device cpu"
    assert (done.code, done.out, done.err) == (2, "", f"adbench: {reason}\n")


@pytest.mark.slow
def test_operations_on_a_device_are_judged_as_on_the_cpu(tmp_path: Path) -> None:
    asked = ("conform", "-b", JAX, "--operation", "log1p", "--points", "8", "--json")
    there, here = (adbench(tmp_path, *asked, *how) for how in (["--device", "cuda"], []))
    assert there.code == here.code
    on_device, on_cpu = json.loads(there.out), json.loads(here.out)
    assert (on_device.pop("device"), on_cpu.pop("device")) == ("cuda", "cpu")
    assert on_device["cells"][0]["checked"] > 50
    assert on_device == on_cpu


@pytest.mark.slow
def test_programs_on_a_device_are_judged(tmp_path: Path) -> None:
    done = adbench(tmp_path, "fuzz", "-b", JAX, "--programs", "2", "--seconds", "60", "--device", "cuda", "--json")
    campaign = json.loads(done.out)
    assert campaign["programs"] == 2
    assert campaign["judged"] + campaign["compared"] == 2


def test_a_script_puts_its_arrays_on_the_device() -> None:
    text = of_finding(SINE)
    assert "- device: cuda" in issue(SINE, text)
    assert '"jax_platforms", "cuda,cpu"' in of_finding(replace(SINE, library="jax"))
    assert "cuda" not in of_finding(replace(SINE, device="cpu"))
    place = 'torch.set_default_device("cuda")\n'
    assert place in text
    fault = Fault("sin", "torch", "gradient", "wrong", 0.0, {"x": 1.5}, "special", "x", "1", "0", ("x",), device="cuda")
    assert place in of_fault(fault, "torch.sin(x)")
    assert of_fault(replace(fault, library="tape"), "").endswith("--operation sin --device cuda\n")
    single = replace(fault, library="jax", precision="float32")
    assert '"jax_default_matmul_precision", "highest"' in of_fault(single, "jnp.sin(x)")
    assert "matmul" not in of_fault(replace(single, device="cpu"), "jnp.sin(x)")


@pytest.mark.slow
def test_the_script_of_a_device_computes_on_it() -> None:
    text = of_finding(SINE).replace('device("cuda")', 'device("second")').replace("sys.exit", "print")
    text = text.replace("= torch.tensor", '= lambda x: torch.tensor(x, device="cpu").to("second:0")')
    shown = printed(f"{SECOND}\n{text}\nprint(x0.device)")
    assert "gradient got 0.0707372" in shown
    assert shown.endswith("second:0\n")


@pytest.mark.slow
def test_the_program_of_a_difference_of_forms_computes_on_its_device() -> None:
    shown = printed(f"""{SECOND}
from adbench.catalog.discovery import catalog
from adbench.execution.operators import on_device
from adbench.execution.operators.prepared_point import point
from adbench.findings.variants.first_difference import FirstDifference
from adbench.findings.variants.traced import traced
from adbench.findings.variants.first_difference import script
from adbench.functions.user_function import function_case
import numpy as np
def f(x, y):
    return torch.logsumexp(x * y, 0) + y.sum()
at = point(function_case(f, (np.array([0.5, 1.0]), np.array([2.0, 3.0]))), 1, 0)
used = on_device.loaded(catalog().backends["torch"], "cpu", "outside")
program = traced(used, at)
last = len(program.ends) - 1
text = script(FirstDifference(program, "vjp", last, 1.0, last, 1.0), "torch", used, at, "cuda")
text = text.replace('device("cuda")', 'device("second")').replace("torch.compile", "").replace("sys.exit", "print")
text = text.replace("= torch.tensor", '= lambda x: torch.tensor(x, device="cpu").to("second:0")')
scope = {{}}
exec(text, scope)
print({{tensor.device for tensor in (*scope["at"], *scope["eager"])}})
""")
    assert "result 0: 0 of 2 numbers differ" in shown
    assert shown.endswith("{device(type='second', index=0)}\n")


LOST_NAN = Finding(
    Program(
        (Input.of([[2.0, 0.5, 0.25], [float("nan"), 3.0, 0.125], [0.75, 0.5, 4.0]]), Input.of(1.5)),
        (
            Step("scaled", "{0} * {1}", (0, 1)),
            Step("log_abs_det", "xp.linalg.slogdet({0})[1]", (2,)),
            Step("doubled", "{0} * 2.0", (3,)),
        ),
    ),
    *("value_and_gradient", "torch", "wrong", "4.0", "nan", "the value", ""),
    device="cuda",
)


@pytest.mark.slow
def test_a_value_that_lacks_the_nan_of_an_input_on_the_device_has_a_ready_report(tmp_path: Path) -> None:
    """As slogdet of torch on a GPU, by the fake one, which stands in for torch."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "torch.py").write_text(Path(TORCH).read_text())
    (tmp_path / "pyproject.toml").write_text('[tool.adbench]\nbackends = ["own"]\n')
    write(LOST_NAN, tmp_path / "finding.json")
    asked = ("minimise", "finding.json", "--seconds", "30", "-o", "out")
    done = adbench(tmp_path, *asked, IGNORES_NAN="1")
    assert done.code == 1, done.out + done.err
    (file,) = (tmp_path / "out").glob("*.py")
    text = file.read_text()
    assert "the value of log_abs_det is wrong" in done.out
    assert "adbench" not in text
    assert "- device: cuda" in file.with_suffix(".md").read_text()
    text = text.replace('device("cuda")', 'device("second")').replace("sys.exit", "print")
    text = text.replace("array = torch.tensor", 'array = lambda x: torch.tensor(x, device="cpu").to("second:0")')
    for fault, code in (('os.environ["IGNORES_NAN"] = "1"', 1), ("", 0)):
        shown = printed(f"import os\n{fault}\n{SECOND}\n{text}\nprint(x0.device)")
        assert "expected nan" in shown
        assert shown.endswith(f"\n{code}\nsecond:0\n")
    healthy = adbench(tmp_path, *asked)
    assert (healthy.code, "does not have this fault any more" in healthy.out) == (0, True)


FUNCTION = """
import torch

WEIGHTS = torch.tensor([0.5, 2.0])
NET = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).eval()


def loss(x, labels, net):
    return torch.nn.functional.cross_entropy(NET(net(x)) * WEIGHTS, labels)


def inputs(n):
    return torch.randn(n, 2, dtype=torch.float64), torch.arange(n) % 2, NET
"""


@pytest.mark.slow
def test_a_function_and_all_that_it_uses_are_on_the_device(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(FUNCTION)
    asked = ("check", "--function", "f.py:loss", "--inputs", "f.py:inputs", "-n", "3", "-b", TORCH, "--device", "cuda")
    done = adbench(tmp_path, *asked)
    assert done.code == 0, done.out + done.err
    assert "✓ right: gradient of loss by torch_second" in done.out


REPEATED = """
import torch


def f(x, w):
    assert x.device.type == w.device.type != "cpu", "the arguments are not on the device"
    return (torch.tanh(x @ w) ** 2).sum()


def inputs(n):
    torch.manual_seed(0)
    return torch.randn(n, 3, dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64)
"""


@pytest.mark.slow
def test_a_gradient_on_the_device_is_repeated_there(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(REPEATED)
    asked = ("check", "--same-bits", "--function", "f.py:f", "--inputs", "f.py:inputs", "-n", "4", "-b", TORCH)
    done = adbench(tmp_path, *asked, "--device", "cuda")
    assert done.code == 0, done.out + done.err
    assert "f.py:f by torch_second (cuda)" in done.out
    assert "process  same" in done.out


@pytest.mark.slow
def test_tensors_of_torch_are_checked_where_they_are() -> None:
    shown = printed(f"""{SECOND}
import adbench
places = set()
def f(x, index):
    places.add(x.device.type)
    return (torch.sin(x) * scale)[index].sum()
x, scale, index = (torch.tensor(values).to("second") for values in ([1.0, 2.0], [3.0, 4.0], [1, 0]))
print(adbench.check(f, x, index), adbench.check(f, x, index, precision="float64"), places)
print(adbench.check(lambda x, net: net(x).sum(), x, torch.nn.Linear(2, 2).to("second")))
def draws(x):
    torch.manual_seed(0 if x.is_cpu else 1)  # as if a device drew other numbers
    return (torch.rand(2) * x.cpu()).sum()
print(adbench.check(draws, x))
""")
    first, float64, _, drawn = shown.split("✓ right:")[1:]
    assert "checked in float64 on the CPU, because its random draws are others on second:0" in drawn
    assert "computed on second:0: x" in first
    assert "given on second:0: x" in float64
    assert "second" in float64.splitlines()[-1]
    assert "computed on second:0: x, net.weight, net.bias" in shown


def test_a_gpu_multiplies_float32_in_float32() -> None:
    """By default jax's products there, and torch's convolutions, round factors to 10 bits."""
    shown = printed("""
import jax, torch
from unittest import mock
from backends import jax as with_jax, torch as with_torch
from adbench.functions.libraries import without_tf32
def chosen():
    return jax.config.jax_default_matmul_precision, torch.backends.cudnn.allow_tf32
with without_tf32():
    print(*chosen())
print(*chosen())
torch.backends.cudnn.conv.fp32_precision = "ieee"
with without_tf32(), jax.default_matmul_precision("float32"), without_tf32():
    print(jax.config.jax_default_matmul_precision, torch.backends.cudnn.conv.fp32_precision)
real = jax.devices("cpu")
with mock.patch.multiple(torch.cuda, is_available=lambda: True, get_device_name=lambda: "a GPU"):
    with_torch.use_device("cuda")
with mock.patch("jax.devices", lambda name: real):
    with_jax.use_device("cuda")
print(*chosen())
""")
    assert shown.splitlines() == ["highest False", "None True", "float32 ieee", "highest False"]


def test_arrays_of_jax_are_checked_where_they_are() -> None:
    shown = printed("""
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import adbench, jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
places = set()
def f(x, n):
    if not isinstance(x, jax.core.Tracer):
        places.update(str(one) for one in x.devices())
        places.add(jax.config.jax_default_matmul_precision)
    return jnp.sum(jnp.sin(x) ** n)
x, n = (jax.device_put(jnp.asarray(values), jax.devices()[1]) for values in ([1.0, 2.0], [1, 2]))
print(adbench.check(f, x, n, backend="jax_eager", modes=["gradient", "hvp"]), places)
print(adbench.check(f, jnp.array([1.0]), 2, backend="jax_eager"))
""")
    first, second = shown.split("✓ right:")[1:]
    assert "computed on cpu:1: x" in first
    assert "'cpu:1'" in first.splitlines()[-1]
    assert "'highest'" in first.splitlines()[-1]
    assert "computed on" not in second


@pytest.mark.slow
def test_a_library_copies_and_multiplies_on_its_device() -> None:
    shown = printed(f"""
from adbench.catalog.source import Source
from adbench.execution.operators import on_device
from adbench.measure.machine import rates
rates.ON_DEVICE_BYTES, rates.ORDER_ON_DEVICE = 1 << 20, 64
source = Source("backends", "jax_second", {JAX!r}, builtin=False, devices=("cuda",))
found = on_device.rates(on_device.loaded(source, "cuda", "outside"), "float64")
print(found.copy.per_second > 1e7, found.arithmetic.per_second > 1e6)
""")
    assert shown == "True True\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "where", "module", "create"),
    [("torch", TORCH, "torch", "ones_like"), ("jax", JAX, "jax.numpy", "asarray")],
)
def test_every_input_is_examined_on_the_device(library: str, where: str, module: str, create: str) -> None:
    shown = printed(f"""
import {module} as arrays
import numpy as np
from adbench.catalog.source import Source
from adbench.execution.operators import on_device
from adbench.findings.every_input.input_worker import at_every_input
source = Source("backends", "{library}_second", {where!r}, builtin=False, devices=("cuda",))
there = on_device.loaded(source, "cuda", "outside")
x, places, real = np.array([-0.5, 0.25, 2.0]), set(), arrays.{create}
def spying(*args, **options):
    array = real(*args, **options)
    places.add(str(array.device))
    return array
arrays.{create} = spying
(numbers,) = at_every_input(there, {{"functions": ["tanh"], "type": "bfloat16", "inputs": x}})
print(sorted(numbers), places)
print(np.allclose(numbers["value64"], np.tanh(x)), np.allclose(numbers["gradient"], 1 - np.tanh(x) ** 2, atol=0.01))
""")
    assert "['gradient', 'gradient64', 'kept64', 'value', 'value64']" in shown
    assert any(place in shown for place in ("{'second:0'}", "{'cpu:1'}", "{'TFRT_CPU_1'}"))
    assert shown.endswith("True True\n")


@pytest.mark.slow
def test_the_arguments_of_a_kernel_are_placed_on_the_device() -> None:
    shown = printed(f"""{SECOND}
from unittest import mock
import numpy as np
from adbench.execution.operators import on_device
from adbench.execution.precision.kernel import KernelCheck
from adbench.model.settings import FLOAT64
real, places = on_device.loaded, set()
def kernel(x, w):
    places.add(f"{{x.device}} {{w.device}}")
    return torch.softmax(x, -1) * w
with mock.patch.object(on_device, "loaded", lambda source, *where: real(SOURCE, *where)):
    check = KernelCheck(kernel, kernel, (torch.randn(2, 3), np.ones(3)), {{}}, None, 0, 3.0, "cuda")
print(check.table(1), places)
place = real(SOURCE, "cuda", "outside")
on_device.create_there(place)
print(torch.zeros(1).device)
""")
    assert "✓ right: 2 derivatives of kernel against kernel" in shown
    assert "'second:0 second:0'" in shown
    assert shown.endswith("second:0\n")
