"""Predict tables in windows of rows, and write them to a stream or to files that can be resumed.

`files.continued.Continued` writes a file. After each window it records the counts of all rows so
far. If a prediction is interrupted, a later command with the same `resume_key` continues it there.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from onmt_entmax.cli.checked_tables import CheckedTable
from onmt_entmax.cli.messages import note, warn
from onmt_entmax.cli.output_layout import OutputLayout
from onmt_entmax.cli.prediction_counts import PredictionCounts
from onmt_entmax.cli.query_tables import rows_and_bad_rows
from onmt_entmax.cli.resume_key import resume_key
from onmt_entmax.errors import printable
from onmt_entmax.files import is_stream, replaced_when_done
from onmt_entmax.files.continued import Continued
from onmt_entmax.strings.tables import Row
from onmt_entmax.transducer import Transducer

WINDOW = 2048
"""Rows that are predicted and written together: 32 batches of the default size"""


@dataclass(frozen=True)
class _Prediction:
    """The prediction of one table.

    Attributes:
        table: the table to predict.
        layout: columns of the output.
        transducer: predicts the targets.
        batch_size: queries searched together.
    """

    table: CheckedTable
    layout: OutputLayout
    transducer: Transducer
    batch_size: int

    def windows(self, counts: PredictionCounts) -> Iterator[str]:
        """Yield the lines of each window of rows, without the first `counts.rows` rows.

        Args:
            counts: counts of the rows that are already written. The rows of a window are added
                before its lines are yielded.
        """
        rows = (
            row for row in rows_and_bad_rows(self.table, self.transducer) if isinstance(row, Row)
        )
        written = counts.rows
        remaining = islice(rows, written, None)
        with tqdm(total=self.table.rows, initial=written, unit="row", disable=None) as bar:
            while window := list(islice(remaining, WINDOW)):
                lines: list[str] = []
                queries = (row.query for row in window)
                predictions = self.transducer.predictions(queries, self.batch_size)
                for row, prediction in zip(window, predictions, strict=True):
                    counts.add(row, prediction, self.layout)
                    lines += self.layout.lines(row, prediction)
                    bar.update()
                yield "".join(lines)


def predict(
    tables: Sequence[CheckedTable], transducer: Transducer, options: argparse.Namespace
) -> None:
    """Predict tables, and write them.

    Args:
        tables: each with its output. Only a single table may have a stream as output.
        transducer: predicts the targets.
        options: options of `predict`.
    """
    predictions = [
        _Prediction(
            table,
            OutputLayout.of(
                table.layout, transducer.task, details=options.details, least=options.least
            ),
            transducer,
            options.batch_size,
        )
        for table in tables
    ]
    paths = [table.output for table in tables if table.output is not None]
    if not paths or is_stream(paths[0]):
        (prediction,) = predictions
        name = prediction.table.name
        _report(_predict_to_stream(prediction), name, title=name, least=options.least)
        return
    finished: list[tuple[Continued, PredictionCounts]] = []
    with ExitStack() as stack:
        for prediction, path in zip(predictions, paths, strict=True):
            parts = Continued(path, resume_key(prediction.table, transducer, options))
            stack.enter_context(parts.opened())
            finished.append((parts, _predict_to_file(prediction, parts)))
        for parts, _ in finished:  # outputs get their names only after all are complete
            parts.finish()
    for parts, counts in finished:
        _report(counts, parts.path, title=f"wrote {parts.path}", least=options.least)


def _predict_to_stream(prediction: _Prediction) -> PredictionCounts:
    """Predict a table to the standard output or a pipe, which cannot be resumed.

    Returns:
        Counts of all rows of the table.
    """
    counts = PredictionCounts()
    with ExitStack() as stack:
        file: TextIO = sys.stdout
        if prediction.table.output is not None:
            (file,) = stack.enter_context(replaced_when_done([prediction.table.output]))
        file.write(prediction.layout.heading())
        for lines in prediction.windows(counts):
            file.write(lines)
    return counts


def _predict_to_file(prediction: _Prediction, parts: Continued) -> PredictionCounts:
    """Predict the rows of a table that its file does not have yet.

    Args:
        prediction: the table, and how it is predicted.
        parts: the output file, which is open.

    Returns:
        Counts of all rows of the table.
    """
    counts = PredictionCounts.read(parts.progress)
    if parts.dropped:
        note(f"{parts.path}: begun with another model, table or options; starts anew")
    if counts.rows:
        note(f"{parts.path}: continued after {counts.rows:,} of {prediction.table.rows:,} rows")
    try:
        if not parts.progress:  # the heading was not written either
            parts.write(prediction.layout.heading(), counts.record())
        for lines in prediction.windows(counts):
            parts.write(lines, counts.record())
    except KeyboardInterrupt:
        note("the same command continues this prediction")
        raise
    parts.close()
    return counts


def _report(counts: PredictionCounts, table: Path | str, *, title: str, least: float) -> None:
    """Print the summary of a table, and warn of likely mistakes.

    Args:
        counts: counts of all rows.
        table: name of the input, or path of the output, for notes and warnings.
        title: beginning of the summary line.
        least: least probability of the outputs that are written.
    """
    print(printable(f"{title}: {counts.summary()}"), file=sys.stderr)
    if counts.outputs_left_out:
        note(f"{table}: {counts.left_out(least)}")
    warn(*(f"{table}: {text}" for text in counts.warnings()))
