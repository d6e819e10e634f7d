"""First rows of words that look like a heading: they are rows of the table."""

import pytest

from onmt_entmax.strings.guessing import guess_layout


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(["take\ttook\tpast"], id="no other row"),
        pytest.param(["take\ttook\tpast", "a\ta\tplural"], id="tags below are words, too"),
        pytest.param(["take\ttook\tADV", "go\twent\tV;PST"], id="only the tag is in capitals"),
        pytest.param(
            ["NATO\tNATO\tABBR", "UN\tUN\tN", "go\twent\tV;PST"], id="words below are in capitals"
        ),
        pytest.param(["NATO\tNATO\tN", "go\tgoes\tN"], id="all in capitals, and the tag is below"),
        pytest.param(["form\tforms\tN;PL", "go\twent\tV;PST"], id="form, which has two tags"),
        pytest.param(["word\twords\tN", "go\twent\tV;PST"], id="word, whose tag is in capitals"),
        pytest.param(["Tag\tTage\tN", "a\tb\tN;PL"], id="the German Tag, whose tag is below"),
        pytest.param(["тат\tтат\tADJ", "ам\tамась\tN;INS"], id="in Cyrillic"),
    ],
)
def test_a_first_row_whose_tags_may_be_tags_is_not_a_heading(rows: list[str]) -> None:
    assert guess_layout(rows, "x", ["source", "target", "tags"]).heading == ()


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(["word\tw ɜː d", "abil\ta b i l", "an\ta n"], id="word and its phones"),
        pytest.param(["word\tform"], id="two names, but no other row"),
    ],
)
def test_a_first_row_that_may_be_a_source_and_its_target_is_not_a_heading(rows: list[str]) -> None:
    assert guess_layout(rows, "x", ["source", "target"]).heading == ()
