"""Write the tables of docs/reference/operations-at-fault.md from docs/runs: python -m scripts.operations_page"""

from __future__ import annotations

import gzip
import json
import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from adbench.findings.conform import judgement
from adbench.findings.conform.fault_threads import with_thread
from adbench.model.operator import COMPOSITIONS, definition

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "reference" / "operations-at-fault.md"
Fault = Mapping[str, Any]

HVP = {name: "/".join(mode[0] for mode in definition(name).modes or ()) for name in sorted(COMPOSITIONS)}
OPERATORS = ["gradient", "jvp", *HVP, "third_order", "value"]
WORDS = {"jvp": "J v", **dict.fromkeys(HVP, "H v"), "third_order": "third order"}
ON_PURPOSE = {"normalize", "negative_binomial", "categorical_entropy", "poisson"}
"""Operations of torch that clip their arguments, or have no derivative, as documented."""
EXTREME = 1e99
"""Larger numbers, and numbers smaller than its inverse, overflow or underflow when they are squared three times."""
WIDTH = 130
"""Characters in a line of prose."""


def page() -> str:
    """The page: its introduction as it is, and a table for each library."""
    introduction = PAGE.read_text("utf-8").partition("## torch\n")[0]
    return introduction + "\n".join(f"## {library}\n\n{_section(library)}" for library in ("torch", "jax"))


def _section(library: str) -> str:
    with gzip.open(DOCS / "runs" / f"conform-{library}.json.gz", "rt", encoding="utf-8") as file:
        run = json.load(file)
    cells = run["cells"]
    rows: dict[tuple[str, ...], list[str]] = {}
    extreme = []
    threads = Counter[str]()
    for cell in cells:
        of_threads: dict[str, list[Fault]] = {}
        faults = [fault for fault in cell["faults"] if not _is_documented(fault)]
        for fault in faults:
            thread = fault["thread"] or with_thread(judgement.Fault(**fault), {}).thread
            if thread or not _is_extreme(fault):
                of_threads.setdefault(thread, []).append(fault)
        for thread, group in sorted(of_threads.items(), key=lambda pair: (pair[0] == "", pair[0])):
            rows.setdefault(_row(group, thread), []).append(cell["operation"])
        if of_threads:
            threads["none" if set(of_threads) == {""} else "some" if "" in of_threads else "all"] += 1
        elif faults:
            extreme.append(cell["operation"])
    results, fault_count = sum(cell["checked"] for cell in cells), threads.total() + len(extreme)
    head = (
        f"`adbench conform -b {library}` examined {len(cells)} operations of {library} {run['libraries'][library]}: "
        f"{results:,} results. {fault_count} operations are at fault, {len(extreme)} of them only where numbers above "
        f"1e99 or below 1e-99 overflow or underflow on the way. Of the others, a thread discusses all faults of "
        f"{threads['all']}, and some of {threads['some']}; for {threads['none']} we found none."
    )
    lines = [*textwrap.wrap(head, WIDTH), "", "| operation | wrong | at | got | expected | thread |"]
    lines += ["|---|---|---|---|---|---|"]
    lines += [f"| {_names(names)} | {' | '.join(row)} |" for row, names in rows.items()]
    last = f"Only where numbers overflow or underflow on the way, without a thread: {_names(extreme)}."
    return "\n".join([*lines, "", *textwrap.wrap(last, WIDTH, break_long_words=False), ""])


def _is_documented(fault: Fault) -> bool:
    """Whether the library documents it, as NaN or an exception where a determinant or a matrix is not positive."""
    name = fault["operation"]
    is_refusal = fault["kind"] in ("nan", "raises")
    return name in ON_PURPOSE or (is_refusal and (name == "logdet" or name.startswith("cholesky")))


def _is_extreme(fault: Fault) -> bool:
    sizes = [abs(number) for number in _numbers(list(fault["point"].values())) if number]
    return any(size > EXTREME or size < 1 / EXTREME for size in sizes)


def _numbers(nest: Any) -> Iterator[float]:
    if isinstance(nest, list):
        for part in nest:
            yield from _numbers(part)
    else:
        yield float(nest)


def _row(faults: Sequence[Fault], thread: str) -> tuple[str, ...]:
    """wrong, at, got, expected, thread."""
    shown = min(faults, key=lambda f: (_is_extreme(f), f["kind_of_point"] != "special", OPERATORS.index(f["operator"])))
    wrong = _operators(sorted({fault["operator"] for fault in faults}, key=OPERATORS.index))
    which = "" if wrong in ("H v", _operator(shown)) else f"{_operator(shown)} at "
    single = len(shown["point"]) == 1 and not isinstance(next(iter(shown["point"].values())), list)
    entry = f" for {shown['entry']}" if shown["operator"] != "value" and not single and shown["entry"] else ""
    where = ", ".join(f"{name} = {_point(value)}" for name, value in shown["point"].items() if name != "w")
    got, expected = _results(shown["got"], shown["expected"])
    return wrong, f"{which}{where}{entry}", got, expected, thread or "none found"


def _operators(names: Sequence[str]) -> str:
    """The operators; the compositions of H v together, and by letters if they are one or two."""
    compositions = [HVP[name] for name in names if name in HVP]
    letters = "" if len(compositions) > 2 else f" ({', '.join(compositions)})"
    found = dict.fromkeys(WORDS.get(name, name) for name in names)
    return ", ".join(name + letters if name == "H v" else name for name in found)


def _operator(fault: Fault) -> str:
    name: str = fault["operator"]
    return WORDS.get(name, name) + (f" ({HVP[name]})" if name in HVP else "")


def _point(value: Any) -> str:
    """A number, a vector, or what a matrix is like."""
    if not isinstance(value, list):
        return _short(value, 17 if abs(value) != 1.0 and f"{abs(value):.6g}" == "1" else 6)
    if value and isinstance(value[0], list):
        flat = list(_numbers(value))
        order = len(value)
        if value == [[float(i == j) for j in range(order)] for i in range(order)]:
            return "I"
        for number, words in ((0.0, "zeros"), (1.0, "ones")):
            if flat == [number] * len(flat):
                return f"a {order} × {len(value[0])} matrix of {words}"
        return f"a {order} × {len(value[0])} matrix"
    return f"[{', '.join(_short(number, 3) for number in value)}]"


def _results(got: str, expected: str) -> tuple[str, str]:
    """Both numbers, with as many digits as it takes to see the difference; an exception by its name."""
    try:
        a, b = float(got), float(expected)
    except ValueError:
        numbers = [_short(part, 2) for part in expected.strip("[]").split(", ")]
        return got.partition(":")[0], f"[{', '.join(numbers)}]" if "[" in expected else numbers[0]
    close = math.isfinite(a) and abs(a - b) < 1e-4 * abs(b)
    return (_short(a, 17), _short(b, 17)) if close else (_short(a, 6), _short(b, 6))


def _short(number: Any, digits: int) -> str:
    """A number with this many digits; with 17, as many as it takes to tell it from all others."""
    text = repr(float(number)) if digits == 17 else f"{float(number):.{digits}g}"
    mantissa, e, exponent = text.partition("e")
    text = f"{mantissa}e{int(exponent)}" if e else text
    return text.replace("-", "−", 1) if text.startswith("-") else text


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
