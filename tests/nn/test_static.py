"""Padded recurrences and loss equal the packed ones, with all gradients, and after updates."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch, Example, make_batch
from onmt_entmax.data.shapes import PaddedBatch, Shapes, pad_batch, views
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.network import ModelConfig
from onmt_entmax.nn.lstm import decoder as packed_decoder
from onmt_entmax.nn.lstm import encoder as packed_encoder
from onmt_entmax.nn.lstm.cells import Steps
from onmt_entmax.nn.lstm.static import Masks, reason_against, static_outputs

SIZES = (23, 19)  # tokens of source and target
SHAPES = Shapes(batch_size=7)
CONFIG = ModelConfig(
    encoder_type="brnn",
    rnn_size=12,
    src_word_vec_size=10,
    tgt_word_vec_size=8,
    global_attention_alpha=1.5,
    generator_alpha=1.5,
    param_init=0.4,
)


def vocabularies() -> Vocabularies:
    sides = []
    for count in SIZES:
        specials = [str(token) for token in TARGET_SPECIALS]
        sides.append(Vocabulary((*specials, *(f"t{n}" for n in range(count - len(specials))))))
    return Vocabularies(*sides)


KNOWN = vocabularies()


def model_of(**options: object) -> SparseNMTModel:
    torch.manual_seed(1)
    model = build_model(replace(CONFIG, **options), KNOWN).double()
    return model.train()


def batch_of(sentences: int, seed: int = 0) -> Batch:
    generator = random.Random(seed)

    def tokens(count: int, least: int) -> list[int]:
        return [generator.randrange(4, count) for _ in range(generator.randint(least, 7))]

    examples = [Example(tokens(SIZES[0], 1), tokens(SIZES[1], 0), n) for n in range(sentences)]
    return make_batch(examples, KNOWN)


def padded(batch: Batch) -> PaddedBatch:
    return pad_batch(batch, SHAPES, KNOWN.source.pad, KNOWN.target.pad)


def masks_for(model: SparseNMTModel, batch: PaddedBatch) -> Masks:
    """Random factors of the shape of a padded batch."""
    generator = torch.Generator().manual_seed(3)
    shape, hidden = batch.shape, CONFIG.rnn_size

    def draw(*sizes: int) -> Tensor:
        return (torch.rand(sizes, generator=generator) < 0.6).double() / 0.6

    return Masks(
        draw(model.encoder.rnn.num_layers - 1, shape.source, shape.sentences, hidden),
        draw(model.decoder.rnn.num_layers - 1, shape.target, shape.sentences, hidden),
        draw(shape.target, shape.sentences, hidden),
    )


@pytest.fixture
def handed_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Tensor]]:
    """What the packed path takes, in this order, where it would draw dropout factors."""
    factors: list[Tensor] = []

    def take(shape: tuple[int, ...], probability: float, like: Tensor) -> Tensor:
        taken = factors.pop(0)
        assert taken.shape == shape
        return taken

    monkeypatch.setattr(packed_encoder, "dropout_mask", take)
    monkeypatch.setattr(packed_decoder, "dropout_mask", take)
    yield factors
    assert not factors


def packed_masks(batch: Batch, masks: Masks) -> list[Tensor]:
    """The factors of the positions that the packed path computes, in its order."""
    assert batch.target_lengths is not None
    rows = len(batch)
    taken = []
    index = Steps.of(batch.source_lengths.tolist()).index(torch.arange(rows))
    for layer in masks.encoder if masks.encoder is not None else ():
        taken.append(layer[:, :rows].reshape(-1, layer.size(2))[index])
    lengths = batch.target_lengths - 1
    order = lengths.argsort(descending=True, stable=True)
    index = Steps.of(lengths[order].tolist()).index(order)
    assert masks.between is not None
    assert masks.above is not None
    if len(masks.between):
        parts = [layer[:, :rows].reshape(-1, layer.size(2))[index] for layer in masks.between]
        taken.append(torch.stack(parts))
    taken.append(masks.above[:, :rows].reshape(-1, masks.above.size(2))[index])
    return taken


def packed_loss(model: SparseNMTModel, batch: Batch, smoothing: float = 0.0) -> Tensor:
    hidden, target = model.hidden_states(batch)
    return model.generator.loss(hidden, target, KNOWN.target.pad, smoothing).loss


def static_loss_of(
    model: SparseNMTModel, batch: PaddedBatch, masks: Masks | None, smoothing: float = 0.0
) -> Tensor:
    source, target, lengths = views(batch.ids, batch.shape)
    outputs = static_outputs(model.encoder, model.decoder, source, lengths, target[:-1], masks)
    flat, wanted = outputs.flatten(0, 1), target[1:].flatten()
    return model.generator.loss(flat, wanted, KNOWN.target.pad, smoothing).loss


def gradients(loss: Tensor, model: SparseNMTModel) -> dict[str, Tensor]:
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def assert_equal(model: SparseNMTModel, sentences: int, handed_in: list[Tensor]) -> None:
    """Losses and all gradients of both paths, with the same dropout factors."""
    assert reason_against(model.encoder, model.decoder) is None
    batch = batch_of(sentences)
    full = padded(batch)
    masks = masks_for(model, full)
    handed_in.extend(packed_masks(batch, masks))
    theirs = packed_loss(model, batch)
    ours = static_loss_of(model, full, masks)
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    expected = gradients(theirs, model)
    found = gradients(ours, model)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        scale = float(gradient.abs().max()) + 1
        assert float((found[name] - gradient).abs().max()) <= 1e-10 * scale, name


@pytest.mark.parametrize("alpha", [1.0, 1.05, 1.33, 1.5, 2.0, 2.5, 3.0])
@pytest.mark.parametrize("attention", ["general", "mlp"])
def test_equals_the_packed_path(attention: str, alpha: float, handed_in: list[Tensor]) -> None:
    model = model_of(
        global_attention=attention, global_attention_alpha=alpha, generator_alpha=alpha
    )
    assert_equal(model, 7, handed_in)


@pytest.mark.parametrize(
    "options",
    [
        {"encoder_type": "rnn", "global_attention": "dot"},
        {"enc_layers": 1, "dec_layers": 1},
        {"enc_layers": 3, "dec_layers": 2},
        {"bridge": True, "enc_layers": 1, "dec_layers": 1},
        {
            "share_decoder_embeddings": True,
            "tgt_word_vec_size": 12,
        },
    ],
)
def test_equals_the_packed_path_in_other_models(
    options: dict[str, object], handed_in: list[Tensor]
) -> None:
    assert_equal(model_of(**options), 7, handed_in)


def test_sentences_that_are_missing_count_nothing(handed_in: list[Tensor]) -> None:
    assert_equal(model_of(), 4, handed_in)


def test_weights_after_five_updates(handed_in: list[Tensor]) -> None:
    first = model_of()
    models = [first, copy.deepcopy(first)]
    optimizers = [torch.optim.Adam(model.parameters(), 0.01) for model in models]
    for seed in range(5):
        batch = batch_of(7, seed)
        full = padded(batch)
        masks = masks_for(first, full)
        handed_in.extend(packed_masks(batch, masks))
        losses = packed_loss(models[0], batch), static_loss_of(models[1], full, masks)
        for model, optimizer, loss in zip(models, optimizers, losses, strict=True):
            optimizer.zero_grad()
            (loss / 7).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    for ours, theirs in zip(models[1].parameters(), models[0].parameters(), strict=True):
        assert float((ours - theirs).detach().abs().max()) <= 1e-8


def test_draws_the_dropout_that_modules_ask_for() -> None:
    model = model_of()
    full = padded(batch_of(7))
    model.eval()
    quiet = static_loss_of(model, full, None)
    torch.testing.assert_close(quiet, static_loss_of(model, full, Masks()), rtol=0, atol=0)
    model.train()
    assert float(static_loss_of(model, full, None)) != float(quiet)
    model.update_dropout(0.0, 0.0)
    torch.testing.assert_close(static_loss_of(model, full, None), quiet, rtol=0, atol=0)


def test_what_is_not_covered_has_a_reason() -> None:
    model = model_of(global_attention_alpha=3.5)
    assert "3.5" in str(reason_against(model.encoder, model.decoder))
    model = model_of(rnn_type="GRU")
    assert reason_against(model.encoder, model.decoder) is not None


def test_a_second_backward_pass_is_refused() -> None:
    model = model_of()
    loss = static_loss_of(model, padded(batch_of(7)), None)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="one backward pass only"):
        loss.backward()
