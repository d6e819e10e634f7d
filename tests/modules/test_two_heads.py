"""Two attention heads: each sees its own tokens, and the marks go wherever the source goes."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.checkpoint import load, save
from onmt_entmax.errors import UserError
from onmt_entmax.mappings import entmax
from onmt_entmax.model import ModelConfig, build_model
from onmt_entmax.modules.recurrence.decoder import FastInputFeedRNNDecoder
from onmt_entmax.modules.two_heads import TwoHeadedAttention
from onmt_entmax.opennmt import Embeddings, InputFeedRNNDecoder
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.text.batch import Example, make_batch
from onmt_entmax.text.vocabulary import (
    SOURCE_SPECIALS,
    TARGET_SPECIALS,
    Vocabularies,
    Vocabulary,
)
from onmt_entmax.translation import Translator
from tests.commands import succeed
from tests.toy import write_config

DIM = 6
NAMES = Vocabularies(
    Vocabulary((*SOURCE_SPECIALS, "lang=x", "+V", "+", "a", "b")),
    Vocabulary((*TARGET_SPECIALS, "a", "b")),
)
CONFIG = ModelConfig(
    encoder_type="brnn", rnn_size=DIM, src_word_vec_size=4, tgt_word_vec_size=4, dropout=0.0,
    global_attention_alpha=1.5, tag_head="(lang=|[+]).+",
)  # fmt: skip


def inputs(marks: list[list[int]], seed: int = 0) -> tuple[TwoHeadedAttention, torch.Tensor]:
    """A head pair in float64, and source vectors with these marks, none of them padding."""
    torch.manual_seed(seed)
    attention = TwoHeadedAttention(DIM, 1.5).double()
    vectors = 2 * torch.randn(len(marks), len(marks[0]), DIM, dtype=torch.float64)
    return attention, torch.cat([vectors, torch.tensor(marks).unsqueeze(2)], dim=2)


MARKS = st.integers(1, 6).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(0, 1), min_size=size, max_size=size), min_size=1, max_size=4
    )
)


@given(MARKS, st.integers(0, 100), st.data())
def test_it_is_the_formula(marks: list[list[int]], seed: int, data: st.DataObject) -> None:
    attention, memory = inputs(marks, seed)
    length = [data.draw(st.integers(1, len(row))) for row in marks]
    queries = torch.randn(len(marks), 3, DIM, dtype=torch.float64)
    outputs, attended = attention(queries, memory, torch.tensor(length))
    first, second = attention.linear_in.weight.view(2, DIM, DIM)
    for b, t in ((b, t) for b in range(len(marks)) for t in range(3)):
        q, bank = queries[b, t], memory[b, : length[b], :-1]
        heads, spread = [], torch.zeros(2, len(marks[0]), dtype=torch.float64)
        for h, (match, wanted) in enumerate(((first, 1), (second, 0))):
            own = [j for j in range(length[b]) if marks[b][j] == wanted] or list(range(length[b]))
            weights = entmax(bank[own] @ match @ q, 1.5)
            spread[h, own] = weights
            context = torch.cat([weights @ bank[own], q])
            heads.append(torch.tanh(attention.linear_out[h].weight @ context))
        gate = entmax(attention.gate(torch.cat([*heads, q])), 2.0)
        torch.testing.assert_close(outputs[t, b], gate[0] * heads[0] + gate[1] * heads[1])
        torch.testing.assert_close(attended[t, b], gate @ spread)
        assert (attended[t, b, length[b] :] == 0).all()


def test_one_step_is_a_row_of_many() -> None:
    attention, memory = inputs([[1, 1, 0, 0], [1, 0, 0, 0]])
    queries = torch.randn(2, 3, DIM, dtype=torch.float64)
    lengths = torch.tensor([4, 3])
    outputs, attended = attention(queries, memory, lengths)
    for step in range(3):
        one, weights = attention(queries[:, step], memory, lengths)
        torch.testing.assert_close(one, outputs[step])
        torch.testing.assert_close(weights, attended[step])


def test_gradients() -> None:
    attention, memory = inputs([[1, 1, 0, 0], [0, 0, 0, 0]], 5)
    queries = torch.randn(2, DIM, dtype=torch.float64, requires_grad=True)
    names, weights = zip(*attention.named_parameters(), strict=True)

    def forward(query, *given):
        values = dict(zip(names, given, strict=True))
        return torch.func.functional_call(attention, values, (query, memory))

    assert torch.autograd.gradcheck(forward, (queries, *weights))


@pytest.mark.parametrize("attended", [False, True])
def test_the_recurrence_is_opennmts_loop(attended: bool) -> None:
    """Values and every gradient of the derived backward pass against autograd's."""
    targets, lengths = torch.tensor([5, 3, 1, 4]), torch.tensor([6, 6, 4, 2])
    results = []
    for kind in (FastInputFeedRNNDecoder, InputFeedRNNDecoder):
        attention, memory = inputs([[1, 1, 0, 0, 0, 0], [0] * 6, [1, 0, 0, 1, 1, 0], [1] * 6])
        decoder = kind(
            "LSTM", False, 2, DIM, attn_type="general", embeddings=Embeddings(4, 9, 1)
        ).double()
        decoder.attn = attention
        assert kind is InputFeedRNNDecoder or decoder._is_covered()
        for number, parameter in enumerate(decoder.parameters()):
            torch.manual_seed(number)
            torch.nn.init.uniform_(parameter, -1.5, 1.5)
        bank = memory.transpose(0, 1).clone().requires_grad_()
        states = torch.randn(2, 2, 4, DIM, dtype=torch.float64).requires_grad_()
        decoder.init_state(None, bank, tuple(states))
        tokens = torch.randint(2, 9, (5, 4, 1))
        real = torch.arange(5).unsqueeze(1) < targets
        if kind is FastInputFeedRNNDecoder and not attended:
            packed, index = decoder.packed_forward(tokens, targets, bank, lengths)
            outputs = torch.zeros(20, DIM, dtype=torch.float64).index_put((index,), packed)
            outputs = outputs.view(5, 4, DIM)
        else:
            outputs, seen = decoder(tokens, bank, memory_lengths=lengths)
        mix = torch.randn(5, 4, DIM, dtype=torch.float64)
        loss = (outputs * mix * real.unsqueeze(2)).sum()
        if attended:
            loss = loss + (seen["std"] * torch.randn(5, 4, 6, dtype=torch.float64)).sum()
        loss.backward()
        values = [loss.detach(), outputs.detach()[real], states.grad, bank.grad[:, :, :-1]]
        results.append([*values, *(p.grad for p in decoder.parameters())])
    gates = decoder.attn.gate.weight.grad
    assert gates.abs().max() > 1e-3
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_the_encoder_marks_tags_and_only_tags() -> None:
    model = build_model(CONFIG, NAMES)
    source = NAMES.source.encode("lang=x +V a + <unk>".split())
    batch = make_batch([Example(source, None, 0), Example(source[1:3], None, 1)], NAMES)
    _, bank, _ = model.encoder(batch.source, batch.source_lengths)
    assert bank.shape == (5, 2, DIM + 1)
    assert bank[:, 0, -1].tolist() == [1, 1, 0, 0, 0]  # a plus sign is a character
    assert bank[:2, 1, -1].tolist() == [1, 0]
    assert not [name for name in model.state_dict() if "marks" in name]
    with pytest.raises(UserError, match="no token of the source vocabulary matches 'x'"):
        build_model(dataclasses.replace(CONFIG, tag_head="x"), NAMES)


def test_a_run_trains_resumes_and_translates(tmp_path: Path) -> None:
    path = write_config(tmp_path, tag_head="[abc]", train_steps=20, valid_steps=20)
    succeed("train.py", "-config", path)
    succeed("train.py", "-config", path, "-train_from", tmp_path / "run", "-train_steps", 40)
    loaded = load(tmp_path / "run" / "step_40")
    assert isinstance(loaded.model.decoder.attn, TwoHeadedAttention)
    assert loaded.config.tag_head == "[abc]"
    printed = succeed(
        "translate.py", "-model", tmp_path / "run", "-src", tmp_path / "valid.src",
        "-output", tmp_path / "out", "-exactness_report", tmp_path / "report", "-verify",
        "-search", "exact", "-max_length", 3,
    )  # fmt: skip
    assert "source positions of nonzero attention" in printed
    summary = json.loads((tmp_path / "report.summary.json").read_text())
    assert (summary["verified"], summary["disagreements"]) == (40, 0)


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_the_gate_may_leave_a_head_out(tmp_path: Path, alpha: float) -> None:
    """Positions of a head that has no part in a step are not counted, whatever its softmax."""
    torch.manual_seed(3)
    config = dataclasses.replace(
        CONFIG, global_attention_alpha=alpha, generator_alpha=1.5, param_init=1.0
    )
    save(tmp_path / "model", build_model(config, NAMES), config, NAMES, {}, None)
    search = SearchTask(SearchConfig(3, 1, 5))
    translator = Translator.from_folders([tmp_path / "model"], search, attention=True)
    (answer,) = translator.answers(["lang=x +V a b a b a b"], 1)
    weights = answer.hypotheses[0].hypothesis.attention
    assert weights is not None
    counted = (weights > 0).sum(1).tolist()
    assert list(answer.attended) == counted
    assert min(counted) < 8  # the sentence has eight tokens, two of them for one head
