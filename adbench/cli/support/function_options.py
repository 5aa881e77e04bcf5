"""The options of `adbench check` and `adbench run` for a user's function, and its results as a table."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adbench.cli.support.options import combined
from adbench.model.errors import UsageError

if TYPE_CHECKING:
    from adbench.functions.own_function import OwnFunction
    from adbench.functions.user_function import UserFunction
    from adbench.model.record import Run

SEVERAL = ("--at", "--wrt", "--arg", "-n", "--size")
OWN = ("at", "arg", "wrt", "inputs", "branchwise", "constants")
CANNOT_TELL = 5  # exit code where nothing is wrong, but rounding hides an answer

function_options = combined(
    click.option(
        "--function",
        metavar="MODULE:F",
        help="Use your function: module:f, file.py:f or module:object.f.",
    ),
    click.option(
        "--at",
        multiple=True,
        metavar="VALUE ...",
        help="Pass your function these arguments: numbers, JSON, @file.npz, @file.npz:key, @file.npy or @file.json. "
        "Several numbers are one argument each, or a vector if the function takes one argument. Integers become "
        "floats.",
    ),
    click.option(
        "--arg",
        multiple=True,
        metavar="NAME=VALUE",
        help="Pass a keyword argument. Repeat it for more. An integer stays an integer, so it is not differentiated. "
        "Other text is a string.",
    ),
    click.option(
        "--wrt",
        multiple=True,
        metavar="NAME",
        help="Differentiate with respect to this argument. Repeat it for more; default: all floats.",
    ),
    click.option("--inputs", metavar="MODULE:G", help="Take the arguments for size n from g(n) instead of --at."),
    click.option(
        "--branchwise",
        is_flag=True,
        help="Accept the derivative along the branches that your function takes, even if its values change otherwise.",
    ),
    click.option(
        "--constants",
        type=click.Choice(["allow", "forbid"]),
        help="What becomes of numbers that your function declares constant, by detach, no_grad, .item(), "
        "stop_gradient: allow names them, forbid counts their derivative.  [default: allow]",
    ),
)
"""A user's function instead of --case."""


class FunctionCommand(click.Command):
    """A command whose --at takes several values: `--at 1.0 -2.0` means `--at 1.0 --at -2.0`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, with an option before each of several values."""
        return super().parse_args(ctx, spread(args))


def spread(args: Sequence[str]) -> list[str]:
    """The arguments with the option repeated before each of its further values."""
    found: list[str] = []
    option = ""
    for before, text in zip(("", *args), args, strict=False):
        is_value = bool(option) and (not text.startswith("-") or _is_number(text))
        found += [option, text] if is_value and before != option else [text]
        if not is_value:
            option = text if text in SEVERAL else ""
    return found


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", " ").split()[0])
    except (ValueError, IndexError):
        return False
    return True


def with_function(asked: Mapping[str, Any]) -> tuple[dict[str, Any], OwnFunction | None]:
    """The options, with `--function` and its arguments as a case and the backends that can take it.

    Raises UsageError, in one line, for a fault in the function, its arguments or the backends.
    """
    from adbench.catalog.ad_hoc import ad_hoc
    from adbench.functions.own_function import OwnFunction
    from adbench.functions.points import points_inside
    from adbench.functions.recognition import only_family
    from adbench.functions.user_function import function_case

    kept = {name: value for name, value in asked.items() if name not in (*OWN, "function", "part")}
    of_function = {name: asked[name] for name in OWN if asked[name]}
    if asked["function"] is None:
        if of_function or asked.get("part"):
            option = next(iter(of_function), "output")
            raise UsageError(f"--{option} needs a function; add --function module:f")
        return kept, None
    if kept.get("cases") or kept.get("suites"):
        raise UsageError("--function replaces the cases; remove --case and --suite")
    if asked["inputs"] and asked["at"]:
        raise UsageError("--at and --inputs both give the arguments; remove one of them")
    named = _named_backends(kept)
    wanted = ad_hoc(asked["function"], **of_function, backend=only_family(named), output=asked.get("part"))
    with redirect_stdout(sys.stderr):  # the output of a function is not a result
        case = wanted.case(function_case)
        first, count = kept["seed"], kept.get("points", 1)
        inside, outside = points_inside(case, first, count)
    own = OwnFunction(case, tuple(outside), missing=count - len(inside))
    chosen = {
        **kept,
        "cases": (str(wanted.case_file()),),
        "backends": _backends(own.function, named, kept),
        "backends_by_default": not kept["backends"],
        "operators": () if "all" in kept["operators"] else kept["operators"] or case.operators,
        "seeds_left_out": own.outside,
    }
    if "points" in kept:
        chosen["points"] = inside[-1] + 1 - first  # the numbers between that are outside are left out
    return chosen, own


def _named_backends(asked: Mapping[str, Any]) -> Sequence[str]:
    """The backends that -b selects; none without it."""
    from adbench.catalog.discovery import select
    from adbench.catalog.selection import resolve

    if not asked["backends"]:
        return []
    chosen = resolve(backends=asked["backends"], backend_folders=asked["backend_folders"])
    return select("backend", chosen.catalog.backends, chosen.backends)


def _backends(function: UserFunction, named: Sequence[str], asked: Mapping[str, Any]) -> tuple[str, ...]:
    """The named backends, or those of the function's library: all installed ones of a function that takes `xp`.

    Raises UsageError for a backend of another library.
    """
    from adbench.catalog.selection import resolve

    if named:
        for backend in named:
            function.library.refuse_backend(backend, function.__name__)
        return tuple(asked["backends"])
    if function.library.name != "xp":
        return (function.library.backend,)
    every = resolve(backend_folders=asked["backend_folders"]).catalog.backends.items()
    return tuple(name for name, source in every if source.is_default and not source.missing)


def print_function(own: OwnFunction, found: Run, code: int, as_json: bool, allow_nothing: bool = False) -> int:
    """Print value and derivatives next to the truth, a table for each backend, or JSON; returns the exit code.

    It is 5 where nothing is wrong but rounding hides an answer, and 4 where no derivative could be checked, unless
    `allow_nothing`.
    """
    from adbench.functions import own_function

    checks = own_function.checks(found, own)
    if as_json:
        from adbench.results.store import dumps

        click.echo(dumps(found), nl=False)
    else:
        click.echo(f"{own_function.text(found, own, checks)}\nagain: {again()}")
    if code or not checks:
        return code or (0 if allow_nothing else 4)
    return CANNOT_TELL if any(check.word == "blind" for check in checks) else 0


def again() -> str:
    """A shell's line that repeats this command from any folder."""
    return f"cd {shlex.quote(str(Path.cwd()))} && adbench {shlex.join(sys.argv[1:])}"
