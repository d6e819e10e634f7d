"""The fast encoder, decoder and step of a search against the definition, sentence by sentence."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.recurrence import definition, dropout
from onmt_entmax.recurrence import encoder as encoder_module
from onmt_entmax.recurrence.decoder_step import DecoderStep
from tests.recurrence.networks import (
    HIDDEN,
    SENTENCES,
    SOURCE_LENGTHS,
    STEPS,
    TARGET_LENGTHS,
    VOCABULARY,
    Network,
    assert_near,
    batch,
    fast_model,
    padded,
    stock_model,
    with_gradients,
)

NETWORKS = {
    "general": Network(),
    "dot, softmax": Network("dot", alpha=1.0),
    "mlp, sparsemax": Network("mlp", alpha=2.0),
    "three layers": Network(alpha=1.05, layers=3),
    "one direction, bridge": Network(alpha=1.3, layers=1, bidirectional=False, bridge=True),
    "both directions, bridge": Network(alpha=3.0, layers=1, bridge=True),
}
NO_DROPOUT: list[list[Tensor]] = [[]] * SENTENCES
ROUNDING = 1e-10  # relative to a norm: a million machine epsilons, which grow from step to step

stock_networks = pytest.mark.parametrize(
    "network",
    [
        pytest.param(Network(), id="general"),
        pytest.param(Network("mlp", bidirectional=False), id="mlp, one direction"),
    ],
)


# --- encoder and decoder ---------------------------------------------------------------------


def by_sentence(packed: Sequence[Tensor], positions: Tensor, steps: int) -> list[list[Tensor]]:
    """Return the dropout factors ``(steps, hidden)`` of each sentence, one for each layer.

    Args:
        packed: dropout factors of each layer, ``(rows, hidden)``.
        positions: position of each row in the flattened ``(steps * sentences)``.
        steps: number of steps of the longest sentence.
    """
    layers = []
    for factors in packed:
        missing = factors.new_full((steps * SENTENCES, HIDDEN), torch.nan)
        layers.append(missing.index_copy(0, positions, factors).view(steps, SENTENCES, HIDDEN))
    return [[factors[:, sentence] for factors in layers] for sentence in range(SENTENCES)]


def by_definition(
    model: nn.ModuleList,
    encoder_factors: list[list[Tensor]] = NO_DROPOUT,
    decoder_factors: list[list[Tensor]] = NO_DROPOUT,
) -> tuple[Tensor, ...]:
    """Return memory bank, last hidden and cell states and decoder outputs, by the definition.

    Args:
        model: encoder and decoder.
        encoder_factors: dropout factors of each sentence in the encoder; see `by_sentence`.
        decoder_factors: dropout factors of each sentence in the decoder.
    """
    encoder, decoder = model
    source, target = batch()
    banks, last_hidden, last_cell, outputs = [], [], [], []
    for sentence in range(SENTENCES):
        length, steps = int(SOURCE_LENGTHS[sentence]), int(TARGET_LENGTHS[sentence])
        source_ids, target_ids = source[:length, sentence, 0], target[:steps, sentence, 0]
        of_encoder = [layer[:length] for layer in encoder_factors[sentence]]
        of_decoder = [layer[:steps] for layer in decoder_factors[sentence]]
        bank, hidden, cell = definition.encode(encoder, source_ids, of_encoder)
        output = definition.decode(decoder, target_ids, bank, hidden, cell, of_decoder)
        banks.append(nn.functional.pad(bank, (0, 0, 0, len(source) - length)))
        last_hidden.append(hidden)
        last_cell.append(cell)
        outputs.append(nn.functional.pad(output, (0, 0, 0, STEPS - steps)))
    return tuple(torch.stack(of_all, 1) for of_all in (banks, last_hidden, last_cell, outputs))


class Batched(NamedTuple):
    """What encoder and decoder return for a batch.

    Attributes:
        results: what `by_definition` returns.
        positions: position of each row of the decoder's outputs in the flattened
            ``(steps * sentences)``.
    """

    results: tuple[Tensor, ...]
    positions: Tensor


def batched(model: nn.ModuleList) -> Batched:
    """Run encoder and decoder on all sentences at once."""
    encoder, decoder = model
    source, target = batch()
    states, bank, _ = encoder(source, SOURCE_LENGTHS)
    decoder.init_state(source, bank, states)
    outputs, positions = decoder.teacher_forced(target, TARGET_LENGTHS, bank, SOURCE_LENGTHS)
    return Batched((bank, *states, padded(outputs, positions)), positions)


@pytest.mark.parametrize("fixed", [False, True], ids=["packed", "fixed"])
@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_values_and_gradients_equal_those_of_the_definition(network: Network, fixed: bool) -> None:
    model = fast_model(network)
    for part in model:
        part.fixed_shapes = fixed
    results = batched(model).results
    expected = by_definition(model)
    assert_near(with_gradients(model, *results), with_gradients(model, *expected), ROUNDING)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The dropout factors that encoder and decoder draw, in order."""
    factors: list[Tensor] = []
    draw = dropout.dropout_factors

    def recorded(*arguments: Any) -> Tensor | None:
        result = draw(*arguments)
        if result is not None:
            factors.append(result)
        return result

    monkeypatch.setattr(encoder_module, "dropout_factors", recorded)
    monkeypatch.setattr(dropout, "dropout_factors", recorded)
    return factors


@pytest.mark.parametrize("fixed", [False, True], ids=["packed", "fixed"])
@pytest.mark.parametrize("attention", ["general", "mlp"])
def test_dropout_equals_that_of_the_definition(
    attention: str, fixed: bool, drawn: list[Tensor]
) -> None:
    """Dropout is between the three layers, and applies to the attentional vectors, too."""
    network = Network(attention, layers=3, dropout=0.4)
    model = fast_model(network)
    for part in model:
        part.fixed_shapes = fixed
    results, target_positions = batched(model)
    length = int(SOURCE_LENGTHS.max())
    is_source = torch.arange(length).unsqueeze(1) < SOURCE_LENGTHS
    source_positions = is_source.flatten().nonzero().squeeze(1)
    if fixed:  # padding has factors too
        source_positions = torch.arange(length * SENTENCES)
        target_positions = torch.arange(STEPS * SENTENCES)
    between_layers = network.layers - 1
    encoder_factors, decoder_factors = drawn[:between_layers], drawn[between_layers:]
    assert len(decoder_factors) == between_layers + 1  # and those of the vectors
    expected = by_definition(
        model,
        by_sentence(encoder_factors, source_positions, length),
        by_sentence(decoder_factors, target_positions, STEPS),
    )
    assert_near(with_gradients(model, *results), with_gradients(model, *expected), ROUNDING)


# --- steps of a search -----------------------------------------------------------------------


def states_of(decoder: nn.Module, states: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the decoder's first hidden and cell states ``(layers, sentences, hidden)``."""
    source, _ = batch()
    decoder.init_state(source, source, states)
    return decoder.state["hidden"]


@pytest.mark.parametrize(
    "network",
    [
        pytest.param(Network(), id="general"),
        pytest.param(Network("dot", alpha=1.2, layers=3), id="dot, three layers"),
    ],
)
def test_the_steps_of_a_search_equal_those_of_the_definition(network: Network) -> None:
    encoder, decoder = fast_model(network).eval()
    source, target = batch()
    step = DecoderStep(decoder, VOCABULARY)
    with torch.inference_mode():
        states, bank, lengths = encoder(source, SOURCE_LENGTHS)
        memory = step.memory(bank, lengths)
        vectors = step.first(*states_of(decoder, states), bank.new_zeros(SENTENCES, HIDDEN))
        outputs = []
        for ids in target[:, :, 0]:
            output, _, vectors = step(vectors, ids, memory, torch.arange(SENTENCES))
            outputs.append(output)
        for sentence, length in enumerate(SOURCE_LENGTHS.tolist()):
            memory_bank, *last = definition.encode(encoder, source[:length, sentence, 0])
            expected = definition.decode(decoder, target[:, sentence, 0], memory_bank, *last)
            torch.testing.assert_close(torch.stack(outputs)[:, sentence], expected)


# --- the definition itself -------------------------------------------------------------------


@stock_networks
def test_the_definition_equals_opennmt(network: Network) -> None:
    """One sentence is enough, the first one, which needs no padding."""
    model = stock_model(network)
    encoder, decoder = model
    source, target = batch()
    states, bank, lengths = encoder(source[:, :1], SOURCE_LENGTHS[:1])
    decoder.init_state(source, bank, states)
    outputs, _ = decoder(target[:, :1], bank, memory_lengths=lengths)
    stock = bank[:, 0], *(state[:, 0] for state in states), outputs[:, 0]
    memory_bank, *last = definition.encode(encoder, source[:, 0, 0])
    defined = definition.decode(decoder, target[:, 0, 0], memory_bank, *last)
    results = with_gradients(model, memory_bank, *last, defined)
    assert_near(results, with_gradients(model, *stock), ROUNDING)


@stock_networks
def test_attention_weights_of_the_definition_equal_opennmts(network: Network) -> None:
    _, decoder = stock_model(network)
    query, bank = torch.randn(HIDDEN).double(), torch.randn(6, HIDDEN).double()
    _, weights = definition.attend(decoder.attn, query, bank)
    _, expected = decoder.attn(query.unsqueeze(0), bank.unsqueeze(0))
    torch.testing.assert_close(weights, expected[0])
