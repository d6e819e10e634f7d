"""Random scores for the benchmarks of mappings and losses."""

import torch

DEVIATIONS = {"uniform": 0.1, "normal": 1.0, "wide": 4.0}
STEEPNESS = 1.5  # of Zipf's law, of "trained"


def logits(kind: str, rows: int, classes: int) -> torch.Tensor:
    """Return random scores `(rows, classes)`.

    Args:
        kind: "uniform" (std 0.1), "normal", "wide" (std 4), or "trained", like a trained model's:
            the classes of a row have random ranks, and the score of a rank is -1.5 times its
            logarithm (Zipf's law) plus noise, so that a few are large and the others far below.
        rows: number of rows.
        classes: number of classes.
    """
    noise = torch.randn(rows, classes)
    if kind == "trained":
        ranks = torch.rand(rows, classes).argsort(1).add(1)
        return -STEEPNESS * ranks.log() + noise
    return noise * DEVIATIONS[kind]
