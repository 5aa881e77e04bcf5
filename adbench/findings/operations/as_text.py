"""An operation as source text, so that a program that uses it needs nothing of this package.

"logsumexp(xp, x) + y"     becomes     "logsumexp(xp, {0}) + {1}"     and     "def logsumexp(xp, x): ..."
"""

from __future__ import annotations

import ast
import inspect
import re

from adbench.findings.operations import helpers
from adbench.findings.operations.operation import ARGUMENTS, Operation

PLACE = "_place_{}_"
PLACED = re.compile(r"_place_(\d+)_")
HELPERS = {name: function for name, function in vars(helpers).items() if inspect.isfunction(function)}


def text_of(operation: Operation) -> tuple[str, str]:
    """(expression, definitions): the first with {0}, {1} for the arguments, the second with the helpers it calls."""
    return own_text(operation.text), "\n\n\n".join(_called(operation.text).values())


def own_text(expression: str) -> str:
    """An expression in x, y, … with {0}, {1} for these."""
    tree = ast.parse(expression, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in ARGUMENTS:
            node.id = PLACE.format(ARGUMENTS.index(node.id))
    return PLACED.sub(r"{\1}", ast.unparse(tree))


def _called(text: str) -> dict[str, str]:
    """Name -> source of each helper that a text calls, in the order of definition."""
    sources: dict[str, str] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and node.id in HELPERS:
            source = _source(node.id)
            sources |= {**_called(source), node.id: source}
    return sources


def _source(name: str) -> str:
    """The source of a helper, without annotations."""
    tree = ast.parse(inspect.getsource(HELPERS[name]))
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    return ast.unparse(tree)
