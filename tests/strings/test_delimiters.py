"""Guesses of the signs in a table: between columns, between symbols and between tags."""

import pytest

from onmt_entmax.strings.delimiters import guess_delimiter, guess_separator, guess_tag_separator


@pytest.mark.parametrize(
    ("lines", "delimiter"),
    [
        pytest.param(["draw,drew,V;PST", "go,went,V;PRS"], ",", id="tags in a CSV file"),
        pytest.param(['draw;drew;"V;PST"', "go;went;V"], ";", id="a CSV file with semicolons"),
        pytest.param(["draw;drew;pos=V,t=PST", "go;went;pos=V,t=PST,n=PL"], ";", id="tags with ,"),
        pytest.param(["draw;drew;V,PST", "go;went;V,PRS"], ";", id="tags with , in all rows"),
        pytest.param(['"draw";"drew"', '"a,b";"c,d"'], ";", id="all cells in quotes"),
        pytest.param(['"a,b";"c,d"'], ";", id="commas within quotes"),
        pytest.param(["word;ipa", "a b;p q", "c d;r s"], ";", id="words below a heading"),
        pytest.param(["lemma,form,tags", "draw,drew,V", "bad"], ",", id="a bad row, a heading"),
        pytest.param(["draw drew V;PST", "go went V;PST"], "\t", id="spaces between columns"),
        pytest.param(["draw V;PST", "go V;PST;PL"], "\t", id="tags of many widths"),
        pytest.param(["a;b", "c"], "\t", id="a source with a semicolon"),
        pytest.param(["a;b", "c;d;e"], "\t", id="sources of semicolons"),
        pytest.param(["a;b\tc", "d;e\tf"], "\t", id="tabs, too"),
    ],
)
def test_the_sign_between_columns_is_recognised(lines: list[str], delimiter: str) -> None:
    assert guess_delimiter(lines) == delimiter


@pytest.mark.parametrize(
    ("texts", "separator"),
    [
        (["p lʷ a j e", "a b"], " "),
        (["kitabı", "evi", "ad hoc"], ""),
        (["Aa machen", "in die Hand nehmen"], ""),
        ([], ""),
    ],
    ids=["phones", "words, of which one has a space", "long symbols", "no texts"],
)
def test_symbols_between_spaces_are_recognised(texts: list[str], separator: str) -> None:
    assert guess_separator(texts) == separator


@pytest.mark.parametrize(
    ("tags", "separator"),
    [("pos=V,tense=PST", ","), ("V;PST", ";"), ("Case=Nom|Number=Sing", "|"), ("A|B;C", ";")],
)
def test_the_separator_of_tags_is_recognised(tags: str, separator: str) -> None:
    assert guess_tag_separator([tags]) == separator


def test_tags_in_front_do_not_decide_the_delimiter() -> None:
    assert guess_delimiter(["V;PST,draw,drew", "V;PST,go,went"]) == ","
    assert guess_delimiter(["v;pst,draw", "v;pst,go"], tags_first=True) == ","
