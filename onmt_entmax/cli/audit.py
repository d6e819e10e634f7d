"""Find rows of an inflection table that models trained on the other rows exclude.

    onmt-entmax audit german-train --out run/audit
    onmt-entmax audit new.tsv --out run/audit --model run/mine/model --language german

The table has a form a line, `lemma<TAB>form<TAB>tag;tag`; --columns names other orders. It is
divided into --folds parts. For each part a model is trained on the others (`onmt-entmax train`),
unless --model names one that did not see the table. All forms of a cell (dreamed, dreamt) are in
the same part, and equal rows too, of which the first is listed. A row whose form has probability
exactly zero is a candidate for a typing error. There is no threshold to choose. OUT/suspects.tsv
lists these rows, the surest first, with all that the model admits (`...`: and more):

    line  lemma  form  tags  admitted forms with probabilities  certificate

Such a row is in OUT/variants.tsv instead if the table has the model's best form in the same cell,
but not more often: a second form is no error. OUT/scripts.tsv lists rows that mix scripts, such as
Cyrillic with a Latin a: line, lemma, form, tags and how.

--ask N writes OUT/ask.tsv, the N rows whose forms are least certain (the least probability of the
best form): those that a speaker should look at.

Each part takes one training, whose length grows with the table (--updates sets it). The same
command continues after an interruption; a changed table needs a new OUT. The models of the parts
are in OUT too.
"""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import checkpoint_steps, load
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.audit_parts import part_folders, parts_of
from onmt_entmax.cli.audited_rows import AuditedRow, excluded_rows, script_lines
from onmt_entmax.cli.children import run_command
from onmt_entmax.cli.pair_files import pair_texts
from onmt_entmax.cli.table_configuration import configuration, training_by_rows
from onmt_entmax.cli.table_pairs import as_pair
from onmt_entmax.cli.tables import SplitFile, read_tables, refuse_bad_rows
from onmt_entmax.cli.task_settings import task_line
from onmt_entmax.cli.training_file import CONFIGURATION
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines, refuse_overwriting, write_files
from onmt_entmax.files.parsing import parse_json
from onmt_entmax.inflector import Inventory, Question
from onmt_entmax.report.reading import read_report
from onmt_entmax.rules import Rule, whole
from onmt_entmax.strings.tables import Row, checked_columns
from onmt_entmax.strings.task import INFLECTION, SOURCE, TARGET, Query, StringTask

# Files of a part, besides its model.
_WRITTEN = (
    *("train.src", "train.tgt", "dev.src", "dev.tgt", CONFIGURATION),
    *("dev.out", "dev.report.jsonl", "dev.report.jsonl.summary.json", "scores.jsonl"),
)
_LOG_PROB = Rule(float, off=None)
_LISTED = 10  # admitted forms of a row


@dataclass(frozen=True)
class _Outputs:
    """The files with the results, which the docstring of this file describes."""

    suspects: Path
    variants: Path
    scripts: Path
    ask: Path

    @classmethod
    def of(cls, out: Path) -> "_Outputs":
        """Return the files of a folder."""
        return cls(
            suspects=out / "suspects.tsv",
            variants=out / "variants.tsv",
            scripts=out / "scripts.tsv",
            ask=out / "ask.tsv",
        )


def check_part(
    folder: Path,
    train: Sequence[Row],
    held_out: Sequence[Row],
    task: StringTask,
    options: argparse.Namespace,
    training_flags: Sequence[str] = (),
) -> None:
    """Train on some rows, and decode and score others; what is done already stays.

    Args:
        folder: of the part: receives all files and the model.
        train: rows of the other parts.
        held_out: rows of this part.
        task: of the rows.
        options: `model`, which did not see the table, or None; and `updates` of a training.
        training_flags: of `onmt-entmax train`, in place of what the configuration says.

    Raises:
        UserError: the folder has parts of another table.
    """
    contents = _files_of_part(folder, train, held_out, task, options)
    for path, text in contents.items():
        if path.exists() and list(read_lines(path)) != text.split("\n")[:-1]:
            raise UserError(
                f"{path}: of another table, --language, --seed, --folds or --updates; "
                "name another --out"
            )
    if not all(path.exists() for path in contents):
        write_files(contents)
    if not options.model:
        if (folder / "scores.jsonl").exists():  # written last
            return
        _train(folder, training_flags)
    # Outputs and scores of a named model are made anew: those that are there may be of another.
    source = ("-model", options.model or folder / "model", "-src", folder / "dev.src")
    run_command(
        "translate", *source, "-output", folder / "dev.out", "-n_best", _LISTED,
        "-beam_size", _LISTED, "-exactness_report", folder / "dev.report.jsonl",
    )  # fmt: skip
    run_command("score", *source, "-tgt", folder / "dev.tgt", "-output", folder / "scores.jsonl")


def _files_of_part(
    folder: Path,
    train: Sequence[Row],
    held_out: Sequence[Row],
    task: StringTask,
    options: argparse.Namespace,
) -> dict[Path, str]:
    """Return the contents of the files of a part; without a training, those of its own rows."""
    rows = {"dev": held_out} if options.model else {"train": train, "dev": held_out}
    contents = pair_texts(
        {
            folder / split: [as_pair(row, task) for row in split_rows]
            for split, split_rows in rows.items()
        }
    )
    if not options.model:
        contents[folder / CONFIGURATION] = configuration(
            folder,
            training_by_rows(len(train), updates=options.updates),
            rows=len(train),
            languages=1,
            commands=[],
            task=[task_line(task)],
        )
    return contents


def _train(folder: Path, flags: Sequence[str]) -> None:
    """Train the model of a part, or go on where its training stopped."""
    model = folder / "model"
    resumed = ["-train_from", model] if model.exists() and checkpoint_steps(model) else []
    run_command("train", "-config", folder / CONFIGURATION, *flags, *resumed)


def audit(options: argparse.Namespace, training_flags: Sequence[str] = ()) -> list[AuditedRow]:
    """Return all rows, each checked by the model of the other parts; of equal rows, the first.

    Args:
        options: of the command line.
        training_flags: of `onmt-entmax train`, such as other sizes than those of the command.
    """
    rows, task = _read_rows(options)
    checked: list[AuditedRow] = []
    for part in parts_of(rows, options):
        check_part(part.folder, part.train, part.held_out, task, options, training_flags)
        number = len(part.held_out)
        reports = read_report(part.folder / "dev.report.jsonl", number)
        scores = read_scores(part.folder / "scores.jsonl", number)
        for row, copies, record, score in zip(
            part.held_out, part.copies, reports, scores, strict=True
        ):
            checked.append(AuditedRow(row, task, score, record, copies))
    return sorted(checked, key=lambda audited: audited.row.number)


def _read_rows(options: argparse.Namespace) -> tuple[list[Row], StringTask]:
    """Return the rows of the table, and its task; say how the table was read.

    Raises:
        UserError: a row cannot be read, or the model cannot answer its query.
    """
    file = SplitFile("table", options.file, options.language)
    model = load(options.model) if options.model else None
    separators = {}
    if model is not None:
        separators = {SOURCE: model.task.source.separator, TARGET: model.task.target.separator}
    (table,), task = read_tables([file], options.columns, separators, INFLECTION.columns)
    refuse_bad_rows([table])
    print(f"{options.file}, {counted(len(table.rows), 'row')}: {table.layout}")
    if model is None:
        return table.rows, task
    inventory = Inventory.of([model.vocabularies.source])
    return [_as_known(row, inventory, options) for row in table.rows], task


def _as_known(row: Row, inventory: Inventory, options: argparse.Namespace) -> Row:
    """Return a row with its language and tags as the model knows them.

    Raises:
        UserError: the model cannot answer its query.
    """
    question = Question(options.language, row.query.source, row.query.tags)
    try:
        known = inventory.checked(question)
    except UserError as error:
        raise UserError(f"{options.file}:{row.number}: {error}") from None
    return row._replace(query=Query(known.lemma, known.tags, known.language))


def read_scores(path: Path, count: int) -> list[float | None]:
    """Return the log-probabilities that `score` wrote; None: impossible.

    Raises:
        UserError: the file cannot be read, or is not that of `count` lines.
    """
    scores: list[float | None] = []
    for number, line in enumerate(read_lines(path), 1):
        record: Any = None
        with suppress(UserError):
            record = parse_json(line)
        if not isinstance(record, dict) or not _LOG_PROB.fits(record.get("log_prob", "")):
            raise UserError(f"{path}:{number}: cut or damaged; delete the file, and run again")
        scores.append(record["log_prob"])
    if len(scores) != count:
        lines = f"{counted(len(scores), 'line')}, not {count:,}"
        raise UserError(f"{path}: cut or damaged, {lines}; delete the file, and run again")
    return scores


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="inflection table: lemma, form, tags")
    add("--out", type=Path, required=True, help="folder for models and results")
    add("--columns", default="", help="such as lemma,tags,form,- (default: guessed)")
    add("--folds", type=whole(2, 100), help="parts (default 5)")
    add("--model", type=Path, help="model or run folder that did not see the table: trains none")
    add("--ask", type=whole(1, 10**6), metavar="N", help="list the N least certain rows")
    add("--updates", type=whole(1, 10**7), metavar="N", help="updates of each training")
    add("--language", help="its name in --model, or in the models that are trained (default x)")
    add("--seed", type=int, default=1, help="of the division into parts (default 1)")
    options = parser.parse_args(arguments)
    if options.model and (options.folds or options.updates):
        raise UserError("--folds and --updates train models, and --model names one")
    if options.model and not options.language:
        raise UserError("--model needs --language: the table's language, as the model names it")
    options.language = options.language or "x"
    options.columns = checked_columns(options.columns, (SOURCE, TARGET))
    return options


def main(arguments: Sequence[str]) -> int:
    """Write the suspects; return the exit status."""
    options = parse_arguments(arguments)
    paths = _Outputs.of(options.out)
    of_parts = [folder / name for folder in part_folders(options) for name in _WRITTEN]
    refuse_overwriting([options.file], [*vars(paths).values(), *of_parts])
    checked = audit(options)
    suspects, variants = excluded_rows(checked)
    lines = {
        paths.suspects: [audited.line() for audited in suspects],
        paths.variants: [audited.line() for audited in variants],
        paths.scripts: script_lines(checked),
    }
    if options.ask:
        uncertain = sorted(checked, key=lambda audited: audited.certainty)[: options.ask]
        lines[paths.ask] = [audited.line() for audited in uncertain]
    write_files({path: "".join(f"{line}\n" for line in rows) for path, rows in lines.items()})
    of_table = f"of {counted(len(checked), 'row')}"
    print(f"{paths.suspects}: {len(suspects):,} {of_table} are excluded")
    if variants:
        print(
            f"{paths.variants}: {len(variants):,} more, whose cells have the model's best form too"
        )
    if lines[paths.scripts]:
        print(f"{paths.scripts}: {len(lines[paths.scripts]):,} {of_table} mix scripts")
    if options.ask:
        print(f"{paths.ask}: the {counted(len(lines[paths.ask]), 'row')} of least certainty")
    return 0
