"""The models of the parts of an audit: their trainings, and what they say of the other rows."""

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
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask

_REPORT = "dev.report.jsonl"
_SCORES = "scores.jsonl"
WRITTEN = (
    *("train.src", "train.tgt", "dev.src", "dev.tgt", CONFIGURATION),
    *("dev.out", _REPORT, f"{_REPORT}.summary.json", _SCORES),
)
"""Files of a part, besides its model"""
_LOG_PROB = Rule(float, off=None)
_LISTED = 10  # admitted forms of a row


def check_with_model(part: Part, task: StringTask, model: Path) -> None:
    """Decode and score the rows of a part with a model that did not see the table.

    Args:
        part: its folder receives all files.
        task: of the rows.
        model: a model or run folder.

    Raises:
        UserError: the folder has parts of another table.
    """
    _write_inputs(pair_texts({part.folder / "dev": _pairs(part.held_out, task)}))
    # Outputs and scores that are there may be of another model.
    _decode_and_score(part.folder, model)


def train_and_check(
    part: Part, task: StringTask, updates: int | None, training_flags: Sequence[str] = ()
) -> None:
    """Train on the rows of the other parts, and decode and score a part; what is done stays.

    Args:
        part: its folder receives all files and the model.
        task: of the rows.
        updates: of the training; None: as many as the number of rows needs.
        training_flags: of `onmt-entmax train`, in place of what the configuration says.

    Raises:
        UserError: the folder has parts of another table.
    """
    folder, rows = part.folder, {"train": part.train, "dev": part.held_out}
    contents = pair_texts({folder / split: _pairs(rows[split], task) for split in rows})
    contents[folder / CONFIGURATION] = configuration(
        folder,
        training_by_rows(len(part.train), updates=updates),
        rows=len(part.train),
        languages=1,
        commands=[],
        task=[task_line(task)],
    )
    _write_inputs(contents)
    if (folder / _SCORES).exists():  # written last
        return
    _train(folder, training_flags)
    _decode_and_score(folder, folder / "model")


def _pairs(rows: Sequence[Row], task: StringTask) -> list[tuple[str, str]]:
    """Return rows as pairs of lines, source and target."""
    return [as_pair(row, task) for row in rows]


def _write_inputs(contents: dict[Path, str]) -> None:
    """Write the files that a part begins with, unless they are there.

    Raises:
        UserError: one of them has another content.
    """
    for path, text in contents.items():
        if path.exists() and list(read_lines(path)) != text.split("\n")[:-1]:
            raise UserError(
                f"{path}: of another table, --language, --seed, --folds or --updates; "
                "name another --out"
            )
    if not all(path.exists() for path in contents):
        write_files(contents)


def _train(folder: Path, flags: Sequence[str]) -> None:
    """Train the model of a part, or go on where its training stopped."""
    model = folder / "model"
    resumed = ["-train_from", model] if model.exists() and checkpoint_steps(model) else []
    run_command("train", "-config", folder / CONFIGURATION, *flags, *resumed)


def _decode_and_score(folder: Path, model: Path) -> None:
    """Write the outputs, certificates and scores of the rows that a part holds out."""
    source = ("-model", model, "-src", folder / "dev.src")
    run_command(
        "translate", *source, "-output", folder / "dev.out", "-n_best", _LISTED,
        "-beam_size", _LISTED, "-exactness_report", folder / _REPORT,
    )  # fmt: skip
    run_command("score", *source, "-tgt", folder / "dev.tgt", "-output", folder / _SCORES)


def read_rows_of(part: Part, task: StringTask) -> list[AuditedRow]:
    """Return the rows of a part that was checked, with what its model says of them.

    Raises:
        UserError: the report or the scores of the part are cut or damaged.
    """
    number = len(part.held_out)
    reports = read_report(part.folder / _REPORT, number)
    scores = read_scores(part.folder / _SCORES, number)
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
