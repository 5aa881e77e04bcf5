"""The options of `adbench check` and `adbench run` for a user's function, and its results as a table."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adbench.cli.support.console import colour, print_json, width
from adbench.cli.support.options import combined, given_options
from adbench.model.errors import UsageError

if TYPE_CHECKING:
    from adbench.catalog.ad_hoc import AdHoc
    from adbench.execution.session import Session
    from adbench.functions.own_function import OwnFunction
    from adbench.model.record import Run

SEVERAL = ("--at", "--wrt", "--arg", "-n", "--size")
OWN = ("at", "arg", "wrt", "inputs", "branchwise", "constants")
OF_KERNELS = {"--function", "--definition", "--at", "--arg", "--wrt", "--inputs", "-n", "--points", "--seed", "--json"}
OF_KERNELS |= {"--device"}
"""Options with a meaning for `--definition`."""

OF_SAME_BITS = (OF_KERNELS - {"--definition", "--points"}) | {"--same-bits", "-b", "--backends"}

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
        complex(text.replace(",", " ").split()[0])
    except (ValueError, IndexError):
        return False
    return True


def with_function(asked: Mapping[str, Any]) -> tuple[dict[str, Any], OwnFunction | None]:
    """The options, with `--function` and its arguments as a case and the backends that can take it.

    Raises UsageError, in one line, for a fault in the function, its arguments or the backends.
    """
    kept = {name: value for name, value in asked.items() if name not in (*OWN, "function", "part")}
    of_function = {name: asked[name] for name in OWN if asked[name]}
    if asked["function"] is None:
        if of_function or asked.get("part"):
            option = next(iter(of_function), "output")
            raise UsageError(f"--{option} needs a function; add --function module:f")
        return kept, None
    if kept.get("dtype", "") not in ("", "float64"):
        raise UsageError("--dtype is for cases; adbench.check(f, x) in Python judges a function in the type of x")
    if kept.get("cases") or kept.get("suites"):
        raise UsageError("--function replaces the cases; remove --case and --suite")
    _refuse_two_sources(asked)
    from adbench.functions.own_function import requested

    with redirect_stdout(sys.stderr):  # the output of a function is not a result
        return requested(asked["function"], {**of_function, "output": asked.get("part")}, {**kept, "dtype": "float64"})


def print_function(own: OwnFunction, found: Run, code: int, as_json: bool, allow_nothing: bool = False) -> int:
    """Print value and derivatives next to the truth, a table for each backend, or JSON; returns the exit code."""
    from adbench.functions import own_function

    checks = own_function.checks(found, own)
    if as_json:
        from adbench.results.store import dumps

        click.echo(dumps(found), nl=False)
    else:
        click.echo(f"{own_function.text(found, own, checks)}\nagain: {again()}")
    return own_function.exit_code(checks, code, allow_nothing=allow_nothing)


def with_variants(everything: Mapping[str, Any], *, named: bool) -> dict[str, Any]:
    """The options with the eager and the compiled form of each of their backends. Raises UsageError in one line."""
    from adbench.findings.variants.forms import with_both_forms

    if "," in everything["device"]:
        raise click.UsageError(f"--variants computes on one device; --device {everything['device']} names several")
    forms = with_both_forms(everything["backends"], everything["backend_folders"], named=named)
    return {**everything, "backends": forms, "backends_by_default": False}


def print_variants(
    session: Session,
    found: Run,
    own: OwnFunction | None,
    code: int,
    scripts: Path | None,
    as_json: bool,
    allow_nothing: bool,
) -> int:
    """Print how far both forms of each library are from the truth, and where they differ; returns the exit code."""
    from adbench.findings.variants.forms import compared
    from adbench.functions import own_function
    from adbench.reports.text.status_line import StatusLine
    from adbench.reports.text.terminal import forms_table

    line = StatusLine()
    with redirect_stdout(sys.stderr):
        forms = compared(
            found.every_record,
            session.catalog,
            every=own is not None,
            dtype=session.settings.dtype,
            scripts=scripts,
            told=lambda name: line.show(f"{name}: looking for the first operation that differs"),
        )
    line.end()
    if as_json:
        print_json([one.to_dict() for one in forms])
    else:
        click.echo(forms_table.text(forms, found.versions, width=width(), colour=colour()), nl=False)
    if own is None:
        return code
    return own_function.exit_code(own_function.checks(found, own), code, allow_nothing=allow_nothing)


def print_kernel(asked: Mapping[str, Any], definition: str, as_json: bool) -> int:
    """Print the kernel's value and gradient next to those of its definition, for each size; returns the exit code.

    Raises UsageError, in one line, for a fault in the kernel, its definition or the options.
    """
    from adbench.execution.precision.kernel import kernel_checks
    from adbench.execution.python_check import REFERENCE_SECONDS
    from adbench.functions.own_function import exit_code

    named = _named("--definition", asked, OF_KERNELS)
    with redirect_stdout(sys.stderr):
        how = {name: asked[name] for name in ("sizes", "points", "seed", "device")}
        tables = kernel_checks(named, definition, **how, seconds=REFERENCE_SECONDS)
    if as_json:
        print_json([table.to_dict() for table in tables])
    else:
        click.echo("\n\n".join(map(str, tables)) + f"\nagain: {again()}")
    return 1 if any(table.is_wrong for table in tables) else exit_code(tables, 0, allow_nothing=False)


def print_same_bits(asked: Mapping[str, Any], as_json: bool) -> int:
    """Print whether repetitions of the gradient have the same bits; returns the exit code: 1 if equal inputs differ.

    Raises UsageError, in one line, for a fault in the function, its arguments or the options.
    """
    from adbench.execution import interrupt
    from adbench.findings.same_bits.same_bits import same_bits

    named = _named("--same-bits", asked, OF_SAME_BITS)
    interrupt.listen()
    with redirect_stdout(sys.stderr):
        how = (asked[name] for name in ("sizes", "backends", "backend_folders", "seed", "device"))
        found = same_bits(named, *how)
    if as_json:
        print_json([one.to_dict() for one in found])
    else:
        click.echo("\n\n".join(one.text(width()) for one in found))
    return 1 if any(one.differs for one in found) else 0


def _named(option: str, asked: Mapping[str, Any], meaningful: Collection[str]) -> AdHoc:
    """The function with its arguments. Raises UsageError without one, and for options without a meaning here."""
    from adbench.catalog.ad_hoc import ad_hoc

    if asked["function"] is None:
        raise UsageError(f"{option} needs a function; add --function module:f")
    if ignored := [name for name in given_options(click.get_current_context()) if name not in meaningful]:
        raise UsageError(f"{ignored[0]} has no meaning with {option}; leave it out")
    _refuse_two_sources(asked)
    return ad_hoc(asked["function"], asked["at"], asked["arg"], asked["wrt"], asked["inputs"], double=False)


def _refuse_two_sources(asked: Mapping[str, Any]) -> None:
    if asked["inputs"] and asked["at"]:
        raise UsageError("--at and --inputs both give the arguments; remove one of them")


def again() -> str:
    """A shell's line that repeats this command from any folder."""
    return f"cd {shlex.quote(str(Path.cwd()))} && adbench {shlex.join(sys.argv[1:])}"
