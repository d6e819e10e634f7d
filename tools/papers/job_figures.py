"""Measure the results of jobs: their evaluation, and what training and search recorded.

The figures of a job are in its figures.json, with the files and options that they depend on. When
these change, the figures are out of date.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import read_config
from onmt_entmax.files import json_text, read_object, write_files
from tools.papers.evaluation import EVALUATE
from tools.papers.matrix import Job, Training
from tools.papers.metrics import read_metrics
from tools.papers.trained_options import check_unchanged

# Names in figures.json of values in the summary of the exactness report, and their headings.
REPORT_FIGURES = {
    "exhaustive": ("exhaustive_percent", "exhaustive %"),
    "exhaustive_strict": ("strict_exhaustive_percent", "strict %"),
    "optimal": ("argmax_proven_percent", "proven %"),
    "one_string": ("single_hypothesis_percent", "unique %"),
    "output_support": ("mean_output_support", "output nonzeros"),
    "attention_support": ("mean_attention_support", "attention nonzeros"),
    "decoder_rows": ("decoder_rows_per_sentence", ""),
    "decoding_seconds": ("seconds", ""),
}


def measurements(run: Path) -> list[dict[str, Any]]:
    """Return the measurements of a training so far."""
    return read_metrics(run) if (run / "metrics.jsonl").is_file() else []


def measure(job: Job) -> dict[str, Any]:
    """Evaluate the decoded development set of a training or ensemble; write figures.json.

    Raises:
        UserError: a file is missing, damaged or differs in length.
    """
    summary = read_object(job.folder / "dev.report.jsonl.summary.json")
    model = job.models()[0]
    config = read_config(model).network
    figures = {
        **EVALUATE[job.matrix.evaluate].measure(job),
        **{name: summary[key] for name, (key, _) in REPORT_FIGURES.items() if key in summary},
        "output_alpha": config.generator_alpha,
        "attention_alpha": config.source_attention_alpha,
        **_conditions(job),
    }
    if isinstance(job, Training):
        figures |= _figures_of_training(job, int(model.name.removeprefix("step_")))
    write_files({job.folder / "figures.json": json_text(figures)})
    return figures


def _conditions(job: Job) -> dict[str, Any]:
    """Return what the figures depend on; where it has changed, they are out of date."""
    return {
        "evaluate": job.matrix.evaluate,
        "translation": job.decoding_options(),
        "files": job.digests(),
    }


def _figures_of_training(training: Training, step: int) -> dict[str, Any]:
    """Return figures that training measured: its time, and the accuracy of its best checkpoint.

    Args:
        training: one that is done.
        step: step of the best checkpoint.
    """
    figures: dict[str, Any] = {"step": step}
    rows = [row for row in measurements(training.run_folder) if row["kind"] == "valid"]
    if rows and "seconds" in rows[-1]:
        figures["training_seconds"] = rows[-1]["seconds"]
    best = [row for row in rows if row["step"] == step]
    if best and "token_accuracy" in best[-1]:
        figures["token_accuracy"] = best[-1]["token_accuracy"]
    return figures


def figures_of(job: Job) -> dict[str, Any] | None:
    """Return the figures of a training or ensemble, or None if they are missing or out of date.

    They are out of date if the weights, the source, the reference, or the options of decoding or
    evaluation have changed.

    Raises:
        UserError: a training has other options than the matrix, or a file is damaged.
    """
    path = job.folder / "figures.json"
    if not path.is_file() or not job.models():
        return None
    for training in job.members():
        check_unchanged(training)
    figures = read_object(path)
    conditions = _conditions(job)
    recorded = {name: figures.get(name) for name in conditions}
    return figures if recorded == conditions else None
