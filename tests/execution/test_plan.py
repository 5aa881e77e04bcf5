"""From a request to a list of jobs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adbench import Case, Job, UsageError
from adbench.catalog import discovery, inventory
from adbench.catalog.discovery import Catalog, requirement
from adbench.catalog.installed import pip_command
from adbench.catalog.source import Source
from adbench.execution.planning.plan import (
    FIRST_BACKENDS,
    FIRST_LOOK,
    check_inputs,
    larger_sizes,
    plan,
    positive,
    seconds_of_large_references,
    sizes_by_case,
    sizes_of,
    three_of,
)
from adbench.execution.planning.request import QUICK_SECONDS, SUITE_SECONDS, Request
from adbench.model.errors import UnknownName
from adbench.model.operator import COMPOSITIONS, RELATIONS


def case(*sizes: int, inputs: object = None) -> Case:
    made = inputs or (lambda n, rng: {"x": rng.normal(size=n)})
    return Case(f=lambda xp, x: xp.sum(x), inputs=made, wrt=("x",), sizes=sizes)  # type: ignore[arg-type]


def catalog_of(**cases: Case) -> Catalog:
    sources = {name: Source("cases", name, f"/mine/{name}.py", builtin=False) for name in cases}
    backends = {name: Source("backends", name, "", builtin=True) for name in ("left", "right")}
    return Catalog(cases, sources, backends)


def test_backends_of_a_cell_are_adjacent() -> None:
    made = plan(catalog_of(a=case(1, 10), b=case(5)), Request(operators=("gradient",)))
    assert [job.backend for job in made.jobs] == ["left", "right"] * 3
    assert made.jobs[0] == Job("a", 1, "left", "gradient")


def test_sizes_are_accepted_numbers_or_globs_over_the_cases_sizes() -> None:
    several = case(1, 10, 100, 1000)
    assert sizes_of(several, [], quick=False) == (1, 10, 100, 1000)
    assert sizes_of(several, ["10*", "7"], quick=False) == (7, 10, 100, 1000)
    assert sizes_of(case(1), ["7"], quick=False) == ()


def test_a_run_on_a_device_has_larger_sizes_of_array_programs_up_to_ten_million_numbers() -> None:
    known = discovery.catalog()
    names = ("normal_log_density", "gaussian_mixture", "heat_equation", "lotka_volterra", "matrix_product")
    added = [larger_sizes(known.cases[name]) for name in names]
    assert added == [[10**7], [10**5, 3 * 10**5], [], [], [700]]
    asked: dict[str, Any] = {"cases": names, "backends": ["jax"]}
    here, there, both = (plan(known, Request(**asked, device=device)).jobs for device in ("cpu", "cuda", "cpu,cuda"))
    more = set(both) - {replace(job, backend=f"jax{where}") for job in here for where in ("", " (cuda)")}
    assert {(job.case, job.size) for job in more} == {
        *(("gaussian_mixture", size) for size in (10**5, 3 * 10**5)), ("normal_log_density", 10**7),
        ("matrix_product", 700)
    }  # fmt: skip
    assert {job.backend for job in more} == {"jax", "jax (cuda)"}
    assert {(job.case, job.size, job.operator) for job in there} == {(j.case, j.size, j.operator) for j in both}
    hows: tuple[dict[str, Any], ...] = ({"time": False}, {"quick": True}, {"sizes": ["1*"]})
    for how in hows:
        mine = [sizes_by_case(plan(known, Request(**asked, device=device, **how)).jobs) for device in ("cpu", "cuda")]
        assert mine[0] == mine[1]
    assert all(job.operator in ("value", "gradient") for job in more)
    assert Request(**asked, device="cpu,cuda").settings.longest_call_seconds == 1.0
    assert Request(**asked).settings.longest_call_seconds is None
    assert seconds_of_large_references(known, here) == {}
    large = seconds_of_large_references(known, there)
    assert 20 < large["normal_log_density", 10**7] < 60


def test_larger_sizes_are_those_of_array_programs_with_known_operations() -> None:
    one = discovery.catalog().cases["normal_log_density"]
    assert larger_sizes(replace(one, flops=None)) == []
    assert larger_sizes(replace(one, tags=("scalar-loop",))) == []
    assert larger_sizes(replace(one, most=5 * 10**6)) == [5 * 10**6]
    assert larger_sizes(replace(one, operators=("value", "jacobian"))) == []


@pytest.mark.parametrize("text", ["0", "x", "-3", "1.5", "", "٣", "1e3"])
def test_a_size_must_be_a_positive_integer(text: str) -> None:
    with pytest.raises(UsageError, match="is not a positive whole number"):
        positive(text)
    with pytest.raises(UsageError, match="is not a positive whole number"):
        plan(catalog_of(a=case(1, 2)), Request(sizes=[text]))


def test_a_size_missing_in_one_case_is_left_out_with_a_remark_and_one_missing_in_all_is_refused() -> None:
    both = catalog_of(a=case(1, 10), b=case(1))
    made = plan(both, Request(sizes=["10"]))
    assert {job.case for job in made.jobs} == {"a"}
    assert made.left_out == ("b has no size 10; use 1",)
    with pytest.raises(UsageError, match="b has no size 10; use 1"):
        plan(both, Request(cases=["b"], sizes=["10"]))


def backend(name: str, *missing: str, **facts: object) -> Source:
    """A built-in backend that needs distributions which nobody has."""
    return Source("backends", name, "", **{"builtin": True, "requires": missing, **facts})  # type: ignore[arg-type]


VARIED = (
    backend("left_eager", variant_of="left"),
    backend("left_compiled", variant_of="left", default=True),
    backend("by_hand", default=False),
    backend("builds", builds=True),
    backend("mine", builtin=False, variant_of="left", builds=True),
    backend("mine_slow", builtin=False, default=False),
)


def with_backends(*more: Source) -> Catalog:
    known = catalog_of(a=case(1))
    return replace(known, backends={**known.backends, **{source.name: source for source in more}})


def test_a_run_that_names_no_backend_has_the_default_ones_by_what_their_files_say() -> None:
    every = with_backends(*VARIED)
    default = {"left", "right", "left_compiled", "mine"}
    for request in (Request(quick=True, cases=["a"]), Request(), Request(quick=True, time=False)):
        assert {job.backend for job in plan(every, request).jobs} == default
    assert {job.backend for job in plan(every, Request(time=False)).jobs} == set(every.backends)
    named = plan(every, Request(quick=True, backends=["left*", "builds"]))
    assert {job.backend for job in named.jobs} == {"left", "left_eager", "left_compiled", "builds"}


def test_a_first_look_has_the_best_known_libraries_and_counts_the_others() -> None:
    every = with_backends(backend("jax"), backend("torch", "adbench-none"), backend("xad"), *VARIED)
    built_in = {name: replace(source, builtin=True) for name, source in every.backends.items() if name != "mine"}
    found = plan(replace(every, backends={**every.backends, **built_in}), Request(quick=True))
    assert {job.backend for job in found.jobs} == {"jax", "mine"}
    assert found.sentences == (
        "left out: 4 more installed backends; select them with -b NAME",
        "not installed: torch; pip install 'autodiff-bench[torch]'",
    )
    real = discovery.catalog()
    assert {job.backend for job in plan(real, Request(quick=True)).jobs} <= set(FIRST_BACKENDS) <= set(real.backends)
    assert "jax_native" in FIRST_BACKENDS
    assert not real.backends["jax_native"].is_default, "other runs have it only by name"


def test_a_check_that_selects_nothing_leaves_most_of_the_cases_outside_the_quick_suite_out_and_says_so() -> None:
    cases = {f"c{k}": replace(case(1, 10, 100), suites=("quick",) if k % 2 else ()) for k in range(60)}
    cases["trap_x"] = replace(case(1), tags=("trap",))
    known = catalog_of(**cases)
    built_in = {name: replace(source, builtin=True) for name, source in known.case_sources.items()}
    backends = {"own": backend("own", builtin=False), "theirs": backend("theirs"), "others": backend("others")}
    every = replace(known, case_sources=built_in, backends=backends)

    def jobs(name: str, **asked: Any) -> set[tuple[str, int, str]]:
        found = plan(every, Request(time=False, quick=True, **asked)).jobs
        return {(job.case, job.size, job.operator) for job in found if job.backend == name}

    def related(name: str, **asked: Any) -> set[str]:
        return {case for case, _, operator in jobs(name, **asked) if operator == RELATIONS}

    whole, quick = jobs("own"), {f"c{k}" for k in range(1, 60, 2)}
    for asked in ({"backends": ["theirs"]}, {"cases": ["*"]}, {"suites": ["all"]}):
        assert jobs("theirs", **asked) == whole
        assert not plan(every, Request(time=False, quick=True, **asked)).sentences
    part = jobs("theirs")
    assert {job for job in part if job[0] == "c2"} == {("c2", 10, "gradient")}
    assert {job for job in part if job[0] == "trap_x"} == {job for job in whole if job[0] == "trap_x"}
    assert {job for job in whole - part if job[0] in quick} == {
        job for job in whole - part if job[2] == RELATIONS and job[0] in quick
    }
    assert 5 <= len(related("theirs")) <= 15
    assert related("theirs") != related("others"), "the same cases for all"
    assert set.union(*(related("theirs", seed=seed) for seed in range(3))) == quick
    assert "of 30 cases outside --suite quick" in plan(every, Request(time=False, quick=True)).sentences[0]


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ({}, None),
        ({"suites": ["all"], "backends": ["*"]}, SUITE_SECONDS),
        ({"suites": ["all"], "budget": 60.0}, 60.0),
        ({"suites": ["all"], "rigorous": True}, None),
        ({"suites": ["all"], "launches": 3}, None),
        ({"suites": ["all"], "cases": ["a"]}, None),
        ({"suites": ["all"], "time": False}, None),
        ({"quick": True}, QUICK_SECONDS),
        ({"quick": True, "suites": ["all"]}, None),
    ],
)
def test_only_a_run_of_suites_and_a_first_look_have_a_limit_of_their_own(
    asked: dict[str, Any], seconds: float | None
) -> None:
    assert Request(**asked).seconds == seconds


def test_what_is_not_installed_is_left_out_in_one_line_unless_it_is_named() -> None:
    gone = [backend("casadi", "adbench-none"), backend("mine", "adbench-none", "adbench-no", builtin=False)]
    every = with_backends(*gone, backend("casadi_c", "adbench-none", variant_of="casadi"))
    made = plan(every, Request(quick=True))
    assert {job.backend for job in made.jobs} == {"left", "right"}
    assert list(made.not_installed) == ["casadi", "mine"]
    assert made.not_installed["mine"] == "adbench-none adbench-no"
    (line,) = made.sentences
    assert line.startswith("not installed: casadi, mine; pip install ")
    assert line.endswith(" adbench-none adbench-no")
    many = plan(with_backends(*(backend(f"b{k}", "adbench-none") for k in range(8))), Request())
    assert many.sentences == ("not installed: 8 more backends; pip install adbench-none",)
    named = plan(every, Request(quick=True, backends=["casadi"]))
    assert {job.backend for job in named.jobs} == {"casadi"}
    assert (named.not_installed, named.sentences) == ({}, ())


def test_the_command_that_installs_names_few_extras_and_the_one_of_all_for_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adbench.catalog.discovery.extras", lambda: frozenset({"torch", "casadi", "num_dual"}))
    needed = [requirement(backend(name, name, **more)) for name, more in NEEDED.items()]
    assert needed == ["autodiff-bench[torch]", "autodiff-bench[casadi]", "autodiff-bench[casadi]", "numba", "torch"]
    assert pip_command(needed) == "pip install 'autodiff-bench[torch,casadi]' numba torch"
    ours = [f"autodiff-bench[{name}]" for name in ("a", "b", "c", "d")]
    assert pip_command(ours) == "pip install 'autodiff-bench[all]'"
    assert pip_command(ours[:3]) == "pip install 'autodiff-bench[a,b,c]'"


NEEDED: dict[str, dict[str, object]] = {
    "torch": {},
    "casadi": {},
    "casadi_c": {"variant_of": "casadi"},
    "numba": {},  # no extra of this name here
    "mine": {"builtin": False, "requires": ("torch",)},
}


def test_the_default_set_is_one_way_of_each_library_and_both_ways_of_the_tape() -> None:
    known = discovery.catalog().backends
    default = {name for name, source in known.items() if source.is_default}
    assert {"tape", "tape_compiled", "jax", "torch", "autograd", "casadi", "complex_step"} <= default
    assert not default & {"numba_hand", "jax_eager", "tape_closures", "cppad", "stan_math"}
    rows = {row["name"]: row["default"] for row in inventory.backend_rows(discovery.catalog())}
    assert {name for name, is_default in rows.items() if is_default} == default


def test_a_run_has_few_cases_at_three_realistic_sizes_and_a_quick_one_measures_their_gradients() -> None:
    known = discovery.catalog()
    whole = plan(known, Request(backends=["tape"])).jobs
    assert {job.operator for job in whole} == {"value", "gradient", "hvp", "hessian"}
    assert sizes_by_case(whole) == {name: list(sizes) for name, sizes in FIRST_LOOK.items()}
    every = sizes_by_case(plan(known, Request(backends=["tape"], suites=["all"])).jobs)
    assert every["lotka_volterra"] == list(FIRST_LOOK["lotka_volterra"])
    assert {len(sizes) for sizes in every.values()} <= {1, 2, 3}
    assert all(sizes[-1] == known.cases[name].sizes[-1] for name, sizes in every.items() if name not in FIRST_LOOK)
    named = plan(known, Request(backends=["tape"], cases=["lotka_volterra"])).jobs
    assert {job.size for job in named} == set(known.cases["lotka_volterra"].sizes)
    quick = plan(known, Request(quick=True, backends=["tape"])).jobs
    assert {job.operator for job in quick} == {"gradient"}
    assert sizes_by_case(quick) == {name: list(sizes) for name, sizes in FIRST_LOOK.items()}
    for name, sizes in FIRST_LOOK.items():
        assert len(sizes) == 3
        assert all(known.cases[name].accepts(size) for size in sizes)
    one = plan(known, Request(quick=True, backends=["tape"], cases=["lotka_volterra"])).jobs
    assert {(job.size, job.operator) for job in one} >= {(1000, "value"), (1000, "gradient")}
    check = plan(known, Request(quick=True, time=False, backends=["tape"], cases=["lotka_volterra"])).jobs
    assert {job.size for job in check} == {1, 10}
    small = plan(known, Request(quick=True, backends=["tape"], cases=["lotka_volterra"], sizes=["2"])).jobs
    assert {job.size for job in small} == {2}


@pytest.mark.parametrize(
    ("sizes", "three"),
    [((2, 10, 30), (2, 10, 30)), ((1, 10, 100, 1000), (10, 100, 1000)), ((1, 2, 3, 4, 5, 6, 7, 8), (2, 5, 8))],
)
def test_a_run_of_a_suite_spreads_three_sizes(sizes: tuple[int, ...], three: tuple[int, ...]) -> None:
    assert three_of(sizes) == three


def test_a_quick_plan_has_the_first_look_cases_and_the_users_own_by_default() -> None:
    known = catalog_of(projectile=case(1, 10, 100, 1000), mine=case(1), other=case(1))
    builtin = {name: replace(known.case_sources[name], builtin=name != "mine") for name in known.case_sources}
    known = replace(known, case_sources=builtin)
    few = plan(known, Request())
    assert sizes_by_case(few.jobs) == {"projectile": [10, 100, 1000], "mine": [1]}
    assert few.sentences == ("left out: 1 more cases; select them with -c NAME or --suite NAME",)
    assert {job.case for job in plan(known, Request(suites=["all"])).jobs} == {"projectile", "mine", "other"}
    assert {job.case for job in plan(known, Request(cases=["other"])).jobs} == {"other"}


def test_a_size_outside_a_cases_range_is_refused_with_the_range() -> None:
    minors = catalog_of(a=replace(case(1, 2), least=2, sizes=(2, 4), most=9))
    assert [job.size for job in plan(minors, Request(sizes=["9"], backends=["left"])).jobs] == [9, 9]
    for size in ("1", "10"):
        with pytest.raises(UsageError, match=f"a has no size {size}; use 2, 4; it takes any from 2 to 9"):
            plan(minors, Request(sizes=[size]))


def asked(case_: Case, **more: object) -> list[tuple[int, str]]:
    made = plan(catalog_of(a=case_), Request(backends=["left"], **more))  # type: ignore[arg-type]
    return [(job.size, job.operator) for job in made.jobs if job.operator != RELATIONS]


def test_a_case_runs_its_own_operators_and_with_thorough_all_of_them_at_its_smallest_size() -> None:
    array = replace(case(1, 10), operators=("value", "jacobian"))
    assert asked(array) == [(1, "value"), (1, "jacobian"), (10, "value"), (10, "jacobian")]
    assert asked(array, operators=["gradient"]) == [(1, "gradient"), (10, "gradient")]
    more = asked(array, time=False)
    assert more == [(1, op) for op in ("value", "jacobian", "jvp", "vjp")] + [(10, "value"), (10, "jacobian")]
    scalar = asked(case(1, 10), time=False)
    assert {"hessian", "hvp", "value_and_gradient"} < {operator for n, operator in scalar if n == 1}
    assert {*COMPOSITIONS} < {operator for n, operator in scalar if n == 1}
    assert [operator for n, operator in scalar if n == 10] == ["value", "gradient"]
    assert asked(case(1)) == [(1, "value"), (1, "gradient")]
    assert asked(case(1), operators=["hvp_reverse_over_forward"]) == [(1, "hvp_reverse_over_forward")]


def test_a_trap_runs_its_gradient_and_all_second_order_operators() -> None:
    trap = replace(case(1), tags=("trap",))
    second = [(1, "hvp"), (1, "hessian"), *((1, name) for name in COMPOSITIONS)]
    assert asked(trap, time=False) == [(1, "gradient"), *second]
    assert asked(trap, time=False, operators=["jvp", "hvp"]) == [(1, "jvp"), (1, "hvp")]


def test_suites_select_their_cases() -> None:
    every = catalog_of(
        a=replace(case(1), suites=("left-paper",)),
        b=replace(case(1), suites=("left-paper", "right-paper")),
        c=replace(case(1), tags=("trap",)),
    )

    def names(**more: object) -> set[str]:
        return {job.case for job in plan(every, Request(**more)).jobs}  # type: ignore[arg-type]

    assert names(suites=["left-paper"]) == {"a", "b"}
    assert names(suites=["right-paper", "traps"]) == {"b", "c"}
    assert names(suites=["all"], time=False) == {"a", "b", "c"}
    assert names(suites=["left-paper"], cases=["b", "c"]) == {"b"}
    with pytest.raises(UnknownName, match="no suite 'gradbench'; there are: all, left-paper, right-paper, traps"):
        plan(every, Request(suites=["gradbench"]))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownName, match="no case 'c'; there are: a"):
        plan(catalog_of(a=case(1)), Request(cases=["c"]))
    with pytest.raises(UnknownName, match="no backend 'j\\*'; there are: left, right"):
        plan(catalog_of(a=case(1)), Request(backends=["j*"]))


def test_a_users_inputs_are_checked_before_measuring() -> None:
    def broken(n: int, rng: np.random.Generator) -> dict[str, object]:
        raise KeyError("y")

    asked = catalog_of(a=case(3, inputs=broken))
    with pytest.raises(UsageError, match=r"/mine/a\.py: inputs\(3, rng\) raises KeyError"):
        check_inputs(asked, plan(asked, Request()).jobs, seed=0)
    asked = catalog_of(a=case(3, inputs=lambda n, rng: {"z": 1.0}))
    with pytest.raises(UsageError, match=r"/mine/a\.py: wrt names 'x', which is not an input; use names from z"):
        check_inputs(asked, plan(asked, Request()).jobs, seed=0)
    asked = catalog_of(a=replace(case(2), f=lambda xp, x: x))
    with pytest.raises(UsageError, match=r"/mine/a\.py: f returns an array of shape \(2,\); add operators="):
        check_inputs(asked, plan(asked, Request()).jobs, seed=0)
