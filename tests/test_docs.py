"""Every page does what it says: its code runs, its output is what is printed, its links lead somewhere.

    <!-- not run: reason -->           before a python block that is not meant to run
    <!-- output -->                    before a text block: exactly what the python block above it prints
    <!-- source: a/file.py name -->    before a python block: exactly that function or class of that file
    <!-- file: name -->                before any block: it is written as this file into the page's folder; a path of
                                       this repository says that it is that file
    <!-- runs --> or <!-- runs: 1 -->  before a sh block: its lines run there in turn, and end with this exit code, or 0
    <!-- output has -->                before a text block: lines that the sh block above it prints, in this order
    # continues                        first line of a python block that goes on in the names of the one above

`python -m tests.test_docs` brings the quoted outputs and sources of all pages up to date.
"""

import contextlib
import importlib
import inspect
import io
import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from adbench.cli import cli

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "node_modules" not in p.parts),
]

ELSEWHERE = {
    "docs/how-to/write-a-case.md": "the file it shows is compared and run in tests/backends/test_page.py",
    "docs/how-to/write-a-backend.md": "the file it shows is compared and run in tests/backends/test_page.py",
    "docs/how-to/write-cpp.md": "the files it shows are compared and run in tests/backends/test_native_calling.py",
}
"""Pages whose code is tested elsewhere, and where."""

SHELL_NOTES = ("file: ", "runs", "output has")

FENCE = re.compile(r"(?:^<!-- (?P<note>[^\n]*?) -->\n\s*)?^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.M | re.S)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is that of its first line of code, `span` the place of the code in the page."""

    page: str
    line: int
    note: str
    language: str
    code: str
    span: tuple[int, int]


def blocks_of(page: str, text: str) -> list[Block]:
    return [
        Block(page, text.count("\n", 0, m.start("code")) + 1, m["note"] or "", m["language"], m["code"], m.span("code"))
        for m in FENCE.finditer(text)
    ]


def source_of(note: str) -> str:
    """The code of `source: a/file.py name`."""
    file, name = note.removeprefix("source: ").split()
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    return inspect.getsource(getattr(module, name))


def chains(blocks: list[Block]) -> Iterator[list[Block]]:
    """Blocks that share their names: a python block, its output, and the blocks that continue it."""
    chain: list[Block] = []
    for block in blocks:
        runs = block.language == "python" and not block.note.startswith(("source: ", "file: "))
        if runs and not block.code.startswith("# continues"):
            if chain:
                yield chain
            chain = []
        if runs or block.note == "output":
            chain.append(block)
    if chain:
        yield chain


def expected(blocks: list[Block]) -> Iterator[tuple[Block, str]]:
    """Runs the blocks of a chain. Each block that quotes an output, with what it should be."""
    names: dict[str, object] = {"__name__": "page"}
    printed = None
    for block in blocks:
        if block.note == "output":
            assert printed is not None, f"{block.page}:{block.line}: no block above that could have printed this"
            yield block, printed
        elif block.note.startswith("not run"):
            reason = block.note.removeprefix("not run").lstrip(":").strip()
            assert reason, f"{block.page}:{block.line}: not run, but why? Write <!-- not run: reason -->"
            printed = None
        else:
            assert not block.note, f"{block.page}:{block.line}: unknown note {block.note!r}; see tests/test_docs.py"
            with contextlib.redirect_stdout(io.StringIO()) as out:
                # The empty lines in front make tracebacks show the line of the page.
                exec(compile("\n" * (block.line - 1) + block.code, block.page, "exec"), names)
            printed = out.getvalue()


def check(blocks: list[Block]) -> None:
    """Runs a chain and compares what is quoted."""
    for block, text in expected(blocks):
        where = f"{block.page}:{block.line}"
        assert text == block.code, f"{where}: prints something else; `python -m tests.test_docs` writes it\n{text}"


def run_commands(blocks: list[Block], folder: Path) -> None:
    """Writes the files of a page, runs its commands, and looks for what it says that they print."""
    printed = ""
    for block in blocks:
        where = f"{block.page}:{block.line}"
        kind, _, rest = block.note.partition(":")
        if kind == "file":
            path = ROOT / rest.strip()
            if path.is_file():
                assert path.read_text("utf-8") == block.code, (
                    f"{where} has changed; `python -m tests.test_docs` writes it"
                )
            else:
                (folder / rest.strip()).write_text(block.code, "utf-8")
        elif kind == "runs":
            printed = ""
            for line in block.code.splitlines():
                command, *words = shlex.split(line, comments=True)
                assert command == "adbench", f"{where}: only adbench is run, not {command}"
                done = subprocess.run(
                    [sys.executable, "-m", "adbench", *words], cwd=folder, capture_output=True, text=True, timeout=280
                )
                assert done.returncode == int(rest or 0), f"{where}: {line}\n{done.stdout}{done.stderr}"
                printed += done.stdout
        else:
            lines = iter(printed.splitlines())
            for wanted in block.code.splitlines():
                assert any(wanted in line for line in lines), f"{where}: not printed, or not in this order: {wanted}"


def links(text: str) -> list[str]:
    """Targets of the relative links outside of code."""
    prose = re.sub(r"`[^`\n]*`(?!\])", "", FENCE.sub("", text))
    found = [m["target"] for m in LINK.finditer(prose)]
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(text: str) -> set[str]:
    """The names that a page's headings have as targets of links."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path, text: str) -> list[str]:
    dead = []
    for target in links(text):
        file, _, anchor = target.partition("#")
        path = page.parent / file if file else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path.read_text("utf-8"))):
            dead.append(target)
    return dead


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


ALL = {named(page): blocks_of(named(page), page.read_text("utf-8")) for page in PAGES}
CHAINS = [chain for page, blocks in ALL.items() if page not in ELSEWHERE for chain in chains(blocks)]
SHELL = {page: [block for block in blocks if block.note.startswith(SHELL_NOTES)] for page, blocks in ALL.items()}
QUOTES = [block for blocks in ALL.values() for block in blocks if block.note.startswith("source: ")]


@pytest.mark.usefixtures("own_defaults")
@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: f"{chain[0].page}:{chain[0].line}")
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(chain):
    check(chain)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page, blocks in SHELL.items() if blocks])
def test_the_commands_of_a_page_run_and_print_what_it_says(page, tmp_path):
    run_commands(SHELL[page], tmp_path)


@pytest.mark.parametrize("block", QUOTES, ids=lambda block: f"{block.page}:{block.line}")
def test_quoted_source_is_the_source(block):
    where = f"{block.page}:{block.line}: {block.note}"
    assert block.code == source_of(block.note), f"{where} has changed; `python -m tests.test_docs` writes it"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page):
    assert dead_links(page, page.read_text("utf-8")) == []


def test_pages_tested_elsewhere_exist_and_are_tested_there():
    tests = "".join(path.read_text("utf-8") for path in sorted((ROOT / "tests/backends").glob("test_*.py")))
    assert all((ROOT / page).exists() and Path(page).name in tests for page in ELSEWHERE)


def test_the_workflows_to_copy_use_inputs_and_options_that_exist():
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    pages = "".join(
        (ROOT / page).read_text("utf-8") for page in ("docs/how-to/run-in-ci.md", "docs/examples/gradients.yml")
    )
    used = re.findall(r"uses: OWNER/adbench@.*\n((?: .*\n)*)", pages)
    given = {name for step in used for name in re.findall(r"^ +([\w-]+): \S", step.partition("with:")[2], re.M)}
    assert {"backends", "install"} <= given <= {*action["inputs"], "uses", "name", "if", "path"}
    table = re.findall(r"^\| `([\w-]+)` \|", pages, re.M)
    assert table == list(action["inputs"])
    jobs = yaml.safe_load((ROOT / "docs/examples/gitlab-ci.yml").read_text("utf-8"))
    lines = [line for job in jobs.values() for line in job.get("script", ())]
    ours = [words[1:] for words in map(str.split, lines) if words[0] == "adbench"]
    assert [words[0] for words in ours] == ["check", "run", "run", "compare"]
    for verb, *words in ours:
        cli.commands[verb].make_context(verb, words)  # raises for an option that there is not


@pytest.mark.parametrize("example", sorted((ROOT / "docs/examples").glob("*.py")), ids=lambda path: path.name)
def test_every_example_is_tested_somewhere(example):
    tests = [path for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)]
    name = rf"\b{example.stem}\b"
    assert any(re.search(name, path.read_text("utf-8")) for path in tests), f"no test names {example.name}"


# The checks themselves fail where they should.


def checked(text: str) -> None:
    for chain in chains(blocks_of("page.md", text)):
        check(chain)


def test_a_broken_snippet_fails_with_the_line_of_the_page():
    with pytest.raises(ZeroDivisionError) as raised:
        checked("# Title\n\n```python\nx = 1\ny = x / 0\n```\n")
    assert raised.traceback[-1].lineno + 1 == 5


def test_blocks_share_no_names_unless_they_say_so():
    checked("```python\nx = 1\n```\n```python\n# continues\nassert x == 1\n```\n")
    with pytest.raises(NameError):
        checked("```python\nx = 1\n```\n```python\nassert x == 1\n```\n")


def test_output_is_compared_to_the_last_blank():
    checked("```python\nprint(1)\n```\nprints\n\n<!-- output -->\n```text\n1\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md:7: prints something else"):
        checked("```python\nprint(1)\n```\n\n<!-- output -->\n```text\n1 \n```\n")
    with pytest.raises(AssertionError, match="no block above"):
        checked("<!-- output -->\n```text\n1\n```\n")


def test_a_block_is_left_out_for_a_reason_only():
    checked("<!-- not run: needs a GPU -->\n```python\n1 / 0\n```\n")
    for note in ("not run", "not run:", "notrun: because"):
        with pytest.raises(AssertionError, match=r"why\?|unknown note"):
            checked(f"<!-- {note} -->\n```python\n1 / 0\n```\n")


def test_commands_that_fail_or_print_something_else_are_found(tmp_path):
    def run(text):
        run_commands(blocks_of("page.md", text), tmp_path)

    ok = "<!-- runs -->\n```sh\nadbench --version  # a remark\n```\n"
    run(ok + "<!-- output has -->\n```text\nadbench \n```\n")
    with pytest.raises(AssertionError, match=r"page\.md:7: not printed, or not in this order: nothing such"):
        run(ok + "<!-- output has -->\n```text\nadbench \nnothing such\n```\n".replace("adbench \n", ""))
    with pytest.raises(AssertionError, match="adbench frobnicate"):
        run("<!-- runs -->\n```sh\nadbench frobnicate\n```\n")
    run("<!-- runs: 2 -->\n```sh\nadbench frobnicate\n```\n")


def test_dead_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    text = "# One idea, first\n[a](page.md) [b](#one-idea-first) [c](gone.md) [d](#two) [e](https://x.y) `[f](g)`\n"
    page.write_text(text, "utf-8")
    assert dead_links(page, text) == ["gone.md", "#two"]


def refresh(page: Path) -> None:
    """Writes the quoted outputs and sources of a page again."""
    text = page.read_text("utf-8")
    blocks = blocks_of(named(page), text)
    changes = [(block, source_of(block.note)) for block in blocks if block.note.startswith("source: ")]
    changes += itertools.chain.from_iterable(map(expected, chains(blocks)))
    changes += [
        (block, path.read_text("utf-8"))
        for block in blocks
        if block.note.startswith("file: ") and (path := ROOT / block.note.removeprefix("file: ")).is_file()
    ]
    for block, code in sorted(changes, key=lambda change: change[0].line, reverse=True):
        text = text[: block.span[0]] + code + text[block.span[1] :]
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    for each in PAGES:
        if named(each) not in ELSEWHERE:
            refresh(each)
