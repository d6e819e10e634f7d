"""Warnings of source tokens that were rare or missing in the training data."""

from collections.abc import Sequence

import pytest

from onmt_entmax.strings.units import CHARACTERS, Unit
from onmt_entmax.token_warnings import described_token, token_warnings

GERMAN = "lang=german"
KNOWN_TAGS = ["SBJV", "PST", "V"]


def unseen_warnings(*groups: Sequence[str]) -> list[str]:
    """Return the warnings of the tokens that training did not see in German, by group of models."""
    return token_warnings(
        unknown=[],
        copied=[],
        unseen=[[(GERMAN, token) for token in tokens] for tokens in groups],
        unit=CHARACTERS,
        known_tags=KNOWN_TAGS,
    )


@pytest.mark.parametrize(
    ("tokens", "warning"),
    [
        pytest.param(["b"], "'b'", id="a letter"),
        pytest.param(["+SUBJ"], "'+SUBJ' (did you mean SBJV?)", id="a tag"),
        pytest.param(
            ["b", "+SUBJ"], "'b', '+SUBJ' (did you mean SBJV instead of SUBJ?)", id="letter and tag"
        ),
        pytest.param(
            ["+SUBJ", "+PSTT"],
            "'+SUBJ', '+PSTT' (did you mean SBJV instead of SUBJ, PST instead of PSTT?)",
            id="two tags",
        ),
        pytest.param(
            ["+SUBJ", "+SUBJ"], "'+SUBJ' (2) (did you mean SBJV?)", id="the same tag twice"
        ),
    ],
)
def test_a_hint_says_which_of_several_unseen_tokens_it_is_about(
    tokens: list[str], warning: str
) -> None:
    assert unseen_warnings(tokens) == [f"not seen in training for german: {warning}"]


def test_groups_that_lack_the_same_tokens_give_one_warning() -> None:
    assert len(unseen_warnings(["b"], ["b"])) == 1


def test_groups_that_lack_other_tokens_give_a_warning_each() -> None:
    assert len(unseen_warnings(["b"], ["c"])) == 2


def test_a_group_that_lacks_nothing_gives_no_warning() -> None:
    assert unseen_warnings([]) == []


@pytest.mark.parametrize(
    ("token", "unit", "description"),
    [
        pytest.param("+PST", CHARACTERS, "tag PST", id="tag"),
        pytest.param("ö", CHARACTERS, "character ö", id="character"),
        pytest.param("tʃ", Unit.between("-"), "symbol tʃ", id="symbol"),
        pytest.param("dog", Unit("text"), "word dog", id="word"),
        pytest.param(f"+{'X' * 10**6}", CHARACTERS, f"tag {'X' * 60}...", id="a long tag"),
    ],
)
def test_a_token_is_named_as_users_write_it(token: str, unit: Unit, description: str) -> None:
    assert described_token(token, unit) == description
