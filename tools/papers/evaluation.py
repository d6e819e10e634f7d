"""The figures of a run: decoded texts evaluated, and what training and search recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from sacrebleu.metrics import BLEU

from onmt_entmax.checkpoint import checkpoint_steps, read_config
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, read_aligned, read_object, write_files
from onmt_entmax.options.reader import read_yaml
from onmt_entmax.report.measures import score_by_language
from onmt_entmax.strings.task import language_of
from tools.papers.matrix import Cell, Work
from tools.papers.metrics import read_metrics

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


def texts_of(work: Work) -> tuple[list[str], ...]:
    """Return the lines of source, reference and predictions.

    Raises:
        UserError: the files differ in length.
    """
    return tuple(read_aligned(work.matrix.source, work.matrix.reference, work.output))


def sigmorphon(work: Work) -> dict[str, Any]:
    """Return the official measures: accuracy in percent and edit distance, averaged over languages.

    Raises:
        UserError: the files differ in length.
    """
    sources, references, predictions = texts_of(work)
    scores = score_by_language(
        [language_of(work.matrix.source, number, line) for number, line in enumerate(sources, 1)],
        references,
        predictions,
    )
    languages = {
        language: round(100 * of_language.accuracy, 4)
        for language, of_language in scores.languages.items()
    }
    return {
        "accuracy": round(100 * scores.average.accuracy, 4),
        "edit_distance": round(scores.average.edit_distance, 4),
        "languages": languages,
    }


def tokenizer_of(cell: Cell) -> str:
    """Return the tokeniser of BLEU, that of validation in training."""
    return str(cell.training.get("valid_bleu_tokenize", "13a"))


def bleu(work: Work) -> dict[str, Any]:
    """Return sacrebleu's BLEU and signature.

    Raises:
        UserError: the files differ in length.
    """
    _, references, predictions = texts_of(work)
    metric = BLEU(tokenize=tokenizer_of(work.cell), force=True)
    value = metric.corpus_score(predictions, [references]).score
    return {"bleu": round(value, 4), "signature": str(metric.get_signature())}


class Evaluation(NamedTuple):
    """A way to evaluate decoded texts.

    Attributes:
        measure: returns figures of a training or ensemble by name.
        main: the name of the figure by which cells are compared.
    """

    measure: Callable[[Work], dict[str, Any]]
    main: str


# By their names in matrix files.
EVALUATE: Mapping[str, Evaluation] = {
    "sigmorphon": Evaluation(sigmorphon, "accuracy"),
    "bleu": Evaluation(bleu, "bleu"),
}


def measurements(run: Path) -> list[dict[str, Any]]:
    """Return the measurements of a training so far."""
    return read_metrics(run) if (run / "metrics.jsonl").is_file() else []


def measure(work: Work) -> dict[str, Any]:
    """Evaluate the decoded development set of a training or ensemble; write figures.json.

    Raises:
        UserError: a file is missing, damaged or differs in length.
    """
    summary = read_object(work.folder / "dev.report.jsonl.summary.json")
    model = work.models()[0]
    config = read_config(model)[0]
    figures = {
        **EVALUATE[work.matrix.evaluate].measure(work),
        **{name: summary[key] for name, (key, _) in REPORT_FIGURES.items() if key in summary},
        "output_alpha": config.generator_alpha,
        "attention_alpha": config.source_attention_alpha,
        **_conditions(work),
    }
    if work.seed is not None:
        figures |= _figures_of_training(work, int(model.name.removeprefix("step_")))
    write_files({work.folder / "figures.json": json_text(figures)})
    return figures


def _conditions(work: Work) -> dict[str, Any]:
    """Return what the figures depend on; where it has changed, they are out of date."""
    return {
        "evaluate": work.matrix.evaluate,
        "translation": work.decoding_options(),
        "files": work.digests(),
    }


def _figures_of_training(training: Work, step: int) -> dict[str, Any]:
    """Return figures that training measured: its time, and the accuracy of its best checkpoint.

    Args:
        training: one that is done.
        step: of the best checkpoint.
    """
    figures: dict[str, Any] = {"step": step}
    rows = [row for row in measurements(training.run_folder) if row["kind"] == "valid"]
    if rows and "seconds" in rows[-1]:
        figures["training_seconds"] = rows[-1]["seconds"]
    best = [row for row in rows if row["step"] == step]
    if best and "token_accuracy" in best[-1]:
        figures["token_accuracy"] = best[-1]["token_accuracy"]
    return figures


def figures_of(work: Work) -> dict[str, Any] | None:
    """Return the figures of a training or ensemble, or None if they are missing or out of date.

    They are out of date if the weights, the source, the reference, or the options of decoding or
    evaluation have changed.

    Raises:
        UserError: a training has other options than the matrix, or a file is damaged.
    """
    path = work.folder / "figures.json"
    if not path.is_file() or not work.models():
        return None
    for training in work.members():
        check_unchanged(training)
    figures = read_object(path)
    conditions = _conditions(work)
    recorded = {name: figures.get(name) for name in conditions}
    return figures if recorded == conditions else None


def dumped(content: Mapping[str, Any]) -> str:
    """Return YAML."""
    return str(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True))


def check_unchanged(training: Work) -> None:
    """Refuse a training whose checkpoints are of other options than the matrix now has.

    Raises:
        UserError: names the first of them.
    """
    path, options = training.folder / "config.yaml", training.training_options()
    if not path.is_file() or not checkpoint_steps(training.run_folder):
        return
    # Compare as text first: YAML reads a string of digits as a number.
    if path.read_text(encoding="utf-8") == dumped(options):
        return
    before = read_yaml(str(path))
    for name in (*options, *before):
        was, now = _shown(before, name), _shown(options, name)
        if was != now:
            raise UserError(
                f"{training.folder}: was trained with {name} {was}, the matrix now says {now}; "
                "delete that folder or choose another run folder"
            )


def _shown(options: Mapping[str, Any], name: str) -> str:
    """Return the value of an option, for a message."""
    return repr(options[name]) if name in options else "unset"
