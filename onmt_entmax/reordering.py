"""Reorder the tokens of a network: the models of an ensemble must have the same token ids."""

import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.initial_weights import SkippedInitialisation
from onmt_entmax.model import SparseNMTModel, build_model, device_of


def with_tokens_in_order(
    model: SparseNMTModel, config: ModelConfig, vocabularies: Vocabularies, wanted: Vocabularies
) -> SparseNMTModel:
    """Return the same network, in evaluation mode, for vocabularies in another order.

    Args:
        model: the network.
        config: the configuration from which `build_model` made it.
        vocabularies: its vocabularies.
        wanted: vocabularies with the same tokens in another order.
    """
    with SkippedInitialisation():
        changed = build_model(config, wanted)
    changed.load_state_dict(model.state_dict())
    tables = [
        (changed.encoder.embeddings.word_lut.weight, vocabularies.source, wanted.source),
        (changed.decoder.embeddings.word_lut.weight, vocabularies.target, wanted.target),
        (changed.generator.weight, vocabularies.target, wanted.target),
        (changed.generator.bias, vocabularies.target, wanted.target),
    ]
    distinct = {id(table): (table, before, after) for table, before, after in tables}
    with torch.no_grad():
        for table, before, after in distinct.values():  # each shared table only once
            table.copy_(table[before.encode(after.tokens)])
    return changed.to(device_of(model)).eval()
