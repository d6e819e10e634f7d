"""Our models as checkpoints of OpenNMT-py, whose own translator can then run them."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, TARGET_SPECIALS, Vocabulary
from onmt_entmax.opennmt import ArgumentParser, train_opts


def opennmt_vocabulary(vocabulary: Vocabulary, specials: tuple[str, ...]) -> Any:
    """Return OpenNMT-py's vocabulary with the same ids."""
    from torchtext.vocab import Vocab

    words = vocabulary.tokens[len(specials) :]
    # It orders words by frequency.
    counts = Counter({word: len(words) - place for place, word in enumerate(words)})
    stock = Vocab(counts, specials=list(specials))
    assert tuple(stock.itos) == vocabulary.tokens, "the ids differ from OpenNMT-py's"
    return stock


def write_opennmt_checkpoint(loaded: LoadedModel, path: Path) -> None:
    """Write our softmax model as a checkpoint of OpenNMT-py, which has the same weights.

    Args:
        loaded: a recurrent model.
        path: of the file.

    Raises:
        ValueError: it has another mapping.
    """
    from onmt.inputters.inputter import get_fields

    config = loaded.config
    if config.generator_alpha != 1 or config.global_attention_alpha != 1:
        raise ValueError("OpenNMT-py has to run a softmax model")
    fields = get_fields("text", {}, {})
    vocabularies = loaded.vocabularies
    fields["src"].base_field.vocab = opennmt_vocabulary(vocabularies.source, SOURCE_SPECIALS)
    fields["tgt"].base_field.vocab = opennmt_vocabulary(vocabularies.target, TARGET_SPECIALS)
    weights = loaded.model.state_dict()
    generator = {f"0.{name}": weights.pop(f"generator.{name}") for name in ("weight", "bias")}
    checkpoint = {
        "model": weights,
        "generator": generator,
        "vocab": fields,
        "opt": _options(config),
    }
    torch.save(checkpoint, path)


def _options(config: ModelConfig) -> Any:
    """Return OpenNMT-py's options of training, with those of a model."""
    parser = ArgumentParser()
    train_opts(parser)
    required = ["-data", "unused", "-src_vocab", "unused"]
    options = parser.parse_known_args(required)[0]
    for name, value in asdict(config).items():
        if hasattr(options, name):
            is_list = name in ("dropout", "attention_dropout")  # a value for each stage of training
            setattr(options, name, [value] if is_list else value)
    options.model_task = "seq2seq"
    options.rnn_size = -1  # the sizes of both sides count
    options.enc_rnn_size = options.dec_rnn_size = config.rnn_size
    return options
