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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.checkpoint import load
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.audit_parts import part_folders, parts_of
from onmt_entmax.cli.audited_rows import AuditedRow, excluded_rows, script_lines
from onmt_entmax.cli.checked_parts import WRITTEN, check_part, read_rows_of
from onmt_entmax.cli.split_files import SplitFile
from onmt_entmax.cli.table_options import checked_columns
from onmt_entmax.cli.tables import read_tables, refuse_bad_rows
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import refuse_overwriting, write_files
from onmt_entmax.inflector import Inventory, Question
from onmt_entmax.rules import whole
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, SOURCE, TARGET, Query, StringTask


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


def audit(options: argparse.Namespace, training_flags: Sequence[str] = ()) -> list[AuditedRow]:
    """Return all rows, each checked by the model of the other parts; of equal rows, the first.

    Args:
        options: of the command line.
        training_flags: of `onmt-entmax train`, such as other sizes than those of the command.
    """
    rows, task = _read_rows(options)
    checked: list[AuditedRow] = []
    for part in parts_of(rows, options):
        check_part(part, task, options, training_flags)
        checked += read_rows_of(part, task)
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
    of_parts = [folder / name for folder in part_folders(options) for name in WRITTEN]
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
    _tell(paths, {path: len(rows) for path, rows in lines.items()}, len(checked))
    return 0


def _tell(paths: _Outputs, sizes: Mapping[Path, int], rows: int) -> None:
    """Print what the files have.

    Args:
        paths: of the files.
        sizes: lines of each file; that of `--ask` may be missing.
        rows: of the table.
    """
    of_table = f"of {counted(rows, 'row')}"
    print(f"{paths.suspects}: {sizes[paths.suspects]:,} {of_table} are excluded")
    if sizes[paths.variants]:
        print(
            f"{paths.variants}: {sizes[paths.variants]:,} more, whose cells have the model's best "
            "form too"
        )
    if sizes[paths.scripts]:
        print(f"{paths.scripts}: {sizes[paths.scripts]:,} {of_table} mix scripts")
    if paths.ask in sizes:
        print(f"{paths.ask}: the {counted(sizes[paths.ask], 'row')} of least certainty")
