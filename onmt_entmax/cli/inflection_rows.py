"""Read one table of inflections, whose rows must all be good; the tools of `tools/` use it."""

from pathlib import Path

from onmt_entmax.cli.split_files import SplitFile
from onmt_entmax.cli.table_bad_rows import refuse_bad_rows
from onmt_entmax.cli.tables import read_tables
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, SOURCE, TARGET


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a table, which has UniMorph's columns if a guess is unclear.

    Raises:
        UserError: a row cannot be read.
    """
    characters = {SOURCE: "", TARGET: ""}  # no separators
    (table,), _ = read_tables(
        [SplitFile("table", path)], separators=characters, fallback=INFLECTION.columns
    )
    refuse_bad_rows([table])
    return table.rows
