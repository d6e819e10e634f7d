"""Find the layout of a predicted table: the gold columns, and those of `predict --details`."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines
from onmt_entmax.report.gold_tables import Gold
from onmt_entmax.strings.delimiters import guess_delimiter
from onmt_entmax.strings.details import DETAILS, has_details
from onmt_entmax.strings.guessing import SAMPLE, guess_layout
from onmt_entmax.strings.misplaced_tags import refuse_misplaced_tags
from onmt_entmax.strings.tables import Layout, readable_cells
from onmt_entmax.strings.task import LEFT_OUT, TARGET


class PredictedLayout(NamedTuple):
    """The layout of a predicted table."""

    layout: Layout
    detailed: bool
    """Whether it ends with `DETAILS`"""


def predicted_layout(path: Path, gold: Gold) -> PredictedLayout:
    """Return the layout of a predicted table.

    Args:
        path: path of the table.
        gold: the gold targets, with the columns of their tables.

    Raises:
        UserError: the columns are unclear, or there is no target.
    """
    sample = [line for line in islice(read_lines(path), SAMPLE) if line.strip()]
    unnamed = Layout((), guess_delimiter(sample))
    table = readable_cells(unnamed, sample)
    if not has_details(table):
        return PredictedLayout(_layout_in_gold_columns(path, sample, gold), detailed=False)
    # The gold columns are found without the details, which are put behind them again.
    before_details = [unnamed.text(cells[: -len(DETAILS)]) for cells in table]
    layout = _layout_in_gold_columns(path, before_details, gold)
    with_details = replace(
        layout,
        columns=(*layout.columns, *[LEFT_OUT] * len(DETAILS)),
        heading=table[0] if layout.heading else (),
        delimiter=unnamed.delimiter,  # fewer columns may look as if divided by another one
    )
    return PredictedLayout(with_details, detailed=True)


def _layout_in_gold_columns(path: Path, sample: Sequence[str], gold: Gold) -> Layout:
    """Return the layout of a table without details.

    Args:
        path: path of the table, for errors.
        sample: its first lines.
        gold: the gold targets, with the columns of their tables.

    Raises:
        UserError: the columns are unclear, or there is no target.
    """
    reading = gold.reading
    task = replace(reading.task, columns=gold.columns, heading=gold.heading_for_predictions)
    layout = guess_layout(sample, str(path), task=task)
    refuse_misplaced_tags(sample, layout, reading.task, known_tags=reading.tags, name=str(path))
    if TARGET not in layout.columns:
        raise UserError(f"{path}: {layout}; no targets, hence no predictions")
    return layout
