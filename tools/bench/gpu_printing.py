"""How `gpu.py` prints the rows of its parts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tools.bench.gpu_device import Result
from tools.bench.gpu_sizes import Size

PRINTED_CASES = 10  # of those that differ from the CPU's


def print_checks(title: str, checks: Sequence[Result]) -> None:
    """Print how many checks failed, and each of these."""
    wrong = [check for check in checks if not check["ok"]]
    # The error of a check that ended early is a text.
    errors = [check["error"] for check in checks if isinstance(check["error"], float)]
    worst = max(errors, default=0.0)
    print(f"{title}: {len(checks)} checks, {len(wrong)} failed, largest error {worst:.1e}")
    for check in wrong:
        print("  FAILED", check)


def print_steps(size: Size, rows: Sequence[Result]) -> None:
    """Print the steps of a size, with their ratios to stock softmax and to ours with graphs."""
    title = f"step {size.network.name}, {size.pairs} pairs"
    print(f"\n{title:34} {'ms':>8} {'/ stock':>9} {'/ alpha 1':>9} {'no waits':>9}  support  GB")
    steps = [row for row in rows if "ms" in row]
    times = {row["contender"]: row["ms"] for row in steps}
    stock = times.get("stock softmax", math.nan)
    softmax = times.get("graph 1", math.nan)
    for row in steps:
        print(
            f"  {row['contender']:32} {row['ms']:8.2f} {row['ms'] / stock:9.3f}"
            f" {row['ms'] / softmax:9.3f} {row.get('unwaited_ms', '')!s:>9}"
            f"  {row.get('support', '')!s:>7}  {row.get('gb', '')}"
        )


def print_table(title: str, rows: Sequence[Result]) -> None:
    """Print rows in columns, and below each the cases that differ."""
    if not rows:
        return
    print("\n" + title)
    names = [name for name in rows[0] if name not in ("cases", "ok")]
    widths = [max(len(name), *(len(str(row.get(name, ""))) for row in rows)) for name in names]
    columns = list(zip(names, widths, strict=True))
    print("  " + "  ".join(f"{name:>{width}}" for name, width in columns))
    for row in rows:
        print("  " + "  ".join(f"{row.get(name, '')!s:>{width}}" for name, width in columns))
        for case in row.get("cases", ())[:PRINTED_CASES]:
            print(f"    {case}")
