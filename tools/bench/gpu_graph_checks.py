"""Checks of CUDA graphs for `gpu.py`: their updates against plain ones."""

from __future__ import annotations

import torch

from onmt_entmax.data.shapes import Shapes
from onmt_entmax.errors import UserError
from tools.bench.gpu_contenders import StaticStep
from tools.bench.gpu_device import Device, Result
from tools.bench.gpu_networks import Lstm
from tools.bench.gpu_sizes import Size

DROPOUT = 0.3
ROUNDS = 3  # over all batches: plain, recorded, replayed


def check_graphs(device: Device, size: Size, count: int) -> Result:
    """Compare the first replay of every graph with a plain update, with dropout.

    `train.graphs.Recorder` compares, in its mode "check". The first time, a shape of batches is
    computed plainly, the second time its graph is recorded and replayed.

    Args:
        device: the device to check.
        size: size of network and batches.
        count: number of batches.

    Returns:
        A row like those of `gpu_update_checks.py`; the error of a check that could not end is the
        text of what was raised.
    """
    torch.manual_seed(3)
    network = size.network
    alpha = "1.5" if isinstance(network, Lstm) else network.other_alpha
    model = network.our_model(alpha, DROPOUT).to(device.device)
    step = StaticStep(model, network.corpus.vocabularies, Shapes(size.pairs), graphs="check")
    what = f"graphs {network.name} {size.pairs} pairs"
    batches = size.batches(count)
    try:
        for _ in range(ROUNDS):
            for batch in batches:
                step.take(batch)
    except (UserError, RuntimeError) as error:  # they differ, or a graph cannot be recorded
        return {"what": what, "error": str(error), "ok": False}
    is_right = step.is_finite and step.graphs > 0
    return {"what": what, "error": 0.0, "graphs": step.graphs, "ok": is_right}
