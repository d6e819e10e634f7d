"""Print the rows of results of `gpu.py`.

A row with a false `ok` has failed. If something was raised, its `error` is a text.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from tools.bench.attention import printed
from tools.bench.gpu_device import Result
from tools.bench.gpu_sizes import Size

PRINTED_CASES = 10  # decoded words that differ from the CPU's
_UNPRINTED = ("cases", "ok")  # columns of a table


def print_checks(title: str, checks: Sequence[Result]) -> None:
    """Print how many checks failed, and each of these."""
    wrong = [check for check in checks if not check["ok"]]
    errors = [check["error"] for check in _measured(checks)]
    worst = max(errors, default=0.0)
    print(f"{title}: {len(checks)} checks, {len(wrong)} failed, largest error {worst:.1e}")
    for check in wrong:
        print("  FAILED", check)


def print_steps(size: Size, rows: Sequence[Result]) -> None:
    """Print the steps of a size, with their ratios to stock softmax and to ours with graphs."""
    title = f"step {size.network.name}, {size.pairs} pairs"
    print(f"\n{title:34} {'ms':>8} {'/ stock':>9} {'/ alpha 1':>9} {'no waits':>9}  support  GB")
    steps = _measured(rows)
    times = {row["contender"]: row["ms"] for row in steps}
    stock = times.get("stock softmax", math.nan)
    softmax = times.get("graph 1", math.nan)
    for row in steps:
        print(
            f"  {row['contender']:32} {row['ms']:8.2f} {row['ms'] / stock:9.3f}"
            f" {row['ms'] / softmax:9.3f} {row.get('unwaited_ms', '')!s:>9}"
            f"  {row.get('support', '')!s:>7}  {row.get('gb', '')}"
        )
    _print_errors(rows)


def print_table(title: str, rows: Sequence[Result]) -> None:
    """Print rows in columns, and below each the words that were decoded differently."""
    if not rows:
        return
    print("\n" + title)
    measured = _measured(rows)
    names = dict.fromkeys(name for row in measured for name in row if name not in _UNPRINTED)
    widths = {
        name: max(len(name), *(len(str(row.get(name, ""))) for row in measured)) for name in names
    }
    print("  " + "  ".join(f"{name:>{width}}" for name, width in widths.items()))
    for row in measured:
        cells = [f"{row.get(name, '')!s:>{width}}" for name, width in widths.items()]
        failed = () if row.get("ok", True) else ("FAILED",)
        print("  " + "  ".join([*cells, *failed]))
        for case in row.get("cases", ())[:PRINTED_CASES]:
            print(f"    {case}")
    _print_errors(rows)


def print_attention(rows: Sequence[Result]) -> None:
    """Print the shapes of attention with the times of all contenders."""
    deque(printed(_measured(rows)), maxlen=0)
    _print_errors(rows)


def _measured(rows: Sequence[Result]) -> list[Result]:
    """Return the rows that are not errors."""
    return [row for row in rows if not isinstance(row.get("error"), str)]


def _print_errors(rows: Sequence[Result]) -> None:
    """Print the rows that are errors."""
    for row in rows:
        if isinstance(row.get("error"), str):
            print("  FAILED", row)
