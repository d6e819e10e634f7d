"""The text that `onmt-entmax suggest` prints of a suggestion."""

import math
from dataclasses import replace

from onmt_entmax.cli.suggest import text_of
from onmt_entmax.suggester import NextToken, TextSuggestion

SUGGESTION = TextSuggestion(
    log_prob=math.log(0.5),
    excluded_at=None,
    continuations=(
        NextToken("a", math.log(0.625)),
        NextToken("b", math.log(0.25)),
        NextToken("</s>", math.log(0.125)),
    ),
    completion=(),
    complete=False,
    prefix=("x", "y"),
)


def lines_of(suggestion: TextSuggestion) -> list[str]:
    """Return the text after the prefix `x y`, in which one next token is listed."""
    return text_of(suggestion, limit=1).splitlines()


def test_the_first_line_has_the_probability_of_the_prefix() -> None:
    assert lines_of(SUGGESTION)[0] == "prefix    0.5"


def test_the_first_line_names_the_token_that_the_model_excludes() -> None:
    excluded = replace(SUGGESTION, log_prob=-math.inf, excluded_at=1)
    assert lines_of(excluded)[0] == "the model excludes 'y' (token 2 of the prefix)"


def test_the_most_probable_token_is_listed() -> None:
    assert lines_of(SUGGESTION)[1] == "next      0.625     a"


def test_the_other_tokens_are_summed() -> None:
    assert lines_of(SUGGESTION)[2] == "          0.375     on 2 more"


def test_no_token_is_forced_if_several_may_follow() -> None:
    assert lines_of(SUGGESTION)[-1] == "forced    -"


def test_the_tokens_that_must_follow_are_listed_with_the_end() -> None:
    forced = replace(SUGGESTION, completion=("a", "b"), complete=True)
    assert lines_of(forced)[-1] == "forced    a b </s>"
