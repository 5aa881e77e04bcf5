"""An operation as source text, so that a program that uses it needs nothing of this package.

    lambda xp, x: xp.sum(x * x, axis=-1)     becomes     "xp.sum({0} * {0}, axis=-1)"

Helper functions become `def` before the program, and other names of the module, such as constants, their values.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import re
import textwrap
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from adbench.findings.operations.operation import ARGUMENTS, Operation

PLACE = "_place_{}_"
PLACED = re.compile(r"_place_(\d+)_")
XP = "xp"


def text_of(operation: Operation) -> tuple[str, str]:
    """(expression, definitions): the first with {0}, {1} for the arguments, the second with the helpers it calls."""
    function = operation.definition
    assert isinstance(function, FunctionType)
    if function.__closure__:  # made by `Family.add_functions`: xp.name(x, y)
        (name,) = (cell.cell_contents for cell in function.__closure__)
        return f"{XP}.{name}({', '.join(f'{{{k}}}' for k in range(operation.arity))})", ""
    tree = _function(function)
    names = [one.arg for one in tree.args.args][1 : 1 + operation.arity]
    if isinstance(tree, ast.Lambda):
        resolved = _Resolved(function, {name: PLACE.format(k) for k, name in enumerate(names)}, tree)
        expression = ast.unparse(resolved.visit(tree.body))
        return _with_places(expression), "\n\n\n".join(resolved.helpers.values())
    called = _Resolved(function, {}, tree)
    places = ", ".join(f"{{{k}}}" for k in range(operation.arity))
    return f"{called.helper(function)}({XP}, {places})", "\n\n\n".join(called.helpers.values())


def own_text(expression: str) -> str:
    """A library's own expression with {0}, {1} for x, y, …"""
    tree = ast.parse(expression, mode="eval")
    names = {name: PLACE.format(k) for k, name in enumerate(ARGUMENTS)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            node.id = names[node.id]
    return _with_places(ast.unparse(tree))


def _with_places(text: str) -> str:
    return PLACED.sub(r"{\1}", text)


@cache
def _lambdas(file: str) -> Mapping[int, ast.Lambda]:
    """The definitions in a file: line -> the lambda whose first argument is xp."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    lambdas = (node for node in ast.walk(tree) if isinstance(node, ast.Lambda))
    return {node.lineno: node for node in lambdas if node.args.args[0].arg == XP}


def _function(function: FunctionType) -> Any:
    """The syntax tree of a lambda or a function."""
    code = function.__code__
    if function.__name__ != "<lambda>":
        return ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    return deepcopy(_lambdas(code.co_filename)[code.co_firstlineno])  # it will be changed


class _Resolved(ast.NodeTransformer):
    """Replaces names: arguments by places, constants by their values, helper functions by unique names.

    helpers   name -> source, in the order of definition
    """

    def __init__(self, function: FunctionType, names: Mapping[str, str], tree: ast.AST) -> None:
        self.function, self.names = function, dict(names)
        self.helpers: dict[str, str] = {}
        defaults = function.__defaults__ or ()
        code = function.__code__
        last = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
        self.values = dict(zip(last, defaults, strict=True)) if function.__name__ == "<lambda>" else {}
        self.local = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        self.local |= {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """Without the annotation."""
        return ast.arg(node.arg)

    def visit_Call(self, node: ast.Call) -> ast.AST:  # the name that ast looks for
        """A number, if only functions of `math` of constants make it."""
        return _number(node) or self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # the name that ast looks for
        """A number, if it is a constant of `math`."""
        return _number(node) or self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:  # the name that ast looks for
        """The name, its value, or the place of an argument."""
        if node.id in self.names:
            return ast.Name(self.names[node.id], node.ctx)
        if node.id in self.values:
            return _literal(self.values[node.id])
        known = self.function.__globals__
        if node.id in self.local or node.id not in known:
            assert node.id in self.local or hasattr(builtins, node.id), node.id
            return node
        value = known[node.id]
        if isinstance(value, FunctionType):
            return ast.Name(self.helper(value), node.ctx)
        if isinstance(value, ModuleType):
            self.helpers.setdefault(value.__name__, f"import {value.__name__}")
            return node
        return _literal(value)

    def helper(self, helper: FunctionType) -> str:
        """Add a function with its own helpers; returns its name."""
        name = f"{helper.__name__.strip('_')}_{helper.__module__.rpartition('.')[2]}"
        if name not in self.helpers:
            tree = _function(helper)
            inner = _Resolved(helper, {}, tree)
            inner.helpers = self.helpers
            tree.returns, tree.name = None, name
            self.helpers[name] = ast.unparse(ast.fix_missing_locations(inner.visit(tree)))
        return name


def _number(node: ast.expr) -> ast.expr | None:
    """The value of an expression that uses only `math`, as a literal; None for any other."""
    if {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} != {"math"}:
        return None
    value = eval(ast.unparse(node), {"math": math})  # noqa: S307 - an expression of our own table
    return _literal(value) if isinstance(value, float) else None


def _literal(value: Any) -> ast.expr:
    assert isinstance(value, float | int | str | tuple)
    assert not isinstance(value, float) or math.isfinite(value)
    return ast.parse(repr(value), mode="eval").body
