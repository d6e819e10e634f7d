"""Find rows of an inflection table that models trained on the other rows exclude.

    onmt-entmax audit german-train --out run/audit
    onmt-entmax audit new.tsv --out run/audit --model run/mine/model --language german

Each line of the table has a form, `lemma<TAB>form<TAB>tag;tag`; --columns names other orders. The
table is divided into --folds parts. For each part, a model is trained on the others (`onmt-entmax
train`), unless --model names one that did not see the table. All forms of a cell (dreamed, dreamt)
are in the same part, and so are equal rows, which are listed once.

A row whose form has probability exactly zero may be a typing error: there is no threshold to
choose. OUT/suspects.tsv lists these rows, with the forms that the model admits (`...` means that
there are more, or may be). The rows for which the model is most certain of another form come first:

    line  lemma  form  tags  admitted forms with probabilities  certificate

If the table has the model's best form in the same cell, but not more often, the row is in
OUT/variants.tsv instead, since a cell may have two forms. OUT/scripts.tsv lists rows that mix
scripts, such as Cyrillic with a Latin a: line, lemma, form, tags and the mixture.

--ask N writes OUT/ask.tsv: the N rows whose best forms are least probable, for a speaker to check.

Each part takes one training, whose length grows with the table (--updates sets it). If the command
is interrupted, the same command continues it. A changed table needs a new OUT. OUT also has the
models of the parts.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.audit_parts import FOLDS, part_folders, parts_of, refuse_few
from onmt_entmax.cli.audit_results import RESULTS, listed_rows, summary_lines
from onmt_entmax.cli.audited_rows import AuditedRow
from onmt_entmax.cli.audited_table import read_audited_table, rows_for_model
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.part_checks import WRITTEN, check_with_model, train_and_check
from onmt_entmax.cli.part_results import read_checked_rows
from onmt_entmax.cli.table_options import checked_columns
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import refuse_overwriting, write_files
from onmt_entmax.inflector import refuse_models_without_languages
from onmt_entmax.rules import whole
from onmt_entmax.strings.checks import left_out_tags
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import LANGUAGE_COLUMN, SOURCE, TARGET, StringTask

_UNNAMED_LANGUAGE = "x"  # name of the language in models that are trained without --language


def audit(options: argparse.Namespace, training_flags: Sequence[str] = ()) -> list[AuditedRow]:
    """Check each row of the table with a model that did not see it.

    Args:
        options: options of the command line, see `parse_arguments`.
        training_flags: flags of `onmt-entmax train` that replace the command's own choices, such as
            sizes of the network.

    Returns:
        The checked rows in the order of the table; of equal rows, only the first.

    Raises:
        UserError: the table cannot be read or is too small, or a model does not fit it.
    """
    rows, task = _read_rows(options)
    if not options.model:
        refuse_few(rows, options.folds, options.file)
    copies = len(rows) - len({(row.query, row.target) for row in rows})
    if copies:
        print(f"{options.file}: {counted(copies, 'row')} equal to earlier ones, listed once")
    checked: list[AuditedRow] = []
    for part in parts_of(rows, part_folders(options.out, options.folds), options.seed):
        if options.model:
            check_with_model(part, task, options.model)
        else:
            train_and_check(part, task, options.updates, training_flags)
        checked += read_checked_rows(part, task)
    return sorted(checked, key=lambda audited: audited.row.number)


def _read_rows(options: argparse.Namespace) -> tuple[list[Row], StringTask]:
    """Return the rows of the table and its task; print how the table was read.

    Raises:
        UserError: a row cannot be read, `--model` does not inflect or cannot answer a row's query,
            or a column has the languages that `--language` names too.
    """
    model = load(options.model) if options.model else None
    if model is not None:
        refuse_models_without_languages([model])
    table, task = read_audited_table(
        options.file,
        options.columns,
        language=options.language or _UNNAMED_LANGUAGE,
        model_task=None if model is None else model.task,
    )
    # With a model, `rows_for_model` compares the language of each row with `--language`.
    if model is None and options.language and LANGUAGE_COLUMN in table.layout.columns:
        raise UserError("--language names the language of all rows; a column has it too")
    print(f"{options.file}, {counted(len(table.rows), 'row')}: {table.layout}")
    if not options.columns:
        warn(*(f"{options.file}: {text}" for text in left_out_tags(table.rows, table.layout)))
    rows = table.rows if model is None else rows_for_model(table, model)
    return rows, task


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line.

    Returns:
        The options. With `--model`, which trains nothing, `folds` is 1: one part has all rows.

    Raises:
        UserError: options exclude or need each other.
    """
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="inflection table: lemma, form, tags")
    add("--out", type=Path, required=True, help="folder for models and results")
    add("--columns", default="", help="columns, such as lemma,tags,form,- (default: guessed)")
    add("--folds", type=whole(2, 100), help=f"number of parts (default {FOLDS})")
    add(
        "--model",
        type=Path,
        help="run or model folder that did not see the table; then nothing is trained",
    )
    add("--ask", type=whole(1, 10**6), metavar="N", help="list the N least certain rows")
    add(
        "--updates",
        type=whole(1, 10**7),
        metavar="N",
        help="updates of each training (default: more for larger tables)",
    )
    add(
        "--language",
        help="the table's language, as --model names it; without --model, any name for it "
        f"(default {_UNNAMED_LANGUAGE})",
    )
    add("--seed", type=int, default=1, help="seed of the division into parts (default 1)")
    options = parser.parse_args(arguments)
    if options.model and (options.folds or options.updates):
        raise UserError("--folds and --updates train models, and --model names one")
    if options.model and not options.language:
        raise UserError("--model needs --language: the table's language, as the model names it")
    options.folds = 1 if options.model else options.folds or FOLDS
    options.columns = checked_columns(options.columns, (SOURCE, TARGET))
    return options


def main(arguments: Sequence[str]) -> int:
    """Audit the table, and write the files of results; return the exit status."""
    options = parse_arguments(arguments)
    results = [options.out / name for name in RESULTS]
    folders = part_folders(options.out, options.folds)
    part_files = [folder / name for folder in folders for name in WRITTEN]
    refuse_overwriting([options.file], [*results, *part_files])
    checked = audit(options)
    listed = listed_rows(checked, options.ask)
    write_files(
        {
            options.out / name: "".join(f"{line}\n" for line in lines)
            for name, lines in listed.items()
        }
    )
    print(*summary_lines(options.out, listed, len(checked)), sep="\n")
    return 0
