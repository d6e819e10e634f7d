"""Encoding of words, tags and languages as tokens, and decoding."""

import csv
import io
from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onmt_entmax.data.inflection import (
    COLUMNS,
    Row,
    cells_text,
    decode_source,
    decode_word,
    encode_source,
    encode_word,
    parse_cells,
    split_tags,
    table_of,
)
from onmt_entmax.errors import UserError

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1)
tags = st.lists(st.text("AV.;+ \u00a0\u2581/", min_size=1), min_size=1)


@pytest.mark.parametrize(
    ("word", "tokens"),
    [
        ("give up", "g i v e ▁ u p"),
        ("▁", "U+2581"),
        ("af\u00a0te", "a f U+00A0 t e"),
        ("u\u0302", "u \u0302"),  # a combining mark stays a token of its own
        ("U+00A0", "U + 0 0 A 0"),
        ("  x ", "▁ ▁ x ▁"),
        ("𐌰", "𐌰"),
    ],
)
def test_the_tokens_of_a_word(word, tokens):
    assert " ".join(encode_word(word)) == tokens


@given(words)
@example("\u2028\x1c\x85 ▁\t\r\n")
def test_a_word_comes_back_through_a_line_of_text(word):
    line = " ".join(encode_word(word))
    assert len(line.splitlines()) == 1
    assert len(line.split()) == len(word)
    assert decode_word(line.split()) == word


@given(words, tags)
def test_language_tags_and_characters_share_no_token(lemma, tags):
    tokens = encode_source("v", lemma, tags)
    characters = set(encode_word(lemma + "+V" + "lang=v"))
    assert not characters & set(tokens[: 1 + len(tags)])
    assert tokens[0] not in tokens[1:]


def test_what_a_model_may_write_besides_characters():
    assert decode_word(["a", "<unk>", "U+FFFFFF", "bc"]) == "a\ufffdU+FFFFFFbc"


def test_only_the_escapes_of_a_word_are_decoded():
    others = ["U+001B", "U+0041", "U+D800", "U+110000", "U+00A"]
    assert decode_word(others) == "".join(others)
    assert decode_word(["U+00A0", "U+2581", "U+000A"]) == "\u00a0▁\n"


@given(names, words, tags)
def test_a_question_comes_back(language, lemma, tags):
    line = " ".join(encode_source(language, lemma, tags))
    assert decode_source(line.split(" ")) == (language, tuple(tags), lemma)


def test_tags_with_a_space():
    tokens = encode_source("latin", "altus", ["ADJ", "ABL", " PL"])
    assert tokens[:4] == ["lang=latin", "+ADJ", "+ABL", "+▁PL"]
    assert decode_source(tokens)[1] == ("ADJ", "ABL", " PL")


@pytest.mark.parametrize("tokens", [["+V", "a"], ["lang="]])
def test_a_language_comes_first(tokens):
    with pytest.raises(ValueError, match="expected a language first"):
        decode_source(tokens)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("V", ["V"]),
        ("V;PRS;NOM(3,SG)", ["V", "PRS", "NOM(3,SG)"]),
        ("N;NOM(PL;PSS(1;PL));X", ["N", "NOM(PL;PSS(1;PL))", "X"]),
        ("ADJ;(non)NOM;SG", ["ADJ", "(non)NOM", "SG"]),
        ("A(B(1);C);X", ["A(B(1);C)", "X"]),
        ("V);A", ["V)", "A"]),
    ],
)
def test_brackets_hold_a_tag_together(text, tags):
    assert list(split_tags(text)) == tags


@given(st.text("AV;()", min_size=1))
def test_tags_that_were_split_are_split_so_again(text):
    tags = split_tags(text)
    assert ";".join(tags) == text
    assert tags == split_tags(";".join(tags))


cells = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1)
layers = st.sampled_from(["V", "PST", "NOM(3,SG)", "NOM(PL;PSS(1,PL))"])
rows = st.builds(Row, cells.filter(str.strip), cells, st.lists(layers, min_size=1).map(tuple))


@given(st.lists(rows, min_size=1), st.sampled_from([*permutations(COLUMNS)]), st.booleans())
def test_a_table_comes_back(table, columns, comma):
    """In any order of columns, from a CSV file as Python writes it and from tabs."""
    content = [[dict(row._asdict(), tags=";".join(row.tags))[c] for c in columns] for row in table]
    file = io.StringIO()
    csv.writer(file).writerows(content)
    lines = file.getvalue().splitlines() if comma else ["\t".join(cells) for cells in content]
    read, layout = table_of(lines, "name", columns)
    assert read == [row._replace(line=n) for n, row in enumerate(table, 1)]
    assert layout.startswith(
        f"columns {', '.join(columns)} divided by {'commas' if comma else 'tabs'}"
    )


def test_cells_with_layers_come_back():
    counts = {"tur": {("N", "NOM(PL;PSS(1,PL))"): 2, ("N", "SG"): 1}}
    assert parse_cells(cells_text(counts).splitlines(), "cells.tsv") == counts


ROWS = ["take\ttook\tV;PST", "NATO\tNATO\tN", "go\twent\tV;PST"]


@pytest.mark.parametrize(
    ("heading", "rows"),
    [
        ("lemma\tinflected\tfeatures", ROWS),
        ("Word\tInflected\tFeatures", ROWS[:1]),
        ("Wort\tForm\tMerkmale", ROWS),
        ("Слово\tФорма\tПризнаки", ROWS),
        ("lemme\tforme\ttraits morphologiques", [row.lower() for row in ROWS[::2]]),
        ("Wort\tForm\tMerkmale", ["take\ttook\tpos=V,tense=PST", "a\ta\tpos=N"]),
        ("WORT\tFORM\tMERKMALE", ROWS[::2]),
        ("a\tb\tMSD", ROWS),
        ("word\tword form\ttag", ["take\ttook\tpast", "a\ta\tplural"]),
    ],
)
@pytest.mark.parametrize("columns", [(), COLUMNS])
def test_a_heading_is_no_row(heading, rows, columns):
    read, layout = table_of([heading, *rows], "name", columns)
    assert [(row.lemma, row.line) for row in read] == [
        (row.split("\t")[0], number) for number, row in enumerate(rows, 2)
    ]
    named = ", ".join(map(repr, heading.split("\t")))
    assert layout.endswith(f"; line 1 is taken for a heading: {named}")


def test_a_heading_does_not_decide_the_columns():
    """Those of a single row below are clear without it."""
    (read,), layout = table_of(["Wort\tMerkmale\tForm\tNotiz", "take\tV;PST\ttook\tx"], "name")
    assert read[:3] == ("take", "took", ("V", "PST"))
    assert layout.startswith("columns lemma, tags, form, - ")


@pytest.mark.parametrize(
    ("heading", "row"),
    [
        ("MSD,Inflected,Lemma", "V;PST,took,take"),
        ("Inflected_form,Word,Features", "took,take,V;PST"),
        ("Word,Lemma,Note,Tags", "took,take,x,V;PST"),
        ("lemma,form,tags,features", "take,took,V;PST,y"),
    ],
)
def test_a_heading_names_the_columns(heading, row):
    (read,), _ = table_of([heading, row], "name")
    assert read[:3] == ("take", "took", ("V", "PST"))


@pytest.mark.parametrize(
    "rows",
    [
        ["take\ttook\tpast"],  # a single row
        ["take\ttook\tpast", "a\ta\tplural"],  # tags are words below too
        ["take\ttook\tpast", "go\twent\tv;past", "a\ta\tn;sg"],  # a tag below
        ["take\ttook\tADV", *ROWS],
        ["NATO\tNATO\tABBR", *ROWS],
        ["form\tforms\tN;PL", *ROWS],
        ["word\twords\tN", *ROWS],
        ["Tag\tTage\tN", "a\tb\tN;PL"],
        ["тат\tтат\tADJ", "ам\tамась\tN;INS"],
    ],
)
def test_a_first_row_is_no_heading(rows):
    read, layout = table_of(rows, "name")
    assert len(read) == len(rows)
    assert "heading" not in layout


@pytest.mark.parametrize("line", ["take\ttook\t", "take\t\tV", "\ttook\tV", "take\ttook\tV;"])
def test_a_row_has_a_lemma_a_form_and_tags(line):
    with pytest.raises(UserError, match="name:2: empty lemma, form or tag"):
        table_of([ROWS[0], line], "name")
