"""Models: their parts are OpenNMT-py's, and with alpha 1 they compute what OpenNMT-py computes."""

import dataclasses
from itertools import cycle

import pytest
import torch

from onmt_entmax.config import ModelConfig, declared
from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary
from onmt_entmax.model import SparseNMTModel, build_model, count_parameters
from onmt_entmax.nn.attention import ATTENTIONS, EntmaxGlobalAttention
from onmt_entmax.opennmt import GlobalAttention
from onmt_entmax.reordering import with_tokens_in_order
from onmt_entmax.sparse import entmax, entmax_loss
from tests.models import BATCH, BRNN, CONFIGS, SHARED_EMBEDDINGS, VOCABULARIES


@pytest.mark.parametrize("attn_type", ["dot", "general", "mlp"])
@pytest.mark.parametrize("steps", [None, 3])
def test_attention_with_alpha_1_is_opennmt_attention(attn_type: str, steps: int | None) -> None:
    ours = EntmaxGlobalAttention(8, attn_type, alpha=1.0)
    theirs = GlobalAttention(8, attn_type=attn_type)
    theirs.load_state_dict(ours.state_dict())
    queries = torch.randn(4, 8) if steps is None else torch.randn(4, steps, 8)
    memory, lengths = torch.randn(4, 5, 8), torch.tensor([5, 3, 1, 2])
    result = ours(queries, memory, lengths)
    torch.testing.assert_close(result, theirs(queries, memory, memory_lengths=lengths))


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
    """A few updates on one batch lower its loss, and every weight has a gradient."""
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
    assert not [name for name, weight in model.named_parameters() if weight.grad is None]


def test_target_tokens_are_counted_with_the_end_symbols() -> None:
    model = build_model(BRNN, VOCABULARIES)
    result = model.generator.loss(*model.hidden_states(BATCH), VOCABULARIES.target.pad)
    assert result.tokens == 2 + 1 + 4 + 3


@pytest.mark.parametrize(("name", "alpha"), zip(CONFIGS, cycle([1.0, 1.5, 2.0])))
def test_the_loss_is_of_targets_without_padding(name: str, alpha: float) -> None:
    config = dataclasses.replace(CONFIGS[name], generator_alpha=alpha)
    model, pad = build_model(config, VOCABULARIES).eval(), VOCABULARIES.target.pad
    hidden, target = model.hidden_states(BATCH)
    result = model.generator.loss(hidden, target, pad)
    counts = target != pad
    scores, targets = model.generator.scores(hidden)[counts], target[counts]
    torch.testing.assert_close(result.loss, entmax_loss(scores, targets, alpha, reduction="sum"))
    assert result.tokens == len(targets)


def dropouts(model: torch.nn.Module) -> list[float]:
    """Return the dropout of each layer that has one."""
    of_layers = []
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            of_layers.append(module.p)
        elif isinstance(module, torch.nn.RNNBase) and module.num_layers > 1:
            of_layers.append(module.dropout)
    return of_layers


@pytest.mark.parametrize("name", CONFIGS)
def test_every_dropout_changes(name: str) -> None:
    """`update_dropout` gives what `build_model` would have."""
    low = dataclasses.replace(CONFIGS[name], dropout=0.2, attention_dropout=0.3)
    high = dataclasses.replace(CONFIGS[name], dropout=0.6, attention_dropout=0.7)
    model = build_model(low, VOCABULARIES)
    model.update_dropout(0.6, 0.7)
    expected = dropouts(build_model(high, VOCABULARIES))
    assert dropouts(model) == expected
    assert {0.6} <= {*expected} <= {0.6, 0.7}


def reordered(vocabulary: Vocabulary) -> Vocabulary:
    """Return a vocabulary of the same tokens; the first four keep their ids."""
    *specials, last = vocabulary.tokens
    return Vocabulary((*specials[:4], last, *reversed(specials[4:])))


JOINT = Vocabularies(VOCABULARIES.target, VOCABULARIES.target)
TIED = dataclasses.replace(SHARED_EMBEDDINGS, share_embeddings=False)


@pytest.mark.parametrize(
    ("config", "joint"),
    [
        *(pytest.param(config, False, id=name) for name, config in CONFIGS.items()),
        pytest.param(SHARED_EMBEDDINGS, True, id="shared"),
        pytest.param(TIED, False, id="tied"),
    ],
)
class TestTokensInAnotherOrder:
    """With the new ids of the same sentences, the network computes the same."""

    def outputs(
        self, model: SparseNMTModel, vocabularies: Vocabularies, joint: bool
    ) -> torch.Tensor:
        """Return scores of two pairs; columns in the order of VOCABULARIES."""
        sources = ("uvw", "xz") if joint else ("cde", "fb")
        examples = [
            Example(vocabularies.source.encode(source), vocabularies.target.encode(target), i)
            for i, (source, target) in enumerate(zip(sources, ("zw", "x"), strict=True))
        ]
        hidden, _ = model.hidden_states(make_batch(examples, vocabularies))
        ids = vocabularies.target.encode(VOCABULARIES.target.tokens)
        return model.generator.scores(hidden)[:, ids]

    def test_compute_the_same(self, config: ModelConfig, joint: bool) -> None:
        before = JOINT if joint else VOCABULARIES
        source, target = (reordered(vocabulary) for vocabulary in before)
        after = Vocabularies(source, source if joint else target)
        model = build_model(config, before).eval()
        other = with_tokens_in_order(model, config, before, after)
        torch.testing.assert_close(
            self.outputs(other, after, joint), self.outputs(model, before, joint)
        )
        assert count_parameters(other) == count_parameters(model)


def test_shared_embeddings_are_one_tensor() -> None:
    model = build_model(SHARED_EMBEDDINGS, JOINT)
    table = model.encoder.embeddings.word_lut.weight
    assert model.decoder.embeddings.word_lut.weight is table
    assert model.generator.weight is table


def test_shared_embeddings_are_counted_once() -> None:
    separate = dataclasses.replace(
        SHARED_EMBEDDINGS, share_embeddings=False, share_decoder_embeddings=False
    )
    saved = count_parameters(build_model(separate, JOINT)) - count_parameters(
        build_model(SHARED_EMBEDDINGS, JOINT)
    )
    assert saved == 2 * 8 * len(JOINT.target)  # two more tables of vectors of size 8


def test_a_frozen_encoder_keeps_its_embeddings_trained() -> None:
    model = build_model(dataclasses.replace(BRNN, freeze_encoder=True), VOCABULARIES)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert "encoder.embeddings.make_embedding.emb_luts.0.weight" in trained
    assert not [name for name in trained if name.startswith("encoder.rnn")]


def test_tied_weights_are_initialised_as_an_output_layer() -> None:
    config = dataclasses.replace(
        BRNN, tgt_word_vec_size=8, share_decoder_embeddings=True, param_init=0.0
    )
    model = build_model(config, VOCABULARIES)
    assert model.generator.weight is model.decoder.embeddings.word_lut.weight
    assert model.generator.weight.abs().max() <= 8**-0.5


def test_every_type_of_attention_has_a_class() -> None:
    names = declared(ModelConfig)["global_attention"].rule.names
    assert {*names} == {*ATTENTIONS, "none"}


def test_a_model_has_the_class_of_its_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenNMT-py knows the names of its own types alone."""

    class Other(EntmaxGlobalAttention):
        """Attention with a name that OpenNMT-py refuses."""

        def __init__(self, dim: int, attn_type: str, alpha: float) -> None:
            super().__init__(dim, "dot", alpha)
            self.attn_type = attn_type

    monkeypatch.setitem(ATTENTIONS, "other", Other)
    config = dataclasses.replace(BRNN, global_attention_alpha=1.3)
    object.__setattr__(config, "global_attention", "other")  # which no option may be yet
    attention = build_model(config, VOCABULARIES).decoder.attn
    assert isinstance(attention, Other)
    assert (attention.dim, attention.attn_type, attention.alpha) == (config.rnn_size, "other", 1.3)
