"""Read a table of inflections without bad rows, for the scripts of `tools/`."""

from pathlib import Path

from onmt_entmax.cli.split_files import SplitFile
from onmt_entmax.cli.table_bad_rows import refuse_bad_rows
from onmt_entmax.cli.tables import read_tables
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, SOURCE, TARGET


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a table.

    Its columns are guessed. If the guess is unclear, they are UniMorph's: lemma, form and tags.

    Raises:
        UserError: a row cannot be read.
    """
    characters = {SOURCE: "", TARGET: ""}  # no separators
    (table,), _ = read_tables(
        [SplitFile("table", path)], separators=characters, fallback=INFLECTION.columns
    )
    refuse_bad_rows([table])
    return table.rows
