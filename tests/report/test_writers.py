"""The files of outputs and of alignments."""

import io

import pytest

from onmt_entmax.report.output_lines import output_scores
from onmt_entmax.report.summary import Summary
from onmt_entmax.report.writers import AnswerWriter, OutputForm
from tests.report.answers import answer, answer_with_line_ends
from tests.report.writing import written


@pytest.mark.parametrize(
    ("least_probability", "lines"),
    [
        pytest.param(0.0, ["x", "x", "", "", "x", ""], id="all are written"),
        pytest.param(0.5, ["x", "x", "", "", "", ""], id="less than that of the text"),
        pytest.param(0.51, ["", "", "", "", "", ""], id="more than that of the text"),
    ],
)
def test_an_output_of_less_probability_is_left_out(
    least_probability: float, lines: list[str]
) -> None:
    """Two hypotheses are one text, whose probability is their sum."""
    assert written(least_probability).lines == lines


def test_an_alignment_file_has_a_line_for_each_output_without_attention_too() -> None:
    assert written(0.0).alignment == "\n" * 6


def test_a_text_that_is_not_finished_has_no_score() -> None:
    assert output_scores(answer("none", unfinished="x"), 2) == [None, None]


def test_an_output_is_one_line_whatever_it_holds() -> None:
    output = io.StringIO(newline="")
    AnswerWriter(output, OutputForm(n_best=3), Summary()).write(answer_with_line_ends())
    assert output.getvalue() == "a b  c \nd\u2028e\n\n"
