"""Options that users write by names of other OpenNMT-py versions, `RENAMED`."""

from typing import Any

import pytest

from onmt_entmax.options.names import renamed_options
from onmt_entmax.options.stock import RENAMED
from onmt_entmax.options.train import training_options


@pytest.mark.parametrize("written", RENAMED)
def test_the_options_that_share_a_written_name_have_one_rule(written: str) -> None:
    """`find_option` returns the first of them, to read the value by its rule."""
    first, *others = (training_options()[name] for name in RENAMED[written])
    for other in others:
        assert (other.rule, other.many) == (first.rule, first.many)


def test_a_name_for_both_sides_sets_the_option_of_each() -> None:
    renamed = renamed_options({"subword_nbest": 3}, "")
    assert renamed == {"src_subword_nbest": 3, "tgt_subword_nbest": 3}


@pytest.mark.parametrize(
    ("content", "value"),
    [
        pytest.param({"hidden_size": 3, "rnn_size": 3}, 3, id="equal"),
        pytest.param({"hidden_size": "", "rnn_size": 3}, 3, id="the first is empty"),
        pytest.param({"hidden_size": 3, "rnn_size": None}, 3, id="the second is empty"),
    ],
)
def test_of_two_names_of_an_option_the_value_counts(content: dict[str, Any], value: int) -> None:
    assert renamed_options(content, "") == {"rnn_size": value}
