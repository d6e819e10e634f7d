"""Run the commands that check a part of an audit: `train`, `translate` and `score`.

`part_results.py` reads the files that they write.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.cli.audit_parts import Part
from onmt_entmax.cli.children import run_command
from onmt_entmax.cli.pair_files import pair_paths, pair_texts
from onmt_entmax.cli.part_results import REPORT, SCORES
from onmt_entmax.cli.table_configuration import TableConfiguration
from onmt_entmax.cli.table_pairs import as_pair
from onmt_entmax.cli.table_training import training_by_rows
from onmt_entmax.cli.task_settings import task_line
from onmt_entmax.cli.training_file import CONFIGURATION
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines, write_files
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import StringTask

_OUTPUTS = "dev.out"  # of `translate`; the audit reads its report instead
WRITTEN = (
    *(path.name for split in ("train", "dev") for path in pair_paths(Path(split))),
    CONFIGURATION,
    _OUTPUTS,
    REPORT,
    f"{REPORT}.summary.json",
    SCORES,
)
"""Names of all files of a part, besides its model"""
_LISTED = 10  # admitted forms of a row, at most


def check_with_model(part: Part, task: StringTask, model: Path) -> None:
    """Decode and score the rows of a part with a model that did not see the table.

    Args:
        part: its folder receives all files.
        task: task of the rows.
        model: a model or run folder.

    Raises:
        UserError: the folder has files of another table or of other options.
        subprocess.CalledProcessError: a command failed, and has said why.
    """
    _write_inputs(pair_texts({part.folder / "dev": _pairs(part.held_out, task)}))
    # Old outputs and scores are replaced, since they may be those of another model.
    _decode_and_score(part.folder, model)


def train_and_check(
    part: Part, task: StringTask, updates: int | None, training_flags: Sequence[str] = ()
) -> None:
    """Train on the rows of the other parts, and decode and score the part's own rows.

    After an interruption, the same call continues: finished parts are skipped, and a training
    resumes from its last checkpoint.

    Args:
        part: its folder receives all files and the model.
        task: task of the rows.
        updates: number of updates; None: as many as the number of rows needs.
        training_flags: flags of `onmt-entmax train` that replace options of the configuration.

    Raises:
        UserError: the folder has files of another table or of other options.
        subprocess.CalledProcessError: a command failed, and has said why.
    """
    folder, rows = part.folder, {"train": part.train, "dev": part.held_out}
    contents = pair_texts({folder / split: _pairs(rows[split], task) for split in rows})
    configuration = TableConfiguration(
        out=folder, rows=len(part.train), languages=1, task=[task_line(task)]
    )
    training = training_by_rows(len(part.train), updates=updates)
    contents[folder / CONFIGURATION] = configuration.text(training)
    _write_inputs(contents)
    # `score` runs last, and its file appears only when it is complete.
    if (folder / SCORES).exists():
        return
    _train(folder, training_flags)
    _decode_and_score(folder, folder / "model")


def _pairs(rows: Sequence[Row], task: StringTask) -> list[tuple[str, str]]:
    """Return rows as pairs of lines, source and target."""
    return [as_pair(row, task) for row in rows]


def _write_inputs(contents: Mapping[Path, str]) -> None:
    """Write the files that the commands read, unless an interrupted audit has written them.

    Raises:
        UserError: there are files of another audit.
    """
    for path, text in contents.items():
        if path.exists() and list(read_lines(path)) != text.split("\n")[:-1]:
            raise UserError(
                f"{path}: an audit of another table, or with another --language, --seed, --folds "
                "or --updates, wrote it; name another --out"
            )
    if not all(path.exists() for path in contents):
        write_files(contents)


def _train(folder: Path, flags: Sequence[str]) -> None:
    """Train the model of a part, or resume its training from the last checkpoint."""
    model = folder / "model"
    resumed = ["-train_from", model] if model.exists() and checkpoint_steps(model) else []
    run_command("train", "-config", folder / CONFIGURATION, *flags, *resumed)


def _decode_and_score(folder: Path, model: Path) -> None:
    """List the forms that a model admits for the rows of a part, and score the rows' own forms."""
    source = ("-model", model, "-src", folder / "dev.src")
    listing = ("-n_best", _LISTED, "-beam_size", _LISTED, "-exactness_report", folder / REPORT)
    run_command("translate", *source, "-output", folder / _OUTPUTS, *listing)
    run_command("score", *source, "-tgt", folder / "dev.tgt", "-output", folder / SCORES)
