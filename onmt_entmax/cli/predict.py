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
import hashlib
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from tqdm import tqdm

from onmt_entmax import __version__
from onmt_entmax.cli.ending import argument_parser, note, warn
from onmt_entmax.cli.model_options import add_target_symbols
from onmt_entmax.errors import UserError, counted, printable
from onmt_entmax.files import (
    is_stream,
    naming,
    read_lines,
    refuse_overwriting,
    replaced_when_done,
    temporary_folder,
)
from onmt_entmax.files.continued import Continued, alone
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.rules import positive, whole
from onmt_entmax.strings.details import DETAILS, LEVELS, left_out_text
from onmt_entmax.strings.tables import (
    SAMPLE,
    BadRow,
    Layout,
    Row,
    checked_columns,
    guess_delimiter,
    guess_layout,
    language_of_file,
    may_be_heading,
    refuse_misplaced_tags,
    rows_of,
)
from onmt_entmax.strings.task import LANGUAGE_COLUMN, LEFT_OUT, TAGS, TARGET, StringTask
from onmt_entmax.transducer import Output, Prediction, Transducer, TransducerError

WINDOW = 2048  # queries that are predicted, and written, together
_LISTED = 10  # bad rows that are named
_MODEL_FILES = ("config.yaml", "vocab.json", "model.safetensors")
STDIN = Path("-")


@dataclass(frozen=True)
class Table:
    """A table to predict.

    Attributes:
        path: where it is read.
        name: for people.
        output: None: the standard output.
        layout: of its columns.
        language: of all rows, if no column has it.
        rows: that can be read.
        digest: of its lines.
    """

    path: Path
    name: str
    output: Path | None
    layout: Layout = field(default_factory=lambda: Layout(()))
    language: str = ""
    rows: int = 0
    digest: str = ""


# --- before anything is predicted ----------------------------------------------------------------


def tables_of(paths: Sequence[Path], output: Path | None, spooled: Path) -> list[Table]:
    """Return the tables, each with its output.

    Args:
        paths: of the tables.
        output: a file, or a folder.
        spooled: where the standard input is kept, which is read twice.

    Raises:
        UserError: tables have one name, or several have no folder.
    """
    if output is None and len(paths) > 1:
        raise UserError("several tables need --output, a folder")
    inside = output is not None and (len(paths) > 1 or output.is_dir())
    if inside and output is not None and output.exists() and not output.is_dir():
        raise UserError(f"--output {output}: is a file, and several tables need a folder")
    by_name: dict[str, list[str]] = {}
    spooled_as = "stdin.tsv"
    if STDIN in paths:
        with open(spooled, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        sample = list(filter(str.strip, islice(read_lines(spooled, "standard input"), SAMPLE)))
        if sample and guess_delimiter(sample) == ",":
            spooled_as = "stdin.csv"
    for path in paths:
        by_name.setdefault(spooled_as if path == STDIN else path.name, []).append(str(path))
    if inside and (twice := next((some for some in by_name.items() if some[1][1:]), None)):
        raise UserError(
            f"{' and '.join(twice[1])} would both be written to {output}/{twice[0]}; predict them "
            "apart, into different folders"
        )
    tables = []
    for path, name in zip(paths, map(str, paths), strict=True):
        if path == STDIN:
            path, name = spooled, "standard input"
        elif is_stream(path):
            raise UserError(f"{path}: is a pipe or a device, but is read more than once; give -")
        own = spooled_as if name == "standard input" else path.name
        tables.append(Table(path, name, output / own if inside and output else output))
    return tables


def described(
    table: Table, transducer: Transducer, columns: Sequence[str], language: str | None
) -> Table:
    """Return a table with its layout and language.

    Raises:
        UserError: its columns are unclear, or the models do not know its language.
    """
    task = transducer.task
    sample = list(islice(read_lines(table.path, table.name), SAMPLE))
    layout = guess_layout(sample, table.name, columns, task)
    if not columns:
        refuse_misplaced_tags(sample, layout, task, {*transducer.tags}, table.name)
    unread = {
        column
        for column, reads in ((TAGS, task.has_tags), (LANGUAGE_COLUMN, task.languages))
        if column in layout.columns and not reads
    }
    if unread:
        note(f"{table.name}: the model reads no {' and no '.join(sorted(unread))}; left out")
        kept = tuple(LEFT_OUT if name in unread else name for name in layout.columns)
        layout = replace(layout, columns=kept)
    if task.has_tags and TAGS not in layout.columns:
        warn(f"{table.name}: has no tags, which the model reads")
    if LANGUAGE_COLUMN in layout.columns:
        if language is not None:
            raise UserError(f"{table.name}: has a column of languages; leave --language out")
        return replace(table, layout=layout)
    named = language
    if named is None and task.languages:
        named = "" if table.name == "standard input" else language_of_file(table.path.name)
    try:
        found = transducer.known_language(named or "")
    except TransducerError as error:
        hint = "" if language else "; --language names that of the table"
        raise UserError(f"{table.name}: {error}{hint}") from None
    if found and not named:
        note(f"{table.name}: language {found}, the only one of the model")
    return replace(table, layout=layout, language=found)


def readable_rows(table: Table, transducer: Transducer) -> Iterator[Row | BadRow]:
    """Yield the rows of a table; those that the models cannot answer are bad ones."""
    lines = read_lines(table.path, table.name)
    for row in rows_of(lines, table.layout, transducer.task, table.language, needs=False):
        if isinstance(row, Row):
            try:
                row = row._replace(query=transducer.checked(row.query))
            except TransducerError as error:
                line = table.layout.text(row.cells)
                row = BadRow(row.number, str(error), line)
        yield row


def checked(tables: Sequence[Table], transducer: Transducer, skip: Path | None) -> list[Table]:
    """Read all tables once; return them with their numbers of rows.

    Args:
        tables: with layout and language.
        transducer: must be able to answer each row.
        skip: receives the rows that cannot be read; None: they are an error.

    Raises:
        UserError: rows cannot be read, or there are none.
    """
    done, bad, total = [], 0, 0
    warnings: list[str] = []  # shown later, below the progress
    layouts: dict[tuple[Layout, bool], list[tuple[str, str]]] = {}
    with ExitStack() as stack:
        file: TextIO | None = None
        if skip is not None:
            (file,) = stack.enter_context(replaced_when_done([skip]))
        for table in tables:
            digest, rows, replaced = hashlib.sha256(), 0, ""
            read_rows = readable_rows(table, transducer)
            for row in tqdm(read_rows, "reading", unit="row", leave=False, delay=1, disable=None):
                digest.update(repr(row[:3]).encode("utf-8", "surrogatepass"))
                total += 1
                if isinstance(row, Row):
                    first = not rows and not table.layout.heading
                    if first and may_be_heading(row.query.source):
                        warnings.append(
                            f"{table.name}:{row.number}: {row.query.source!r} may be a heading; "
                            "it is read as a row"
                        )
                    digest.update(repr(row.cells).encode("utf-8", "surrogatepass"))
                    rows += 1
                    replaced = replaced or row.target
                    continue
                bad += 1
                if bad <= _LISTED:
                    warnings.append(f"{table.name}:{row.number}: {row.reason}")
                if file is not None:
                    file.write(f"{table.name}:{row.number}\t{row.reason}\t{row.line}\n")
            if not rows and not bad:
                raise UserError(f"{table.name}: no rows")
            done.append(replace(table, rows=rows, digest=digest.hexdigest()))
            read = str(table.layout)
            if replaced:  # it may be another column that was meant
                read += f"; targets, such as {replaced!r}, are replaced"
            # Tables of one layout are told together, whatever their targets.
            layouts.setdefault((table.layout, bool(replaced)), []).append((table.name, read))
        warn(*warnings)
        if bad:
            more = f", the first {_LISTED} above" if bad > _LISTED else ""
            told = f"{bad:,} of {counted(total, 'row')} cannot be read{more}"
            if skip is None:
                raise UserError(f"{told}; mend them, or --skip-bad FILE leaves them out")
            warn(f"{told}; {skip} has them, with their reasons")
    for alike in layouts.values():
        more = f" and {counted(len(alike) - 1, 'table')} more" * (len(alike) > 1)
        note(f"{alike[0][0]}{more}: {alike[0][1]}")
    return done


# --- the lines of a predicted table --------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """The columns of a predicted table.

    Attributes:
        layout: of the table that was read.
        place: of the target.
        details: whether rank, probability, certificate and warnings follow.
        least: probability of an output; others are left out.
    """

    layout: Layout
    place: int
    details: bool
    least: float = 0.0

    @classmethod
    def of(cls, layout: Layout, task: StringTask, details: bool, least: float = 0.0) -> "Form":
        """Return the form of a table; without a target, that stands where training has it."""
        columns = layout.columns
        if TARGET in columns:
            return cls(layout, columns.index(TARGET), details, least)
        place = task.columns.index(TARGET)
        if columns != task.columns[:place] + task.columns[place + 1 :]:
            before = {*task.columns[:place]} - {LEFT_OUT}
            place = 1 + max((n for n, name in enumerate(columns) if name in before), default=-1)
        return cls(layout, place, details, least)

    def heading(self) -> str:
        """Return the heading as a line; nothing if the table has none."""
        heading = self.layout.heading
        if not heading:
            return ""
        target = heading[self.place] if TARGET in self.layout.columns else TARGET
        return self._line(heading, target, DETAILS)

    def lines(self, row: Row, prediction: Prediction) -> Iterator[str]:
        """Yield the lines of a prediction; one with an empty target if there is no output."""
        found = prediction.outputs if self.details else prediction.outputs[:1]
        outputs = self.kept(found)
        cut = len(found) - len(outputs)
        notes = [*prediction.warnings, *([left_out_text(cut, self.least, "output")] * bool(cut))]
        proven = [prediction.level, printable("; ".join(notes))]
        for rank, output in enumerate(outputs, 1):
            # An output may have a tab or a line end: its token is U+0009 or U+000A.
            text = re.sub(r"[\t\n\r]", lambda found: printable(found[0]), output.text)
            yield self._line(row.cells, text, [str(rank), f"{output.prob:.6g}", *proven])
        if not outputs:
            yield self._line(row.cells, "", ["", "" if cut else "0", *proven])

    def kept(self, outputs: Sequence[Output]) -> list[Output]:
        """Return the outputs that are probable enough."""
        return [output for output in outputs if output.prob >= self.least]

    def _line(self, cells: Sequence[str], target: str, details: Sequence[str]) -> str:
        after = self.place + (TARGET in self.layout.columns)
        filled = [*cells[: self.place], target, *cells[after:]]
        return self.layout.text([*filled, *(details if self.details else ())]) + "\n"


@dataclass
class Progress:
    """How far a table is, and what was found in it."""

    rows: int
    levels: Counter[str]
    odd: int
    """Rows with warnings,"""
    first: str
    """and the first of these."""
    without: int
    """Rows without an output."""
    empty: int
    """Rows whose most probable output is empty."""
    left_out: int
    """Outputs that are too improbable,"""
    bare: int
    """and rows that have no other."""

    @classmethod
    def read(cls, recorded: Mapping[str, Any]) -> "Progress":
        """Return what `record` recorded; nothing done, if that is empty."""
        begun = {"rows": 0, "levels": {}, "odd": 0, "first": "", "without": 0, "empty": 0}
        begun |= {"left_out": 0, "bare": 0}
        values = {**begun, **recorded}
        return cls(**{**values, "levels": Counter(values["levels"])})

    def record(self) -> dict[str, Any]:
        """Return all as JSON has it."""
        return {**vars(self), "levels": dict(self.levels)}

    def add(self, row: Row, prediction: Prediction, form: Form) -> None:
        """Count a prediction."""
        kept = form.kept(prediction.outputs)
        self.left_out += len(prediction.outputs) - len(kept)
        self.bare += bool(prediction.outputs) and not kept
        self.rows += 1
        self.levels[prediction.level] += 1
        self.without += not prediction.outputs
        self.empty += bool(prediction.outputs) and not prediction.text
        if prediction.warnings:
            self.odd += 1
            self.first = self.first or f"{row.query.source}: {'; '.join(prediction.warnings)}"

    def tell(self, where: str, least: float, verb: str = "") -> None:
        """Print what was found, and warn of what may be wrong.

        Args:
            where: the table.
            least: probability of an output.
            verb: what was done to it, if that is to be said.
        """
        shares = ", ".join(f"{name} {self.levels[name] / self.rows:.2%}" for name in LEVELS)
        print(printable(f"{verb}{where}: {counted(self.rows, 'row')}; {shares}"), file=sys.stderr)
        if self.left_out:
            text = left_out_text(self.left_out, least, "output")
            bare = f"; rows that have no other: {self.bare:,} of {self.rows:,}" * bool(self.bare)
            note(f"{where}: {text}{bare}")
        if self.without:
            warn(f"{where}: rows without an output: {self.without:,} of {self.rows:,}")
        if self.empty:
            warn(f"{where}: rows with an empty output: {self.empty:,} of {self.rows:,}")
        if self.odd:
            share = f"rows with warnings: {self.odd:,} of {self.rows:,}"
            warn(f"{where}: {self.first} ({share})")


def parts_of(
    table: Table,
    form: Form,
    transducer: Transducer,
    batch_size: int,
    progress: Progress,
    begun: bool = False,
) -> Iterator[str]:
    """Yield the heading and the lines of a predicted table in windows.

    Args:
        table: to predict.
        form: of its lines.
        transducer: predicts them.
        batch_size: queries searched together.
        progress: counts rows; those that it has counted already are left out.
        begun: whether the heading is left out, too.
    """
    rows = (row for row in readable_rows(table, transducer) if isinstance(row, Row))
    done = progress.rows
    if not begun:
        yield form.heading()
    rest = islice(rows, done, None)
    with tqdm(total=table.rows, initial=done, unit="row", disable=None) as bar:
        while window := list(islice(rest, WINDOW)):
            lines: list[str] = []
            found = transducer.predictions((row.query for row in window), batch_size)
            for row, prediction in zip(window, found, strict=True):
                progress.add(row, prediction, form)
                lines += form.lines(row, prediction)
                bar.update()
            yield "".join(lines)


def work_of(table: Table, transducer: Transducer, options: argparse.Namespace) -> dict[str, Any]:
    """Return what the content of a predicted table depends on."""
    models = []
    for folder in transducer.folders:
        digest = hashlib.sha256()
        for name in _MODEL_FILES:
            with naming(folder / name, "read"):
                digest.update((folder / name).read_bytes())
        models.append(digest.hexdigest())
    names = "n_best all least details beam_size batch_size matmul_dtype gpu target_symbols".split()
    return {
        "version": __version__,
        "models": models,
        "table": table.digest,
        "layout": [table.layout.columns, table.layout.delimiter, table.layout.heading],
        "language": table.language,
        **{name: getattr(options, name) for name in names},
    }


def predict(tables: Sequence[Table], transducer: Transducer, options: argparse.Namespace) -> None:
    """Predict tables that were checked, and write them."""
    least = options.least
    forms = [Form.of(table.layout, transducer.task, options.details, least) for table in tables]
    pairs = list(zip(tables, forms, strict=True))
    batch = options.batch_size
    if tables[0].output is None or is_stream(tables[0].output):
        ((table, form),) = pairs
        progress = Progress.read({})
        with ExitStack() as stack:
            file: TextIO = sys.stdout
            if table.output is not None:
                (file,) = stack.enter_context(replaced_when_done([table.output]))
            for text in parts_of(table, form, transducer, batch, progress):
                file.write(text)
        progress.tell(table.name, least)
        return
    with ExitStack() as stack:
        finished: list[tuple[Path, Continued, Progress]] = []
        for table, form in pairs:
            assert table.output is not None, "only one table goes to the standard output"
            parts = Continued(table.output, work_of(table, transducer, options))
            stack.enter_context(alone(parts))
            begun = bool(parts.progress)
            progress = Progress.read(parts.progress)
            if parts.dropped:
                note(f"{table.output}: begun with another model, table or options; starts anew")
            if progress.rows:
                note(f"{table.output}: continued after {progress.rows:,} of {table.rows:,} rows")
            try:
                for text in parts_of(table, form, transducer, batch, progress, begun):
                    parts.write(text, progress.record())
            except KeyboardInterrupt:
                note("the same command continues this prediction")
                raise
            parts.close()
            finished.append((table.output, parts, progress))
        for path, parts, progress in finished:
            parts.finish()
            progress.tell(str(path), least, "wrote ")


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
    beam = whole(1, 10_000)
    listed = parser.add_mutually_exclusive_group()
    listed.add_argument("--n_best", type=beam, default=1, help="outputs of a row (default 1)")
    listed.add_argument(
        "--all",
        action="store_true",
        help="list every possible output, within 10,000 decoder steps",
    )
    add("--least", type=positive(1), default=0.0, metavar="P",
        help="least probability of an output (default: all above 0)")  # fmt: skip
    add("--details", action="store_true", help="also rank, probability, certificate and warnings, "
        "as always with --n_best above 1 and --all")  # fmt: skip
    add("--beam_size", type=beam, default=5, help="beam size (default 5)")
    add_target_symbols(parser)
    add("--batch_size", type=whole(1, 10**7), default=64, help="queries searched together")
    add("--skip-bad", type=Path, metavar="FILE", help="leave out rows that cannot be read; "
        "FILE receives them")  # fmt: skip
    add("--matmul_dtype", choices=("float32", "bfloat16"), default="float32",
        help="of products in LSTMs (default float32)")  # fmt: skip
    add("--gpu", type=whole(0, 1000), metavar="N", help="number of the GPU (default: CPU)")
    options = parser.parse_args(arguments)
    options.details |= options.all or options.n_best > 1 or options.least > 0
    return options


def main(arguments: Sequence[str]) -> int:
    """Predict the tables; return the exit status."""
    options = parse_arguments(arguments)
    columns = checked_columns(options.columns or "")
    with temporary_folder() as folder:
        tables = tables_of(options.tables, options.output, folder / "table")
        read = [table.path for table in tables]
        outputs: Iterable[Path | None] = [table.output for table in tables]
        refuse_overwriting(read, [*outputs, options.skip_bad])
        if options.skip_bad is not None and options.skip_bad in outputs:
            raise UserError(f"{options.skip_bad}: is to be written twice; name two files")
        transducer = Transducer(
            [options.model, *options.ensemble],
            0 if options.all else options.n_best,
            options.beam_size,
            device=Processes().device(options.gpu, "--gpu"),
            target_symbols=options.target_symbols,
            matmul_dtype=options.matmul_dtype,
        )
        tables = [described(each, transducer, columns, options.language) for each in tables]
        tables = checked(tables, transducer, options.skip_bad)
        predict(tables, transducer, options)
    return 0
