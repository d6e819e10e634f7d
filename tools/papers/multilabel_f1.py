"""F1 of predicted labels, averaged over labels in three ways."""

from __future__ import annotations

from torch import Tensor


def f1(labels: Tensor, predicted: Tensor) -> dict[str, float]:
    """Return three averages of F1 over labels, in %.

    `micro_f1` counts all labels together. `macro_f1` is 2PR / (P + R) of the mean precision P and
    the mean recall R of the labels, as in the authors' code. `label_mean_f1` is the mean of the
    labels' F1, which scikit-learn calls macro. 0/0 is 0: the precision of a label that is never
    predicted, the recall of one that no row has. scikit-learn's functions agree, but take at
    least 25 times as long, and cross-validation calls this for each point of its grid.

    Args:
        labels: bool `(rows, labels)`, those that the rows have.
        predicted: bool `(rows, labels)`, those that a model gives them.
    """
    # Counts by label.
    hits = (labels & predicted).sum(0).double()
    true = labels.sum(0).double()
    chosen = predicted.sum(0).double()
    precision = float((hits / chosen.clamp_min(1)).mean())
    recall = float((hits / true.clamp_min(1)).mean())
    total = true + chosen
    return {
        "micro_f1": 200 * float(hits.sum() / total.sum().clamp_min(1)),
        "macro_f1": 200 * precision * recall / ((precision + recall) or 1),
        "label_mean_f1": 200 * float((hits / total.clamp_min(1)).mean()),
    }
