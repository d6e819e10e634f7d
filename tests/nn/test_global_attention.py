"""The layer of global attention: OpenNMT-py's with alpha 1, entmax of the same scores otherwise."""

import dataclasses

import pytest
import torch

from onmt_entmax.config import ModelConfig, declared
from onmt_entmax.model import build_model
from onmt_entmax.nn.attention import ATTENTIONS, EntmaxGlobalAttention
from onmt_entmax.opennmt import GlobalAttention
from onmt_entmax.sparse import entmax
from tests.models import BRNN, VOCABULARIES

BATCH, SOURCE_LENGTH, SIZE = 4, 6, 8
LENGTHS = torch.tensor([6, 3, 1, 4])  # of the sources; positions beyond them are padding


@pytest.fixture
def memory() -> torch.Tensor:
    """Encoder states ``(batch, source length, size)``."""
    return torch.randn(BATCH, SOURCE_LENGTH, SIZE)


@pytest.mark.parametrize("attn_type", ["dot", "general", "mlp"])
@pytest.mark.parametrize(
    "query_shape",
    [pytest.param((BATCH, SIZE), id="one step"), pytest.param((BATCH, 3, SIZE), id="three steps")],
)
def test_attention_with_alpha_1_is_opennmt_attention(
    attn_type: str, query_shape: tuple[int, ...], memory: torch.Tensor
) -> None:
    """Both have attentional vectors and weights."""
    ours = EntmaxGlobalAttention(SIZE, attn_type, alpha=1.0)
    theirs = GlobalAttention(SIZE, attn_type=attn_type)
    theirs.load_state_dict(ours.state_dict())
    queries = torch.randn(query_shape)
    expected = theirs(queries, memory, memory_lengths=LENGTHS)
    torch.testing.assert_close(ours(queries, memory, LENGTHS), expected)


# --- sparse attention, one step --------------------------------------------------------------


@pytest.fixture(params=[1.3, 1.5, 2.0], ids="alpha {}".format)
def sparse_attention(request: pytest.FixtureRequest) -> EntmaxGlobalAttention:
    return EntmaxGlobalAttention(SIZE, "general", alpha=request.param)


@pytest.fixture
def queries() -> torch.Tensor:
    """Decoder states ``(batch, size)``, so large that some weights are zero."""
    return 3 * torch.randn(BATCH, SIZE)


def test_weights_are_entmax_of_the_scores(
    sparse_attention: EntmaxGlobalAttention, queries: torch.Tensor, memory: torch.Tensor
) -> None:
    _, weights = sparse_attention(queries, memory, LENGTHS)  # (batch, source length)
    matrix = sparse_attention.linear_in.weight
    for row, length in enumerate(LENGTHS):
        scores = memory[row, :length] @ matrix @ queries[row]
        expected = entmax(scores, sparse_attention.alpha)
        torch.testing.assert_close(weights[row, :length], expected)


def test_padding_has_no_weight(
    sparse_attention: EntmaxGlobalAttention, queries: torch.Tensor, memory: torch.Tensor
) -> None:
    _, weights = sparse_attention(queries, memory, LENGTHS)
    is_padding = torch.arange(SOURCE_LENGTH) >= LENGTHS.unsqueeze(1)
    assert not weights[is_padding].any()


# --- the class of each type ------------------------------------------------------------------


def test_every_type_of_attention_has_a_class() -> None:
    names = declared(ModelConfig)["global_attention"].rule.names
    assert {*names} == {*ATTENTIONS, "none"}


def test_a_type_that_opennmt_lacks_may_have_a_class_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class OwnAttention(EntmaxGlobalAttention):
        """Attention with a name that OpenNMT-py refuses."""

        def __init__(self, dim: int, attn_type: str, alpha: float) -> None:
            super().__init__(dim, "dot", alpha)
            self.attn_type = attn_type

    monkeypatch.setitem(ATTENTIONS, "own", OwnAttention)
    config = dataclasses.replace(BRNN, global_attention_alpha=1.3)
    object.__setattr__(config, "global_attention", "own")  # which no option may be yet
    attention = build_model(config, VOCABULARIES).decoder.attn
    assert isinstance(attention, OwnAttention)
    assert (attention.dim, attention.attn_type, attention.alpha) == (config.rnn_size, "own", 1.3)
