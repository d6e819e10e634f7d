"""The fast encoder, decoder and step of a search against the definition, sentence by sentence."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn

from onmt_entmax.recurrence import definition, dropout, encoder
from onmt_entmax.recurrence.decoder_step import DecoderStep
from tests.recurrence.networks import (
    HIDDEN,
    SENTENCES,
    SOURCE_LENGTHS,
    STEPS,
    TARGET_LENGTHS,
    VOCABULARY,
    assert_near,
    batch,
    model_of,
    padded,
    with_gradients,
)

OPTIONS: list[dict[str, object]] = [
    {},
    {"attention": "dot", "alpha": 1.0},
    {"attention": "mlp", "alpha": 2.0},
    {"alpha": 1.05, "layers": 3},
    {"alpha": 1.3, "layers": 1, "both": False, "bridge": True},
    {"alpha": 3.0, "layers": 1, "bridge": True},
]


def masks_of(packed: Sequence[Tensor], places: Tensor, steps: int) -> list[list[Tensor]]:
    """Return the dropout factors ``(steps, hidden)`` of each sentence, one for each packed mask."""
    spread = []
    for mask in packed:
        rows = mask.new_full((steps * SENTENCES, HIDDEN), torch.nan).index_copy(0, places, mask)
        spread.append(rows.view(steps, SENTENCES, HIDDEN))
    return [[mask[:, sentence] for mask in spread] for sentence in range(SENTENCES)]


def defined(
    model: nn.ModuleList, encoder_masks: list[list[Tensor]], decoder_masks: list[list[Tensor]]
) -> tuple[Tensor, ...]:
    """Return memory bank, last states and decoder outputs of the batch, by the definition."""
    (encoder, decoder), (source, target) = model, batch()
    banks, finals, outputs = [], [], []
    for sentence in range(SENTENCES):
        length, steps = int(SOURCE_LENGTHS[sentence]), int(TARGET_LENGTHS[sentence])
        masks = [mask[:length] for mask in encoder_masks[sentence]]
        bank, hidden, cell = definition.encode(encoder, source[:length, sentence, 0], masks)
        masks = [mask[:steps] for mask in decoder_masks[sentence]]
        ids = target[:steps, sentence, 0]
        states = definition.decode(decoder, ids, bank, hidden, cell, masks)
        banks.append(nn.functional.pad(bank, (0, 0, 0, len(source) - length)))
        finals.append((hidden, cell))
        outputs.append(nn.functional.pad(states, (0, 0, 0, STEPS - steps)))
    last = (torch.stack(states, 1) for states in zip(*finals, strict=True))
    return torch.stack(banks, 1), *last, torch.stack(outputs, 1)


def fast(model: nn.ModuleList) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return what `defined` returns, and the positions of the decoder's outputs."""
    (encoder, decoder), (source, target) = model, batch()
    states, bank, _ = encoder(source, SOURCE_LENGTHS)
    decoder.init_state(source, bank, states)
    outputs, index = decoder.teacher_forced(target, TARGET_LENGTHS, bank, SOURCE_LENGTHS)
    return (bank, *states, padded(outputs, index)), index


@pytest.mark.parametrize("fixed", [False, True], ids=["packed", "fixed"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_values_and_gradients_are_the_definitions(options, fixed: bool) -> None:
    model = model_of(True, **options)
    for part in model:
        part.fixed_shapes = fixed
    none: list[list[Tensor]] = [[]] * SENTENCES
    found, expected = fast(model)[0], defined(model, none, none)
    assert_near(with_gradients(model, *found), with_gradients(model, *expected), 1e-10)


@pytest.mark.parametrize("fixed", [False, True], ids=["packed", "fixed"])
@pytest.mark.parametrize("attention", ["general", "mlp"])
def test_dropout_is_the_definitions(attention: str, fixed: bool, monkeypatch) -> None:
    """With three layers: between layers, and of the attentional vectors, which are fed back."""
    model, masks = model_of(True, attention=attention, layers=3, dropout=0.4), []
    plain = dropout.dropout_factors

    def recorded(*arguments: object) -> Tensor | None:
        masks.append(plain(*arguments))
        return masks[-1]

    for module in (dropout, encoder):
        monkeypatch.setattr(module, "dropout_factors", recorded)
    for part in model:
        part.fixed_shapes = fixed
    found, index = fast(model)
    masks = [mask for mask in masks if mask is not None]
    assert len(masks) == 2 + 3
    length = int(SOURCE_LENGTHS.max())
    read = (torch.arange(length).unsqueeze(1) < SOURCE_LENGTHS).flatten().nonzero().squeeze(1)
    if fixed:
        read, index = torch.arange(length * SENTENCES), torch.arange(STEPS * SENTENCES)
    expected = defined(model, masks_of(masks[:2], read, length), masks_of(masks[2:], index, STEPS))
    assert_near(with_gradients(model, *found), with_gradients(model, *expected), 1e-10)


@pytest.mark.parametrize("options", [{}, {"attention": "dot", "alpha": 1.2, "layers": 3}], ids=str)
def test_the_steps_of_a_search_are_the_definitions(options) -> None:
    (encoder, decoder), (source, target) = model_of(True, **options).eval(), batch()
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


def states_of(decoder: nn.Module, states: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return the decoder's first hidden and cell states ``(layers, sentences, hidden)``."""
    source, _ = batch()
    decoder.init_state(source, source, states)
    return decoder.state["hidden"]


@pytest.mark.parametrize("options", [{}, {"attention": "mlp", "both": False}], ids=str)
def test_the_definition_is_opennmts(options) -> None:
    """Of one sentence, which needs no padding."""
    model = model_of(False, **options)
    (stock, decoder), (source, target) = model, batch()
    states, bank, lengths = stock(source[:, :1], SOURCE_LENGTHS[:1])
    decoder.init_state(source, bank, states)
    outputs, _ = decoder(target[:, :1], bank, memory_lengths=lengths)
    theirs = bank[:, 0], *(state[:, 0] for state in states), outputs[:, 0]
    defined_bank, *last = definition.encode(stock, source[:, 0, 0])
    ours = definition.decode(decoder, target[:, 0, 0], defined_bank, *last)
    found = with_gradients(model, defined_bank, *last, ours)
    assert_near(found, with_gradients(model, *theirs), 1e-10)
    _, weights = definition.attend(decoder.attn, ours[0], defined_bank)
    _, expected = decoder.attn(ours[:1], defined_bank.unsqueeze(0))
    torch.testing.assert_close(weights, expected[0])
