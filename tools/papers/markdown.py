"""Tables in Markdown."""

from __future__ import annotations

from tools.papers.text_table import Table


def markdown_table(table: Table) -> str:
    """Return a table in Markdown: the first column is left-aligned, the others right-aligned."""
    head, *rows = ([cell.replace("|", "\\|") for cell in row] for row in (table.head, *table.rows))
    alignment = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, alignment, *rows))
