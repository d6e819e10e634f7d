"""Options of a later place (flags) beside those of an earlier one (a file): which stay in force."""

import pytest

from onmt_entmax.options.precedence import earlier_in_force
from tests.options.trainings import Changes


@pytest.mark.parametrize(
    ("earlier", "later", "in_force"),
    [
        pytest.param({"seed": 1}, {"layers": 2}, {"seed": 1}, id="another option"),
        pytest.param(
            {"both_embeddings": "a"}, {"src_embeddings": "b"}, {}, id="vectors of one side for both"
        ),
        pytest.param(
            {"src_embeddings": "a"}, {"both_embeddings": "b"}, {}, id="vectors of both for one side"
        ),
        pytest.param({"train_steps": 9}, {"train_epochs": 2}, {}, id="epochs for updates"),
        pytest.param(
            {"encoder_attention_alpha": 1.3},
            {"encoder_attention_function": "sparsemax"},
            {},
            id="a function that reads no alpha",
        ),
        pytest.param(
            {"encoder_attention_alpha": 1.3},
            {"encoder_attention_function": "entmax"},
            {"encoder_attention_alpha": 1.3},
            id="a function that reads the alpha",
        ),
    ],
)
def test_options_that_later_ones_exclude_are_not_in_force(
    earlier: Changes, later: Changes, in_force: Changes
) -> None:
    assert earlier_in_force(earlier, later) == in_force


@pytest.mark.parametrize(
    ("earlier", "later", "in_force"),
    [
        pytest.param(
            {"layers": 3}, {"enc_layers": 1}, {"enc_layers": 3, "dec_layers": 3}, id="of both"
        ),
        pytest.param(
            {"layers": -1, "dec_layers": 2},
            {"enc_layers": 1},
            {"dec_layers": 2},
            id="of each",
        ),
    ],
)
def test_a_later_size_of_one_side_leaves_the_earlier_size_of_the_other_in_force(
    earlier: Changes, later: Changes, in_force: Changes
) -> None:
    """The later place replaces what is returned for its own side."""
    assert earlier_in_force(earlier, later) == in_force
