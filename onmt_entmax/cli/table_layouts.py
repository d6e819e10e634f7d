"""The columns of the tables that one `prepare` or `audit` reads.

The first table decides the columns. The others have the same ones, in any order.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from onmt_entmax.cli.sampled_tables import Sample, SampledTable, may_lack_targets
from onmt_entmax.cli.shared_task import heading_to_record, task_of
from onmt_entmax.cli.split_files import SplitFile
from onmt_entmax.errors import UserError
from onmt_entmax.strings.delimiters import guess_tag_separator
from onmt_entmax.strings.guessing import guess_layout
from onmt_entmax.strings.misplaced_tags import refuse_misplaced_tags
from onmt_entmax.strings.own_headings import has_names_of
from onmt_entmax.strings.shared_headings import shared_heading
from onmt_entmax.strings.tables import ColumnsError, Layout, TableError
from onmt_entmax.strings.task import LEFT_OUT, SOURCE, TAGS, TARGET, StringTask


def sample_tables(
    files: Sequence[SplitFile],
    columns: Sequence[str],
    fallback: Sequence[str],
    model_task: StringTask | None = None,
) -> list[SampledTable]:
    """Read the first lines of tables, and find their columns.

    Args:
        files: files of the tables; the training tables come first.
        columns: columns of all tables; empty: a heading names them, or they are guessed.
        fallback: columns of the first table to assume if a guess is unclear.
        model_task: task of a model that will read the tables, if there is one.

    Raises:
        UserError: the columns of a table are unclear, or are not those of the first table.
    """
    first_file, *other_files = files
    first = Sample.read(first_file)
    if model_task is None:
        layout = guess_layout(first.lines, first.name, columns, fallback=fallback)
    else:
        layout = _layout_for_model(first, columns, fallback, model_task)
    others = [Sample.read(file) for file in other_files]
    if not layout.heading:
        other_tables = [sample.lines for sample in others]
        layout = replace(layout, heading=shared_heading(layout, first.lines, other_tables))
    tables = [SampledTable.of(first, layout)]
    for sample in others:
        tables.append(_table_like(tables, sample, columns))
    return tables


def _layout_for_model(
    sample: Sample, columns: Sequence[str], fallback: Sequence[str], task: StringTask
) -> Layout:
    """Return the layout of a table that a model will read.

    A heading is read as `predict` reads it. Without one, tags show the order of the columns, unless
    the model was trained on tables with the target before the source.

    Args:
        sample: first lines of the table.
        columns: columns that the user names.
        fallback: columns to assume if the columns cannot be guessed.
        task: task of the model.

    Raises:
        UserError: the columns are unclear.
    """
    with suppress(ColumnsError):
        layout = guess_layout(sample.lines, sample.name, columns, task=task)
        if columns or layout.heading:
            return layout
    if task.columns.index(TARGET) < task.columns.index(SOURCE):
        return guess_layout(sample.lines, sample.name, task=task)
    return guess_layout(sample.lines, sample.name, fallback=fallback)


def _table_like(
    tables: Sequence[SampledTable], sample: Sample, columns: Sequence[str]
) -> SampledTable:
    """Return a table after the first one, with its columns.

    Args:
        tables: the tables before it.
        sample: first lines of the table.
        columns: columns of all tables, if the user named them.

    Raises:
        UserError: its columns are unclear or are not those of the first table, or it lacks tags,
            or targets outside the test set.
    """
    first = tables[0]
    try:
        layout = _layout_like(tables, sample, columns)
        _refuse_misplaced_tags(first, sample, layout)
    except ColumnsError as error:  # without its advice on --columns, which is about all tables
        raise ColumnsError(error.problem, option="") from None
    _refuse_missing_columns(first, sample, layout)
    return SampledTable.of(sample, layout)


def _layout_like(tables: Sequence[SampledTable], sample: Sample, columns: Sequence[str]) -> Layout:
    """Return the layout of a table that has the columns of the first one; targets may be missing.

    Its heading or its tags show the order of the columns; without either, it is the order of the
    first table. Names in headings of earlier tables count before usual names.

    Args:
        tables: the tables before it.
        sample: first lines of the table.
        columns: columns of all tables, if the user named them.

    Raises:
        UserError: the columns are unclear, or are not those of the first table.
    """
    task = replace(task_of(tables[0], separators={}), heading=heading_to_record(tables))
    try:
        layout = guess_layout(sample.lines, sample.name, task=task)
    except ColumnsError:  # such as a table with a further column
        guessed = None if columns else _guess_like(task, sample)
        if guessed is None:
            raise
        return guessed
    if columns or has_names_of(task.heading, layout.heading):
        return replace(layout, guessed=tables[0].layout.guessed)
    return _guess_like(task, sample) or layout


def _guess_like(task: StringTask, sample: Sample) -> Layout | None:
    """Guess the layout of a table from its lines alone.

    Returns:
        The layout; None if the task has other columns, or if neither a heading nor tags tell which
        of two columns is the source.
    """
    with suppress(TableError):
        guessed = guess_layout(sample.lines, sample.name)
        is_sure = bool(guessed.heading) or TAGS in guessed.columns
        if is_sure and {*guessed.columns, LEFT_OUT} == {*task.columns, LEFT_OUT}:
            return guessed
    return None


def _refuse_misplaced_tags(first: SampledTable, sample: Sample, layout: Layout) -> None:
    """Refuse a table without a heading that has the tags of the first table in another column.

    Args:
        first: the first table.
        sample: first lines of the other table.
        layout: layout of the other table.

    Raises:
        ColumnsError: the tags are in another column.
    """
    cells = first.cells.get(TAGS, ())
    task = task_of(first, separators={TAGS: guess_tag_separator(cells)})
    tags = {tag for cell in cells for tag in task.tags_of(cell)}
    refuse_misplaced_tags(sample.lines, layout, task, known_tags=tags, name=sample.name)


def _refuse_missing_columns(first: SampledTable, sample: Sample, layout: Layout) -> None:
    """Refuse a table without tags or targets that the first table has.

    Args:
        first: the first table.
        sample: first lines of the other table.
        layout: layout of the other table.

    Raises:
        UserError: it has no tags, or no targets outside the test set.
    """
    needed = {TAGS} if may_lack_targets(sample.file) else {TARGET, TAGS}
    missing = (needed & {*first.layout.columns}) - {*layout.columns}
    if missing:
        column = max(missing)  # the target, if both are missing
        plural = column if column.endswith("s") else f"{column}s"
        names = ", ".join(first.layout.columns)
        raise UserError(f"{sample.name}: {layout}; no {plural}, but {first.file.path} has {names}")
