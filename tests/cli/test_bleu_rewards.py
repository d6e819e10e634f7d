"""`onmt-entmax bleu --tune length_reward` measures BLEU under length rewards, from one report.

Under a reward, an output y of |y| tokens, the end symbol among them, has the score

    log p(y) + min(length_reward * |y|, length_reward * length_ratio * |x|)

for a source of |x| tokens. Here |x| is 4, and a report lists two outputs:

| output | p(y) | tokens with the end symbol |
|---|---|---|
| `the dog` | 0.3 | 3 |
| `the dog runs fast`, the reference | 0.2 | 5 |

So the longer one is chosen if its reward exceeds that of the shorter by log(0.3 / 0.2) = 0.405.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from sacrebleu import corpus_bleu

from onmt_entmax.cli import bleu
from tests.in_process import refusal, success

Record = dict[str, Any]

SHORT, LONG = "the dog", "the dog runs fast"
SHORT_TEXT, REFERENCE_TEXT = "thedog", "thedogrunsfast"
TUNE = ["--tune", "length_reward", "--tokenize", "char"]


def hypothesis(tokens: str, prob: float) -> Record:
    """Return an entry of an n-best list. Its text has no spaces, so only tokens tell its length."""
    text = tokens.replace(" ", "")
    return {"text": text, "tokens": tokens, "prob": prob, "log_prob": math.log(prob)}


def record(**changes: object) -> Record:
    """Return the record of a sentence, by default one whose support is both outputs."""
    hypotheses = [hypothesis(SHORT, 0.3), hypothesis(LONG, 0.2)]
    return {
        "id": 1,
        "source": "s",
        "certificate": "exhaustive",
        "bound": 0.0,
        "mass": 0.5,
        "finished": 2,
        "hypotheses": hypotheses,
        "source_tokens": 4,
        "dropped": 0,
        **changes,
    }


def unfinished_record() -> Record:
    """Return the record of a sentence of which no output ended."""
    return record(
        certificate="none", bound=0.5, finished=0, hypotheses=[], unfinished=REFERENCE_TEXT
    )


def write(folder: Path, *records: Record) -> list[Any]:
    """Write a report and its references; return the arguments that name them."""
    report, references = folder / "report", folder / "ref"
    report.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    references.write_text(f"{REFERENCE_TEXT}\n" * len(records))
    return [report, "--reference", references]


def measured(folder: Path, *records: Record) -> list[Record]:
    """Return the measures that the command writes for these records, a row for each reward."""
    output = folder / "measured.json"
    success(bleu.main, [*write(folder, *records), *TUNE, "--output", output])
    rewards: list[Record] = json.loads(output.read_text())["rewards"]
    return rewards


def row_of(rows: list[Record], reward: float, ratio: float) -> Record:
    """Return the row of a reward."""
    (row,) = [row for row in rows if (row["length_reward"], row["length_ratio"]) == (reward, ratio)]
    return row


# --- measures --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """Measures of one sentence by reward."""
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
    """Without a reward, the first sentence has the shorter output. Nothing ended of the second."""
    rows = measured(tmp_path, record(), unfinished_record())
    outputs, references = [SHORT_TEXT, REFERENCE_TEXT], [REFERENCE_TEXT, REFERENCE_TEXT]
    expected = corpus_bleu(outputs, [references], tokenize="char").score
    assert rows[0]["bleu"] == pytest.approx(expected, abs=1e-9)


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
    """Nothing is proven of a sentence of which nothing ended."""
    rows = measured(tmp_path, record(), unfinished_record())
    assert {row["proven"] for row in rows} == {0.5}


def test_the_first_reward_of_the_best_bleu_is_printed(tmp_path: Path) -> None:
    """The longer output is chosen from min(1.5, 1.32) - 0.9 = 0.42 on; see the file's head."""
    printed = success(bleu.main, [*write(tmp_path, record()), *TUNE])
    assert "best: -length_reward 0.3 -length_ratio 1.1\n" in printed


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "more", "message"),
    [
        pytest.param(
            {"penalties": {"length_penalty": "avg"}},
            [],
            "report:1: not a record of `translate` without penalties",
            id="penalty",
        ),
        pytest.param(
            {"hypotheses": [{"text": "a", "prob": 0.5}]},
            [],
            "report:1: not a record of `translate` without penalties",
            id="no log-probability",
        ),
        pytest.param({"gap": math.inf}, [], "report:1: not JSON", id="infinity"),
        pytest.param(
            {"mbr": {}}, [], "report:1: not a record of an -exactness_report", id="empty decision"
        ),
        pytest.param(
            {"hypotheses": []},
            [],
            "report: has no n-best lists: translate with -n_best 30",
            id="no hypotheses",
        ),
        pytest.param({}, ["--metrics", "ter"], "and no --nbest, --report", id="other measure"),
        pytest.param({}, ["one"], "--tune takes one report as SYSTEM", id="two systems"),
    ],
)
def test_what_cannot_be_tuned_is_refused(
    tmp_path: Path, changes: Record, more: list[str], message: str
) -> None:
    report, *reference = write(tmp_path, record(**changes))
    output = tmp_path / "measured.json"
    command = [report, *more, *reference, "--tune", "length_reward", "--output", output]
    assert message in refusal(bleu.main, command)
    assert not output.exists()


def test_a_number_too_large_for_a_float_is_refused(tmp_path: Path) -> None:
    """Python's json cannot write 1e400, which JSON allows."""
    report, *reference = write(tmp_path, record(gap="1e400"))
    report.write_text(report.read_text().replace('"1e400"', "1e400"))
    command = [report, *reference, "--tune", "length_reward"]
    assert "report:1: not JSON" in refusal(bleu.main, command)


def test_a_record_without_the_length_of_its_source_is_refused(tmp_path: Path) -> None:
    """A reward depends on it."""
    incomplete = record()
    del incomplete["source_tokens"]
    command = [*write(tmp_path, incomplete), "--tune", "length_reward"]
    message = "report:1: not a record of `translate` without penalties"
    assert message in refusal(bleu.main, command)
