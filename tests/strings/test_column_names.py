"""Headings with usual names, such as `lemma`, which say what the columns of a table are."""

import pytest

from onmt_entmax.strings.guessing import guess_layout


@pytest.mark.parametrize(
    ("heading", "row", "columns"),
    [
        pytest.param(
            "lemma\tfeatures\tinflected",
            "draw\tV;PST\tdrew",
            ("source", "tags", "target"),
            id="in small letters",
        ),
        pytest.param(
            "Word\tMSD\tForm", "draw\tV;PST\tdrew", ("source", "tags", "target"), id="in capitals"
        ),
        pytest.param(
            "Word\tFeature\tForms",
            "draw\tV;PST\tdrew",
            ("source", "tags", "target"),
            id="in the singular and the plural",
        ),
        pytest.param(
            "MSD,Inflected,Lemma",
            "V;PST,drew,draw",
            ("tags", "target", "source"),
            id="between commas",
        ),
        pytest.param(
            "grapheme\tphonemes\tcount",
            "an\ta n\t3",
            ("source", "target", "-"),
            id="one that names no column",
        ),
        pytest.param(
            "Language\tLemma\tForm",
            "english\tdraw\tdrew",
            ("language", "source", "target"),
            id="a language",
        ),
    ],
)
def test_a_heading_names_the_columns(heading: str, row: str, columns: tuple[str, ...]) -> None:
    assert guess_layout([heading, row], "x").columns == columns


@pytest.mark.parametrize(
    ("heading", "row", "columns"),
    [
        pytest.param(
            "Inflected_form,Word,Features",
            "took,take,V;PST",
            ("target", "source", "tags"),
            id="Word is the source beside a target",
        ),
        pytest.param(
            "Word,Lemma,Note,Tags",
            "took,take,x,V;PST",
            ("target", "source", "-", "tags"),
            id="Word is the target beside a source",
        ),
        pytest.param(
            "lemma,form,tags,features",
            "take,took,V;PST,y",
            ("source", "target", "tags", "-"),
            id="tags are surer than features",
        ),
    ],
)
def test_if_several_names_fit_a_column_the_surest_counts(
    heading: str, row: str, columns: tuple[str, ...]
) -> None:
    assert guess_layout([heading, row], "x").columns == columns


def test_the_cells_of_a_heading_are_kept() -> None:
    layout = guess_layout(["lemma\ttags\tform", "draw\tV;PST\tdrew"], "x")
    assert layout.heading == ("lemma", "tags", "form")


def test_the_description_of_a_layout_has_the_heading() -> None:
    layout = guess_layout(["lemma,tags,form", "draw,V;PST,drew"], "x")
    assert str(layout).endswith("; heading 'lemma,tags,form' left out")


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            ["word\tform\tN;SG", "form\tforms\tN;PL"],
            id="two of three cells are names, but nothing names the tags",
        ),
        pytest.param(
            ["form\tN;PL\tforms", "form\tN;SG\tform"], id="a name stands in the row below, too"
        ),
        pytest.param(["base\tinput", "walk\twalks"], id="both name the source"),
        pytest.param(["source\tt a", "word\tw o"], id="nothing names the target"),
    ],
)
def test_a_first_row_that_may_be_words_of_the_table_is_not_a_heading(lines: list[str]) -> None:
    assert guess_layout(lines, "x").heading == ()
