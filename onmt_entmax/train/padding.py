"""Decide whether a model trains on batches that are padded to few shapes, as CUDA graphs need."""

from typing import NamedTuple

import torch

from onmt_entmax.config import DataConfig
from onmt_entmax.data.shapes import Shapes
from onmt_entmax.model import SparseNMTModel, device_of
from onmt_entmax.sparse import backends


class Padding(NamedTuple):
    """Whether a model trains on padded batches.

    Attributes:
        shapes: the shapes to pad batches to; None for batches as they are.
        no_graphs: why a GPU trains without padding, and so without CUDA graphs; None if it pads,
            and on a CPU.
    """

    shapes: Shapes | None
    no_graphs: str | None


def padding_for(model: SparseNMTModel, config: DataConfig) -> Padding:
    """Return the padding with which a model trains on its device.

    Args:
        model: the model to train, on its device.
        config: size of the batches.
    """
    if not records_graphs(device_of(model)):
        return Padding(shapes=None, no_graphs=None)
    reason = why_not_padded(model)
    if reason is not None:
        return Padding(shapes=None, no_graphs=reason)
    return Padding(Shapes(config.batch_size, config.batch_type), no_graphs=None)


def records_graphs(device: torch.device) -> bool:
    """Return whether updates on a device may be CUDA graphs, which need batches of few shapes."""
    return device.type == "cuda"


def why_not_padded(model: SparseNMTModel) -> str | None:
    """Return why a model cannot be trained on padded batches, or None if it can."""
    backend = backends.backend_for(next(model.parameters()), 1.5)
    if device_of(model).type == "cuda" and backend is backends.reference:
        return "Triton starts no kernels here"
    for part in (model.encoder, model.decoder):
        if part.why_not_padded is not None:
            return part.why_not_padded
    if model.encoder.matmul_dtype is not None:
        return "`matmul_dtype: bfloat16` is for CPUs; on a GPU, `tf32` is faster"
    return None
