"""A handler of any exception, or of none by name, says beside it why: otherwise it hides faults of ours."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ANY = {"Exception", "BaseException"}


def unexplained(source: str) -> Iterator[int]:
    """Lines that catch any exception, raise none and have no comment."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler):
            caught = set() if node.type is None else {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)}
            is_any = not node.type or caught & ANY
            raises = isinstance(node.body[-1], ast.Raise)
            if is_any and not raises and "#" not in lines[node.lineno - 1]:
                yield node.lineno
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "suppress":
            names = {n.id for a in node.args for n in ast.walk(a) if isinstance(n, ast.Name)}
            if names & ANY and "#" not in lines[node.lineno - 1]:
                yield node.lineno


def test_a_handler_of_any_exception_gives_its_reason() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for folder in ("adbench", "backends", "scripts")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in unexplained(path.read_text(encoding="utf-8"))
    ]
    assert not found, "name the exceptions, or give the reason in a comment: " + ", ".join(found)


def test_what_counts_as_a_reason() -> None:
    hidden = "try:\n    f()\nexcept Exception:\n    pass\n"
    assert list(unexplained(hidden)) == [3]
    assert list(unexplained(hidden.replace("Exception:", "Exception:  # f is the user's"))) == []
    assert list(unexplained(hidden.replace("pass", "raise"))) == []
    assert list(unexplained(hidden.replace("Exception", "ValueError"))) == []
    assert list(unexplained(hidden.replace(" Exception", ""))) == [3]
    assert list(unexplained("with suppress(OSError, Exception):\n    f()\n")) == [1]
