"""Guesses of what divides a table: its columns, its symbols and its tags."""

import pytest

from onmt_entmax.strings.delimiters import guess_delimiter, guess_separator, guess_tag_separator

# --- columns ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "delimiter"),
    [
        pytest.param(["draw,drew,V;PST", "go,went,V;PRS"], ",", id="semicolons between tags"),
        pytest.param(['draw;drew;"V;PST"', "go;went;V"], ";", id="tags in quotes"),
        pytest.param(
            ["draw;drew;pos=V,t=PST", "go;went;pos=V,t=PST,n=PL"],
            ";",
            id="different numbers of commas between tags",
        ),
        pytest.param(
            ["draw;drew;V,PST", "go;went;V,PRS"], ";", id="a comma between the tags of each line"
        ),
        pytest.param(
            ["V;PST,draw,drew", "V;PST,go,went"], ",", id="semicolons between tags in front"
        ),
        pytest.param(['"draw";"drew"', '"a,b";"c,d"'], ";", id="all cells in quotes"),
        pytest.param(['"a,b";"c,d"'], ";", id="commas within quotes"),
        pytest.param(["word;ipa", "a b;p q", "c d;r s"], ";", id="phrases below a heading"),
        pytest.param(["lemma,form,tags", "draw,drew,V", "bad"], ",", id="a heading and a bad row"),
        pytest.param(["a,b", "c\t,d", "e,f"], ",", id="a tab that was left in one cell"),
        pytest.param(["a\tb", "c\td", "e,f"], "\t", id="a bad row of a table with tabs"),
    ],
)
def test_the_sign_between_columns_is_recognised(lines: list[str], delimiter: str) -> None:
    assert guess_delimiter(lines) == delimiter


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["draw drew V;PST", "go went V;PST"], id="spaces between columns"),
        pytest.param(["draw V;PST", "go V;PST;PL"], id="different numbers of tags"),
        pytest.param(["a;b", "c"], id="a source with a semicolon, and one without"),
        pytest.param(["a;b", "c;d;e"], id="sources with different numbers of semicolons"),
        pytest.param(["a;b\tc", "d;e\tf"], id="tabs as well"),
    ],
)
def test_semicolons_within_cells_do_not_divide_columns(lines: list[str]) -> None:
    assert guess_delimiter(lines) == "\t"


def test_signs_between_tags_in_front_do_not_divide_columns() -> None:
    """Tags in small letters are not recognised as such, so a model must say where they are."""
    assert guess_delimiter(["v;pst,draw", "v;pst,go"], tags_first=True) == ","


# --- symbols and tags ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "separator"),
    [
        pytest.param(["p lʷ a j e", "a b"], " ", id="phones"),
        pytest.param(["kitabı", "evi", "ad hoc"], "", id="words, of which one has a space"),
        pytest.param(["Aa machen", "in die Hand nehmen"], "", id="phrases"),
        pytest.param([" Tag", " Weg"], "", id="words with a space in front"),
        pytest.param([], "", id="no texts"),
    ],
)
def test_symbols_between_spaces_are_recognised(texts: list[str], separator: str) -> None:
    assert guess_separator(texts) == separator


@pytest.mark.parametrize(
    ("tags", "separator"),
    [
        pytest.param("pos=V,tense=PST", ",", id="SIGMORPHON 2016"),
        pytest.param("V;PST", ";", id="UniMorph"),
        pytest.param("Case=Nom|Number=Sing", "|", id="Universal Dependencies"),
        pytest.param("A|B;C", ";", id="semicolon and bar"),
    ],
)
def test_the_separator_of_tags_is_recognised(tags: str, separator: str) -> None:
    assert guess_tag_separator([tags]) == separator
