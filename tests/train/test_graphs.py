"""Padded updates equal plain ones; on a CPU functions stand in for CUDA graphs."""

from __future__ import annotations

import copy
import random
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from onmt_entmax.data.batch import Batch, Example, lengths_of, make_batch
from onmt_entmax.data.shapes import Shapes, views
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import SparseNMTModel, build_model
from onmt_entmax.network import ModelConfig
from onmt_entmax.nn.transformer import attentions
from onmt_entmax.train.config import TrainingError
from onmt_entmax.train.graphs import PaddedUpdates, UpdateConfig, portable, reason_against
from tests.models import small, small_transformer

TOKENS = 20
SHAPES = Shapes(batch_size=5)


def known() -> Vocabularies:
    specials = [str(token) for token in TARGET_SPECIALS]
    words = Vocabulary((*specials, *(f"t{n}" for n in range(TOKENS - len(specials)))))
    return Vocabularies(words, words)


KNOWN = known()
PADS = KNOWN.source.pad, KNOWN.target.pad


CONFIG = small(encoder_type="brnn", global_attention_alpha=1.5, generator_alpha=1.5, param_init=0.4)
TRANSFORMER = small_transformer(
    attention_dropout=0.0,
    encoder_attention_alpha="learned",
    context_attention_alpha=1.5,
    generator_alpha=1.5,
    param_init=0.4,
)


def model_of(dropout: float = 0.0, config: ModelConfig = CONFIG) -> SparseNMTModel:
    torch.manual_seed(1)
    return build_model(replace(config, dropout=dropout), KNOWN).double().train()


def batch_of(seed: int, longest: int = 7, sentences: int = 5) -> Batch:
    generator = random.Random(seed)

    def tokens() -> list[int]:
        return [generator.randrange(4, TOKENS) for _ in range(generator.randint(1, longest))]

    return make_batch([Example(tokens(), tokens(), n) for n in range(sentences)], KNOWN)


def updates_of(model: SparseNMTModel, graphs: str = "on", **options: float) -> PaddedUpdates:
    optimizer = torch.optim.Adam(model.parameters(), 1.0, fused=True)
    return PaddedUpdates(model, optimizer, UpdateConfig(graphs=graphs, **options), SHAPES, PADS)


def plain_update(model: SparseNMTModel, optimizer: torch.optim.Optimizer, batch: Batch) -> Tensor:
    hidden, target = model.hidden_states(batch)
    result = model.generator.loss(hidden, target, PADS[1])
    optimizer.zero_grad()
    (result.loss / len(batch)).backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    return torch.stack([x.detach().double() for x in (*result, norm)])


@pytest.mark.parametrize("config", [CONFIG, TRANSFORMER], ids=["recurrent", "transformer"])
@pytest.mark.parametrize("graphs", ["on", "off", "check"])
def test_updates_equal_those_without_padding(graphs: str, config: ModelConfig) -> None:
    ours, theirs = model_of(config=config), model_of(config=config)
    updates = updates_of(ours, graphs, max_grad_norm=0.1)
    optimizer = torch.optim.Adam(theirs.parameters(), 1.0)
    for step in range(8):
        rate = 0.01 / (step + 1)
        optimizer.param_groups[0]["lr"] = rate
        batch = batch_of(step, longest=3 if step % 2 else 7)
        updates.accumulate(updates.pad(batch), 1 / len(batch))
        found = updates.finish(rate)
        torch.testing.assert_close(found, plain_update(theirs, optimizer, batch), rtol=1e-8, atol=0)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert float((mine - other).detach().abs().max()) <= 1e-8
    assert (updates.captured > 0) == (graphs != "off")


def test_batches_accumulate() -> None:
    ours, theirs = model_of(), model_of()
    updates = updates_of(ours, max_grad_norm=0.0)
    batches = [batch_of(seed) for seed in range(3)]
    for batch in batches:
        updates.accumulate(updates.pad(batch), 0.5)
    for batch in batches:
        hidden, target = theirs.hidden_states(batch)
        (theirs.generator.loss(hidden, target, PADS[1]).loss * 0.5).backward()
    expected = torch.cat([p.grad.flatten() for p in theirs.parameters() if p.grad is not None])
    torch.testing.assert_close(updates.gradient, expected, rtol=1e-9, atol=1e-11)
    updates.finish(0.1)
    assert not updates.gradient.any()


def test_beyond_the_bound_steps_are_plain() -> None:
    updates = updates_of(model_of(), most_graphs=1)
    for longest in (3, 3, 7, 7, 7, 3):
        batch = batch_of(longest, longest)
        updates.accumulate(updates.pad(batch), 1.0)
        updates.finish(0.01)
    assert updates.captured == 1


def test_what_is_not_finite_changes_no_weight() -> None:
    model = model_of()
    updates = updates_of(model)
    for step in range(4):
        updates.accumulate(updates.pad(batch_of(0)), float("nan") if step == 3 else 1.0)
        before = [p.detach().clone() for p in model.parameters()]
        norm = float(updates.finish(0.01)[4])
        changed = any(
            not torch.equal(x, y) for x, y in zip(before, model.parameters(), strict=True)
        )
        assert changed == (norm == norm) == (step < 3)
    updates.accumulate(updates.pad(batch_of(0)), 1.0)
    assert float(updates.finish(0.01).sum()) > 0  # nothing of it stays


def test_check_finds_a_graph_on_stale_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    updates = updates_of(model_of(), "check")
    updates.accumulate(updates.pad(batch_of(0)), 1.0)
    stale = updates.pad(batch_of(1)).ids
    shape = updates.pad(batch_of(0)).shape
    monkeypatch.setattr(
        updates, "_capture", lambda function: lambda: updates._add_gradient(stale, shape)
    )
    with pytest.raises(TrainingError, match="differs from a plain update"):
        updates.accumulate(updates.pad(batch_of(0)), 1.0)


def test_dropout_is_the_same_with_graphs_and_without() -> None:
    reports = []
    for graphs in ("on", "off", "check"):
        model = model_of(dropout=0.3)
        updates = updates_of(model, graphs)
        torch.manual_seed(5)
        for step in range(4):
            updates.accumulate(updates.pad(batch_of(step % 2)), 1.0)
            report = updates.finish(0.01)
        reports.append(report)
    assert torch.equal(reports[0], reports[1])
    assert torch.equal(reports[0], reports[2])


def test_a_resumed_optimiser_goes_on() -> None:
    model = model_of()
    updates = updates_of(model)
    for step in range(3):
        updates.accumulate(updates.pad(batch_of(step)), 1.0)
        updates.finish(0.01)
    saved = copy.deepcopy(portable(updates._optimizer.state_dict()))
    assert isinstance(saved["param_groups"][0]["lr"], float)
    other = copy.deepcopy(model)
    again = updates_of(other)
    again._optimizer.load_state_dict(saved)
    for each in (updates, again):
        for step in range(3, 6):
            each.accumulate(each.pad(batch_of(step)), 1.0)
            each.finish(0.01)
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_shapes_are_few_and_hold_all() -> None:
    generator = random.Random(0)
    examples = [
        Example([4] * generator.randint(1, 30), [4] * generator.randint(0, 20), n)
        for n in range(500)
    ]
    # A wider shape holds fewer sentences of as many tokens: a group that is carried may stay short.
    for shapes, most_short in ((Shapes(32), 1), (Shapes(600, "tokens"), 5)):
        places = shapes.group_lengths(*lengths_of(examples))
        groups = [[examples[at] for at in group] for group in places]
        assert sorted(e.index for group in groups for e in group) == list(range(500))
        found = set()
        short = 0
        for group in groups:
            batch = make_batch(group, KNOWN)
            shape = shapes.of(batch)
            assert len(group) <= shape.sentences
            short += len(group) < shape.sentences
            found.add(shape)
        assert short <= most_short
        assert len(found) <= 4 * 6 + 1


def test_padded_ids_are_those_of_the_batch() -> None:
    batch = batch_of(0, sentences=3)
    padded = updates_of(model_of()).pad(batch)
    source, target, lengths = views(padded.ids, padded.shape)
    assert batch.target is not None
    length, steps = batch.source.size(0), batch.target.size(0)
    assert torch.equal(source[:length, :3], batch.source[:, :, 0])
    assert torch.equal(target[:steps, :3], batch.target[:, :, 0])
    assert lengths.tolist() == [*batch.source_lengths.tolist(), 1, 1]
    assert (source[length:] == PADS[0]).all()
    assert (target[:, 3:] == PADS[1]).all()


def test_alphas_and_dropout_have_graphs_of_their_own() -> None:
    model = model_of(0.1, TRANSFORMER)
    updates = updates_of(model)
    shape = updates.pad(batch_of(0)).shape
    keys = [updates._key(shape)]
    model.update_dropout(0.2, 0.0)
    keys.append(updates._key(shape))
    attentions(model)["context"][1].alpha = 1.4
    keys.append(updates._key(shape))
    model.generator.alpha = 1.4
    keys.append(updates._key(shape))
    assert len({*keys}) == 4


def test_what_is_not_covered_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of()
    assert reason_against(model, torch.optim.SGD(model.parameters(), 1.0)) is not None
    adam = torch.optim.Adam(model.parameters(), fused=True)
    assert reason_against(model, adam) is None
    # PyTorch's operations in their place wait for the GPU, which cannot be captured.
    monkeypatch.setattr("onmt_entmax.train.graphs.device_of", lambda model: torch.device("cuda"))
    monkeypatch.setattr("onmt_entmax.train.graphs.kernels_start", lambda device: False)
    assert reason_against(model, adam) == "Triton starts no kernels here"
