"""A user's case with every kind of input that C++ accepts, and its C++ implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from adbench import Namespace
from adbench.catalog.discovery import load_cases
from adbench.catalog.source import Source

PYTHON = '''
"""Numbers, arrays, a nest, an int, a bool, a string, a loop and a data-dependent branch."""
import numpy as np
from adbench import Case

def f(xp, a, x, M, p, times, flag, mode):
    total = 0.0
    for i in range(x.shape[0]):
        t = a * x[i]
        total = total + (xp.log(1 + t * t) if mode == "log" else xp.exp(0.25 * t))
    for _ in range(times):
        total = total / (1 + 0.1 * total * total)
    if x[0] < a:
        total = total + x[0] * a
    else:
        total = total - x[0] / a
    if flag:
        total = total + xp.sum(x * (M @ x))
    return total + p["scale"] * (p["w"][0][0] * p["w"][0][1] - p["w"][1][0] * x[1])

def inputs(n, rng):
    return {
        "a": rng.uniform(0.8, 1.2),
        "x": rng.uniform(0.5, 1.5, n),
        "M": rng.normal(size=(n, n)),
        "p": {"w": [rng.uniform(0.5, 1.5, 2), (rng.uniform(0.5, 1.5),)], "scale": rng.uniform(0.5, 1.5)},
        "times": 3,
        "flag": True,
        "mode": MODE,
    }

CASE = Case(f=f, inputs=inputs, wrt=WRT, sizes=(3,), least=2)
'''

CPP = """
#include "adbench.hpp"

template <class T, class A, class X, class Y, class P>
T f(const A& a, const adbench::Vector<X>& x, const adbench::Matrix<Y>& M, const P& p, std::int64_t times, bool flag,
    std::string_view mode) {
    using std::exp, std::log;
    using U = adbench::Of<T, A, X>;
    U total = 0.0;
    for (const X& entry : x) {
        const U t = a * entry;
        if (mode == "log") {
            total += log(1.0 + t * t);
        } else {
            total += exp(0.25 * t);
        }
    }
    for (std::int64_t i = 0; i < times; ++i) total = total / (1.0 + 0.1 * total * total);
    if (x[0] < a) {
        total += x[0] * a;
    } else {
        total -= x[0] / a;
    }
    T sum = total;
    if (flag) {
        for (std::size_t i = 0; i < x.size(); ++i) {
            for (std::size_t j = 0; j < x.size(); ++j) sum += x[i] * M(i, j) * x[j];
        }
    }
    const auto& [scale, w] = p;
    const auto& [first, second] = w;
    sum += scale * (first[0] * first[1] - std::get<0>(second) * x[1]);
    return sum;
}
"""

ALL = ("a", "x", "M", "p")


def write(folder: Path, wrt: tuple[str, ...] = ("a", "x"), mode: str = "log", cpp: str = CPP) -> Path:
    """Write the case's file and its C++ implementation; return the case's file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "everything.py"
    file.write_text(PYTHON.replace("WRT", repr(wrt)).replace("MODE", repr(mode)), encoding="utf-8")
    file.with_suffix(".hpp").write_text(cpp, encoding="utf-8")
    return file


def case(file: Path) -> Any:
    """Load the case of a file."""
    return load_cases(Source("cases", file.stem, str(file), builtin=False))[file.stem]


def value(made: Any, args: tuple[Any, ...], names: tuple[str, ...]) -> float:
    """The value on numpy."""
    return float(made.f(Namespace(np), **dict(zip(names, args, strict=True))))
