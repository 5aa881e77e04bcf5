"""`adbench bisect`: which release of a library made a derivative wrong or slower?"""

from __future__ import annotations

import sys
from typing import Any

import click

from adbench.cli.support.console import print_json, say, width
from adbench.cli.support.options import (
    PATH,
    environment_options,
    json_option,
    library_option,
    name_option,
    share_option,
)


@click.command(short_help="Find the release that changed a gradient.")
@click.argument("library", metavar="LIB")
@click.argument("good", metavar="GOOD")
@click.argument("bad", metavar="BAD")
@name_option("cases", "-c", "--case", required=True, says="Differentiate this case: a name or a file.")
@click.option(*("-n", "--size"), required=True, metavar="N", help="Use this size.")
@library_option
@click.option("--operator", metavar="NAME", help="Judge this operator. Default: all; with --slower the gradient.")
@click.option("--wrong", is_flag=True, help="Find the release that made a derivative wrong.")
@share_option("--slower", None, "Find the release that made it slower; BAD must be slower than GOOD by more than this.")
@click.option("--first-result", is_flag=True, help="With --slower: time tracing, compiling and the first call instead.")
@click.option("--versions", metavar="V,…", help="Bisect these releases only. Default: all that pip finds.")
@click.option("--commits", type=PATH, metavar="DIR", help="Bisect the commits of this git checkout; needs --build.")
@click.option("--build", metavar="CMD", help="With --commits: install or build each commit by this shell command.")
@environment_options
@click.option("--plan", "plan_only", is_flag=True, help="Print the releases and stop.")
@json_option
def bisect(wrong: bool, plan_only: bool, as_json: bool, **asked: Any) -> None:
    """Find the first release of LIB after GOOD that makes a derivative wrong or slower, as BAD does.

    Each release gets its own environment. n releases need at most log2(n) + 2 of them. Times are relative to the tape
    in the same launches. If BAD is older than GOOD, finds the release that fixed it.

    \b
    adbench bisect jax 0.4.30 0.5.0 -c lotka_volterra -n 1000 --slower 20%
    adbench bisect mylib 1.0 1.4 --wheels dist -b my_backend.py -c softplus.py \\
        -n 10 --wrong
    adbench bisect mylib v1.0 main --commits . --build 'pip install .' \\
        -b my_backend.py -c hypot -n 1 --wrong

    The same command resumes an interrupted bisection.

    Exit code 0: found. 2: GOOD is not good, BAD is not bad, or one of them cannot be installed. 5: too noisy to decide,
    or releases that cannot be installed or decided leave several.
    """
    from adbench.bisection import bisect as bisection
    from adbench.bisection.question import asked as read
    from adbench.execution import interrupt
    from adbench.reports.text.terminal import bisection as shown

    if wrong == (asked["slower"] is not None):
        raise click.UsageError("give one of --wrong and --slower")
    if asked["first_result"] and wrong:
        raise click.UsageError("--first-result needs --slower")
    question, environments = read(**asked)
    if plan_only:
        click.echo(shown.planned(question), nl=False)
        return
    interrupt.listen()
    try:
        found = bisection.bisect(question, environments, say)
    except bisection.TooNoisy as noisy:
        say(str(noisy))
        sys.exit(5)
    except interrupt.Interrupted:
        say("interrupted; the same command resumes")
        raise
    if as_json:
        print_json(shown.data(found))
    else:
        click.echo(shown.text(found, width=width()), nl=False)
    sys.exit(0 if len(found.culprits) == 1 else 5)
