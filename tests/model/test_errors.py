"""Messages about unknown names."""

import pytest

from adbench.catalog.selection import resolve
from adbench.model.errors import UnknownName, nearest_names


@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("case", "choleski", "no case 'choleski'; did you mean cholesky"),
        ("case", "Rosenbrock", "no case 'Rosenbrock'; did you mean rosenbrock"),
        ("backend", "jx", "no backend 'jx'; did you mean jax"),
        ("backend", "pytorch", "no backend 'pytorch'; did you mean torch, pytensor"),
        ("backend", "stan*math", "no backend 'stan*math'; did you mean stan_math"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(kind: str, name: str, expected: str) -> None:
    catalog = resolve().catalog
    told = str(UnknownName(kind, name, catalog.cases if kind == "case" else catalog.backends))
    assert told.startswith(expected)
    assert f"adbench list {kind}s shows all " in told
    assert len(told) < 160


def test_a_name_without_similar_ones_points_to_the_list() -> None:
    names = [f"case_{number:02d}" for number in range(40)]
    assert str(UnknownName("case", "xyzzy", names)) == "no case 'xyzzy'; adbench list cases shows all 40"


def test_few_names_are_listed() -> None:
    assert str(UnknownName("suite", "xyzzy", ["quick", "all"])) == "no suite 'xyzzy'; there are: all, quick"
    assert str(UnknownName("suite", "quck", [])) == "no suite 'quck'; there are: none"


def test_the_nearest_of_few_names_is_suggested_before_all_are_listed() -> None:
    told = str(UnknownName("command", "chekc", ["check", "run"]))
    assert told == "no command 'chekc'; did you mean check? there are: check, run"


def test_a_beginning_comes_before_a_similar_name() -> None:
    assert nearest_names("log_sum", ["lagsum", "log_sum_exp_loop", "log_sum_exp"])[0] == "log_sum_exp"
    assert nearest_names("sum", ["a_sum_of_things", "gum"]) == ["a_sum_of_things", "gum"]
