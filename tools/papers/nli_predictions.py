"""Predictions of attention classifiers, and how good they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from onmt_entmax.sparse import entmax
from tools.papers.nli_batches import Encoded, make_batch
from tools.papers.nli_data import Pair
from tools.papers.nli_model import Classifier
from tools.papers.nli_settings import Settings, alpha_of, is_dense

BATCH_SIZE = 256  # pairs


class Measures(NamedTuple):
    """Measures of a model's predictions for some pairs.

    Attributes:
        accuracy: percent of right labels.
        attended: mean number of words with a weight above zero in a premise; None without
            attention. Softmax and the logistic function attend to all words, even where a weight
            rounds to zero.
        words: mean number of words in a premise.
    """

    accuracy: float
    attended: float | None
    words: float

    def __str__(self) -> str:
        text = f"accuracy {self.accuracy:.2f} %"
        if self.attended is not None:
            text += f", {self.attended:.2f} of {self.words:.2f} words attended"
        return text


class Prediction(NamedTuple):
    """Probabilities of the labels, and the attention to each word of the premise."""

    probabilities: list[float]
    attention: list[float] | None

    @property
    def label(self) -> int:
        """The most probable label; of equal ones, the first."""
        return self.probabilities.index(max(self.probabilities))


@torch.no_grad()
def predict(model: Classifier, settings: Settings, encoded: Sequence[Encoded]) -> list[Prediction]:
    """Return the predictions of a model for encoded pairs; its mode is the same afterwards."""
    was_training = model.training
    model.eval()
    predictions = []
    for first in range(0, len(encoded), BATCH_SIZE):
        batch = make_batch(encoded[first : first + BATCH_SIZE])
        scores, attention = model(batch)  # (batch, labels), (batch, premise length) or None
        probabilities = entmax(scores.double(), alpha_of(settings.output)).tolist()
        for row, length in enumerate(batch.premise_lengths.tolist()):
            weights = None if attention is None else attention[row, :length].tolist()
            predictions.append(Prediction(probabilities[row], weights))
    model.train(was_training)
    return predictions


def measure(
    settings: Settings, pairs: Sequence[Pair], predictions: Sequence[Prediction]
) -> Measures:
    """Return the measures of predictions.

    Args:
        settings: settings of the model.
        pairs: pairs with their labels.
        predictions: predictions for the pairs.
    """
    right = sum(
        prediction.label == pair.label for prediction, pair in zip(predictions, pairs, strict=True)
    )
    words = sum(len(pair.premise) for pair in pairs) / len(pairs)
    if settings.attention == "none":
        attended = None
    elif is_dense(settings.attention):
        attended = words
    else:
        weights = [weight for prediction in predictions for weight in prediction.attention or ()]
        attended = sum(weight > 0 for weight in weights) / len(pairs)
    return Measures(100 * right / len(pairs), attended, words)
