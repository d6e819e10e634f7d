"""With alpha 1, training gives the losses of OpenNMT-py's unchanged layers."""

import dataclasses

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.model.opennmt_options import opennmt_options
from onmt_entmax.opennmt import Embeddings, NMTModel, str2dec, str2enc
from tests.models import TRANSFORMER, VOCABULARIES

RECURRENT = ModelConfig(
    encoder_type="brnn", rnn_size=12, src_word_vec_size=7, tgt_word_vec_size=9, dropout=0.0
)
CONFIGS = {
    "recurrent": RECURRENT,
    "transformer": TRANSFORMER,
    "relative": dataclasses.replace(TRANSFORMER, max_relative_positions=2),
    "average": dataclasses.replace(TRANSFORMER, self_attn_type="average"),
}
PAD = VOCABULARIES.target.pad
UPDATES = 30


def opennmt_model(config: ModelConfig) -> NMTModel:
    """Return the same model of OpenNMT-py's own classes, with a linear generator.

    The package gives OpenNMT-py's classes the options that it makes of a configuration; these are
    the same here, so that only the layers differ.
    """
    options = opennmt_options(config)
    sizes = (config.src_word_vec_size, config.tgt_word_vec_size)
    source, target = (
        Embeddings(
            size, len(vocabulary), vocabulary.pad, position_encoding=config.position_encoding
        )
        for size, vocabulary in zip(sizes, VOCABULARIES, strict=True)
    )
    decoder = "ifrnn" if config.decoder_type == "rnn" else config.decoder_type
    model = NMTModel(
        str2enc[config.encoder_type].from_opt(options, source),
        str2dec[decoder].from_opt(options, target),
    )
    model.generator = nn.Linear(config.rnn_size, len(VOCABULARIES.target))
    return model


def our_loss(model: SparseNMTModel, batch: Batch) -> Tensor:
    hidden, target = model.hidden_states(batch)
    loss: Tensor = model.generator.loss(hidden, target, PAD).loss
    return loss


def their_loss(model: NMTModel, batch: Batch) -> Tensor:
    """Return the cross-entropy, summed over all targets but padding."""
    outputs, _ = model(batch.source, batch.target, batch.source_lengths)
    scores = model.generator(outputs)
    return nn.functional.cross_entropy(
        scores.flatten(0, 1), batch.target[1:].flatten(), ignore_index=PAD, reduction="sum"
    )


def random_batches(count: int) -> list[Batch]:
    """Return batches of five pairs of one to six tokens."""
    generator = torch.Generator().manual_seed(3)

    def ids(first: int, end: int) -> list[int]:
        length = int(torch.randint(1, 7, (), generator=generator))
        return torch.randint(first, end, (length,), generator=generator).tolist()

    sources, targets = (2, len(VOCABULARIES.source)), (4, len(VOCABULARIES.target))
    return [
        make_batch([Example(ids(*sources), ids(*targets), i) for i in range(5)], VOCABULARIES)
        for _ in range(count)
    ]


def update(optimizer: torch.optim.Optimizer, loss: Tensor) -> float:
    """Make an update; return the loss before it."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_thirty_updates_give_the_same_losses(config: ModelConfig) -> None:
    """The weights are the same too, up to rounding, which adds up over the updates."""
    ours, theirs = build_model(config, VOCABULARIES), opennmt_model(config)
    theirs.load_state_dict(ours.state_dict())
    our_adam, their_adam = (
        torch.optim.Adam(model.parameters(), lr=0.01) for model in (ours, theirs)
    )
    our_losses: list[float] = []
    their_losses: list[float] = []
    for batch in random_batches(UPDATES):
        our_losses.append(update(our_adam, our_loss(ours, batch)))
        their_losses.append(update(their_adam, their_loss(theirs, batch)))
    assert our_losses == pytest.approx(their_losses, rel=1e-5, abs=1e-5)
    assert our_losses[-1] < 0.9 * our_losses[0]
    their_weights = dict(theirs.named_parameters())
    for name, weight in ours.named_parameters():
        torch.testing.assert_close(weight, their_weights[name], rtol=2e-3, atol=2e-3, msg=name)
