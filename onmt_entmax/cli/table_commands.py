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


def training_commands(row: Row, task: StringTask, out: Path) -> list[str]:
    """Return the command that trains and, for inflection, one that inflects the lemma of a row.

    For example, `train -config run/mine/train.yaml` and
    `inflect --model run/mine/model german Hund N;NOM`.
    """
    commands = [f"train -config {shlex.quote(str(out / CONFIGURATION))}"]
    query = row.query
    if query.language and query.tags and task.source == task.target == CHARACTERS:
        words = [query.language, query.source, ";".join(query.tags)]
        commands.append(shlex.join(["inflect", "--model", str(out / "model"), *words]))
    return commands


def prediction_commands(
    tables: Sequence[Table], task: StringTask, out: Path, language: str | None
) -> list[str]:
    """Return the commands that predict and evaluate dev tables, and predict covered test tables.

    A test table is covered if it has no targets. If the rows have tags, they are nearly always
    inflections, which are predicted better with analogies (docs/guide-analogies.md).

    Args:
        tables: tables of all splits.
        task: task of the rows.
        out: the folder that `prepare` fills; the model is trained in it.
        language: language of all rows, if the user named one.
    """
    model = shlex.quote(str(out / "model"))
    options = f" --language {shlex.quote(language)}" if language else ""
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


def page_commands(out: Path) -> list[str]:
    """Return the commands that write a page of the dev set's outputs, with certificates.

    Args:
        out: the folder that `prepare` fills; the model is trained in it.
    """
    names = "model dev.src dev.out dev.report.jsonl dev.html".split()
    model, source, output, report, page = (shlex.quote(str(out / name)) for name in names)
    return [
        f"translate -model {model} -src {source} -output {output} -n_best 5 "
        f"-exactness_report {report}",
        f"report -model {model} -report {report} -output {page}",
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
