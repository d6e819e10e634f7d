"""The commands that `prepare` proposes next, as lines for a shell."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.parallel_configuration import DEFAULT_TOKENIZER, bleu_tokenizer
from onmt_entmax.cli.parallel_folder import ParallelFolder
from onmt_entmax.cli.shell_files import files_for_shell
from onmt_entmax.cli.tables import Table
from onmt_entmax.cli.training_file import CONFIGURATION
from onmt_entmax.errors import printable
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import LEFT_OUT, StringTask
from onmt_entmax.strings.units import CHARACTERS


def next_lines(*commands: str) -> list[str]:
    """Return each command of `onmt-entmax` as a line for a shell."""
    return [printable(f"onmt-entmax {command}") for command in commands]


def training_commands(row: Row, task: StringTask, out: Path) -> list[str]:
    """Return the command that trains; if the task is inflection, another that asks for a row.

    Such as `train -config run/mine/train.yaml`, `inflect --model run/mine/model german Hund N;NOM`.
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

    Rows with tags are nearly always inflections, which are predicted better with analogies
    (docs/guide-analogies.md).

    Args:
        tables: tables of all splits.
        task: task of the rows.
        out: the folder that `prepare` fills; the model is trained in it.
        language: language of all rows, if the user named one.
    """
    model, commands = shlex.quote(str(out / "model")), []
    language_option = f" --language {shlex.quote(language)}" if language else ""
    # `predict` reads these tables as it reads those that it predicts, whatever their headings.
    read = _read_columns(task.columns)
    training = [
        table.path
        for table in tables
        if table.split == "train" and _read_columns(table.layout.columns) == read
    ]
    analogies = f" --analogies {files_for_shell(training)}" if training and task.has_tags else ""
    for split, covered in (("dev", False), ("test", True)):
        chosen = [t for t in tables if t.split == split and t.has_targets != covered]
        for inputs, predicted in _predicted_together(chosen, out / f"{split}.predicted"):
            files, written = files_for_shell(inputs), shlex.quote(str(predicted))
            commands.append(
                f"predict {model} {files} --output {written}{language_option}{analogies}"
            )
            if covered:  # nothing to compare the predictions with
                continue
            if len(inputs) > 1:  # `predicted` is a folder
                outputs = [predicted / path.name for path in inputs]
                written = files_for_shell(outputs, inputs=inputs)
            commands.append(f"evaluate {written} --reference {files} --model {model}")
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


def translation_commands(folder: ParallelFolder) -> list[str]:
    """Return the commands that train, translate the development set, and measure BLEU."""
    source, target = folder.languages
    model = shlex.quote(str(folder.run))
    sources = shlex.quote(str(folder.text("val", source)))
    references = shlex.quote(str(folder.text("val", target)))
    output = shlex.quote(str(folder.out / "val.out"))
    tokenizer = bleu_tokenizer(folder)
    tokenize = "" if tokenizer == DEFAULT_TOKENIZER else f" --tokenize {tokenizer}"
    return [
        f"train -config {shlex.quote(str(folder.configuration))}",
        f"translate -model {model} -src {sources} -output {output}",
        f"bleu {output} --reference {references}{tokenize}",
    ]


def _predicted_together(tables: Sequence[Table], output: Path) -> list[tuple[list[Path], Path]]:
    """Return the tables of each command, and its output.

    A single table is predicted into a file, several into a folder, under their own names; each has
    a command of its own if two have one name. All tables have the delimiter of the first.
    """
    if not tables:
        return []
    paths = [table.path for table in tables]
    ending = ".tsv" if tables[0].layout.delimiter == "\t" else ".csv"
    if len({path.name for path in paths}) < len(paths):
        return [
            ([path], output.with_name(f"{output.name}.{number}{ending}"))
            for number, path in enumerate(paths, 1)
        ]
    if len(paths) > 1:
        return [(paths, output)]
    return [(paths, output.with_name(output.name + ending))]


def _read_columns(columns: Sequence[str]) -> list[str]:
    """Return the columns that are read."""
    return [column for column in columns if column != LEFT_OUT]
