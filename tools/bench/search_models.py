"""Models for `search.py`: random ones for words, and ours as checkpoints of OpenNMT-py."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import LoadedModel, save
from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.data.vocabulary import SOURCE_SPECIALS, TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.opennmt import ArgumentParser, train_opts
from onmt_entmax.sparse import log_entmax

WORDS = 18_000  # tokens of the vocabulary
SUPPORT = 5  # tokens of positive probability

# --- random models ---------------------------------------------------------------------------


def random_lines(count: int) -> list[str]:
    """Return sentences of 4 to 40 random words."""
    generator = random.Random(1)
    lengths = [generator.randint(4, 40) for _ in range(count)]
    return [
        " ".join(f"w{generator.randrange(WORDS - 10)}" for _ in range(length)) for length in lengths
    ]


def write_word_models(folder: Path) -> tuple[Path, Path]:
    """Write a softmax and a 1.5-entmax model of `--size words`, with the same weights.

    Returns:
        Their folders.
    """
    torch.manual_seed(0)
    sides = [
        Vocabulary((*specials, *(f"w{i}" for i in range(WORDS - len(specials)))))
        for specials in (SOURCE_SPECIALS, TARGET_SPECIALS)
    ]
    vocabularies = Vocabularies(*sides)
    sources = [line.split() for line in random_lines(32)]
    # Any ids will do, also as targets: the models are random.
    ids = [[int(word[1:]) + 4 for word in words] for words in sources]
    examples = [Example(words, words[:20], i) for i, words in enumerate(ids)]
    batch = make_batch(sorted(examples, key=lambda e: -len(e.source)), vocabularies)
    paths = []
    weights: dict[str, Any] | None = None
    for alpha in (1.0, 1.5):
        config = ModelConfig(
            encoder_type="brnn", generator_alpha=alpha, global_attention_alpha=alpha, dropout=0.0
        )
        model = build_model(config, vocabularies).eval()
        if weights is None:
            sharpen(model, batch)
            weights = model.state_dict()
        model.load_state_dict(weights)
        paths.append(folder / str(alpha))
        save(paths[-1], model, config, vocabularies, {})
    return paths[0], paths[1]


@torch.no_grad()
def sharpen(model: SparseNMTModel, batch: Batch) -> None:
    """Scale the output layer of a random model to about `SUPPORT` tokens."""
    output = model.generator
    hidden, _ = model.hidden_states(batch)
    output.bias.zero_()
    scores = output.scores(hidden)
    low, high = 0.1, 1000.0
    for _ in range(12):
        scale = (low * high) ** 0.5
        support = int((log_entmax(scores * scale, 1.5) > -torch.inf).sum())
        if support > SUPPORT * len(scores):
            low = scale
        else:
            high = scale
    output.weight.mul_(scale)


# --- checkpoints of OpenNMT-py ---------------------------------------------------------------


def opennmt_vocabulary(vocabulary: Vocabulary, specials: tuple[str, ...]) -> Any:
    """Return OpenNMT-py's vocabulary with the same ids."""
    from torchtext.vocab import Vocab

    words = vocabulary.tokens[len(specials) :]
    counts = Counter({word: len(words) - i for i, word in enumerate(words)})
    stock = Vocab(counts, specials=list(specials))
    assert tuple(stock.itos) == vocabulary.tokens, "the ids differ from OpenNMT-py's"
    return stock


def write_opennmt_checkpoint(loaded: LoadedModel, path: Path) -> None:
    """Write our softmax model as a checkpoint of OpenNMT-py.

    Raises:
        ValueError: it has another mapping.
    """
    from onmt.inputters.inputter import get_fields

    config = loaded.config
    if config.generator_alpha != 1 or config.global_attention_alpha != 1:
        raise ValueError("OpenNMT-py has to run a softmax model")
    parser = ArgumentParser()
    train_opts(parser)
    options = parser.parse_known_args(["-data", "unused", "-src_vocab", "unused"])[0]
    for name, value in asdict(config).items():
        if name in ("dropout", "attention_dropout"):
            value = [value]
        if hasattr(options, name):
            setattr(options, name, value)
    options.rnn_size = -1  # the sizes of both sides count
    options.model_task = "seq2seq"
    options.enc_rnn_size = options.dec_rnn_size = config.rnn_size
    fields = get_fields("text", {}, {})
    vocabularies = loaded.vocabularies
    fields["src"].base_field.vocab = opennmt_vocabulary(vocabularies.source, SOURCE_SPECIALS)
    fields["tgt"].base_field.vocab = opennmt_vocabulary(vocabularies.target, TARGET_SPECIALS)
    weights = loaded.model.state_dict()
    generator = {f"0.{name}": weights.pop(f"generator.{name}") for name in ("weight", "bias")}
    checkpoint = {"model": weights, "generator": generator, "vocab": fields, "opt": options}
    torch.save(checkpoint, path)
