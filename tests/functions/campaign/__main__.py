"""`python -m tests.functions.campaign [words of a kind or name]`: the outcomes by kind, and every false one."""

import sys
import time
import warnings
from collections import Counter

from tests.functions.campaign.all_rows import KINDS, ROWS
from tests.functions.campaign.examine import fault, outcome

WORDS = ("right", "verified", "blind", "wrong", "refused")
SLOWEST = 5


def main(words: list[str]) -> None:
    warnings.simplefilter("ignore")
    chosen = [row for row in ROWS if all(word in str(row) for word in words)]
    faults, start = [], time.perf_counter()
    seconds: dict[str, float] = {}
    print(f"{'kind':48}{'rows':>6}" + "".join(f"{word:>10}" for word in WORDS) + f"{'false':>8}{'seconds':>9}")
    total: Counter[str] = Counter()
    for kind in KINDS:
        before, counts, ours = time.perf_counter(), Counter(), [row for row in chosen if row.kind == kind]
        for row in ours:
            since = time.perf_counter()
            try:
                found = outcome(row)
                reason = fault(row)
            except Exception as error:
                counts["crash"] += 1
                faults.append(("crash", row, f"{type(error).__name__}: {str(error)[:300]}"))
                continue
            seconds[str(row)] = time.perf_counter() - since
            counts[found.word] += 1
            counts["false"] += reason.startswith("false")
            if reason or found.word == "blind":
                told = f"{found.agree:.1f} digits agree, the expected ones to {found.expected:.1f}; {found.sentence}"
                faults.append((reason or "blind", row, told))
        if ours:
            total += counts
            shown = "".join(f"{counts[word] or '-':>10}" for word in WORDS)
            print(
                f"{kind:48}{len(ours):6}{shown}{counts['false'] or '-':>8}{time.perf_counter() - before:9.1f}",
                flush=True,
            )
    shown = "".join(f"{total[word] or '-':>10}" for word in WORDS)
    print(f"{'all':48}{len(chosen):6}{shown}{total['false'] or '-':>8}{time.perf_counter() - start:9.1f}")
    for name in sorted(seconds, key=seconds.__getitem__, reverse=True)[:SLOWEST]:
        print(f"  {seconds[name]:6.1f} s  {name}")
    for reason, row, told in sorted(faults, key=lambda one: one[0]):
        print(f"\n{reason}: {row}\n    {' '.join(told.split())[:400]}")


if __name__ == "__main__":
    main(sys.argv[1:])
