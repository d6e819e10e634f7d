"""`onmt-entmax bleu --tune length_reward` measures BLEU under length rewards, from one report.

`rewards.py` describes the sentence, its two outputs and their scores.
"""

from pathlib import Path

import pytest
from sacrebleu import corpus_bleu

from onmt_entmax.cli import bleu
from tests.cli.rewards import (
    REFERENCE_TEXT,
    SHORT_TEXT,
    TUNE,
    Record,
    measured,
    record,
    row_of,
    unfinished_record,
    write_report,
)
from tests.in_process import success


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """The measures of one sentence, a row for each reward."""
    return measured(tmp_path_factory.mktemp("one"), record())


def test_no_reward_is_tried_first(rows: list[Record]) -> None:
    assert rows[0]["length_reward"] == 0


def test_rewards_are_tried_once_each(rows: list[Record]) -> None:
    rewards = {(row["length_reward"], row["length_ratio"]) for row in rows}
    assert len(rewards) == len(rows) > 9


@pytest.mark.parametrize(
    ("reward", "ratio", "text"),
    [
        pytest.param(0.0, 1.2, SHORT_TEXT, id="no reward"),
        pytest.param(0.3, 1.0, SHORT_TEXT, id="0.9 for the shorter, 1.2 for the longer"),
        pytest.param(0.3, 1.5, REFERENCE_TEXT, id="0.9 for the shorter, 1.5 for the longer"),
        pytest.param(0.5, 0.8, SHORT_TEXT, id="1.5 for the shorter, 1.6 for the longer"),
        pytest.param(0.5, 1.0, REFERENCE_TEXT, id="1.5 for the shorter, 2.0 for the longer"),
    ],
)
def test_a_reward_has_the_bleu_of_the_output_of_the_best_score(
    rows: list[Record], reward: float, ratio: float, text: str
) -> None:
    expected = corpus_bleu([text], [[REFERENCE_TEXT]], tokenize="char").score
    assert row_of(rows, reward, ratio)["bleu"] == pytest.approx(expected, abs=1e-9)


def test_bleu_is_that_of_all_sentences(tmp_path: Path) -> None:
    """Without a reward, the first sentence has the shorter output; the second never ended."""
    rows = measured(tmp_path, record(), unfinished_record())
    outputs, references = [SHORT_TEXT, REFERENCE_TEXT], [REFERENCE_TEXT, REFERENCE_TEXT]
    expected = corpus_bleu(outputs, [references], tokenize="char").score
    assert rows[0]["bleu"] == pytest.approx(expected, abs=1e-9)


def test_the_first_reward_of_the_best_bleu_is_printed(tmp_path: Path) -> None:
    """The longer output is chosen from min(1.5, 1.32) - 0.9 = 0.42 on; see `rewards.py`."""
    printed = success(bleu.main, [*write_report(tmp_path, record()), *TUNE])
    assert "best: -length_reward 0.3 -length_ratio 1.1\n" in printed
