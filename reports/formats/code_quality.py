"""Wrong derivatives as a code quality report of GitLab, which annotates merge requests with it.

The results are those of SARIF. https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

from adbench.model.record import Run

from . import sarif


def render(run: Run) -> str:
    """The JSON text: an array with an object for each result."""
    return json.dumps(list(map(_issue, sarif.results(run))), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _issue(result: dict[str, Any]) -> dict[str, Any]:
    place = result["locations"][0]["physicalLocation"]
    return {
        "description": result["message"]["text"].replace("\n", " "),
        "check_name": f"adbench/{result['ruleId']}",
        "fingerprint": result["partialFingerprints"]["cell/v1"],
        "severity": {"error": "critical", "warning": "major", "note": "info"}[result["level"]],
        "location": {
            "path": unquote(place["artifactLocation"]["uri"]),
            "lines": {"begin": place["region"]["startLine"]},
        },
    }
