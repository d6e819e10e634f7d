"""Our recurrent softmax models as checkpoints of OpenNMT-py, which its own translator can run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, TARGET_SPECIALS, Vocabulary
from onmt_entmax.opennmt import ArgumentParser, train_opts

# Fields of `ModelConfig` for which OpenNMT-py has a list, with a value for each training stage.
PER_STAGE = ("dropout", "attention_dropout")


def write_opennmt_checkpoint(loaded: LoadedModel, path: Path) -> None:
    """Write a model as a checkpoint of OpenNMT-py with the same weights.

    Args:
        loaded: a recurrent model with softmax in output and attention.
        path: path of the checkpoint.

    Raises:
        ValueError: the model is a Transformer, or its output or attention has another mapping than
            softmax.
    """
    config = loaded.config
    if config.decoder_type == "transformer":
        raise ValueError("only recurrent models are written for OpenNMT-py, no Transformers")
    if config.generator_alpha != 1 or config.global_attention_alpha != 1:
        raise ValueError("OpenNMT-py has to run a softmax model")
    from onmt.inputters.inputter import get_fields

    fields = get_fields("text", {}, {})
    vocabularies = loaded.vocabularies
    fields["src"].base_field.vocab = _torchtext_vocabulary(vocabularies.source, SOURCE_SPECIALS)
    fields["tgt"].base_field.vocab = _torchtext_vocabulary(vocabularies.target, TARGET_SPECIALS)
    weights = loaded.model.state_dict()
    # OpenNMT-py keeps the output layer apart, as the first module of a Sequential.
    generator = {f"0.{name}": weights.pop(f"generator.{name}") for name in ("weight", "bias")}
    checkpoint = {
        "model": weights,
        "generator": generator,
        "vocab": fields,
        "opt": _options(config),
    }
    torch.save(checkpoint, path)


def _torchtext_vocabulary(vocabulary: Vocabulary, specials: Sequence[str]) -> Any:
    """Return the vocabulary of a field of OpenNMT-py, with the same ids."""
    from torchtext.vocab import Vocab

    words = vocabulary.tokens[len(specials) :]
    # `Vocab` sorts words by count: counts that fall from word to word keep our order.
    counts = Counter({word: len(words) - rank for rank, word in enumerate(words)})
    converted = Vocab(counts, specials=list(specials))
    assert tuple(converted.itos) == vocabulary.tokens, "the ids differ from OpenNMT-py's"
    return converted


def _options(config: ModelConfig) -> Any:
    """Return OpenNMT-py's options of training, with the values of a model's configuration.

    Most fields of `ModelConfig` have the names of OpenNMT-py's options. The others belong to
    this project alone. They are left out, since a recurrent softmax model does without them.
    """
    parser = ArgumentParser()
    train_opts(parser)
    required = ["-data", "unused", "-src_vocab", "unused"]
    options, _ = parser.parse_known_args(required)
    for name, value in asdict(config).items():
        if hasattr(options, name):
            setattr(options, name, [value] if name in PER_STAGE else value)
    options.model_task = "seq2seq"
    options.rnn_size = -1  # else OpenNMT-py sets the sizes of both sides to it
    options.enc_rnn_size = options.dec_rnn_size = config.rnn_size
    return options
