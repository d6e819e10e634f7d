"""Search over real networks: recurrent, Transformer, ensembles."""

import pytest
import torch

from onmt_entmax.data.batch import Example, make_batch
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabulary
from onmt_entmax.search import (
    EnsembleStepper,
    Hypothesis,
    ModelStepper,
    SearchConfig,
    beam_search,
)
from tests.search.networks import DECODERS, VOCABULARIES, network, sentences, stepper, together


class TestMembersThatKeepPadding:
    """Sentences leave a search one by one; then a plain LSTM reads shorter sources."""

    @pytest.fixture(scope="class", params=["gru", "transformer", "learned"])
    def pairs(self, request: pytest.FixtureRequest) -> list[tuple[Hypothesis, Hypothesis]]:
        """Hypotheses of a batch, each with that of its sentence alone."""
        kinds = ("input-feeding", request.param)
        ensemble = EnsembleStepper(
            [stepper(network(k, alpha=1.5, seed=3), attention=True) for k in kinds]
        )
        batches = sentences(6)
        config = SearchConfig(beam_size=4, n_best=2, max_length=6)
        alone = [beam_search(ensemble, batch, config)[0] for batch in batches]
        results = beam_search(ensemble, together(batches), config)
        return [
            pair
            for one, other in zip(results, alone, strict=True)
            for pair in zip(one.hypotheses, other.hypotheses, strict=True)
        ]

    def test_give_the_same_outputs(self, pairs: list[tuple[Hypothesis, Hypothesis]]) -> None:
        assert [one.tokens for one, _ in pairs] == [alone.tokens for _, alone in pairs]

    def test_attend_to_the_same_positions(self, pairs: list[tuple[Hypothesis, Hypothesis]]) -> None:
        for one, alone in pairs:
            width = alone.attention.size(1)
            torch.testing.assert_close(one.attention[:, :width], alone.attention)

    def test_attend_to_no_padding(self, pairs: list[tuple[Hypothesis, Hypothesis]]) -> None:
        for one, alone in pairs:
            assert not one.attention[:, alone.attention.size(1) :].any()


@pytest.mark.parametrize("reverse", [False, True])
def test_members_of_other_widths_attend_to_the_same_positions(reverse: bool) -> None:
    """Once long sentences have left, an input-feeding LSTM has the shorter sources alone."""
    members = [
        stepper(network(kind, alpha=1.5, seed=3), attention=True)
        for kind in ("input-feeding", "gru")
    ]
    ensemble = EnsembleStepper(members[::-1] if reverse else members)
    batches = sentences(6)
    short = 5
    with torch.inference_mode():
        state = ensemble.select(ensemble.start(together(batches)), torch.tensor([short]))
        attentions = [
            member.step(of_member, torch.tensor([member.bos])).attention
            for member, of_member in zip(ensemble.steppers, state, strict=True)
        ]
        (row,) = ensemble.step(state, torch.tensor([ensemble.bos])).attention_rows()
        alone = ensemble.step(ensemble.start(batches[short]), torch.tensor([ensemble.bos]))
    assert len({attention.size(1) for attention in attentions}) == 2, "their widths differ"
    torch.testing.assert_close(row, alone.attention[0])


@pytest.mark.parametrize("kind", DECODERS)
def test_log_probabilities_of_outputs_are_those_of_training(kind: str) -> None:
    model = network(kind, alpha=1.5, seed=4)
    for sentence in sentences(4):
        config = SearchConfig(beam_size=5, n_best=3, max_length=8)
        (result,) = beam_search(stepper(model), sentence, config)
        for hypothesis in result.hypotheses:
            example = Example(sentence.source.flatten().tolist(), hypothesis.tokens, 0)
            batch = make_batch([example], VOCABULARIES)
            hidden, target = model.hidden_states(batch)
            log_probs = model.generator.log_probs(hidden).gather(1, target[:, None])
            assert hypothesis.log_prob == pytest.approx(log_probs.sum().item(), abs=1e-5)


class TestAttention:
    """The attention of the hypotheses of a batch."""

    @pytest.fixture(scope="class", params=["gru", "transformer", "learned"])
    def hypotheses(self, request: pytest.FixtureRequest) -> list[tuple[int, Hypothesis]]:
        """Hypotheses with the length of their source."""
        model = stepper(network(request.param, alpha=1.5, seed=6), attention=True)
        batches = sentences(5)
        config = SearchConfig(beam_size=3, n_best=2, max_length=8)
        results = beam_search(model, together(batches), config)
        return [
            (int(batch.source_lengths[0]), hypothesis)
            for batch, result in zip(batches, results, strict=True)
            for hypothesis in result.hypotheses
        ]

    def test_has_a_row_for_every_step(self, hypotheses: list[tuple[int, Hypothesis]]) -> None:
        for _, hypothesis in hypotheses:
            assert hypothesis.attention.shape[0] == len(hypothesis.tokens) + 1

    def test_is_zero_at_padding(self, hypotheses: list[tuple[int, Hypothesis]]) -> None:
        for width, hypothesis in hypotheses:
            assert hypothesis.attention[:, width:].eq(0).all()

    def test_sums_to_one(self, hypotheses: list[tuple[int, Hypothesis]]) -> None:
        for _, hypothesis in hypotheses:
            sums = hypothesis.attention.double().sum(1)
            torch.testing.assert_close(sums, torch.ones_like(sums), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_state_that_was_put_aside_can_be_resumed(kind: str) -> None:
    model = stepper(network(kind, alpha=1.5, seed=7))
    batch = together(sentences(3))
    with torch.inference_mode():
        first = model.step(model.start(batch), torch.full((3,), model.bos))
        tokens = torch.tensor([4, 5, 4])
        once = model.step(first.state, tokens)
        model.step(once.state, tokens)
        model.select(once.state, torch.tensor([2, 0]))
        again = model.step(first.state, tokens)
    assert torch.equal(once.log_probs, again.log_probs)


def test_a_model_of_another_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="output has size 6, the target vocabulary 5"):
        ModelStepper(network("lstm", alpha=1.5, seed=0), Vocabulary((*TARGET_SPECIALS, "x")))


def test_a_model_in_training_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="evaluation mode"):
        stepper(network("lstm", alpha=1.5, seed=0).train())


@pytest.mark.parametrize("rows", [[1, 0, 2], [0, 2], [2, 2, 0, 1]])
@pytest.mark.parametrize("kind", DECODERS)
def test_rows_may_be_chosen_before_the_first_step(kind: str, rows: list[int]) -> None:
    model = stepper(network(kind, alpha=1.5, seed=7))
    with torch.inference_mode():
        start = model.start(together(sentences(3)))
        whole = model.step(start, torch.full((3,), model.bos))
        after = model.step(whole.state, torch.tensor([4, 5, 4]))
        chosen = torch.tensor(rows)
        few = model.step(model.select(start, chosen), torch.full((len(rows),), model.bos))
        later = model.step(few.state, torch.tensor([4, 5, 4])[chosen])
    assert torch.allclose(few.log_probs, whole.log_probs[chosen])
    assert torch.allclose(later.log_probs, after.log_probs[chosen])
