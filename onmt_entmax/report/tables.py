"""Tables as text with aligned columns."""

from collections.abc import Sequence

from onmt_entmax.errors import printable


def aligned_table(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return rows of equal length with aligned columns; all but the first `left` at the right.

    Control characters are escaped, since cells such as languages may come from a stranger's table.
    """
    escaped = [[*map(printable, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*escaped, strict=True)]
    lines = []
    for row in escaped:
        pairs = list(zip(row, widths, strict=True))
        cells = [cell.ljust(width) for cell, width in pairs[:left]]
        cells += [cell.rjust(width) for cell, width in pairs[left:]]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
