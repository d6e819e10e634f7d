"""`onmt-entmax bleu --tune length_reward`: which outputs of a report are proven under a reward.

The chosen output is proven if no unlisted one can have a better score. The reward of an unlisted
output is at most 4 * length_reward * length_ratio, where 4 is the number of source tokens. Its
probability is limited in one of two ways:

- The search did not find the output. Then the probability is at most the bound of the search.
- The search found it, but the list was full. Then the probability is at most that of the last
  listed output.

`rewards.py` describes the sentence, its two outputs and their scores.
"""

from pathlib import Path

import pytest

from tests.cli.rewards import Record, measured, record, row_of, unfinished_record


def is_proven(folder: Path, judged: Record, reward: float, ratio: float) -> bool:
    """Return whether the chosen output of a report of one sentence is proven under a reward."""
    share = row_of(measured(folder, judged), reward, ratio)["proven"]
    assert share in (0.0, 1.0)
    return bool(share)


def test_an_output_is_proven_if_all_outputs_are_listed(tmp_path: Path) -> None:
    assert is_proven(tmp_path, record(), reward=0.3, ratio=1.5)


# Each id has two exponentiated scores: that of the chosen output, and the best one that an unlisted
# output may have.


@pytest.mark.parametrize(
    ("bound", "reward", "ratio", "proven"),
    [
        pytest.param(0.25, 0.0, 1.2, True, id="0.3 against 0.25"),
        pytest.param(0.2, 0.5, 1.0, True, id="0.2 exp(2.0) against the same"),
        pytest.param(0.25, 0.5, 1.0, False, id="0.2 exp(2.0) against 0.25 exp(2.0)"),
        pytest.param(
            0.29, 0.3, 0.8, False, id="0.3 exp(0.9) = 0.738 against 0.29 exp(0.96) = 0.757"
        ),
        pytest.param(
            0.28, 0.3, 0.8, True, id="0.3 exp(0.9) = 0.738 against 0.28 exp(0.96) = 0.731"
        ),
        pytest.param(0.0, 0.3, 1.5, True, id="0.2 exp(1.5) against 0"),
    ],
)
def test_an_output_that_the_search_did_not_find_has_at_most_its_bound(
    tmp_path: Path, bound: float, reward: float, ratio: float, proven: bool
) -> None:
    unsure = record(certificate="none", bound=bound)
    assert is_proven(tmp_path, unsure, reward, ratio) == proven


@pytest.mark.parametrize(
    ("reward", "ratio", "proven"),
    [
        pytest.param(0.3, 1.0, True, id="0.3 exp(0.9) = 0.738 against 0.2 exp(1.2) = 0.664"),
        pytest.param(0.3, 1.5, False, id="0.2 exp(1.5) = 0.896 against 0.2 exp(1.8) = 1.210"),
    ],
)
def test_an_output_for_which_the_list_is_too_short_has_at_most_the_probability_of_the_last(
    tmp_path: Path, reward: float, ratio: float, proven: bool
) -> None:
    """The search found three outputs and lists two, of which the last has probability 0.2."""
    short_list = record(finished=3)
    assert is_proven(tmp_path, short_list, reward, ratio) == proven


def test_proven_is_a_share_of_the_sentences(tmp_path: Path) -> None:
    """No output of the second sentence ended, so that none is proven."""
    rows = measured(tmp_path, record(), unfinished_record())
    assert {row["proven"] for row in rows} == {0.5}
