"""With alpha 1, training gives the losses of OpenNMT-py's unchanged layers."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from onmt_entmax.config import ModelConfig
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.model import _opennmt_options, build_model
from onmt_entmax.opennmt import Embeddings, NMTModel, str2dec, str2enc
from tests.models import TRANSFORMER, VOCABULARIES

RECURRENT = ModelConfig(
    encoder_type="brnn", rnn_size=12, src_word_vec_size=7, tgt_word_vec_size=9, dropout=0.0
)


def untouched(config: ModelConfig) -> NMTModel:
    """Return the same model of OpenNMT-py's own classes, with a linear generator."""
    options: SimpleNamespace = _opennmt_options(config)
    sides = [
        Embeddings(
            size, len(vocabulary), vocabulary.pad, position_encoding=config.position_encoding
        )
        for size, vocabulary in zip(
            (config.src_word_vec_size, config.tgt_word_vec_size), VOCABULARIES, strict=True
        )
    ]
    decoder = "ifrnn" if config.decoder_type == "rnn" else config.decoder_type
    model = NMTModel(
        str2enc[config.encoder_type].from_opt(options, sides[0]),
        str2dec[decoder].from_opt(options, sides[1]),
    )
    model.generator = nn.Linear(config.rnn_size, len(VOCABULARIES.target))
    return model


def batches(count: int) -> list:
    generator = torch.Generator().manual_seed(3)

    def ids(low: int, high: int) -> list[int]:
        length = int(torch.randint(1, 7, (), generator=generator))
        return torch.randint(low, high, (length,), generator=generator).tolist()

    return [
        make_batch([Example(ids(2, 8), ids(4, 10), i) for i in range(5)], VOCABULARIES)
        for _ in range(count)
    ]


CONFIGS = {
    "recurrent": RECURRENT,
    "transformer": TRANSFORMER,
    "relative": dataclasses.replace(TRANSFORMER, max_relative_positions=2),
    "average": dataclasses.replace(TRANSFORMER, self_attn_type="average"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_thirty_updates_give_the_same_losses(name: str) -> None:
    config = CONFIGS[name]
    ours, theirs = build_model(config, VOCABULARIES), untouched(config)
    theirs.load_state_dict(ours.state_dict())
    pad = VOCABULARIES.target.pad
    our_losses: list[float] = []
    their_losses: list[float] = []
    optimizers = [torch.optim.Adam(model.parameters(), lr=0.01) for model in (ours, theirs)]
    for batch in batches(30):
        hidden, target = ours.hidden_states(batch)
        our_loss = ours.generator.loss(hidden, target, pad).loss
        outputs, _ = theirs(batch.source, batch.target, batch.source_lengths)
        scores = theirs.generator(outputs)
        their_loss = nn.functional.cross_entropy(
            scores.flatten(0, 1), batch.target[1:].flatten(), ignore_index=pad, reduction="sum"
        )
        for loss, optimizer in zip((our_loss, their_loss), optimizers, strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        our_losses.append(our_loss.item())
        their_losses.append(their_loss.item())
    assert our_losses == pytest.approx(their_losses, rel=1e-5, abs=1e-5)
    assert our_losses[-1] < 0.9 * our_losses[0]
    their_weights = dict(theirs.named_parameters())
    for name, weight in ours.named_parameters():
        torch.testing.assert_close(weight, their_weights[name], rtol=2e-3, atol=2e-3, msg=name)
