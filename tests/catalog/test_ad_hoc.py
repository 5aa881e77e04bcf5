"""A user's function by its name on the command line: where it is found, and how its arguments fit."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adbench.catalog.ad_hoc import AdHoc, ad_hoc, fitted, named_function
from adbench.functions.user_function import function_case
from adbench.model.errors import UsageError
from tests.support.files import write

MINE = """
import numpy as np

class Made:
    def loss(self, x): return np.sum(x ** 2)
    @staticmethod
    def of_class(x): return x * x

made, number = Made(), 3.0

def f(a, b): return a * np.sin(b)
def nothing(): return 1.0
def scaled(x, scale=1.0, *, n): return np.sum(x ** n) * scale
def inputs(n): return np.arange(1.0, n + 1), 2.0
def more(n): return (np.ones(3), *([2.0] if n > 10 else []))
def raises(n): return 1 / 0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder, with a module of the user's. The fixture removes its imports afterwards."""
    write(tmp_path, mine_of_e=MINE, random=MINE, broken="import nope_of_e", torn="def f(:", empty_of_e="")
    write(tmp_path / "package", __init__="", near="K = 2.0\n", far="from .near import K\ndef f(x): return K * x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADBENCH_CACHE", str(tmp_path / "cache"))
    path, finders, modules = list(sys.path), list(sys.meta_path), set(sys.modules)
    yield tmp_path
    sys.path[:], sys.meta_path[:] = path, finders
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mine_of_e:f", None),
        ("mine_of_e.py:f", None),
        ("./mine_of_e.py:made.loss", 4.0),
        ("mine_of_e:Made.of_class", 4.0),
        ("package.far:f", 4.0),
        ("package/far.py:f", 4.0),
        ("random.py:made.loss", 4.0),  # the standard library has another module of this name
    ],
)
def test_a_function_is_found_by_module_and_by_file(folder: Path, name: str, value: float | None) -> None:
    found = ad_hoc(name).function()
    assert (found(2.0) if value else found(2.0, np.pi / 2)) == (value or 2.0)
    assert sys.modules["random"].__spec__ is None or "made" not in vars(sys.modules["random"])


WRONG_NAMES = [
    ("f", "'f' is not a function; write module:function"),
    ("mine_of_e:f()", "is not a function; write module:function"),
    ("mine_of_f:f", "there is no module 'mine_of_f' in .*; did you mean 'mine_of_e'"),
    ("mine_of_e.deeper:f", "there is no module 'mine_of_e.deeper'|cannot be imported"),
    ("nowhere.py:f", "there is no file"),
    ("mine_of_e:g", "mine_of_e has no function or object 'g'; it has "),
    ("mine_of_e:made.g", "mine_of_e:made has no function or object 'g'; it has loss"),
    ("empty_of_e:g", "empty_of_e has no function or object 'g'; it has none"),
    ("mine_of_e:number", "mine_of_e:number has type float and cannot be called"),
    ("mine_of_e:Made", "mine_of_e:Made is a class"),
    ("mine_of_e:Made.loss", "is a method that needs an object"),
    ("broken:f", "broken cannot be imported: No module named 'nope_of_e'"),
    ("torn:f", "torn cannot be imported: SyntaxError"),
]


@pytest.mark.parametrize(("name", "message"), WRONG_NAMES)
def test_a_wrong_name_is_one_line_that_says_what_is_there(folder: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        ad_hoc(name).function()
    assert "\n" not in str(raised.value)


def two(a: float, b: float) -> float:
    return a * b


def with_xp(xp: Any, x: Any, n: int = 2) -> Any:
    return xp.sum(x**n)


def many(*xs: float) -> float:
    return sum(xs)


FITTING: list[tuple[Any, list[Any], dict[str, Any], tuple[tuple[Any, ...], dict[str, Any]]]] = [
    (two, [1.0, 2.0], {}, ((1.0, 2.0), {})),
    (two, [1.0], {"b": 2.0}, ((1.0,), {"b": 2.0})),
    (two, [1.0], {"a": 2.0}, ((), {"b": 1.0, "a": 2.0})),
    (with_xp, [1.0], {}, ((1.0,), {})),
    (with_xp, [1.0, 2.0, 3.0], {"n": 3}, (([1.0, 2.0, 3.0],), {"n": 3})),
    (many, [1.0, 2.0, 3.0], {}, ((1.0, 2.0, 3.0), {})),
]


@pytest.mark.parametrize(("f", "values", "named", "wanted"), FITTING)
def test_numbers_are_one_argument_each_or_a_vector(f: Any, values: Any, named: Any, wanted: Any) -> None:
    args, kwargs = fitted(f, values, named, "f")
    assert (tuple(arg.tolist() if isinstance(arg, np.ndarray) else arg for arg in args), kwargs) == wanted


WRONG_ARGUMENTS: list[tuple[AdHoc, str]] = [
    (AdHoc("mine_of_e:f", ()), "mine_of_e:f needs a value for a, b: give one with --at"),
    (AdHoc("mine_of_e:f", (), at=("1",)), r"--at gives 1 argument, but mine_of_e:f takes 2 \(a, b\)"),
    (AdHoc("mine_of_e:f", (), at=("1", "2", "3")), r"--at gives 3 arguments, but mine_of_e:f takes 2 \(a, b\)"),
    (AdHoc("mine_of_e:f", (), at=("1",), arg=("c=2.0",)), "no argument of mine_of_e:f 'c'"),
    (AdHoc("mine_of_e:nothing", ()), "mine_of_e:nothing takes no arguments to differentiate; give it a parameter"),
    (AdHoc("mine_of_e:scaled", (), at=("1",)), "mine_of_e:scaled needs 'n' too: give it with --arg n=VALUE"),
    (AdHoc("mine_of_e:f", (), at=("1", "2"), wrt=("c",)), "wrt: 'c' is not a floating-point argument"),
    (AdHoc("mine_of_e:f", (), inputs="mine_of_e:raises"), r"mine_of_e:raises\(10\) raises ZeroDivisionError"),
]


@pytest.mark.parametrize(("asked", "message"), WRONG_ARGUMENTS)
def test_arguments_that_do_not_fit_are_one_line(folder: Path, asked: AdHoc, message: str) -> None:
    sys.path.insert(0, str(folder))
    with pytest.raises(UsageError, match=message):
        asked.case(function_case)


def test_the_given_point_is_exact_and_others_are_around_it(folder: Path) -> None:
    case = ad_hoc("mine_of_e:f", ("0.1", "0.2")).case(function_case)
    names, args, wrt = case.bind(1, 0)
    assert (names, args, wrt) == (("a", "b"), (0.1, 0.2), (0, 1))
    assert case.bind(1, 1)[1] != args
    one = ad_hoc("mine_of_e:f", ("0.1", "0.2"), wrt=("b",)).case(function_case)
    assert one.wrt == ("b",)


def test_another_function_gives_the_arguments_of_a_size(folder: Path) -> None:
    case = ad_hoc("mine_of_e:scaled", arg=("n=3",), inputs="mine_of_e:inputs").case(function_case)
    for n in (2, 100):
        names, args, _ = case.bind(n, 0)
        assert case.f(np, **dict(zip(names, args, strict=True))) == pytest.approx(
            2 * np.sum(np.arange(1.0, n + 1) ** 3)
        )
    other = ad_hoc("mine_of_e:scaled", arg=("n=3",), inputs="mine_of_e:more").case(function_case)
    with pytest.raises(UsageError, match=r"different arguments for different sizes: x, scale for 20, x for 10"):
        other.bind(20, 0)


def test_the_case_file_stays_and_changes_with_what_it_depends_on(folder: Path) -> None:
    (folder / "a.json").write_text("[1, 2]")
    asked = ad_hoc("mine_of_e.py:made.loss", ("@a.json",))
    first = asked.case_file()
    assert first == ad_hoc("./mine_of_e.py:made.loss", ("@./a.json",)).case_file()
    (folder / "a.json").write_text("[1, 3]")
    second = asked.case_file()
    write(folder, mine_of_e=MINE + "\nK = 1\n")
    assert len({first, second, asked.case_file()}) == 3
    assert first.stem == "made_loss"
    spec = importlib.util.spec_from_file_location("the_case_file_of_e", first)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.CASE.bind(1, 0)[1][0].tolist() == [1.0, 3.0]


def test_a_callable_without_a_signature_takes_what_is_given() -> None:
    assert fitted(np.sin, [1.0], {}, "sin") == ((1.0,), {})
    assert named_function("math:hypot", (), "--function")(3.0, 4.0) == 5.0
