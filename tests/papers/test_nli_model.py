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
from tools.papers import nli, nli_model, nli_predictions
from tools.papers.nli_data import Batch, Encoded


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


KINDS = ["logistic", "softmax", 1.5, "sparsemax"]


def scores_by_formula(
    attention: nli_model.PremiseAttention, states: Tensor, query: Tensor
) -> Tensor:
    """Return the scores `(positions,)` of one premise, position by position.

    That of a state h with the query q is w . tanh(W h + U q + b).

    Args:
        attention: of size 4.
        states: `(positions, 4)`.
        query: `(4,)`.
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
    return entmax_oracle(scores, nli.alpha_of(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_formula(kind: float | str) -> None:
    attention = nli_model.PremiseAttention(4, kind).double()
    states = 3 * torch.randn(3, 5, 4).double()  # (sentences, positions, size)
    query = torch.randn(3, 4).double()
    lengths = torch.tensor([5, 1, 3])
    weights = attention(states, query, lengths)
    for sentence, length in enumerate(lengths.tolist()):
        scores = scores_by_formula(attention, states[sentence, :length], query[sentence])
        torch.testing.assert_close(
            weights[sentence, :length], mapped(kind, scores), atol=1e-6, rtol=0
        )


@pytest.mark.parametrize("kind", KINDS)
def test_padding_has_no_weight(kind: float | str) -> None:
    attention = nli_model.PremiseAttention(4, kind)
    weights = attention(torch.randn(3, 5, 4), torch.randn(3, 4), torch.tensor([5, 1, 3]))
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
        nli.Pair(("a", "a"), ("b",), label=0, line=1),
        nli.Pair(("a", "a", "a"), ("b",), label=2, line=2),
    ]
    weights = [[0.5, 0.5], [0.1, 0, 0.9]]
    predictions = [nli_predictions.Prediction([0.6, 0.4, 0], each) for each in weights]
    measures = nli.measure(replace(SMALL, attention=kind), pairs, predictions)
    assert measures == nli.Measures(accuracy=50, attended=attended, words=2.5)


@pytest.fixture
def corpus() -> Path:
    return write_pairs(Path("pairs.tsv"))


class Update(NamedTuple):
    """A model after one update, whose learning rate is too small to change it, and its pairs."""

    settings: nli.Settings
    model: nli.Classifier
    encoded: list[Encoded]
    """The training pairs."""
    batch: Batch
    """All of them."""


@pytest.fixture
def update(corpus: Path) -> Update:
    settings = replace(SMALL, output=2, epochs=1, batch_size=100, learning_rate=1e-9)
    nli.train(settings, Path("run"), lambda line: None)
    _, vocabulary, model = nli.load(Path("run"))
    kept, _ = nli.hold_out(nli.read_pairs(corpus, True), SMALL.held_out)
    encoded = nli.encode(kept, vocabulary)
    return Update(settings, model, encoded, nli.make_batch(encoded))


def test_a_held_out_part_shares_no_premise_with_training(corpus: Path) -> None:
    kept, selection = nli.hold_out(nli.read_pairs(corpus, True), SMALL.held_out)
    assert selection
    assert not {pair.premise for pair in kept} & {pair.premise for pair in selection}


def test_probabilities_are_those_of_the_mapping(update: Update) -> None:
    scores = update.model(update.batch)[0].detach()
    predictions = nli.predict(update.model, update.settings, update.encoded)
    probabilities = torch.tensor([each.probabilities for each in predictions]).double()
    assert torch.allclose(probabilities, entmax_oracle(scores, 2))


def test_the_loss_is_that_of_the_mapping(update: Update) -> None:
    scores = update.model(update.batch)[0].detach()
    one_hot = torch.nn.functional.one_hot(update.batch.labels, 3).double()
    expected = loss_oracle(scores, one_hot, 2).mean().item()
    loss = json.loads(Path("run/metrics.jsonl").read_text())["loss"]
    assert loss == pytest.approx(expected, abs=1e-5)
