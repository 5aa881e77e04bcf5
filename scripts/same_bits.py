"""Repeat the gradients of the matrix of same bits, and write the result for `adbench publish`."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from adbench.findings.same_bits.bits_matrix import bits_matrix

if __name__ == "__main__":
    found = bits_matrix(told=lambda library, operation: print(library, operation, file=sys.stderr))
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/runs/same-bits.json.gz")
    text = json.dumps(found.to_plain(), indent=1, allow_nan=False) + "\n"
    file.write_bytes(gzip.compress(text.encode(), mtime=0))
    for row in found.refused:
        print(": ".join(row))
    print(f"{len(found.cells)} cells: {file}")
