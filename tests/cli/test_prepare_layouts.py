"""`prepare sigmorphon` reads tables of the shared tasks, of UniMorph and of spreadsheets."""

from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.errors import counted
from tests.cli.preparing import read_lines
from tests.cli.sigmorphon import Prepared, prepare_into


class Layout(NamedTuple):
    """A table, and how it is read.

    Attributes:
        name: name of the file.
        text: content of the file.
        language: language of all rows.
        pairs: source, without the token of the language, and target of each row.
        columns: what the command prints about the columns.
        tags: what the command prints about the tags.
    """

    name: str
    text: str
    language: str
    pairs: list[tuple[str, str]]
    columns: str
    tags: str


LAYOUTS = {
    "SIGMORPHON 2016": Layout(
        name="german-task1-train",
        text="Zugang\tpos=N,case=ACC,num=PL\tZugänge\nflott\tpos=ADJ\tflott\n",
        language="german",
        pairs=[
            ("+pos=N +case=ACC +num=PL Z u g a n g", "Z u g ä n g e"),
            ("+pos=ADJ f l o t t", "f l o t t"),
        ],
        columns="columns source, tags, target between tabs",
        tags="tags between ','",
    ),
    "SIGMORPHON 2017 to 2019": Layout(
        name="old-irish-train-low",
        text="as\tbe\tV;FUT\n",
        language="old-irish",
        pairs=[("+V +FUT a s", "b e")],
        columns="columns source, target, tags between tabs",
        tags="tags between ';'",
    ),
    "SIGMORPHON 2020 to 2022, most tags single": Layout(
        name="ket_small.train",
        text="тат\tтат\tADJ\nам\tамась\tN;INS\nқае\tқае\tADV\n",
        language="ket",
        pairs=[
            ("+ADJ т а т", "т а т"),
            ("+N +INS а м", "а м а с ь"),
            ("+ADV қ а е", "қ а е"),
        ],
        columns="columns source, target, tags between tabs",
        tags="tags between ';'",
    ),
    "SIGMORPHON 2023": Layout(
        name="tur.trn",
        text="göz\tN;NOM(PL;PSS(1,PL))\tgözlerimiz\n",
        language="tur",
        pairs=[("+N +NOM(PL;PSS(1,PL)) g ö z", "g ö z l e r i m i z")],
        columns="columns source, tags, target between tabs",
        tags="tags between ';', some layered",
    ),
    "UniMorph with segmentation": Layout(
        name="eng",
        text="aah\taahs\tV;PRS;NOM(3,SG)\taah|s\n\naah\taah\tV;NFIN\t-\n",
        language="eng",
        pairs=[("+V +PRS +NOM(3,SG) a a h", "a a h s"), ("+V +NFIN a a h", "a a h")],
        columns="columns source, target, tags, - between tabs",
        tags="tags between ';', some layered",
    ),
    "spreadsheet": Layout(
        name="welsh.csv",
        text='Form,Note,Lemma,Tags\r\n"cŵn, y",a,ci,N;PL\r\n,,,\r\n"""ci""",b,ci,N;SG\r\n',
        language="welsh",
        pairs=[("+N +PL c i", "c ŵ n , ▁ y"), ("+N +SG c i", '" c i "')],
        columns="columns target, -, source, tags between commas",
        tags="tags between ';'",
    ),
}


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS.keys())
def layout(request: pytest.FixtureRequest) -> Layout:
    layout: Layout = request.param
    return layout


@pytest.fixture
def prepared(layout: Layout, tmp_path: Path) -> Prepared:
    """What the command makes of the table, which is both the development and the test set."""
    path = tmp_path / layout.name
    path.write_text(layout.text, encoding="utf-8", newline="")
    return prepare_into(tmp_path / "out", "--dev", path, "--test", path)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_rows_of_a_layout_are_read(layout: Layout, prepared: Prepared, split: str) -> None:
    sources = [f"lang={layout.language} {source}" for source, _ in layout.pairs]
    assert read_lines(prepared.folder / f"{split}.src") == sources
    assert read_lines(prepared.folder / f"{split}.tgt") == [target for _, target in layout.pairs]


def test_the_columns_of_a_layout_are_printed(layout: Layout, prepared: Prepared) -> None:
    """The table stands for two files: the first is named, and the second is counted."""
    columns, *_ = prepared.printed.splitlines()
    assert columns.startswith(f"{layout.name} and 1 file more: {layout.columns}")


def test_the_tags_of_a_layout_are_printed(layout: Layout, prepared: Prepared) -> None:
    _columns, units, *_ = prepared.printed.splitlines()
    assert units == f"source: characters; target: characters; {layout.tags}"


def test_the_rows_of_a_layout_are_counted(layout: Layout, prepared: Prepared) -> None:
    _columns, _units, counts, *_ = prepared.printed.splitlines()
    rows = counted(len(layout.pairs), "row")
    files = f"dev: {layout.name} ({rows}); test: {layout.name} ({rows})"
    assert counts == f"language {layout.language}: {files}"
