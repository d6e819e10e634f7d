"""Real networks small enough to enumerate their support."""

import random
from typing import Any

import torch

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.search import ModelStepper
from tests.models import vocabularies_of

VOCABULARIES = vocabularies_of("abcd", "xy")
SMALL_SIZES: dict[str, Any] = {
    "rnn_size": 8,
    "src_word_vec_size": 8,
    "tgt_word_vec_size": 8,
    "heads": 2,
    "transformer_ff": 16,
    "param_init": 1.0,  # large weights: peaked distributions, so small supports
}
# A network for each way to run a decoder, by name.
DECODERS: dict[str, dict[str, Any]] = {
    # An LSTM with input feeding is the only decoder whose weights a search prepares.
    "input-feeding": {"encoder_type": "brnn", "global_attention_alpha": 1.5},
    # OpenNMT-py's recurrent decoders: without input feeding, ...
    "lstm": {"input_feed": False, "global_attention": "dot"},
    "gru": {"rnn_type": "GRU", "input_feed": False, "global_attention": "mlp"},
    # ... and with it, but with cells, embeddings or gates that cannot be prepared.
    "positions": {"rnn_type": "GRU", "position_encoding": True},
    "mean": {"encoder_type": "mean", "context_gate": "both"},
    # Transformers with each kind of positions, self-attention and alphas.
    "transformer": {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "position_encoding": True,
    },
    "relative": {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "max_relative_positions": 3,
    },
    "average": {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "self_attn_type": "average",
        "context_attention_alpha": "learned_shared",
    },
    "sparse-transformer": {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "position_encoding": True,
        "encoder_attention_alpha": 2.0,
        "decoder_attention_alpha": 1.3,
        "context_attention_alpha": 1.5,
    },
    "learned": {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "max_relative_positions": 3,
        "encoder_attention_alpha": "learned",
        "decoder_attention_alpha": "learned",
        "context_attention_alpha": "learned",
        "alpha_init_std": 3.0,
    },
}


def network(
    kind: str, alpha: float, seed: int, double: bool = True, **changes: Any
) -> SparseNMTModel:
    """Return a network with random weights, in evaluation mode.

    Args:
        kind: one of `DECODERS`.
        alpha: alpha of the output layer.
        seed: seed of the weights.
        double: whether in float64, which the mean encoder never is.
        changes: other options of the network.
    """
    torch.manual_seed(seed)
    config = ModelConfig(**{**SMALL_SIZES, **DECODERS[kind], **changes}, generator_alpha=alpha)
    model = build_model(config, VOCABULARIES).eval()
    with torch.no_grad():
        model.generator.bias[VOCABULARIES.target.eos] += 2.0  # so that outputs end soon
    # OpenNMT-py computes the mean encoder in float32 only.
    return model.double() if double and kind != "mean" else model


def stepper(model: SparseNMTModel, attention: bool = False) -> ModelStepper:
    """Return the network's stepper, whose steps return attention or not."""
    return ModelStepper(model, VOCABULARIES.target, attention)


def sentences(count: int, seed: int = 0) -> list[Batch]:
    """Return random source sentences, each as a batch of its own.

    The longest are first, as in a batch of all of them: see `together`.
    """
    rng = random.Random(seed)
    tokens = len(VOCABULARIES.source)
    lengths = sorted((rng.randint(1, 6) for _ in range(count)), reverse=True)
    examples = [
        Example([rng.randrange(tokens) for _ in range(length)], None, index)
        for index, length in enumerate(lengths)
    ]
    return [make_batch([example], VOCABULARIES) for example in examples]


def together(batches: list[Batch]) -> Batch:
    """Return one batch of single sentences; their order stays, since the longest are first."""
    examples = [
        Example(batch.source.flatten().tolist(), None, batch.indices[0]) for batch in batches
    ]
    batch = make_batch(examples, VOCABULARIES)  # sorts them by length
    assert list(batch.indices) == [example.index for example in examples]
    return batch
