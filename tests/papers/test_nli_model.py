"""Attention over sentence pairs, `tools.papers.nli_model`: weights, measures and losses."""

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from tests.oracles import entmax_oracle, loss_oracle
from tests.papers.nli_pairs import SMALL, write_pairs
from tools.papers import nli_training
from tools.papers.nli_batches import Batch, Encoded, encode, make_batch
from tools.papers.nli_data import LABELS, Pair, hold_out, read_pairs
from tools.papers.nli_model import Classifier, PremiseAttention
from tools.papers.nli_predictions import Measures, Prediction, measure, predict
from tools.papers.nli_run import load
from tools.papers.nli_settings import Settings, alpha_of

KINDS = ["logistic", "softmax", 1.5, "sparsemax"]
SIZE = 4  # of states and queries
LENGTHS = torch.tensor([5, 1, 3])  # words of three premises, which are padded to the longest


def scores_by_formula(attention: PremiseAttention, states: Tensor, query: Tensor) -> Tensor:
    """Return the scores `(positions,)` of one premise, position by position.

    That of a state h with the query q is w . tanh(W h + U q + b).

    Args:
        attention: has W as `premise`, U and b as `hypothesis`, w as `score`.
        states: `(positions, SIZE)`.
        query: `(SIZE,)`.
    """
    scores = []
    for state in states:
        hidden = attention.premise.weight @ state
        hidden = hidden + attention.hypothesis.weight @ query
        hidden = hidden + attention.hypothesis.bias
        scores.append((attention.score.weight[0] @ hidden.tanh()).item())
    return torch.tensor(scores).double()


def mapped(kind: float | str, scores: Tensor) -> Tensor:
    """Return the weights `(positions,)` of scores, by definition."""
    if kind == "logistic":
        return 1 / (1 + torch.exp(-scores))
    return entmax_oracle(scores, alpha_of(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_formula(kind: float | str) -> None:
    attention = PremiseAttention(SIZE, kind).double()
    states = 3 * torch.randn(3, 5, SIZE).double()  # (sentences, positions, SIZE)
    query = torch.randn(3, SIZE).double()
    weights = attention(states, query, LENGTHS)
    for sentence, length in enumerate(LENGTHS.tolist()):
        scores = scores_by_formula(attention, states[sentence, :length], query[sentence])
        torch.testing.assert_close(
            weights[sentence, :length], mapped(kind, scores), atol=1e-6, rtol=0
        )


@pytest.mark.parametrize("kind", KINDS)
def test_padding_has_no_weight(kind: float | str) -> None:
    attention = PremiseAttention(SIZE, kind)
    weights = attention(torch.randn(3, 5, SIZE), torch.randn(3, SIZE), LENGTHS)
    assert not weights[1, 1:].any()
    assert not weights[2, 3:].any()


# --- measures and losses ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "attended"),
    [("none", None), ("logistic", 2.5), ("softmax", 2.5), (1, 2.5), ("entmax15", 2), (2, 2)],
)
def test_accuracy_and_mean_numbers_of_attended_and_of_all_words(
    kind: float | str, attended: float | None
) -> None:
    """Softmax and the logistic function attend to all words, even with a weight that is 0."""
    pairs = [
        Pair(("a", "a"), ("b",), label=0, line=1),
        Pair(("a", "a", "a"), ("b",), label=2, line=2),
    ]
    first_label = [0.6, 0.4, 0]  # right for the first pair alone
    predictions = [
        Prediction(first_label, attention=[0.5, 0.5]),
        Prediction(first_label, attention=[0.1, 0, 0.9]),
    ]
    measures = measure(replace(SMALL, attention=kind), pairs, predictions)
    assert measures == Measures(accuracy=50, attended=attended, words=2.5)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_pairs(tmp_path / "pairs.tsv")


class Update(NamedTuple):
    """One update with all training pairs, whose learning rate is too small to change the model.

    So the model that was written still has the loss of before the update, which was logged.
    """

    settings: Settings
    logged_loss: float
    model: Classifier
    encoded: list[Encoded]
    """The training pairs."""
    batch: Batch
    """All of them."""


@pytest.fixture
def update(corpus: Path, tmp_path: Path) -> Update:
    settings = replace(
        SMALL,
        train=str(corpus),
        output=2,
        epochs=1,
        batch_size=100,  # more than there are pairs
        learning_rate=1e-9,
    )
    run = tmp_path / "run"
    nli_training.train(settings, run, say=lambda line: None)
    _, vocabulary, model = load(run)
    trained, _ = hold_out(read_pairs(corpus, lowercase=True), SMALL.held_out)
    encoded = encode(trained, vocabulary)
    logged_loss = json.loads((run / "metrics.jsonl").read_text())["loss"]
    return Update(settings, logged_loss, model, encoded, make_batch(encoded))


def test_a_held_out_part_shares_no_premise_with_training(corpus: Path) -> None:
    trained, held_out = hold_out(read_pairs(corpus, lowercase=True), SMALL.held_out)
    assert held_out
    assert not {pair.premise for pair in trained} & {pair.premise for pair in held_out}


def test_probabilities_are_those_of_the_mapping(update: Update) -> None:
    scores = update.model(update.batch)[0].detach()
    predictions = predict(update.model, update.settings, update.encoded)
    probabilities = torch.tensor([prediction.probabilities for prediction in predictions]).double()
    assert torch.allclose(probabilities, entmax_oracle(scores, alpha=2))


def test_the_loss_is_that_of_the_mapping(update: Update) -> None:
    scores = update.model(update.batch)[0].detach()
    one_hot = torch.nn.functional.one_hot(update.batch.labels, len(LABELS)).double()
    expected = loss_oracle(scores, one_hot, alpha=2).mean().item()
    assert update.logged_loss == pytest.approx(expected, abs=1e-5)
