"""Predictions for sentence pairs, `tools.papers.nli_predictions`: their probabilities, measures."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.oracles import entmax_oracle
from tests.papers.nli_pairs import SMALL, write_pairs
from tools.papers.nli_batches import encode, make_batch
from tools.papers.nli_data import Pair, count_words
from tools.papers.nli_files import read_pairs
from tools.papers.nli_model import Classifier
from tools.papers.nli_predictions import Measures, Prediction, measure, predict

# Two premises, of two and of three words: 2.5 on average.
PAIRS = [
    Pair(("a", "a"), ("b",), label=0, line=1),
    Pair(("a", "a", "a"), ("b",), label=2, line=2),
]
FIRST_LABEL = [0.6, 0.4, 0]  # probabilities by which label 0 is predicted
PREDICTIONS = [
    Prediction(FIRST_LABEL, attention=[0.5, 0.5]),
    Prediction(FIRST_LABEL, attention=[0.1, 0, 0.9]),
]


def test_probabilities_are_those_of_the_mapping(tmp_path: Path) -> None:
    pairs = read_pairs(write_pairs(tmp_path / "pairs.tsv"), lowercase=True)
    words = count_words(pairs, min_frequency=1)
    settings = replace(SMALL, output=2)
    torch.manual_seed(0)
    model = Classifier(settings, len(words))
    encoded = encode(pairs, words)
    scores, _ = model(make_batch(encoded))  # (pairs, labels)
    predictions = predict(model, settings, encoded)
    probabilities = torch.tensor([prediction.probabilities for prediction in predictions]).double()
    torch.testing.assert_close(probabilities, entmax_oracle(scores.detach(), alpha=2))


def test_accuracy_is_the_percentage_of_right_labels() -> None:
    assert measure(SMALL, PAIRS, PREDICTIONS).accuracy == 50


@pytest.mark.parametrize("kind", [1.5, 2, "entmax15", "sparsemax"])
def test_sparse_attention_attends_to_words_with_a_weight(kind: float | str) -> None:
    assert measure(replace(SMALL, attention=kind), PAIRS, PREDICTIONS).attended == 2


@pytest.mark.parametrize("kind", [1, "softmax", "logistic"])
def test_dense_attention_attends_to_all_words_even_if_a_weight_is_0(kind: float | str) -> None:
    measures = measure(replace(SMALL, attention=kind), PAIRS, PREDICTIONS)
    assert measures.attended == measures.words == 2.5


def test_a_model_without_attention_has_no_number_of_attended_words() -> None:
    predictions = [Prediction(FIRST_LABEL, attention=None) for _ in PAIRS]
    measures = measure(replace(SMALL, attention="none"), PAIRS, predictions)
    assert measures == Measures(accuracy=50, attended=None, words=2.5)
