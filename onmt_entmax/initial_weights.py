"""Tie and initialise the weights of a new model, and freeze those that are not trained.

A model whose weights are read from a file is built in `SkippedInitialisation`.
"""

from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from onmt_entmax.config import ModelConfig
from onmt_entmax.nn.transformer import alpha_parameters
from onmt_entmax.opennmt import NMTModel


def tie_weights(model: NMTModel, config: ModelConfig) -> None:
    """Tie embeddings and output layer, as the configuration says."""
    source, target = model.encoder.embeddings.word_lut, model.decoder.embeddings.word_lut
    if config.share_embeddings:
        target.weight = source.weight
    if config.share_decoder_embeddings:
        # Initialised as an output layer: with param_init 0, embeddings start so large that an
        # untrained model would be confident.
        with torch.no_grad():
            target.weight.copy_(model.generator.weight)
        model.generator.weight = target.weight


def initialise(model: NMTModel, config: ModelConfig) -> None:
    """Initialise weights as OpenNMT-py does: all uniformly, then matrices by Glorot's method.

    Learned alphas come last, so that they do not change the random numbers of other weights.
    """
    alphas = alpha_parameters(model)
    learned = set(alphas)
    weights = [parameter for parameter in model.parameters() if parameter not in learned]
    if config.param_init > 0:
        for weight in weights:
            nn.init.uniform_(weight, -config.param_init, config.param_init)
    if config.param_init_glorot:
        for weight in weights:
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
    for alpha in alphas:
        nn.init.normal_(alpha, config.alpha_init_mean, config.alpha_init_std)


# Initialisers that PyTorch's modules call: `nn.Linear` (kaiming_uniform_, uniform_), `nn.LSTM` and
# `nn.GRU` (uniform_), `nn.Embedding` (normal_); OpenNMT-py's modules consist of these. The names
# are those of functions in `nn.init` and of methods of tensors. An initialiser that is missing here
# runs, which only takes longer.
_INITIALISERS = ("uniform_", "normal_", "kaiming_uniform_")


class SkippedInitialisation(TorchFunctionMode):
    """A context in which modules are built without initialising their weights.

    Drawing ten million random numbers takes longer than reading as many from a file.
    `torch.nn.utils.skip_init` does the same for a single module.
    """

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), keywords: Any = None
    ) -> Any:
        """Call a function, but return the tensor as it is if the function is an initialiser."""
        if function.__name__ in _INITIALISERS:
            return arguments[0] if arguments else keywords["tensor"]
        return function(*arguments, **(keywords or {}))


def freeze(model: NMTModel, config: ModelConfig) -> None:
    """Set which weights are trained, as OpenNMT-py's options for freezing parts do."""
    for part, frozen in (
        (model.encoder, config.freeze_encoder),
        (model.decoder, config.freeze_decoder),
    ):
        part.requires_grad_(not frozen)
        part.embeddings.requires_grad_(True)  # embeddings have options of their own
    model.encoder.embeddings.word_lut.requires_grad_(not config.freeze_word_vecs_enc)
    if not config.share_embeddings:  # otherwise there is one table
        model.decoder.embeddings.word_lut.requires_grad_(not config.freeze_word_vecs_dec)
