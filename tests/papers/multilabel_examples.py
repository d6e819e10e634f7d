"""Losses and random examples, for tests of multi-label classifiers."""

import numpy as np
import torch

from tools.papers.multilabel_data import Examples
from tools.papers.multilabel_loss import Loss

LOGISTIC = Loss("logistic", None)
SOFTMAX = Loss("softmax", 1.0)
ENTMAX = Loss("1.25", 1.25)
SPARSEMAX = Loss("sparsemax", 2.0)


def random_examples(rows: int = 30, seed: int = 0) -> Examples:
    """Return rows whose three labels are the signs of linear functions, with noise.

    Each has at least one label, that of the largest function.
    """
    generator = np.random.default_rng(seed)
    table = generator.normal(size=(rows, 4)) * 3 + 1
    scores = (table - 1) @ generator.normal(size=(4, 3))
    flags = torch.from_numpy(scores + generator.normal(size=scores.shape) > 0)
    flags[torch.arange(rows), torch.from_numpy(scores.argmax(1))] = True
    return Examples(table, flags, ("x", "y", "z"))
