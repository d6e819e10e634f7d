"""The file of scores of an audit's part, read again."""

from pathlib import Path

import pytest

from onmt_entmax.cli.part_results import read_scores
from onmt_entmax.errors import UserError


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        pytest.param(
            '{"log_prob": -1.0}\n{"log_p',
            "scores.jsonl:2: cut or damaged; delete the file",
            id="half a line",
        ),
        pytest.param(
            '{"log_prob": -1.0}\n',
            "scores.jsonl: cut or damaged, 1 line, not 2; delete the file",
            id="too few lines",
        ),
        pytest.param('{"log_prob": "x"}\n{}\n', "scores.jsonl:1: cut or damaged", id="text"),
        pytest.param('{"log_prob": -1.0}\n{}\n', "scores.jsonl:2: cut or damaged", id="no key"),
        pytest.param("[]\n[]\n", "scores.jsonl:1: cut or damaged", id="lists"),
    ],
)
def test_a_damaged_file_of_scores_is_refused(tmp_path: Path, scores: str, message: str) -> None:
    (tmp_path / "scores.jsonl").write_text(scores)
    with pytest.raises(UserError, match=f"^{tmp_path}/{message}"):
        read_scores(tmp_path / "scores.jsonl", 2)


def test_scores_are_numbers_or_null(tmp_path: Path) -> None:
    (tmp_path / "scores.jsonl").write_text('{"log_prob": -1.5}\n{"log_prob": null}\n')
    assert read_scores(tmp_path / "scores.jsonl", 2) == [-1.5, None]
