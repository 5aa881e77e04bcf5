"""Options that several verbs share, the quantities that they take, as people write them: `4G`, `10m`, `2%`, and default
options: `[tool.adbench.COMMAND]` in the nearest pyproject.toml, for click's `default_map`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from adbench.model.errors import AdbenchError, UnknownName, UsageError
from adbench.model.settings import MOST_COUNT, MOST_SECONDS, MOST_SEED, MOST_THREADS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])

BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
MOST_SHARE = 1000.0  # a thousand times: 100000 %
_NUMBER = r"(\d+(?:\.\d*)?|\.\d+)"

PATH = click.Path(path_type=Path)


class Seconds(click.FloatRange):
    """A duration above 0 that every clock and every wait can hold: neither NaN nor infinite."""

    name = "seconds"

    def __init__(self) -> None:
        super().__init__(0, MOST_SECONDS, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number. Fails in one line for any other text."""
        found = super().convert(value, param, ctx)
        if math.isnan(found):  # every comparison with it is false
            self.fail(f"{value!r} is not a duration; give a number of seconds.", param, ctx)
        return found


class WholeNumber(click.IntRange):
    """A number in a range; click's own name for a number, "integer range", is not what a user should write."""

    name = "whole number"


SECONDS, COUNT, SEED = Seconds(), WholeNumber(1, MOST_COUNT), WholeNumber(0, MOST_SEED)
"""The types of number options. Every number option has one of them, or is a `quantity`."""


def quantity(of: Callable[[Any], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A callback that reads the text of an option, or texts if it is repeatable, by this function.

    It raises UsageError for other texts.
    """

    def read(context: click.Context, parameter: click.Parameter, text: Any) -> Any:
        if text is None:
            return None
        try:
            return of(text)
        except AdbenchError as error:
            where = f"{PROJECT_FILE}: " if is_default(context, parameter) else ""
            raise click.UsageError(f"{where}{parameter.opts[0]}: {error}") from error

    return read


def bytes_of(text: str) -> int:
    """A positive number of bytes: `4G`, `512M`, `1.5GiB`, `800000000`; the letters stand for powers of 1024."""
    found = re.fullmatch(_NUMBER + r"\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE | re.ASCII)
    size = float(found[1]) * BYTES[found[2].upper()] if found else 0.0
    if not 1 <= size < 2**63:
        raise UsageError(f"{text!r} is not an amount of memory; write 4G or 512M")
    return int(size)


def counts_of(text: str) -> tuple[int, ...]:
    """Positive whole numbers, each once: `1`, `1,2,4`."""
    parts = [part.strip() for part in text.split(",")]
    found = [int(part) if re.fullmatch(r"\d{1,9}", part, re.ASCII) else 0 for part in parts]
    if not 1 <= min(found) <= max(found) <= MOST_THREADS or len(set(found)) < len(found):
        advice = f"write 2, or 1,2,4, at most {MOST_THREADS}"
        raise UsageError(f"{text!r} is not a list of different numbers from 1; {advice}")
    return tuple(found)


def seconds_of(text: str) -> float:
    """A positive duration: `40s`, `10m`, `1h30m`, `90` (seconds)."""
    parts = re.findall(_NUMBER + r"\s*(ms|min|s|m|h|)", text.strip(), re.ASCII)
    whole = re.fullmatch(rf"(?:{_NUMBER}\s*(?:ms|min|s|m|h|)\s*)+", text.strip(), re.ASCII)
    seconds = sum(float(number) * UNITS[unit] for number, unit in parts) if whole else 0.0
    if not 0 < seconds <= MOST_SECONDS or (len(parts) > 1 and any(not unit for _, unit in parts)):
        fault = "must be above zero" if whole and seconds == 0 else "is not a duration"
        fault = f"is longer than {MOST_SECONDS} s" if seconds > MOST_SECONDS else fault
        raise UsageError(f"{text!r} {fault}; write 40s, 10m or 1h30m")
    return seconds


def share_of(text: str) -> float:
    """A share above 0: `2%`, `150%` or `0.02`. Without % it is below 1, because `5` is more often a slip than 500 %."""
    found = re.fullmatch(_NUMBER + r"\s*(%?)", text.strip(), re.ASCII)
    share = float(found[1]) * (0.01 if found[2] else 1.0) if found else 0.0
    if not 0 < share < (MOST_SHARE if found and found[2] else 1):
        raise UsageError(f"{text!r} is not a share above 0; write 2%, 150% or 0.02")
    return share


def margins_of(texts: Sequence[str]) -> tuple[float | None, dict[str, float]]:
    """The margin of all cells, None without one, and those of names: `5%`, `name=50%`."""
    margin, named = None, {}
    for text in texts:
        name, equals, share = text.rpartition("=")
        if equals and not name:
            raise UsageError(f"{text!r} has no name before '='; write 5% or NAME=50%")
        if equals:
            named[name] = share_of(share)
        else:
            margin = share_of(share)
    return margin, named


def share_option(name: str, default: str | None, says: str) -> Callable[[Command], Command]:
    """An option that is a share, such as 5%."""
    return click.option(
        name,
        metavar="SHARE",
        default=default,
        show_default=default is not None,
        callback=quantity(share_of),
        help=says,
    )


def completion_of(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """A callback that completes the names of `cases` or `backends`, or files if no name fits."""

    def complete(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from adbench.catalog.selection import resolve

        cases, backends = (context.params.get(name) or () for name in ("case_folders", "backend_folders"))
        try:
            found = resolve(case_folders=cases, backend_folders=backends).catalog
        except AdbenchError:  # the command reports a broken file when it runs, not while it is typed
            return []
        names = [name for name in getattr(found, kind) if name.startswith(begun)]
        return [CompletionItem(name) for name in names] or [CompletionItem(begun, type="file")]

    return complete


def combined(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """One decorator for several options, in the order of the help."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def name_option(kind: str, *names: str, says: str, **more: Any) -> Callable[[Command], Command]:
    """An option that takes the names of `cases` or `backends`."""
    return click.option(*names, metavar="NAME", shell_complete=completion_of(kind), help=says, **more)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

details_option = click.option("--details", is_flag=True, help="Print every size, operator and reason.")

without_own_option = click.option(
    "--without-own",
    is_flag=True,
    help="Rank without adbench's own engine (◆), in the terminal; it is still measured, and its failures are printed.",
)

folder_options = combined(
    click.option("--cases", "case_folders", multiple=True, metavar="DIR", help="Add a folder of cases."),
    click.option("--backends", "backend_folders", multiple=True, metavar="DIR", help="Add a folder of backends."),
)
"""They add a user's own cases and backends."""

selection_options = combined(
    click.option(
        "--suite", "suites", multiple=True, metavar="NAME", help="Use the cases of this suite, for example stan-paper."
    ),
    name_option(
        *("cases", "-c", "--case", "cases"),
        multiple=True,
        says="Use this case: a name, a glob or a file. Repeat it for more.",
    ),
    name_option(
        *("backends", "-b", "--backend", "backends"),
        multiple=True,
        says="Use this backend: a name, a glob or a file. Repeat it for more.",
    ),
    click.option(
        *("-n", "--size", "sizes"),
        multiple=True,
        metavar="N",
        help="Use this size, or a glob over a case's sizes. Repeat it for more.",
    ),
    folder_options,
)
"""They choose cases, backends and sizes, the same for every verb; each may be given several times."""


def given_options(context: click.Context) -> list[str]:
    """The options that the command line has, by their first names."""
    return [
        option.opts[0]
        for option in context.command.params
        if option.name and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    ]


def selection(asked: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """The cases, backends and sizes that the user chose, by option, for a command that is suggested."""
    return {"-c": asked["cases"], "-b": asked["backends"], "-n": asked["sizes"]}


device_option = click.option(
    "--device", metavar="NAME", default="cpu", show_default=True, help="Compute on this device, for example cuda."
)

scripts_option = click.option(
    "--scripts",
    type=PATH,
    metavar="DIR",
    help="With --variants: write to DIR a program for each difference, which imports only the library.",
)

worker_options = combined(
    click.option("--seed", type=SEED, default=0, show_default=True, help="Make the inputs with this seed."),
    click.option(
        "--threads",
        metavar="N[,N...]",
        default="1",
        show_default=True,
        callback=quantity(counts_of),
        help="Allow every library this many threads; 1,2 also measures libraries that use threads with 2.",
    ),
    click.option(
        "--dtype",
        metavar="NAME",
        default="",
        help="Compute in this type: float64, float32, bfloat16 or float16. Results are judged by its rounding. Default:"
        " float64, or float32 to measure on a device built for it.",
    ),
    click.option(
        "--device",
        metavar="NAME[,NAME...]",
        default="cpu",
        show_default=True,
        help="Compute on this device, for example cuda; cpu,cuda measures libraries on both in turns."
        " `run` without -n then adds sizes up to 10^7 numbers.",
    ),
    click.option(
        "--transfers",
        type=click.Choice(["outside", "inside"]),
        default="outside",
        show_default=True,
        help="Time copies to and from the device too (inside), or not.",
    ),
    click.option(
        "--timeout",
        type=SECONDS,
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="End a step after this time.",
    ),
    click.option(
        "--mem-limit",
        metavar="SIZE",
        callback=quantity(bytes_of),
        help="End a worker that exceeds this memory with its children, for example 4G; default: 80% of free memory.",
    ),
    click.option("--on", metavar="dask://HOST:PORT", help="Run on the hosts of this Dask cluster, case by case."),
    click.option(
        "--allow-nothing",
        is_flag=True,
        help="Exit with 0 although nothing was checked with a selected backend, or of a selected case.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the run as JSON instead of a table."),
)
"""Of the verbs that start workers."""

library_option = name_option(
    *("backends", "-b", "--backend"),
    says="Call the library by this backend: a name or a file. Default: the backend of LIB.",
)

environment_options = combined(
    click.option("--wheels", type=PATH, metavar="DIR", help="Use the wheels in DIR."),
    click.option("--with", "extras", multiple=True, metavar="REQ", help="Also install REQ, for example 'numpy<2.3'."),
    click.option(
        "--installer", type=click.Choice(["uv", "pip"]), help="Install with this. Default: uv if it is there."
    ),
    click.option(
        "--keep",
        metavar="SIZE",
        default="10G",
        show_default=True,
        callback=quantity(bytes_of),
        help="Keep environments for later, up to this size; 1K keeps none.",
    ),
)
"""Of the verbs that install releases of a library."""

RESULT_FILES = {
    "junit": "the results to FILE as JUnit XML.",
    "sarif": "wrong results to FILE as SARIF: annotations on GitHub.",
    "codequality": "wrong results to FILE as annotations for GitLab.",
    "md": "a summary to FILE as Markdown.",
}
"""Of a verb whose results CI reads: format -> what its option, of that name, also writes."""

result_options = combined(
    *(
        click.option(f"--{form}", type=PATH, metavar="FILE", help=f"Also write {what}")
        for form, what in RESULT_FILES.items()
    )
)

PROJECT_FILE = "pyproject.toml"
ARGUMENTS = {"at", "arg", "wrt", "inputs", "part"}
OF_FUNCTION = ARGUMENTS | {"branchwise", "constants"}
REPLACES: Sequence[tuple[set[str], set[str]]] = (
    ({"quick"}, {"rigorous"}),
    ({"rigorous"}, {"quick"}),
    ({"as_json"}, {"markdown"}),
    ({"markdown"}, {"as_json"}),
    ({"at"}, {"inputs"}),
    ({"inputs"}, {"at"}),
    ({"function"}, ARGUMENTS | {"cases", "suites"}),
    ({"cases", "suites"}, OF_FUNCTION | {"function"}),
)
"""Parameters on the command line, and the defaults that they contradict."""


def defaults_of(command: click.Command, name: str, commands: Collection[str], words: Sequence[str]) -> dict[str, Any]:
    """Parameter -> default value of this command, without any that the command line, `words`, contradicts.

    A key is the long name of an option without its dashes.

    Raises BadFile if the file cannot be used, and UsageError (also as UnknownName) for a key or a value that does not
    fit.
    """
    options = {text: option for option in command.params for text in (*option.opts, *option.secondary_opts)}
    if not any(text.startswith("--") for text in options):
        return {}  # and nothing is imported: a shell waits for its completion
    from adbench.catalog.source import KINDS, project_table  # without numpy, whose threads some commands limit first

    file, table = project_table(Path.cwd())
    if unknown := [key for key in table if key not in (*KINDS, *commands)]:
        raise UnknownName("command", unknown[0], commands, of=f"{file}: adbench")
    names = {text[2:]: option for text, option in options.items() if text.startswith("--") and text in option.opts}
    found: dict[str, Any] = {}
    for key, value in table.get(name, {}).items():
        if key not in names:
            raise UnknownName("option", key, names, of=f"{file}: adbench {name} --help")
        option = names[key]
        assert isinstance(option, click.Option)
        found[str(option.name)] = _value(option, value, f"{file}: [tool.adbench.{name}] {key}")
    given = {options[text].name for word in words for text in (word.partition("=")[0], word[:2]) if text in options}
    replaced = {key for keys, others in REPLACES if keys & given for key in others}
    if "function" not in given | found.keys():
        replaced |= OF_FUNCTION  # they ask for a function
    if "resume" in given:  # it keeps the settings of the interrupted run
        replaced |= found.keys()
    return {key: value for key, value in found.items() if key not in replaced}


def is_default(context: click.Context, parameter: click.Parameter) -> bool:
    """Whether the value of this parameter is from the file."""
    return context.get_parameter_source(parameter.name or "") is ParameterSource.DEFAULT_MAP


def _value(option: click.Option, value: Any, where: str) -> Any:
    """The value as click takes it: texts, which it converts as it does on the command line, or a flag."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise UsageError(f"{where} = {value!r}: this option takes no value; write true or false")
        return value
    values = value if isinstance(value, list) else [value]
    if any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in values):
        raise UsageError(f"{where} = {value!r}: write a text or a number{', or a list of them' * option.multiple}")
    if option.multiple:
        return [str(one) for one in values]
    if isinstance(value, list):
        raise UsageError(f"{where} = {value!r}: this option has one value; write it without brackets")
    return str(value)
