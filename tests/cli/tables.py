"""Files of lines, such as tables, for tests of commands that read them."""

from pathlib import Path


def write_table(path: Path, *rows: str) -> Path:
    """Write a table of these rows, in which columns are already divided; return its path."""
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path
