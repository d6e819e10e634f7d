"""Ensembles of models that keep padding and models that drop it when sentences leave a search."""

from typing import NamedTuple

import pytest
import torch

from onmt_entmax.search import EnsembleStepper, Hypothesis, SearchConfig, beam_search
from tests.search.networks import network, sentences, stepper, together


class Pair(NamedTuple):
    """A hypothesis of a sentence, which was searched in a batch and alone."""

    in_batch: Hypothesis
    alone: Hypothesis


class TestMembersThatKeepPadding:
    """The other member, an input-feeding LSTM, reads shorter sources once the long ones have left.

    Both are one ensemble, whose hypotheses in a batch are those of each sentence alone.
    """

    @pytest.fixture(scope="class", params=["gru", "transformer", "learned"])
    def pairs(self, request: pytest.FixtureRequest) -> list[Pair]:
        """Two hypotheses or fewer of each of six sentences."""
        kinds = ("input-feeding", request.param)
        ensemble = EnsembleStepper(
            [stepper(network(kind, alpha=1.5, seed=3), attention=True) for kind in kinds]
        )
        batches = sentences(6)
        config = SearchConfig(beam_size=4, n_best=2, max_length=6)
        alone = [beam_search(ensemble, batch, config)[0].hypotheses for batch in batches]
        in_batch = [
            result.hypotheses for result in beam_search(ensemble, together(batches), config)
        ]
        pairs = [
            Pair(*pair)
            for hypotheses in zip(in_batch, alone, strict=True)
            for pair in zip(*hypotheses, strict=True)
        ]
        assert len(pairs) > len(batches)
        return pairs

    def test_give_the_same_outputs(self, pairs: list[Pair]) -> None:
        assert [one.tokens for one, _ in pairs] == [alone.tokens for _, alone in pairs]

    def test_attend_to_the_same_positions(self, pairs: list[Pair]) -> None:
        for in_batch, alone in pairs:
            width = alone.attention.size(1)
            torch.testing.assert_close(in_batch.attention[:, :width], alone.attention)

    def test_attend_to_no_padding(self, pairs: list[Pair]) -> None:
        for in_batch, alone in pairs:
            assert not in_batch.attention[:, alone.attention.size(1) :].any()


@pytest.mark.parametrize("order", [("input-feeding", "gru"), ("gru", "input-feeding")])
def test_members_of_other_widths_attend_to_the_same_positions(order: tuple[str, str]) -> None:
    """Once long sentences have left, an input-feeding LSTM has the shorter sources alone."""
    ensemble = EnsembleStepper(
        [stepper(network(kind, alpha=1.5, seed=3), attention=True) for kind in order]
    )
    batches = sentences(6)
    short = 5  # the last sentence, and the shortest
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
