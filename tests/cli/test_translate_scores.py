"""`translate -with_score`: each output is followed by its score, which the report has too."""

from pathlib import Path

import pytest

from tests.cli.translating import UnsureLine, translate


@pytest.mark.parametrize(
    ("options", "outputs", "score"),
    [
        pytest.param([], "hypotheses", "log_prob", id="beam"),
        pytest.param(["-random_sampling_topk", 2], "samples", "log_prob", id="sampling"),
        pytest.param(["-length_penalty", "avg"], "hypotheses", "score", id="length penalty"),
    ],
)
def test_scores_behind_the_outputs_are_those_of_the_report(
    toy_run: Path,
    toy_source: str,
    tmp_path: Path,
    options: list[object],
    outputs: str,
    score: str,
) -> None:
    """A record has its outputs under one key, and an output has its score under another."""
    translated = translate(toy_run, tmp_path, toy_source, "-with_score", "-n_best", 2, *options)
    expected = [
        f"{output['text']}\t{output[score]}"
        for record in translated.records
        for output in record[outputs][:2]
    ]
    # Where a model has one possible output, the second line of two is empty.
    assert [line for line in translated.lines if line] == expected


def test_a_blank_line_has_no_score(toy_run: Path, tmp_path: Path) -> None:
    assert translate(toy_run, tmp_path, "\n", "-with_score").lines == [""]


def test_a_score_under_a_penalty_is_not_a_log_probability(
    toy_run: Path, unsure_lines: list[UnsureLine], tmp_path: Path
) -> None:
    """A control: otherwise either could stand behind an output under a length penalty."""
    text = f"{unsure_lines[0].source}\n"
    (best,) = translate(toy_run, tmp_path, text, "-length_penalty", "avg").best
    assert best["score"] != best["log_prob"]
