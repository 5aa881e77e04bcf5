"""Compare published figures with ours, and explain the differences: a page from runs.

    python -m scripts.published RUN... > docs/reference/published.md

A claim has its source, its figures, our figures for them, and why they differ. Our figures come from runs, with
intervals; a figure that no run has is a dash.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from adbench.model.record import Job, Run
from adbench.reports.content import formatting
from adbench.reports.content.cells import Cells
from adbench.results.store import read_run

FINANCE = (
    ("heston", 1_000),
    ("sabr_calibration", 1_000),
    ("credit_valuation_adjustment", 300),
    ("libor_market_model", 80),
)

COMMANDS = (
    "adbench run -c recurrence -b tape -b stan_math -b finite_differences -b cpp_hand",
    "adbench run -c sums -c products -c powers -c log_sum_exp -c log_sum_exp_loop -c normal_log_density "
    "-c linear_regression -n 1000 -b tape -b stan_math -b stan_math_builtin -b cppad -b sacado -b adolc -b cpp_hand "
    "-b fastad -b adept",
    "adbench run -c matrix_product -c lotka_volterra -n 32 -b tape -b stan_math -b stan_math_matrix -b cppad -b sacado "
    "-b adolc -b cpp_hand -b fastad",
    "adbench run -c gaussian_mixture -c lstm -c saddle -n 10 -b tape -b tape_compiled -b autograd -b torch -b jax "
    "-b finite_differences",
    *(
        f"adbench run -c {case} -n {size} -b tape -b tape_compiled -b jax -b stan_math -b cppad -b sacado -b cpp_hand "
        "-b finite_differences"
        for case, size in FINANCE
    ),
)

HEAD = """# Published figures and ours

This page compares ratios from papers and benchmark suites with our measurements of the same functions. Unlike times,
ratios are nearly comparable between machines. The text below each table explains the differences.

Each row gives a measured quantity, the published ratio and ours, with 95 % confidence intervals over launches in
brackets. One backend (`tape`) means the time of its gradient relative to its function. Two backends (`a` / `b`) mean
the gradient's time of the first relative to the second. A dash means that no run has the figure, that it cannot be
ranked, or that the library is not installed.

`python -m scripts.published RUN... > docs/reference/published.md` made this page from these runs:
"""


@dataclass(frozen=True)
class Price:
    """The gradient's time relative to the function's, for one backend."""

    case: str
    size: int
    backend: str


@dataclass(frozen=True)
class Against:
    """The gradient's time of one backend relative to another's."""

    case: str
    size: int
    slow: str
    fast: str


@dataclass(frozen=True)
class Row:
    """One published figure, as in the source, and our figures for it."""

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
_OF_FASTAD = (  # in its paper and in backends/native/fastad: Stan's scalar operations, Stan's built-in functions
    ("sums", "stan_math", "stan_math_builtin"),
    ("products", "stan_math"),
    ("log_sum_exp", "stan_math", "stan_math_builtin"),
    ("linear_regression", "stan_math_builtin"),  # which has no C++ implementation
    ("matrix_product", "stan_math", "stan_math_matrix"),
)

_GREEKS = ("cpp_hand", "tape", "tape_compiled", "jax", "stan_math", "cppad", "sacado", "finite_differences")
_OF_FINANCE = (  # each time over the primal's: 9.3 ms, 2.1 ms, 591 ms, 138 ms
    "XAD 4.3×, its compiler 2.3×, CppAD 29×, Adept 9.8×, differences 8.9×",
    "XAD 4.0×, its compiler 2.3×, CppAD 15×, Adept 9.0×, differences 16×",
    "XAD 4.4×, its compiler 0.96×, CppAD 14×, Adept 12×, differences 41×",
    "XAD 7.2×, its compiler 2.2×, CppAD 33×, Adept 8.3×, differences 157×",
)

CLAIMS = (
    Claim(
        "pqR: the cost of `with gradient`",
        'Neal (2019), "An Automatic Differentiation Extension for R, and its Implementation in pqR", the '
        "timings of its test: 10,000 calls with the gradient relative to 10,000 without (0.322 s / 0.099 s, "
        "0.63 / 0.28, 2.637 / 0.437).",
        (
            Row("`recurrence`, one number", "3.3×", _prices("recurrence", 1, *_RECURRENCE)),
            Row("five numbers", "2.3×", _prices("recurrence", 5, *_RECURRENCE)),
            Row("a hundred numbers", "6.0×", _prices("recurrence", 100, *_RECURRENCE)),
            Row("`numericDeriv`, one number", "2.0×", _prices("recurrence", 1, "finite_differences")),
            Row("five numbers", "5.9×", _prices("recurrence", 5, "finite_differences")),
            Row("a hundred numbers", "102×", _prices("recurrence", 100, "finite_differences")),
        ),
        "pqR interprets the plain function, and each operation is so slow that its derivative adds little. The plain "
        "function of `stan_math` is machine code, a hundred times faster, so the same bookkeeping adds more; `tape` "
        "runs its function on numpy. `numericDeriv` takes one extra evaluation per input, our central differences take "
        "two. At a hundred numbers some entries of the gradient are beyond double precision, so adbench ranks no "
        "backends there, but still shows gradient costs.",
    ),
    Claim(
        "FastAD: against Stan Math and Adept",
        'Yang (2021), "FastAD: Expression Template-Based C++ Library for Fast and Memory-Efficient Automatic '
        'Differentiation", arXiv:2102.03681, abstract: "2-10 times faster than Adept and 2-19 times faster than Stan".',
        (
            *(Row(f"Stan / FastAD, `{case}`", "2 to 19×", _over(case, "fastad", *stan)) for case, *stan in _OF_FASTAD),
            Row("Adept / FastAD, `sums`", "2 to 10×", _over("sums", "fastad", "adept")),
            *(
                Row(f"Stan / hand-written, `{case}`", "none", _over(case, "cpp_hand", "stan_math"))
                for case in (*_SCALAR, "normal_log_density", "matrix_product", "lotka_volterra")
            ),
            Row(
                "Stan's scalar operations / its built-in density, `normal_log_density`",
                "none",
                _over("normal_log_density", "stan_math_builtin", "stan_math"),
            ),
        ),
        "FastAD and Adept are in no package index; their rows need an installed copy (`adbench list backends`). "
        "FastAD is 0.0.1, with the headers of CRAN's RcppFastAD. Stan's scalar operations are recorded one by one; its "
        "built-in functions and matrix nodes are one record each, which shrinks the paper's factor. The paper builds "
        "FastAD's expression once and evaluates it repeatedly, while Stan and Adept record at every call; here both "
        "policies are separate backends. FastAD's normal density keeps statistics of unchanged data, and in a timed "
        "loop the data never change, so there is no row for it. The paper's Adept uses one stack for all threads "
        "(-DADEPT_STACK_THREAD_UNSAFE), which is faster; ours uses the default. The hand-written gradients bound what "
        "any library can gain over Stan.",
    ),
    Claim(
        "The Stan Math Library: against CppAD, Sacado, ADOL-C",
        'Carpenter et al. (2015), "The Stan Math Library", arXiv:1509.07164, section on evaluation: figures '
        "of each library's speed relative to Stan's, without numbers in the text.",
        tuple(
            Row(f"`{case}`", "figure", _over(case, "stan_math", "cppad", "sacado", "adolc"))
            for case in (*_SCALAR, "matrix_product", "lotka_volterra")
        ),
        "The paper records with every library at every call, as these backends do; `cppad_reuse`, `cppad_optimised` "
        "and `adolc_reuse` reuse recordings and are faster. The libraries have developed for ten years since, and here "
        "the same flags compile them all.",
    ),
    Claim(
        "The cheap gradient",
        'Baur and Strassen (1983); Griewank and Walther (2008), "Evaluating Derivatives", section 3.3: a '
        "gradient takes at most four times the function's time, for any number of inputs.",
        tuple(Row(f"`{case}`", "at most 4×", _prices(case, MANY, "cpp_hand", "stan_math")) for case in _SCALAR),
        "The theorem counts operations and memory accesses of the function and its derivative on one machine model. A "
        "recording at every call stores and loads values that the plain function keeps in registers, and the compiler "
        "vectorises a plain loop but not the sweep: this constant belongs to the recording, not to the theorem. A "
        "hand-written gradient may use a closed form that the function lacks: one power instead of n, in `powers`.",
    ),
    Claim(
        "ADBench and gradbench: gradient over function",
        "Šrajer, Kukelova and Fitzgibbon (2018), arXiv:1807.10129; the suite gradbench "
        "(github.com/gradbench/gradbench): "
        "charts of derivative time relative to the objective, redrawn with every version; no fixed numbers.",
        tuple(
            Row(f"`{case}`, n = 10", "chart", _prices(case, 10, *backends))
            for case, backends in (
                ("gaussian_mixture", ("tape", "autograd", "torch", "jax", "finite_differences")),
                ("lstm", ("tape", "autograd", "torch", "jax", "finite_differences")),
            )
        ),
        "Both suites write the function separately for each tool; here all share one source. ADBench has the wrong "
        "sign of the mixture's prior (L - P), which takes the same time. Its bundle adjustment repeats one observation "
        "and so suits caches; ours are distinct. We time calls in a warmed-up process and compilation separately.",
    ),
    Claim(
        "Nested derivatives: overloading against compiling",
        "Siskind and Pearlmutter, benchmarks of AD 2016 (bcl.hamilton.ie/~qobi/ad2016-benchmarks): run times of "
        "`saddle` relative to Stalingrad: Tapenade 2.47, FADBAD++ 23.3, Scheme interpreters hundreds to thousands.",
        (
            Row(
                "`saddle`: recorded / compiled",
                "FADBAD++ / Tapenade: 9.4×",
                (Against("saddle", 10, "tape", "tape_compiled"), Against("saddle", 10, "autograd", "jax")),
            ),
        ),
        "Both pairs compare recording at every call with compiling once. Recording costs something per operation: in "
        "C++ an allocation and a store, in Python an interpreter's overhead, so our factor is larger. Their program "
        "converges in two nested optimisers, ours takes a fixed number of steps.",
    ),
    Claim(
        "Finance: greeks over price",
        "Benchmarks of XAD (auto-differentiation.github.io/benchmarks; Intel Xeon Platinum 8488C, GCC 13.3): "
        "Heston's model with 8 derivatives, SABR with 15, CVA with 40, swaptions in the LIBOR market model with 161. "
        "It has times; the ratios are ours. Giles (people.maths.ox.ac.uk/~gilesm/codes/libor_AD) gives the cost of "
        "FADBAD++ relative to a hand-written adjoint.",
        (
            *(
                Row(f"`{case}`, n = {size}", figures, _prices(case, size, *_GREEKS))
                for (case, size), figures in zip(FINANCE, _OF_FINANCE, strict=True)
            ),
            Row(
                "recorded / hand-written, `libor_market_model`",
                "FADBAD++: about 10 to 20×",
                tuple(Against("libor_market_model", 80, name, "cpp_hand") for name in ("stan_math", "cppad", "sacado")),
            ),
        ),
        "We had the published table but not its programs, so ours follow the literature: the same models with 8, 15, "
        "42 and 159 derivatives, but other steps, quotes and swaps, and fewer paths than its 10,000. Ours take random "
        "numbers as inputs, so their time is not included. The published differences are one-sided, ours are central "
        "and take twice as many evaluations. The functions of `tape` and `jax` run on arrays in Python and XLA, so "
        "their prices differ from those in C++.",
    ),
)


def render(runs: Sequence[Run]) -> str:
    """The page; each figure comes from the first run that has it."""
    every = [Cells(run) for run in runs]
    lines = [HEAD, *_about(every), "", "To repeat them:", "", "```sh", *COMMANDS, "```"]
    for claim in CLAIMS:
        lines += ["", f"## {claim.title}", "", *_wrapped(claim.source), "", "| | published | ours |", "|---|---|---|"]
        lines += [f"| {row.what} | {row.published} | {_ours(every, row)} |" for row in claim.rows]
        lines += ["", *_wrapped(f"**Why they differ.** {claim.why}")]
    return "\n".join(lines) + "\n"


def _about(every: Sequence[Cells]) -> Iterator[str]:
    """A line for each date, machine and settings, with the noise floors of its runs."""
    floors: dict[str, list[str]] = {}
    for cells in every:
        floors.setdefault(_where(cells), []).append(_floor(cells))
    yield from (f"* {where}; {', '.join(of_runs)}" for where, of_runs in floors.items())
    if any(cells.findings.floor.noisy for cells in every):
        yield ""
        yield from _wrapped(
            "*Noisy* means **a noisy session** with a floor above the margin: other programs slowed calls of "
            "milliseconds more than calls of microseconds."
        )


def _where(cells: Cells) -> str:
    run = cells.findings.run
    processor, threads = (formatting.visible(str(run.machine.get(name))) for name in ("processor", "usable_threads"))
    launches = f"{run.settings.get('launches')} launches{' (--quick)' if run.settings.get('quick') else ''}"
    day, many = formatting.moment(run.created, clock=False), "s" * (threads != "1")
    return f"{day}, {processor}, {threads} thread{many}, {launches}"


def _floor(cells: Cells) -> str:
    floor = cells.findings.floor
    noise = f"noise floor {formatting.percent(floor.reach)}" if floor.reach is not None else "no noise floor"
    return f"{noise} (*noisy*)" if floor.noisy else noise


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
