"""Count how often training sees each target token."""

from contextlib import closing

import numpy as np
import torch

from onmt_entmax.data.stream import TrainingBatches
from onmt_entmax.data.training import TrainingData


def target_frequencies(data: TrainingData) -> torch.Tensor:
    """Return the relative frequency of each target token in the first epoch, ``(vocab,)``.

    Tokens are counted after the transforms, with corpora weighted as in training. The end symbol
    counts once for each pair, the start symbol and padding not at all.
    """
    size, pad = len(data.vocabularies.target), data.vocabularies.target.pad
    counts = np.zeros(size)
    batches = TrainingBatches(data)
    with closing(iter(batches)) as stream:
        for batch in stream:
            assert batch.target is not None, "training batches have targets"
            counts += np.bincount(batch.target[1:].flatten().numpy(), minlength=size)
            if batches.position.epoch > 0:
                break
    counts[pad] = 0
    return torch.from_numpy(counts / counts.sum()).float()
