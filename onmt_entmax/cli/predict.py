"""Predict the targets of tables with a trained model.

    onmt-entmax predict run/phones/model words.tsv --output words.out.tsv
    onmt-entmax predict run/2023/model part1/test/*.covered.tst --output predicted

A table has the columns of the model's training; a target may be absent, and is ignored where there
is one. It comes back with the target filled in; order, delimiter, heading and other columns stay.
Other columns are named, such as --columns source,-,tags (- leaves one out). Several tables go into
the folder --output, under their own names; - is the standard input.

The language of a table is its column, --language, or the name of the file, as of training files;
ISO 639 codes of three letters are names too. Rows that cannot be read are told before anything is
predicted; --skip-bad FILE leaves them out, and writes them there.

--details adds four columns at the end, and so do --n_best above 1 and --all:

    rank         of the output, from 1 (--n_best lists several, --all every possible one)
    probability  of the output; of models that are searched apart, a proven lower bound
    certificate  only        no other output has any probability
                 exhaustive  every possible output was found
                 optimal     the first output is the most probable one
                 none        nothing is proven
    warnings     such as symbols that training never saw

--least P leaves out outputs of less probability; the warnings and the summary say how many.

Several models (--ensemble) are averaged. An interrupted prediction is continued by the same
command: what is done is kept beside the output.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import TextIO

from tqdm import tqdm

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.checked_tables import CheckedTable, check_tables
from onmt_entmax.cli.messages import note
from onmt_entmax.cli.model_options import add_target_symbols
from onmt_entmax.cli.predicted_counts import PredictionCounts
from onmt_entmax.cli.predicted_files import table_files
from onmt_entmax.cli.predicted_rows import OutputLayout
from onmt_entmax.cli.predicted_tables import rows_and_bad_rows, with_layout
from onmt_entmax.cli.predicted_work import work_of
from onmt_entmax.cli.table_options import checked_columns
from onmt_entmax.errors import UserError
from onmt_entmax.files import (
    descriptor,
    followed,
    is_stream,
    refuse_overwriting,
    replaced_when_done,
    temporary_folder,
)
from onmt_entmax.files.continued import Continued, alone
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.rules import positive, whole
from onmt_entmax.strings.tables import Row
from onmt_entmax.transducer import Transducer

WINDOW = 2048  # queries that are predicted, and written, together


def parts_of(
    table: CheckedTable,
    layout: OutputLayout,
    transducer: Transducer,
    batch_size: int,
    counts: PredictionCounts,
    *,
    begun: bool = False,
) -> Iterator[str]:
    """Yield the heading and the lines of a predicted table, those of `WINDOW` rows at a time.

    When a part is yielded, `counts` has exactly the rows up to it: who writes the part records the
    counts with it, and goes on from there after an interruption.

    Args:
        table: to predict.
        layout: of its lines.
        transducer: predicts them.
        batch_size: queries searched together.
        counts: receives each row; rows that it has already are left out.
        begun: whether the heading is left out, too.
    """
    if not begun:
        yield layout.heading()
    rows = (row for row in rows_and_bad_rows(table, transducer) if isinstance(row, Row))
    done = counts.rows
    remaining = islice(rows, done, None)
    with tqdm(total=table.rows, initial=done, unit="row", disable=None) as bar:
        while window := list(islice(remaining, WINDOW)):
            lines: list[str] = []
            predictions = transducer.predictions((row.query for row in window), batch_size)
            for row, prediction in zip(window, predictions, strict=True):
                counts.add(row, prediction, layout)
                lines += layout.lines(row, prediction)
                bar.update()
            yield "".join(lines)


def predict(
    tables: Sequence[CheckedTable], transducer: Transducer, options: argparse.Namespace
) -> None:
    """Predict tables, and write them."""
    layouts = [
        OutputLayout.of(table.layout, transducer.task, details=options.details, least=options.least)
        for table in tables
    ]
    if tables[0].output is None or is_stream(tables[0].output):
        ((table, layout),) = zip(tables, layouts, strict=True)
        _predict_to_stream(table, layout, transducer, options)
        return
    finished: list[tuple[Continued, PredictionCounts]] = []
    with ExitStack() as stack:
        for table, layout in zip(tables, layouts, strict=True):
            assert table.output is not None, "only one table goes to the standard output"
            parts = Continued(table.output, work_of(table, transducer, options))
            stack.enter_context(alone(parts))
            counts = _predict_in_parts(table, parts, layout, transducer, options)
            finished.append((parts, counts))
        # All tables get their names together.
        for table, layout, (parts, counts) in zip(tables, layouts, finished, strict=True):
            parts.finish()
            counts.tell(str(table.output), layout, title=f"wrote {table.output}")


def _predict_to_stream(
    table: CheckedTable, layout: OutputLayout, transducer: Transducer, options: argparse.Namespace
) -> None:
    """Predict a table to the standard output or a pipe, which cannot be continued."""
    counts = PredictionCounts()
    with ExitStack() as stack:
        file: TextIO = sys.stdout
        if table.output is not None:
            (file,) = stack.enter_context(replaced_when_done([table.output]))
        for text in parts_of(table, layout, transducer, options.batch_size, counts):
            file.write(text)
    counts.tell(table.name, layout)


def _predict_in_parts(
    table: CheckedTable,
    parts: Continued,
    layout: OutputLayout,
    transducer: Transducer,
    options: argparse.Namespace,
) -> PredictionCounts:
    """Predict the rows of a table that its parts do not have yet; return what was found."""
    begun = bool(parts.progress)
    counts = PredictionCounts.read(parts.progress)
    if parts.dropped:
        note(f"{table.output}: begun with another model, table or options; starts anew")
    if counts.rows:
        note(f"{table.output}: continued after {counts.rows:,} of {table.rows:,} rows")
    try:
        texts = parts_of(table, layout, transducer, options.batch_size, counts, begun=begun)
        for text in texts:
            parts.write(text, counts.record())
    except KeyboardInterrupt:
        note("the same command continues this prediction")
        raise
    parts.close()
    return counts


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="run or model folder")
    add("tables", nargs="+", type=Path, metavar="TABLE", help="tables of queries; - reads stdin")
    add("--output", type=Path, metavar="TABLE_OR_FOLDER", help="default: the standard output")
    add("--ensemble", action="append", type=Path, default=[], metavar="MODEL",
        help="a further model; repeat for several")  # fmt: skip
    add("--columns", help="such as source,target,tags,language,-; the target may be missing")
    add("--language", help="of all rows")
    size = whole(1, 10_000)
    listed = parser.add_mutually_exclusive_group()
    listed.add_argument("--n_best", type=size, default=1, help="outputs of a row (default 1)")
    listed.add_argument(
        "--all",
        action="store_true",
        help="list every possible output, within 10,000 decoder steps",
    )
    add("--least", type=positive(1), default=0.0, metavar="P",
        help="least probability of an output (default: all above 0)")  # fmt: skip
    add("--details", action="store_true", help="also rank, probability, certificate and warnings, "
        "as always with --n_best above 1 and --all")  # fmt: skip
    add("--beam_size", type=size, default=5, help="beam size (default 5)")
    add_target_symbols(parser)
    add("--batch_size", type=whole(1, 10**7), default=64, help="queries searched together")
    add("--skip-bad", type=Path, metavar="FILE", help="leave out rows that cannot be read; "
        "FILE receives them")  # fmt: skip
    add("--matmul_dtype", choices=("float32", "bfloat16"), default="float32",
        help="of products in LSTMs (default float32)")  # fmt: skip
    add("--gpu", type=whole(0, 1000), metavar="N", help="number of the GPU (default: CPU)")
    options = parser.parse_args(arguments)
    if options.all or options.n_best > 1 or options.least > 0:
        options.details = True
    return options


def main(arguments: Sequence[str]) -> int:
    """Predict the tables; return the exit status."""
    options = parse_arguments(arguments)
    columns = checked_columns(options.columns or "")
    with temporary_folder() as folder:
        files = table_files(options.tables, options.output, folder / "table")
        outputs = [file.output for file in files]
        refuse_overwriting([file.path for file in files], [*outputs, options.skip_bad])
        _refuse_one_file(options.skip_bad, outputs)
        transducer = Transducer(
            [options.model, *options.ensemble],
            n_best=0 if options.all else options.n_best,
            beam_size=options.beam_size,
            device=Processes().device(options.gpu, option="--gpu"),
            target_symbols=options.target_symbols,
            matmul_dtype=options.matmul_dtype,
        )
        tables = [with_layout(file, transducer, columns, options.language) for file in files]
        predict(check_tables(tables, transducer, options.skip_bad), transducer, options)
    return 0


def _refuse_one_file(skip_bad: Path | None, outputs: Sequence[Path | None]) -> None:
    """Refuse to write bad rows and predictions to one file, whatever its names.

    Raises:
        UserError: names the file.
    """
    if skip_bad is None:
        return
    if any(_is_one_file(skip_bad, output) for output in outputs if output is not None):
        raise UserError(f"{skip_bad}: is to be written twice; name two files")


def _is_one_file(one: Path, other: Path) -> bool:
    """Tell whether two names are of one file.

    The standard output and error are two, although they may be one terminal.
    """
    numbers = descriptor(one), descriptor(other)
    if None not in numbers:
        return numbers[0] == numbers[1]
    return followed(one) == followed(other)
