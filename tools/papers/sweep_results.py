"""Results of trainings with different alphas, which a figure of a sweep shows."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.checkpoint import find_model, read_config
from onmt_entmax.errors import UserError
from onmt_entmax.files import read_lines, read_object
from tools.papers.metrics import read_metrics


class Result(NamedTuple):
    """The result of a training.

    Attributes:
        origin: file, or file and line, for errors.
        values: `attention_alpha`, `output_alpha` and measures by name.
    """

    origin: str
    values: Mapping[str, Any]

    def number(self, name: str) -> float:
        """Return a value as a number.

        Raises:
            UserError: there is no such value, or it is not a number.
        """
        value = self.values.get(name)
        if value is None:
            raise UserError(f"{self.origin}: has no {name}")
        try:
            return float(value)
        except (TypeError, ValueError):
            raise UserError(f"{self.origin}: {name} is {value!r}, and must be a number") from None


def read_results(path: Path) -> Iterator[Result]:
    """Yield the results of a CSV file, of a run, or of all figures.json files below a folder.

    Raises:
        UserError: a file cannot be read, or the model of a run was not validated.
    """
    if not path.is_dir():
        yield from _read_table(path)
        return
    yield from _read_figures(path)
    if (path / "metrics.jsonl").is_file():
        yield _read_run(path)


def _read_table(path: Path) -> Iterator[Result]:
    """Yield the rows of a CSV file."""
    reader = csv.DictReader(read_lines(path))
    for row in reader:
        yield Result(f"{path}:{reader.line_num}", row)


def _read_figures(folder: Path) -> Iterator[Result]:
    """Yield the figures of single trainings, which `tools.papers.tables` wrote below a folder."""
    for file in sorted(folder.rglob("figures.json")):
        if file.parent.name != "ensemble":  # the figure shows single seeds and their mean
            yield Result(str(file), read_object(file))


def _read_run(run: Path) -> Result:
    """Return the alphas of the best model of a run, and its validation."""
    model = find_model(run)
    step = int(model.name.removeprefix("step_"))
    log = run / "metrics.jsonl"
    for row in read_metrics(run):
        if row["kind"] == "valid" and row["step"] == step:
            network = read_config(model).network
            alphas = {
                "attention_alpha": network.source_attention_alpha,
                "output_alpha": network.generator_alpha,
            }
            return Result(str(log), {**row, **alphas})
    raise UserError(f"{log}: no validation at step {step}, that of {model}; leave out this run")
