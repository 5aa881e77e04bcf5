"""What has been published on the cases' functions, what we measure, and why the two differ: a page from runs.

    python -m scripts.published RUN... > docs/published.md

A claim is data: its source, what it says, which of our figures answer it, and why they differ. Figures come from runs,
each with its interval; a figure that no run has is a dash.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from adbench.model.record import Job, Run
from adbench.results.store import read_run
from reports.content import formatting
from reports.content.cells import Cells

COMMANDS = (
    "adbench run -c recurrence -b tape -b stan_math -b finite_differences -b cpp_hand",
    "adbench run -c sums -c products -c powers -c log_sum_exp -c log_sum_exp_loop -c normal_log_density "
    "-c linear_regression -n 1000 -b tape -b stan_math -b stan_math_builtin -b cppad -b sacado -b adolc -b cpp_hand "
    "-b fastad -b adept",
    "adbench run -c matrix_product -c lotka_volterra -n 32 -b tape -b stan_math -b stan_math_matrix -b cppad -b sacado "
    "-b adolc -b cpp_hand -b fastad",
    "adbench run -c gaussian_mixture -c lstm -c saddle -n 10 -b tape -b tape_compiled -b autograd -b torch -b jax "
    "-b finite_differences",
)

HEAD = """# What was published, and what we measure

Ratios that papers and suites give for functions that are cases here, and ours beside them. Absolute times of
two machines do not compare; ratios nearly do, and where they do not, there is a reason: it stands below each table.

Brackets hold 95 % intervals over launches. A dash: not in these runs, not to be ranked, or the library is not
installed.

Made by `python -m scripts.published RUN... > docs/published.md`, from these runs:
"""


@dataclass(frozen=True)
class Price:
    """A gradient in calls of the primal, by one backend."""

    case: str
    size: int
    backend: str


@dataclass(frozen=True)
class Against:
    """The gradient's time of one backend in times of another's."""

    case: str
    size: int
    slow: str
    fast: str


@dataclass(frozen=True)
class Row:
    """One published figure, in the source's words or numbers, and our figures for it."""

    what: str
    published: str
    ours: tuple[Price | Against, ...]


@dataclass(frozen=True)
class Claim:
    """A source, its figures, and why ours differ."""

    title: str
    source: str
    rows: tuple[Row, ...]
    why: str


def _prices(case: str, size: int, *backends: str) -> tuple[Price, ...]:
    return tuple(Price(case, size, backend) for backend in backends)


def _over(case: str, fast: str, *slow: str) -> tuple[Against, ...]:
    return tuple(Against(case, _SIZES.get(case, MANY), backend, fast) for backend in slow)


_RECURRENCE = ("tape", "stan_math", "cpp_hand")
MANY, FEW = 1_000, 32  # numbers in a scalar case; rows of a matrix, or steps of an equation
_SIZES = {"matrix_product": FEW, "lotka_volterra": FEW}
_SCALAR = ("sums", "products", "powers", "log_sum_exp_loop")
_OF_FASTAD = (  # what its paper has and a text in its words: Stan number by number, and in Stan's own words
    ("sums", "stan_math", "stan_math_builtin"),
    ("products", "stan_math"),
    ("log_sum_exp", "stan_math", "stan_math_builtin"),
    ("linear_regression", "stan_math_builtin"),  # of which there is no C++ twin
    ("matrix_product", "stan_math", "stan_math_matrix"),
)

CLAIMS = (
    Claim(
        "pqR: what `with gradient` costs",
        'Neal (2019), "An Automatic Differentiation Extension for R, and its Implementation in pqR", the '
        "timings of its "
        "own test: 10 000 calls with the gradient over 10 000 without (0.322 s / 0.099 s, 0.63 / 0.28, 2.637 / 0.437).",
        (
            Row("`recurrence`, one number", "3.3×", _prices("recurrence", 1, *_RECURRENCE)),
            Row("five numbers", "2.3×", _prices("recurrence", 5, *_RECURRENCE)),
            Row("a hundred numbers", "6.0×", _prices("recurrence", 100, *_RECURRENCE)),
            Row("`numericDeriv`, one number", "2.0×", _prices("recurrence", 1, "finite_differences")),
            Row("five numbers", "5.9×", _prices("recurrence", 5, "finite_differences")),
            Row("a hundred numbers", "102×", _prices("recurrence", 100, "finite_differences")),
        ),
        "pqR's plain evaluation is an interpreter's: an operation costs it so much that the derivative "
        "beside it is cheap. "
        "The plain function of `stan_math` is machine code, a hundred times faster, and so the same "
        "bookkeeping is more of "
        "it; that of `tape` is numpy's. `numericDeriv` takes one more evaluation for each input, ours are central and "
        "take two. At a hundred numbers entries of the gradient lie beyond what doubles resolve, so that nothing is "
        "ranked there; a price is no ranking.",
    ),
    Claim(
        "FastAD: against Stan Math and Adept",
        'Yang (2021), "FastAD: Expression Template-Based C++ Library for Fast and Memory-Efficient Automatic '
        'Differentiation", arXiv:2102.03681, abstract: "2-10 times faster than Adept and 2-19 times faster than Stan".',
        (
            *(Row(f"Stan / FastAD, `{case}`", "2 to 19×", _over(case, "fastad", *stan)) for case, *stan in _OF_FASTAD),
            Row("Adept / FastAD, `sums`", "2 to 10×", _over("sums", "fastad", "adept")),
            *(
                Row(
                    f"room above Stan: by hand, `{case}`",
                    "no figure",
                    _over(case, "cpp_hand", "stan_math"),
                )
                for case in (*_SCALAR, "normal_log_density", "matrix_product", "lotka_volterra")
            ),
            Row(
                "Stan's scalar operations / its built-in density, `normal_log_density`",
                "no figure",
                _over("normal_log_density", "stan_math_builtin", "stan_math"),
            ),
        ),
        "FastAD and Adept are in no package index; their rows fill where they are installed (`adbench doctor "
        "--backends`). FastAD is 0.0.1 here, as CRAN's RcppFastAD has its headers. Number by number Stan records every "
        "operation; by its built-in functions and matrix nodes it records one for them all, and then less is left of "
        "the paper's factor. "
        "The paper builds FastAD's expression once and evaluates it again, while Stan and Adept record "
        "at every call; "
        "here both policies are backends of their own. Its normal density keeps statistics of the data as long as "
        "these do not change, and in a loop that is timed they do not: that is no row. The paper's Adept has one "
        "stack for all threads (-DADEPT_STACK_THREAD_UNSAFE), which is faster; ours is as it comes. Row by row, a "
        "gradient by hand bounds what any library can gain over Stan.",
    ),
    Claim(
        "The Stan Math Library: against CppAD, Sacado, ADOL-C",
        'Carpenter et al. (2015), "The Stan Math Library", arXiv:1509.07164, section on evaluation: figures '
        "of each library's speed relative to Stan's, without numbers in the text.",
        tuple(
            Row(f"{name} / Stan, `{case}`", "figure", _over(case, "stan_math", backend))
            for case in (*_SCALAR, "matrix_product", "lotka_volterra")
            for name, backend in (("CppAD", "cppad"), ("Sacado", "sacado"), ("ADOL-C", "adolc"))
        ),
        "The paper records with every library at every call, as these backends do; `cppad_reuse`, "
        "`cppad_optimised` and "
        "`adolc_reuse` are the other policy, and cheaper. The libraries have gone on for ten years since, and "
        "all are compiled by the same flags here.",
    ),
    Claim(
        "The cheap gradient",
        'Baur and Strassen (1983); Griewank and Walther (2008), "Evaluating Derivatives", section 3.3: a '
        "gradient takes at "
        "most four times the function's time, whatever the number of inputs.",
        (
            *(Row(f"by hand, `{case}`", "at most 4×", _prices(case, MANY, "cpp_hand")) for case in _SCALAR),
            *(Row(f"Stan Math, `{case}`", "at most 4×", _prices(case, MANY, "stan_math")) for case in _SCALAR),
        ),
        "The theorem counts operations and moves of the function and of its derivative on one machine model. "
        "A recording that is made again at every call stores and reads what the plain function keeps in registers, and "
        "a plain loop "
        "that the compiler turns into vector instructions has no equally vectorised sweep: the constant is "
        "the recording's, not the theorem's. A gradient by hand may know a closed form that the text of the function "
        "does not: one power instead of n, in `powers`.",
    ),
    Claim(
        "ADBench and gradbench: gradient over function",
        "Šrajer, Kukelova and Fitzgibbon (2018), arXiv:1807.10129; the suite gradbench "
        "(github.com/gradbench/gradbench): "
        "charts of derivative over objective, redrawn with every version; no fixed numbers.",
        tuple(
            Row(f"`{case}`, n = 10", "chart", _prices(case, 10, *backends))
            for case, backends in (
                ("gaussian_mixture", ("tape", "autograd", "torch", "jax", "finite_differences")),
                ("lstm", ("tape", "autograd", "torch", "jax", "finite_differences")),
            )
        ),
        "Both suites write each tool's function again; here one text serves all. ADBench has the mixture's "
        "prior with the "
        "wrong sign (L - P), which takes the same time. Its bundle adjustment repeats one observation, which caches "
        "like; ours are distinct. A call is timed in a warmed-up process, and compiling apart from it.",
    ),
    Claim(
        "Nested derivatives: overloading against compiling",
        "Siskind and Pearlmutter, benchmarks of AD 2016 (bcl.hamilton.ie/~qobi/ad2016-benchmarks): run times "
        "of `saddle` "
        "relative to Stalingrad: Tapenade 2.47, FADBAD++ 23.3, Scheme interpreters some hundreds to thousands.",
        (
            Row(
                "`saddle`: recorded / compiled",
                "FADBAD++ / Tapenade: 9.4×",
                (Against("saddle", 10, "tape", "tape_compiled"), Against("saddle", 10, "autograd", "jax")),
            ),
        ),
        "Both pairs compare recording at every call with compiling once, and in both the recording pays for "
        "every operation. "
        "In C++ that price is an allocation and a store; in Python it is an interpreter's, so that our "
        "factor is larger. "
        "Their program converges in two nested optimisers, ours takes a fixed number of steps.",
    ),
)


def render(runs: Sequence[Run]) -> str:
    """The page; every figure from the first of the runs that has it."""
    every = [Cells(run) for run in runs]
    lines = [HEAD, *(f"* {_about(cells)}" for cells in every), "", "To make them:", "", "```sh", *COMMANDS, "```"]
    for claim in CLAIMS:
        lines += ["", f"## {claim.title}", "", *_wrapped(claim.source), "", "| | published | ours |", "|---|---|---|"]
        lines += [f"| {row.what} | {row.published} | {_ours(every, row)} |" for row in claim.rows]
        lines += ["", *_wrapped(f"**Why they differ.** {claim.why}")]
    return "\n".join(lines) + "\n"


def _about(cells: Cells) -> str:
    run, floor = cells.findings.run, cells.findings.floor
    processor, threads = (formatting.visible(str(run.machine.get(name))) for name in ("processor", "usable_threads"))
    launches = f"{run.settings.get('launches')} launches{' (--quick)' if run.settings.get('quick') else ''}"
    noise = f"noise floor {formatting.percent(floor.reach)}" if floor.reach is not None else "no noise floor"
    noisy = (
        ", over the margin: **a noisy session**, in which calls of milliseconds shared the processor with other "
        "programs and read too long beside calls of microseconds"
        if floor.noisy
        else ""
    )
    where = f"{run.created[:10]}, {processor}, {threads} threads, {launches}"
    return f"{where}; {noise}{noisy}"


def _ours(every: Sequence[Cells], row: Row) -> str:
    return "; ".join(f"{_name(figure)} {_figure(every, figure)}" for figure in row.ours)


def _name(figure: Price | Against) -> str:
    return f"`{figure.backend}`" if isinstance(figure, Price) else f"`{figure.slow}` / `{figure.fast}`"


def _figure(every: Sequence[Cells], figure: Price | Against) -> str:
    for cells in every:
        found = _price(cells, figure) if isinstance(figure, Price) else _against(cells, figure)
        if found:
            return found
    return formatting.MISSING


def _price(cells: Cells, figure: Price) -> str:
    cost = cells.findings.cost.get((figure.case, figure.backend))
    at = next((at for at in cost.at if at.size == figure.size), None) if cost else None
    return formatting.times(at.ratio) if at and at.ratio else ""


def _against(cells: Cells, figure: Against) -> str:
    slow, fast = (Job(figure.case, figure.size, name, "gradient") for name in (figure.slow, figure.fast))
    pair = cells.findings.pair(slow, fast)
    return formatting.times(pair.interval) if pair and pair.interval else ""


def _wrapped(text: str, width: int = 125) -> Iterator[str]:
    yield from textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m scripts.published RUN... (folders of runs, or their run.json)")
    print(render([read_run(Path(name)) for name in sys.argv[1:]]), end="")
