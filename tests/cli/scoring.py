"""Calls of `onmt-entmax score` for tests, on small random models."""

from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.cli import score
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.model import SparseNMTModel, build_model
from tests.cli.tables import write_table
from tests.commands import json_lines
from tests.in_process import exit_status
from tests.models import small, vocabularies_of

VOCABULARIES = vocabularies_of("ab", "xyz")

Record = dict[str, Any]


def write_model(
    folder: Path, seed: int, vocabularies: Vocabularies = VOCABULARIES, **options: Any
) -> SparseNMTModel:
    """Write a random model, and return it.

    Args:
        folder: folder to write.
        seed: seed of the weights.
        vocabularies: its tokens.
        options: recorded in the folder, such as `transforms`.
    """
    torch.manual_seed(seed)
    config = small(generator_alpha=1.5, param_init=0.7)
    model = build_model(config, vocabularies).eval()
    save(folder, model, config, vocabularies, options)
    return model


def score_lines(folder: Path, *models: Path, source: list[str], target: list[str]) -> list[Record]:
    """Score lines with a model or an ensemble; return the records.

    Args:
        folder: receives the files of the lines and of the records.
        models: folders of the models.
        source: lines of tokens between spaces.
        target: a line for each line of the source.
    """
    output = folder / "scores.jsonl"
    files = ["-src", write_table(folder / "src", *source), "-output", output]
    files += ["-tgt", write_table(folder / "tgt", *target)]
    assert exit_status(score.main, [str(word) for word in (*files, "-model", *models)]) == 0
    return json_lines(output)


def tokens_of(record: Record) -> list[str]:
    """Return the tokens of a record's steps."""
    return [step["token"] for step in record["steps"]]
