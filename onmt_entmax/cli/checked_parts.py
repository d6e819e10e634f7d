"""The models of the parts of an audit: their trainings and predictions."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.cli.audit_parts import Part
from onmt_entmax.cli.audited_rows import AuditedRow
from onmt_entmax.cli.children import run_command
from onmt_entmax.cli.pair_files import SIDES, pair_texts
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

# Files of a part, besides its model and those of `pair_texts` and `training_file`.
_OUTPUTS = "dev.out"
_REPORT = "dev.report.jsonl"
_SCORES = "scores.jsonl"
WRITTEN = (
    *(f"{split}.{side}" for split in ("train", "dev") for side in SIDES),
    CONFIGURATION,
    _OUTPUTS,
    _REPORT,
    f"{_REPORT}.summary.json",
    _SCORES,
)
"""Names of all files of a part, besides its model"""
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
    """Train on the rows of the other parts, and decode and score the part's own rows.

    The same command goes on after an interruption.

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


def _write_inputs(contents: Mapping[Path, str]) -> None:
    """Write the files that commands read, unless an interrupted audit has written them.

    Raises:
        UserError: there are files of another audit.
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
    """List the forms that a model admits for the rows of a part, and score the rows' own forms."""
    source = ("-model", model, "-src", folder / "dev.src")
    listing = ("-n_best", _LISTED, "-beam_size", _LISTED, "-exactness_report", folder / _REPORT)
    run_command("translate", *source, "-output", folder / _OUTPUTS, *listing)
    run_command("score", *source, "-tgt", folder / "dev.tgt", "-output", folder / _SCORES)


def read_rows_of(part: Part, task: StringTask) -> list[AuditedRow]:
    """Return the rows of a part that was checked, with its model's predictions.

    Raises:
        UserError: the report or the scores of the part are cut or damaged.
    """
    count = len(part.held_out)
    records = read_report(part.folder / _REPORT, count)
    scores = read_scores(part.folder / _SCORES, count)
    checked = zip(part.held_out, scores, records, part.copies, strict=True)
    return [AuditedRow(row, task, score, record, copies) for row, score, record, copies in checked]


def read_scores(path: Path, count: int) -> list[float | None]:
    """Return the log-probabilities that `score` wrote; None stands for log(0).

    Args:
        path: of the file.
        count: of its lines.

    Raises:
        UserError: the file cannot be read, or has another number of lines.
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
