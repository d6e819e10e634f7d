"""Evaluation of a decoded development set; the figures are kept in figures.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU

from onmt_entmax.checkpoint import find_model, read_config
from onmt_entmax.data.inflection import decode_word, language_of
from onmt_entmax.experiment.matrix import (
    Training,
    Work,
    check_configuration,
    digest,
    named_files,
    translation,
)
from onmt_entmax.figures.curves import read_metrics
from onmt_entmax.files import read_aligned, read_object, write_text
from onmt_entmax.report.bleu import compare
from onmt_entmax.report.measures import score_by_language

# Names in figures.json of values in the summary of the exactness report.
REPORT_FIGURES = {
    "exhaustive": "exhaustive_percent",
    "exhaustive_strict": "strict_exhaustive_percent",
    "optimal": "argmax_proven_percent",
    "one_string": "single_hypothesis_percent",
    "output_support": "mean_output_support",
    "attention_support": "mean_attention_support",
    "decoder_rows": "decoder_rows_per_sentence",
    "decoding_seconds": "seconds",
}


def sigmorphon(work: Work) -> dict[str, Any]:
    """Return the official measures: accuracy in percent and edit distance, averaged over languages.

    Raises:
        UserError: the files differ in length.
    """
    sources, references, predictions = _texts(work)
    path = work.matrix.source
    scores = score_by_language(
        [language_of(path, number, line) for number, line in enumerate(sources, 1)],
        [decode_word(line.split()) for line in references],
        [decode_word(line.split()) for line in predictions],
    )
    return {
        "accuracy": round(100 * scores.average.accuracy, 4),
        "edit_distance": round(scores.average.edit_distance, 4),
        "languages": {
            name: round(100 * each.accuracy, 4) for name, each in scores.languages.items()
        },
    }


def bleu(work: Work) -> dict[str, Any]:
    """Return sacrebleu's BLEU and signature, with the tokeniser of validation in training.

    Raises:
        UserError: the files differ in length.
    """
    _, references, predictions = _texts(work)
    metric = BLEU(tokenize=_tokenizer(work), force=True)
    value = metric.corpus_score(predictions, [references]).score
    return {"bleu": round(value, 4), "signature": str(metric.get_signature())}


def compared_bleu(trainings: Sequence[Training]) -> list[tuple[float, float]]:
    """Compare translations with those of the first training by a paired bootstrap test.

    Args:
        trainings: of one pair and seed, all measured.

    Returns:
        For each but the first, the difference in BLEU and p, the probability of so large a
        difference between systems that do not differ (Koehn 2004).

    Raises:
        UserError: the files differ in length.
    """
    texts = [_texts(training) for training in trainings]
    references = texts[0][1]
    metric = BLEU(tokenize=_tokenizer(trainings[0]), force=True)
    systems = [(str(i), predictions) for i, (_, _, predictions) in enumerate(texts)]
    (measured,) = compare(systems, [references], [("BLEU", metric)], resamples=1000)
    first, *others = measured.scores
    return [(o.value - first.value, o.p_value) for o in others if o.p_value is not None]


def _tokenizer(work: Work) -> str:
    """Return the tokeniser of BLEU, that of validation in training."""
    return str(work.cell.training.get("valid_bleu_tokenize", "13a"))


def _texts(work: Work) -> tuple[list[str], ...]:
    """Return the lines of source, reference and predictions.

    Raises:
        UserError: the files differ in length.
    """
    matrix = work.matrix
    return tuple(read_aligned(matrix.source, matrix.reference, work.folder / "dev.pred"))


# Evaluations by their names in matrix files. Each reads dev.pred in the folder of a training or an
# ensemble; tables compare by its first figure.
EVALUATIONS: Mapping[str, Callable[[Work], dict[str, Any]]] = {
    "sigmorphon": sigmorphon,
    "bleu": bleu,
}


def measure(work: Work) -> dict[str, Any]:
    """Evaluate the decoded development set of a training or ensemble; write figures.json."""
    summary = read_object(work.folder / "dev.report.jsonl.summary.json")
    figures = EVALUATIONS[work.matrix.evaluate](work)
    figures |= {name: summary[key] for name, key in REPORT_FIGURES.items() if key in summary}
    models = work.models()
    config, _ = read_config(models[0])
    figures |= {
        "output_alpha": config.generator_alpha,
        "attention_alpha": config.source_attention_alpha,
        "evaluate": work.matrix.evaluate,
        "translation": translation(work),
        "files": _files(work),
    }
    if isinstance(work, Training):
        last = last_measurement(work.run, "valid")
        figures["step"] = step = int(find_model(work.run).name.removeprefix("step_"))
        figures |= {"training_seconds": last["seconds"]} if "seconds" in last else {}
        best = last_measurement(work.run, "valid", step)
        if "token_accuracy" in best:
            figures["token_accuracy"] = round(best["token_accuracy"], 4)
    text = json.dumps(figures, indent=2, ensure_ascii=False) + "\n"
    write_text(work.folder / "figures.json", text)
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
    for training in [work] if isinstance(work, Training) else work.members():
        check_configuration(training)
    figures = read_object(path)
    recorded = [figures.get(name) for name in ("evaluate", "translation", "files")]
    now = [work.matrix.evaluate, translation(work), _files(work)]
    return figures if recorded == now else None


def _files(work: Work) -> dict[str, str | None]:
    """Return digests of the files that the figures depend on."""
    weights = [model / "model.safetensors" for model in work.models()]
    subwords = named_files(work.cell, ["subword_model"])
    paths = (work.matrix.source, work.matrix.reference, *weights, *subwords)
    return {str(path): digest(path) for path in paths}


def last_measurement(run: Path, kind: str = "", step: int | None = None) -> dict[str, Any]:
    """Return the last line of a run's metrics.jsonl; empty if there is none.

    Args:
        run: the run folder.
        kind: only lines of this kind, if given.
        step: only lines of this step, if given.

    Raises:
        UserError: a line is no measurement.
    """
    rows = read_metrics(run) if (run / "metrics.jsonl").is_file() else []
    found = [row for row in rows if kind in ("", row["kind"]) and step in (None, row["step"])]
    return found[-1] if found else {}
