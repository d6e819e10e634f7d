"""With softmax, training gives the losses and weights of OpenNMT-py's unchanged layers.

Softmax is entmax with alpha 1, the default of every alpha in `ModelConfig`.
"""

import dataclasses
from typing import NamedTuple

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
    "transformer with relative positions": dataclasses.replace(
        TRANSFORMER, max_relative_positions=2
    ),
    "transformer with average attention": dataclasses.replace(
        TRANSFORMER, self_attn_type="average"
    ),
}
PAD = VOCABULARIES.target.pad
BATCHES, EPOCHS = 2, 10  # of a training; each epoch has an update for each batch


def opennmt_model(config: ModelConfig) -> NMTModel:
    """Build the model of a configuration from OpenNMT-py's own classes, with a linear generator.

    They get the same options as the layers of the package, so that only the layers differ.
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
    """Return the mean loss of the target tokens, without padding."""
    hidden, target = model.hidden_states(batch)
    output = model.generator.loss(hidden, target, PAD)
    return output.loss / output.tokens


def their_loss(model: NMTModel, batch: Batch) -> Tensor:
    """Return the mean cross-entropy of the target tokens, without padding."""
    outputs, _ = model(batch.source, batch.target, batch.source_lengths)
    scores = model.generator(outputs)
    return nn.functional.cross_entropy(
        scores.flatten(0, 1), batch.target[1:].flatten(), ignore_index=PAD
    )


def random_batches(count: int) -> list[Batch]:
    """Return batches of five pairs, each side of which has one to six tokens."""
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


class Trained(NamedTuple):
    """Two models after the same updates from the same weights."""

    ours: SparseNMTModel
    theirs: NMTModel
    our_losses: list[float]
    """The loss before each update."""
    their_losses: list[float]


@pytest.fixture(scope="module", params=CONFIGS.values(), ids=CONFIGS)
def trained(request: pytest.FixtureRequest) -> Trained:
    """The two models of a configuration, after the training."""
    torch.manual_seed(0)  # of the initial weights; a fixture is made before its test is seeded
    config: ModelConfig = request.param
    ours, theirs = build_model(config, VOCABULARIES), opennmt_model(config)
    theirs.load_state_dict(ours.state_dict())
    our_adam, their_adam = (
        torch.optim.Adam(model.parameters(), lr=0.01) for model in (ours, theirs)
    )
    trained = Trained(ours, theirs, our_losses=[], their_losses=[])
    for batch in EPOCHS * random_batches(BATCHES):
        trained.our_losses.append(update(our_adam, our_loss(ours, batch)))
        trained.their_losses.append(update(their_adam, their_loss(theirs, batch)))
    return trained


def test_losses_are_those_of_opennmt(trained: Trained) -> None:
    assert trained.our_losses == pytest.approx(trained.their_losses, rel=1e-5, abs=1e-5)


def test_losses_fall(trained: Trained) -> None:
    """Otherwise equal losses would show little: the models would hardly have been trained."""
    first, last = trained.our_losses[:BATCHES], trained.our_losses[-BATCHES:]
    assert sum(last) < 0.9 * sum(first)


def test_weights_are_those_of_opennmt(trained: Trained) -> None:
    """Rounding errors grow from update to update, so the tolerance is wider than that of losses."""
    their_weights = dict(trained.theirs.named_parameters())
    for name, weight in trained.ours.named_parameters():
        torch.testing.assert_close(weight, their_weights[name], rtol=2e-3, atol=2e-3, msg=name)
