"""`Sums` of losses and counts, and their averages over target tokens."""

from onmt_entmax.train.sums import Sums


def test_averages_weight_each_batch_by_its_tokens() -> None:
    sums = Sums()
    sums.add(loss=6.0, tokens=1.0, correct=0.0, support=5.0)
    sums.add(loss=2.0, tokens=3.0, correct=3.0, support=3.0)
    assert sums.averages() == {"loss": 2.0, "token_accuracy": 75.0, "support": 2.0}


def test_averages_without_tokens_are_0() -> None:
    assert Sums().averages() == {"loss": 0.0, "token_accuracy": 0.0, "support": 0.0}
