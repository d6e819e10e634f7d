"""The commands of `onmt-entmax` that `prepare table` and `prepare sigmorphon` propose next."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.cli.shell_files import files_for_shell
from onmt_entmax.cli.tables import Table
from onmt_entmax.cli.training_file import CONFIGURATION
from onmt_entmax.strings.tables import Layout, Row
from onmt_entmax.strings.task import LEFT_OUT, StringTask
from onmt_entmax.strings.units import CHARACTERS


def training_commands(row: Row, task: StringTask, out: Path, models: int = 1) -> list[str]:
    """Return the commands that train and, for inflection, one that inflects the lemma of a row.

    For example, `train -config run/mine/train.yaml` and
    `inflect --model run/mine/model german Hund N;NOM`. The first training has the seed of the
    configuration, 1; the others have the seeds 2, 3, ...

    Args:
        row: row of the dev set.
        task: task of the rows.
        out: the folder that `prepare` fills.
        models: number of models to train in it.
    """
    train = f"train -config {shlex.quote(str(out / CONFIGURATION))}"
    folders = _model_folders(out, models)
    commands = [train]
    for seed, folder in enumerate(folders[1:], 2):
        commands.append(f"{train} -seed {seed} -save_model {shlex.quote(str(folder))}")
    query = row.query
    if query.language and query.tags and task.source == task.target == CHARACTERS:
        model_options = [word for folder in folders for word in ("--model", str(folder))]
        words = [query.language, query.source, ";".join(query.tags)]
        commands.append(shlex.join(["inflect", *model_options, *words]))
    return commands


def prediction_commands(
    tables: Sequence[Table],
    task: StringTask,
    out: Path,
    language: str | None,
    models: int = 1,
) -> list[str]:
    """Return the commands that predict and evaluate dev tables, and predict covered test tables.

    A test table is covered if it has no targets. If the rows have tags, they are nearly always
    inflections, which are predicted better with analogies (docs/guide-analogies.md).

    Args:
        tables: tables of all splits.
        task: task of the rows.
        out: the folder that `prepare` fills; the model is trained in it.
        language: language of all rows, if the user named one.
        models: number of models that are trained in `out`; their predictions are averaged.
    """
    model, *others = (shlex.quote(str(folder)) for folder in _model_folders(out, models))
    options = "".join(f" --ensemble {other}" for other in others)
    if language:
        options += f" --language {shlex.quote(language)}"
    # `predict` reads tables of analogies with the columns of the tables that it predicts.
    analogies = [
        table.path
        for table in tables
        if table.split == "train" and _read_columns(table.layout) == _read_columns(task)
    ]
    if analogies and task.has_tags:
        options += f" --analogies {files_for_shell(analogies)}"
    dev = [table for table in tables if table.split == "dev" and table.has_targets]
    covered = [table for table in tables if table.split == "test" and not table.has_targets]
    commands = []
    for predicted in _predicted_together(dev, out / "dev.predicted"):
        commands += [
            f"predict {model} {predicted.inputs} --output {predicted.output}{options}",
            f"evaluate {predicted.written} --reference {predicted.inputs} --model {model}",
        ]
    for predicted in _predicted_together(covered, out / "test.predicted"):
        commands.append(f"predict {model} {predicted.inputs} --output {predicted.output}{options}")
    return commands


def page_commands(out: Path, models: int = 1) -> list[str]:
    """Return the commands that write a page of the dev set's outputs, with certificates.

    Args:
        out: the folder that `prepare` fills.
        models: number of models that are trained in it.
    """
    names = "dev.src dev.out dev.report.jsonl dev.html".split()
    source, output, report, page = (shlex.quote(str(out / name)) for name in names)
    folders = " ".join(shlex.quote(str(folder)) for folder in _model_folders(out, models))
    return [
        f"translate -model {folders} -src {source} -output {output} -n_best 5 "
        f"-exactness_report {report}",
        f"report -model {folders} -report {report} -output {page}",
    ]


def _model_folders(out: Path, models: int) -> list[Path]:
    """Return the run folders of a folder that `prepare` fills: `model`, `model.2`, ..."""
    return [
        out / ("model" if number == 1 else f"model.{number}") for number in range(1, models + 1)
    ]


@dataclass(frozen=True)
class _Predicted:
    """Tables that one command predicts, and where it writes them.

    Attributes:
        tables: paths of the tables.
        path: file to write; for several tables, a folder, in which they keep their names.
    """

    tables: Sequence[Path]
    path: Path

    @property
    def inputs(self) -> str:
        """The tables as arguments for a shell."""
        return files_for_shell(self.tables)

    @property
    def output(self) -> str:
        """The value of `--output`, quoted for a shell."""
        return shlex.quote(str(self.path))

    @property
    def written(self) -> str:
        """The written files as arguments for a shell."""
        if len(self.tables) == 1:
            return self.output
        return files_for_shell([self.path / path.name for path in self.tables], inputs=self.tables)


def _predicted_together(tables: Sequence[Table], output: Path) -> list[_Predicted]:
    """Return which tables one command can predict: all, unless two of them have the same name.

    Args:
        tables: tables of one split.
        output: folder for several tables. A table that is predicted alone has a file of this name
            with an ending, and with a number if it is not the only one.
    """
    paths = [table.path for table in tables]
    if len(paths) > 1 and len({path.name for path in paths}) == len(paths):
        return [_Predicted(paths, output)]
    predicted = []
    for number, table in enumerate(tables, 1):
        numbered = f"{output.name}.{number}" if len(tables) > 1 else output.name
        ending = ".tsv" if table.layout.delimiter == "\t" else ".csv"
        predicted.append(_Predicted([table.path], output.with_name(f"{numbered}{ending}")))
    return predicted


def _read_columns(layout: Layout | StringTask) -> list[str]:
    """Return the columns that are not left out."""
    return [column for column in layout.columns if column != LEFT_OUT]
