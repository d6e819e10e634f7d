"""The weights of a new model: which are one, their random values, and which are trained."""

from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from onmt_entmax.config import ModelConfig
from onmt_entmax.nn.transformer import alpha_parameters
from onmt_entmax.opennmt import NMTModel


def share_weights(model: NMTModel, config: ModelConfig) -> None:
    """Let embeddings and output layer be one table, where the configuration says so."""
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
    """Initialise as OpenNMT-py does: uniformly, then matrices by Glorot's method.

    Learned alphas come last, so that they change no other weight.
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


class Undrawn(TorchFunctionMode):
    """A context in which `build_model` draws no weights, for those that are copied next.

    Drawing ten million numbers takes longer than reading them from a file.
    """

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), keywords: Any = None
    ) -> Any:
        """Call the function, unless it draws into a tensor."""
        # Methods of tensors and functions of `nn.init`.
        if function.__name__ in ("uniform_", "normal_", "kaiming_uniform_"):
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
