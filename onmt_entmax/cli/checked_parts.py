"""The models of the parts of an audit: their trainings, and what they say of the other rows."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.cli.audit_parts import Part
from onmt_entmax.cli.audited_rows import AuditedRow
from onmt_entmax.cli.children import run_command
from onmt_entmax.cli.pair_files import pair_texts
from onmt_entmax.cli.table_configuration import configuration, training_by_rows
from onmt_entmax.cli.table_pairs import as_pair
from onmt_entmax.cli.task_settings import task_line
from onmt_entmax.cli.training_file import CONFIGURATION
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import read_lines, write_files
from onmt_entmax.files.parsing import parse_json
from onmt_entmax.report.reading import read_report
from onmt_entmax.rules import Rule
from onmt_entmax.strings.task import StringTask

WRITTEN = (
    *("train.src", "train.tgt", "dev.src", "dev.tgt", CONFIGURATION),
    *("dev.out", "dev.report.jsonl", "dev.report.jsonl.summary.json", "scores.jsonl"),
)
"""Files of a part, besides its model"""
_LOG_PROB = Rule(float, off=None)
_LISTED = 10  # admitted forms of a row


def check_part(
    part: Part, task: StringTask, options: argparse.Namespace, training_flags: Sequence[str] = ()
) -> None:
    """Train on the rows of the other parts, and decode and score its own; what is done stays.

    Args:
        part: its folder receives all files and the model.
        task: of the rows.
        options: `model`, which did not see the table, or None; and `updates` of a training.
        training_flags: of `onmt-entmax train`, in place of what the configuration says.

    Raises:
        UserError: the folder has parts of another table.
    """
    folder = part.folder
    contents = _inputs_of(part, task, options)
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


def _inputs_of(part: Part, task: StringTask, options: argparse.Namespace) -> dict[Path, str]:
    """Return the contents of the files of a part; without a training, those of its own rows."""
    rows = {"dev": part.held_out} if options.model else {"train": part.train, "dev": part.held_out}
    contents = pair_texts(
        {
            part.folder / split: [as_pair(row, task) for row in split_rows]
            for split, split_rows in rows.items()
        }
    )
    if not options.model:
        contents[part.folder / CONFIGURATION] = configuration(
            part.folder,
            training_by_rows(len(part.train), updates=options.updates),
            rows=len(part.train),
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


def read_rows_of(part: Part, task: StringTask) -> list[AuditedRow]:
    """Return the rows of a part that was checked, with what its model says of them.

    Raises:
        UserError: the report or the scores of the part are cut or damaged.
    """
    number = len(part.held_out)
    reports = read_report(part.folder / "dev.report.jsonl", number)
    scores = read_scores(part.folder / "scores.jsonl", number)
    return [
        AuditedRow(row, task, score, record, copies)
        for row, copies, record, score in zip(
            part.held_out, part.copies, reports, scores, strict=True
        )
    ]


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
