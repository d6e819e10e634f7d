"""`onmt-entmax bleu --tune length_reward`: which outputs of a report are proven under a reward.

The outputs of each sentence, and their scores, are those of `rewards.py`.
"""

from pathlib import Path

import pytest

from tests.cli.rewards import Record, measured, record, row_of, unfinished_record

UNFOUND = "none"  # the certificate of a search that may have missed outputs


@pytest.mark.parametrize(
    ("changes", "reward", "ratio", "proven"),
    [
        pytest.param({}, 0.3, 1.5, True, id="all outputs are listed"),
        pytest.param(
            {"certificate": UNFOUND, "bound": 0.25}, 0.0, 1.2, True, id="0.3 against 0.25"
        ),
        pytest.param(
            {"certificate": UNFOUND, "bound": 0.2}, 0.5, 1.0, True, id="both 0.2 exp(2.0)"
        ),
        pytest.param({"certificate": UNFOUND, "bound": 0.0}, 0.3, 1.5, True, id="a bound of 0"),
        pytest.param(
            {"certificate": UNFOUND, "bound": 0.25},
            0.5,
            1.0,
            False,
            id="0.2 exp(2.0) against 0.25 exp(2.0)",
        ),
        pytest.param(
            {"certificate": UNFOUND, "bound": 0.29},
            0.3,
            0.8,
            False,
            id="0.3 exp(0.9) = 0.738 against 0.29 exp(0.96) = 0.757",
        ),
        pytest.param(
            {"certificate": UNFOUND, "bound": 0.28},
            0.3,
            0.8,
            True,
            id="0.3 exp(0.9) = 0.738 against 0.28 exp(0.96) = 0.731",
        ),
        pytest.param(
            {"finished": 3}, 0.3, 1.0, True, id="0.3 exp(0.9) against the last's 0.2 exp(1.2)"
        ),
        pytest.param(
            {"finished": 3}, 0.3, 1.5, False, id="0.2 exp(1.5) against the last's 0.2 exp(1.8)"
        ),
    ],
)
def test_an_output_is_proven_if_no_unlisted_one_can_have_a_better_score(
    tmp_path: Path, changes: Record, reward: float, ratio: float, proven: bool
) -> None:
    """An unlisted output has at most the largest reward, 4 * reward * ratio.

    Its probability is at most the bound, if the search did not find it; or that of the last in the
    list, 0.2, if three outputs ended and the list has two.
    """
    rows = measured(tmp_path, record(**changes))
    assert row_of(rows, reward, ratio)["proven"] == float(proven)


def test_proven_is_a_share_of_the_sentences(tmp_path: Path) -> None:
    """The second sentence has no output that ended, so that nothing is proven of it."""
    rows = measured(tmp_path, record(), unfinished_record())
    assert {row["proven"] for row in rows} == {0.5}
