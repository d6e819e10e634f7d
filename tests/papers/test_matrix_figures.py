"""Figures of a matrix: BLEU as validation has it, and outputs that cannot be measured."""

from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU

from onmt_entmax.errors import UserError
from tests.papers.matrices import read_matrix, write_matrix
from tests.toy import DEVELOPMENT_PAIRS
from tools.papers import evaluation, results
from tools.papers.matrix import Job


@pytest.fixture
def bleu_training(tmp_path: Path) -> Job:
    """A training of a matrix with BLEU of characters, which was not run."""
    options = {"valid_bleu_tokenize": "char"}
    path = write_matrix(tmp_path, evaluate="bleu", options=options, paper=None)
    training, _ = read_matrix(path).trainings()
    training.folder.mkdir(parents=True)
    return training


def test_bleu_counts_what_validation_counts(bleu_training: Job) -> None:
    matrix = bleu_training.matrix
    references = matrix.reference.read_text().splitlines()
    predictions = [line[:-2] or line for line in references]  # without the last letter
    bleu_training.output.write_text("\n".join(predictions) + "\n")
    figures = evaluation.bleu(bleu_training)
    expected = BLEU(tokenize="char").corpus_score(predictions, [references]).score
    assert figures["bleu"] == pytest.approx(expected, abs=1e-4)
    assert "tok:char" in figures["signature"]


def test_the_main_figure_names_its_tokenizer(bleu_training: Job) -> None:
    assert results.main_figure(bleu_training.matrix) == ("bleu", "BLEU (char)")


@pytest.mark.parametrize("name", evaluation.EVALUATE)
def test_an_output_that_was_cut_is_refused(bleu_training: Job, name: str) -> None:
    bleu_training.output.write_text("a\n")
    with pytest.raises(UserError, match=rf"dev.pred: 1 line, but .* has {DEVELOPMENT_PAIRS}; they"):
        evaluation.EVALUATE[name].measure(bleu_training)
