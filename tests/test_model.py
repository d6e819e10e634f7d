"""Models: their parts are OpenNMT-py's, and with alpha 1 they compute what OpenNMT-py computes."""

import dataclasses
from itertools import cycle

import pytest
import torch

from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.model import build_model, count_parameters, with_tokens_in_order
from onmt_entmax.nn.attention import EntmaxGlobalAttention
from onmt_entmax.opennmt import GlobalAttention
from onmt_entmax.sparse import entmax, entmax_loss
from tests.models import BATCH, CONFIGS, SHARED, SMALL, VOCABULARIES


@pytest.mark.parametrize("attn_type", ["dot", "general", "mlp"])
@pytest.mark.parametrize("steps", [None, 3])
def test_attention_with_alpha_1_is_opennmt_attention(attn_type: str, steps: int | None) -> None:
    ours = EntmaxGlobalAttention(8, attn_type, alpha=1.0)
    theirs = GlobalAttention(8, attn_type=attn_type)
    theirs.load_state_dict(ours.state_dict())
    queries = torch.randn(4, 8) if steps is None else torch.randn(4, steps, 8)
    memory, lengths = torch.randn(4, 5, 8), torch.tensor([5, 3, 1, 2])
    for a, b in zip(
        ours(queries, memory, lengths), theirs(queries, memory, memory_lengths=lengths), strict=True
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 1.3])
def test_attention_weights_are_entmax_of_the_scores(alpha: float) -> None:
    attention = EntmaxGlobalAttention(8, "general", alpha)
    queries, memory = 3 * torch.randn(4, 8), torch.randn(4, 6, 8)
    lengths = torch.tensor([6, 3, 1, 4])
    _, weights = attention(queries, memory, lengths)
    for row, length in enumerate(lengths.tolist()):
        scores = queries[row] @ attention.linear_in.weight.t() @ memory[row, :length].t()
        torch.testing.assert_close(weights[row, :length], entmax(scores, alpha))
        assert (weights[row, length:] == 0).all()


@pytest.mark.parametrize("name", CONFIGS)
def test_every_kind_of_model_learns(name: str) -> None:
    """A few steps on one batch lower its loss, and every weight has a gradient."""
    model = build_model(CONFIGS[name], VOCABULARIES)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(25):
        hidden, target = model.hidden_states(BATCH)
        result = model.generator.loss(hidden, target, VOCABULARIES.target.pad)
        optimizer.zero_grad()
        result.loss.backward()
        optimizer.step()
        losses.append(float(result.loss.detach()))
    assert losses[-1] < 0.8 * losses[0]
    assert result.tokens == 2 + 1 + 4 + 3  # with the end symbols
    unused = [name for name, p in model.named_parameters() if p.grad is None]
    assert not unused


@pytest.mark.parametrize(("name", "alpha"), zip(CONFIGS, cycle([1.0, 1.5, 2.0])))
def test_the_loss_is_of_real_targets(name: str, alpha: float) -> None:
    changed = dataclasses.replace(CONFIGS[name], generator_alpha=alpha)
    model, pad = build_model(changed, VOCABULARIES).eval(), VOCABULARIES.target.pad
    hidden, target = model.hidden_states(BATCH)
    found = model.generator.loss(hidden, target, pad)
    scores, real = model.generator.scores(hidden)[target != pad], target[target != pad]
    torch.testing.assert_close(found.loss, entmax_loss(scores, real, alpha, reduction="sum"))
    assert found.tokens == len(real)


def reordered(vocabulary: Vocabulary) -> Vocabulary:
    *specials, last = vocabulary.tokens
    return Vocabulary((*specials[:4], last, *reversed(specials[4:])))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_dropout_changes(name: str) -> None:
    """`update_dropout` gives what `build_model` would have."""
    config = dataclasses.replace(CONFIGS[name], dropout=0.2, attention_dropout=0.3)
    wanted = dataclasses.replace(config, dropout=0.6, attention_dropout=0.7)
    changed, fresh = (build_model(each, VOCABULARIES) for each in (config, wanted))
    changed.update_dropout(0.6, 0.7)
    found = 0
    for one, other in zip(changed.modules(), fresh.modules(), strict=True):
        if isinstance(one, torch.nn.Dropout):
            found += 1
            assert one.p == other.p
        elif isinstance(one, torch.nn.RNNBase) and one.num_layers > 1:
            found += 1
            assert one.dropout == other.dropout
    assert found > 0


@pytest.mark.parametrize("name", [*CONFIGS, "shared", "tied"])
def test_tokens_in_another_order(name: str) -> None:
    """With the new ids of the same sentences, the network computes the same."""
    known, config = VOCABULARIES, CONFIGS.get(name, SHARED)
    if name == "tied":
        config = dataclasses.replace(SHARED, share_embeddings=False)
    if name == "shared":
        known = Vocabularies(VOCABULARIES.target, VOCABULARIES.target)
    source, target = (reordered(each) for each in known)
    wanted = Vocabularies(source, source if name == "shared" else target)
    model = build_model(config, known).eval()
    changed = with_tokens_in_order(model, config, known, wanted)
    outputs = []
    for network, names in ((model, known), (changed, wanted)):
        sentences = ["cde", "fb"] if name != "shared" else ["uvw", "xz"]
        examples = [
            Example(names.source.encode(source), names.target.encode(target), i)
            for i, (source, target) in enumerate(zip(sentences, ["zw", "x"], strict=True))
        ]
        hidden, _ = network.hidden_states(make_batch(examples, names))
        scores = network.generator.scores(hidden)
        outputs.append(scores[:, names.target.encode(known.target.tokens)])
    torch.testing.assert_close(*outputs)
    assert count_parameters(changed) == count_parameters(model)


def test_shared_embeddings_are_one_tensor() -> None:
    shared, config = Vocabularies(VOCABULARIES.target, VOCABULARIES.target), SHARED
    model = build_model(config, shared)
    weights = {
        id(model.encoder.embeddings.word_lut.weight),
        id(model.decoder.embeddings.word_lut.weight),
        id(model.generator.weight),
    }
    assert len(weights) == 1
    separate = build_model(
        dataclasses.replace(config, share_embeddings=False, share_decoder_embeddings=False), shared
    )
    assert count_parameters(separate) - count_parameters(model) == 2 * 8 * len(shared.target)


def test_frozen_parts() -> None:
    model = build_model(dataclasses.replace(SMALL, freeze_encoder=True), VOCABULARIES)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert "encoder.embeddings.make_embedding.emb_luts.0.weight" in trained
    assert not [name for name in trained if name.startswith("encoder.rnn")]


def test_tied_weights_are_initialised_as_an_output_layer() -> None:
    config = dataclasses.replace(
        SMALL, tgt_word_vec_size=8, share_decoder_embeddings=True, param_init=0.0
    )
    model = build_model(config, VOCABULARIES)
    assert model.generator.weight is model.decoder.embeddings.word_lut.weight
    assert model.generator.weight.abs().max() <= 8**-0.5
