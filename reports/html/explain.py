"""`adbench explain`: the tape of a case as the paper shows it, for a terminal, as plain data, and as a page.

The tape is that of adbench's own engine, in the active inputs of the case; the sum of the elements is differentiated
where the case's value is an array. Source of the tables: Carpenter et al., "The stan::agrad C++ automatic
differentiation library", section 1.1, figures 1 to 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from adbench import tape
from adbench.catalog import discovery as files
from adbench.catalog import inventory as cases
from adbench.catalog.discovery import Catalog, first_line
from adbench.model.backend import of_active
from adbench.model.case import function_of
from adbench.model.errors import UsageError, contained
from adbench.optional import MissingLibrary
from adbench.tape.explain.explanation import Explanation, Node
from adbench.tape.explain.notation import text_of
from adbench.version import __version__

from ..content import formatting
from ..figures import expression_graph
from . import page as html

if TYPE_CHECKING:
    from adbench.tape.compiled.inspection import Listing

MOST_ROWS = 40
"""Of a table; of a longer one the first and the last are shown."""
MOST_LINES = 200
"""Of code in a terminal; the page and the JSON have all."""
Row = TypeVar("Row")


@dataclass(frozen=True)
class Explained:
    """A case with its tape.

    formula   as the case's file has it, "" where it has none
    size      and seed: of the inputs
    summed    whether the value is an array, so that the sum of its elements is differentiated
    listing   the compiled recording, if the user asked for it
    """

    case: str
    summary: str
    formula: str
    size: int
    seed: int
    summed: bool
    tape: Explanation
    listing: Listing | None


def explained(catalog: Catalog, name: str, size: int | None, *, seed: int = 0, compiled: bool = False) -> Explained:
    """The tape of the case of that name; at its smallest size unless one is given.

    Raises UsageError where the case has no such size, or the engine cannot run it, in its own words.
    """
    case = catalog.cases[name]
    size = case.sizes[0] if size is None else size
    if not case.accepts(size):
        raise UsageError(f"{name} has no size {size}; use {case.takes}")
    names, args, active = case.bind(size, seed)
    labels = [names[k] for k in active]
    of_points = of_active(function_of(case, names, files.load(catalog.backends["tape"]).xp, size), args, active)

    def f(*points: Any) -> Any:
        return of_points(points)

    f.__name__ = case.name
    points = [args[k] for k in active]
    try:
        with contained():
            explanation = tape.explain(f, *points, names=labels)
        code = None
        if compiled:
            from adbench.tape.compiled.inspection import listing

            code = listing(f, *points, names=labels, wrt=tuple(range(len(points))))
    except MissingLibrary:
        raise
    except (MemoryError, RecursionError) as error:
        raise UsageError(f"{name} at size {size} is too large to explain; give a smaller size with -n") from error
    except Exception as error:  # a user's function may raise anything, and the engine refuses some
        raise UsageError(f"{name}: the tape cannot run it: {type(error).__name__}: {first_line(error)}") from error
    about = cases.docstring(Path(case.file)).partition("\n")[2].strip("\n")
    formula = "" if case.is_trap else cases.formula(about)
    summary = catalog.case_sources[name].summary
    return Explained(name, summary, formula, size, seed, value_shape(explanation) != (), explanation, code)


def value_shape(explanation: Explanation) -> tuple[int, ...]:
    """The shape of the function's value."""
    return tuple(getattr(explanation.value, "shape", ()))


def ends(rows: Sequence[Row], most: int = MOST_ROWS) -> tuple[Sequence[Row], int, Sequence[Row]]:
    """The first rows, how many are left out, and the last; everything first where nothing is."""
    if len(rows) <= most + 1:  # a line that says "1 more" takes as much room as the one
        return rows, 0, ()
    return rows[: most // 2], len(rows) - most, rows[len(rows) - most // 2 :]


def text(found: Explained, *, colour: bool, width: int) -> str:
    """For a terminal of this width: the graph, the forward and the reverse table, then what is compiled. Rows are as
    long as they are: a table that wraps cannot be read."""
    recorded = found.tape
    # A row left out is an operation.
    forward = recorded.forward(width if len(recorded.nodes) <= MOST_ROWS else None).splitlines()
    parts = [_title(found, colour)]
    graph, reverse = recorded.graph().splitlines(), recorded.reverse().splitlines()
    parts += [
        _headed("Expression graph", _clipped(graph, 0), colour),
        _headed("Forward: each operation, its value, and its partial derivatives", _clipped(forward, 2), colour),
        _headed("Reverse: additions to each adjoint, from the value back", _clipped(reverse, 2), colour),
        _headed("Gradient", "\n".join(f"∂f/∂{name} = {value}" for name, value in gradient_of(found)), colour),
    ]
    if found.listing is not None:
        parts += _code_parts(found.listing, colour)
    return "\n\n".join(parts)


def _title(found: Explained, colour: bool) -> str:
    lines = [_bold(f"{formatting.visible(found.case)}, n = {found.size}", colour), formatting.visible(found.summary)]
    lines += [f"  {formatting.visible(line)}" for line in found.formula.splitlines()]
    if found.summed:
        lines.append(f"The value has the shape {value_shape(found.tape)}; the sum of its elements is differentiated.")
    return "\n".join(line for line in lines if line)


def gradient_of(found: Explained) -> list[tuple[str, str]]:
    """Name and derivative of each input, as text."""
    inputs = [node for node in found.tape.nodes if not node.operands and node.name]
    last = final_adjoints(found.tape)
    return [(node.operation, last.get(node.name, text_of(0.0))) for node in inputs]


def final_adjoints(explanation: Explanation) -> dict[str, str]:
    """Node -> its adjoint after the sweep, as text."""
    first = {explanation.root: "1"} if explanation.root else {}
    return first | {f"v{update.target[1:]}": text_of(update.adjoint) for update in explanation.updates}


def _code_parts(code: Listing, colour: bool) -> list[str]:
    if code.eager:
        return [_headed("Compiled", f"not compiled; the eager engine runs it: {code.eager}", colour)]
    operations = [f"{name:<6}{text}" for name, text in code.operations]
    guards = list(code.guards) or ["none: this recording is valid everywhere"]
    parts = [
        _headed("Compiled: the recording of value and gradient", _clipped(operations, 0), colour),
        _headed(
            "Guards: conditions on other points; if one fails, adbench records again",
            _clipped(guards, 0),
            colour,
        ),
    ]
    if code.python:
        parts.append(_headed("Called in Python", ", ".join(code.python), colour))
    return [*parts, _headed("Native code", _clipped(code.assembly.splitlines(), 0, MOST_LINES), colour)]


def _clipped(lines: Sequence[str], heads: int, most: int = MOST_ROWS) -> str:
    """Lines with the middle left out; the first few are heads and stay."""
    first, count, last = ends(lines[heads:], most)
    dots = [f"… {count} more, see --html or --json"] if count else []
    return "\n".join(formatting.visible(line, keep="\t") for line in [*lines[:heads], *first, *dots, *last])


def _headed(title: str, text: str, colour: bool) -> str:
    return f"{_bold(title, colour)}\n\n{text}"


def _bold(text: str, colour: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if colour else text


def plain(found: Explained) -> dict[str, Any]:
    """For machines: everything, whatever its length. NaN and infinities are the texts "nan", "inf", "-inf"."""
    code, updates = found.listing, found.tape.updates
    return {
        "case": found.case,
        "summary": found.summary,
        "size": found.size,
        "seed": found.seed,
        "value": _number(found.tape.value),
        "root": found.tape.root or None,
        "nodes": [_plain_node(node) for node in found.tape.nodes],
        "updates": [
            {"target": u.target, "source": u.source, "adds": str(u), "adjoint": _number(u.adjoint)} for u in updates
        ],
        "compiled": code
        and {
            "eager_because": code.eager or None,
            "operations": [list(pair) for pair in code.operations],
            "guards": list(code.guards),
            "results": list(code.results),
            "python": list(code.python),
            "llvm": code.llvm,
            "assembly": code.assembly,
        },
    }


def _plain_node(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "operation": node.operation,
        "operands": list(node.operands),
        "value": _number(node.value),
        "partials": [
            {"operand": p.operand, "formula": p.formula or None, "value": _number(p.value), "shape": p.shape}
            for p in node.partials
        ],
    }


def _number(value: Any) -> Any:
    """A number, nested lists of them, or None; what JSON has no number for is text."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return [_number(x) for x in value]
    return value if value is None or (value == value and abs(value) != float("inf")) else str(value)


def page(found: Explained) -> str:
    """The page: complete in itself, no request to anywhere."""
    recorded = found.tape
    context = {
        "found": found,
        "tape": recorded,
        "graph": expression_graph.graph(recorded, final_adjoints(recorded)),
        "most_nodes": expression_graph.MOST_NODES,
        "forward": ends(recorded.nodes),
        "reverse": ends(recorded.updates),
        "gradient": gradient_of(found),
        "shape": value_shape(recorded),
        "version": __version__,
        "text_of": text_of,
        "ends": ends,
    }
    return html.rendered("explain.html", ["explain.css"], ["explain.js"], **context)
