"""Find rows of an inflection table that models trained on the other rows exclude.

    onmt-entmax audit german-train --out run/audit
    onmt-entmax audit new.tsv --out run/audit --model run/mine/model --language german

The table has a form a line, `lemma<TAB>form<TAB>tag;tag`. It is divided into --folds parts. For
each part a model is trained on the others (`onmt-entmax train`), unless --model names one that did
not see the table. A row whose form has probability exactly zero is a candidate for a typing error.
There is no threshold to choose. OUT/suspects.tsv lists these rows, the surest first, with all that
the model admits (`...`: and more):

    line  lemma  form  tags  admitted forms with probabilities  certificate

--ask N writes OUT/ask.tsv, the N rows whose forms are least certain (the least probability of the
best form): those that a speaker should look at.

Each part takes one training, whose length grows with the table (--updates sets it). The same
command continues after an interruption; a changed table needs a new OUT. The models of the parts
are in OUT too.
"""

import argparse
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import checkpoint_steps, load
from onmt_entmax.cli.children import run_command
from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.cli.prepare_sigmorphon import configuration
from onmt_entmax.cli.prepared import CONFIGURATION
from onmt_entmax.data.inflection import Row, as_pair, decode_word, pair_texts, read_rows
from onmt_entmax.errors import UserError, counted, printable
from onmt_entmax.files import read_lines, refuse_overwriting, write_files
from onmt_entmax.files.parsing import parse_json
from onmt_entmax.inflector import Inventory, Question
from onmt_entmax.report.reading import read_report
from onmt_entmax.rules import Rule, whole

# Files of a part, besides its model.
_WRITTEN = (
    *("train.src", "train.tgt", "dev.src", "dev.tgt", CONFIGURATION),
    *("dev.out", "dev.report.jsonl", "dev.report.jsonl.summary.json", "scores.jsonl"),
)
_LOG_PROB = Rule(float, off=None)


@dataclass(frozen=True)
class Checked:
    """A row of the table, and what a model that did not see it says of it."""

    row: Row
    log_prob: float | None
    """Of its form; None: the form has probability zero."""
    record: dict[str, Any]
    """Of the exactness report."""

    @property
    def certainty(self) -> float:
        """Probability of the best form."""
        hypotheses = self.record["hypotheses"]
        return float(hypotheses[0]["prob"]) if hypotheses else 0.0

    def columns(self) -> str:
        """Return the row and the admitted forms as a line of `suspects.tsv`."""
        admitted = ", ".join(
            f"{decode_word(each['text'].split())} {each['prob']:.3g}"
            for each in self.record["hypotheses"]
        )
        all_found = self.record["certificate"] == "exhaustive"
        if not all_found or self.record["finished"] > len(self.record["hypotheses"]):
            admitted += ", ..."
        texts = [self.row.lemma, self.row.form, ";".join(self.row.tags), admitted]
        return "\t".join(map(printable, [str(self.row.line), *texts, self.record["certificate"]]))


def check_part(
    folder: Path, train: Sequence[Row], held_out: Sequence[Row], options: argparse.Namespace
) -> None:
    """Train on some rows, and decode and score others; what is done already stays.

    Raises:
        UserError: the folder has parts of another table.
    """
    rows = {"dev": held_out} if options.model else {"train": train, "dev": held_out}
    pairs = {
        folder / name: [as_pair(options.language, row) for row in some]
        for name, some in rows.items()
    }
    contents = pair_texts(pairs)
    if not options.model:
        text = configuration(folder, len(train), 1, [], options.updates)
        contents[folder / CONFIGURATION] = text
    for path, text in contents.items():
        if path.exists() and list(read_lines(path)) != text.split("\n")[:-1]:
            raise UserError(
                f"{path}: of another table, --language, --seed, --folds or --updates; "
                "name another --out"
            )
    model = options.model or folder / "model"
    if not all(path.exists() for path in contents):
        write_files(contents)
    if not options.model:
        if (folder / "scores.jsonl").exists():
            return
        resumed = ["-train_from", model] if model.exists() and checkpoint_steps(model) else []
        run_command("train", "-config", folder / CONFIGURATION, *resumed)
    source = ("-model", model, "-src", folder / "dev.src")
    run_command("translate", *source, "-output", folder / "dev.out", "-n_best", 10,
        "-beam_size", 10, "-exactness_report", folder / "dev.report.jsonl")  # fmt: skip
    run_command("score", *source, "-tgt", folder / "dev.tgt", "-output", folder / "scores.jsonl")


def folds_of(options: argparse.Namespace) -> int:
    """Return the number of parts of the table."""
    return 1 if options.model else options.folds or 5


def audit(options: argparse.Namespace) -> list[Checked]:
    """Return all rows, each checked by the model of the other parts."""
    rows = read_rows(options.file)
    folds = folds_of(options)
    if options.model:
        known = Inventory.of([load(options.model).vocabularies.source])
        for number, row in enumerate(rows):
            try:
                asked = known.checked(Question(options.language, row.lemma, row.tags))
                rows[number] = row._replace(lemma=asked.lemma, tags=asked.tags)
            except UserError as error:
                raise UserError(f"{options.file}:{row.line}: {error}") from None
    elif len(rows) < 10 * folds:
        needed = f"{10 * folds} rows or more are needed for {folds} --folds"
        raise UserError(f"{options.file}: {needed}, not {len(rows)}")
    order = list(range(len(rows)))
    random.Random(options.seed).shuffle(order)
    checked = []
    for part in range(folds):
        folder = options.out / f"part-{part + 1}"
        held_out = order[part::folds]
        train = [rows[n] for k in range(folds) if k != part for n in order[k::folds]]
        check_part(folder, train, [rows[n] for n in held_out], options)
        reports = read_report(folder / "dev.report.jsonl", len(held_out))
        scores = read_scores(folder / "scores.jsonl", len(held_out))
        for number, record, score in zip(held_out, reports, scores, strict=True):
            checked.append(Checked(rows[number], score, record))
    return sorted(checked, key=lambda each: each.row.line)


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


def surest_first(checked: Sequence[Checked]) -> list[Checked]:
    """Return the rows whose form has probability zero, those with the surest best form first."""
    return sorted((c for c in checked if c.log_prob is None), key=lambda each: -each.certainty)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="inflection table: lemma, form, tags")
    add("--out", type=Path, required=True, help="folder for models and results")
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
    return options


def main(arguments: Sequence[str]) -> int:
    """Write the suspects; return the exit status."""
    options = parse_arguments(arguments)
    suspects, ask = options.out / "suspects.tsv", options.out / "ask.tsv"
    parts = (options.out / f"part-{part + 1}" for part in range(folds_of(options)))
    written = [folder / name for folder in parts for name in _WRITTEN]
    refuse_overwriting([options.file], [suspects, ask, *written])
    checked = audit(options)
    excluded = surest_first(checked)
    contents = {suspects: "".join(f"{each.columns()}\n" for each in excluded)}
    if options.ask:
        uncertain = sorted(checked, key=lambda each: each.certainty)[: options.ask]
        contents[ask] = "".join(f"{each.columns()}\n" for each in uncertain)
    write_files(contents)
    print(f"{suspects}: {len(excluded):,} of {counted(len(checked), 'row')} are excluded")
    if options.ask:
        print(f"{ask}: the {counted(min(options.ask, len(checked)), 'row')} of least certainty")
    return 0
