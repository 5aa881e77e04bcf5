"""For mkdocs: replace links to repository files and examples, which are not pages, by their paths as code."""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """The page's text without links that leave the site."""
    folder = posixpath.dirname(page.file.src_uri)

    def replaced(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, match["target"]))
        inside = path.removeprefix("docs/")
        if (
            path.startswith("docs/")
            and files.get_file_from_path(inside)
            and not inside.startswith(("examples/", "runs/"))
        ):
            return match.group()
        text = match["text"]
        return text if text.strip("`") in path else f"{text} (`{path}`)"

    return LINK.sub(replaced, markdown)
