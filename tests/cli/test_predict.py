"""`onmt-entmax predict`: tables in, the same tables with targets out."""

import io
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax import Transducer
from onmt_entmax.cli import evaluate, predict
from onmt_entmax.cli.checked_tables import check_tables
from onmt_entmax.cli.predicted_counts import PredictionCounts
from onmt_entmax.cli.predicted_files import TableFile
from onmt_entmax.cli.predicted_rows import OutputLayout
from onmt_entmax.cli.predicted_tables import with_layout
from onmt_entmax.errors import counted
from onmt_entmax.transducer import Output
from tests.cli.predicting import SOURCES, predicted, write
from tests.commands import ENVIRONMENT, ROOT, run, succeed
from tests.in_process import exit_status, refusal
from tests.inflection_models import write_model
from tests.models import words
from tests.string_models import LETTERS, PHONES, task_options, write_phones


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_phones(tmp_path_factory.mktemp("phones") / "model", 12, end=0)


@pytest.fixture(scope="module")
def inflection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of inflection with the columns of the shared task of 2023."""
    source = ("lang=english", "lang=german", "+V", "+PST", *"ab▁")
    options = task_options(["source", "tags", "target"], target_order="right_to_left")
    folder = tmp_path_factory.mktemp("inflection") / "model"
    return write_model(folder, 8, words(source, "ab▁"), 0, options)


@pytest.fixture(scope="module")
def expected(model: Path) -> dict[str, str]:
    """The best output of each source, some of several symbols."""
    outputs = {source: Transducer(model).predict(source).text for source in SOURCES}
    assert any(" " in text for text in outputs.values())
    return outputs


# --- a table comes back ------------------------------------------------------------------------


@pytest.mark.parametrize("target", [None, "", "p a"], ids=["absent", "empty", "ignored"])
def test_a_table_comes_back_with_its_target(
    model: Path, expected: dict[str, str], tmp_path: Path, target: str | None
) -> None:
    more = "" if target is None else f"\t{target}"
    table = write(tmp_path / "words.tsv", *(source + more for source in SOURCES))
    output = tmp_path / "out.tsv"
    assert predicted(model, table, "--output", output) == 0
    lines = output.read_text(encoding="utf-8").splitlines()
    assert lines == [f"{source}\t{expected[source]}" for source in SOURCES]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out.tsv", "words.tsv"]


def test_how_a_table_is_read_is_printed(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its columns, targets that are replaced, and a word that may be a heading."""
    table = write(tmp_path / "t", "word\tgloss", "ab\thouse")
    assert predicted(model, table, "--output", tmp_path / "out") == 0
    errors = capsys.readouterr().err
    columns = "t: columns source, target between tabs; targets, such as 'gloss', are replaced"
    assert columns in errors
    assert "t:1: 'word' may be a heading; it is read as a row" in errors


def test_heading_order_and_other_columns_stay(
    model: Path, expected: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ("note,pronunciation,word", '"a, b",,ab', "x,,abcd")
    table = write(tmp_path / "words.csv", *rows)
    assert predicted(model, table) == 0
    first, second = expected["ab"], expected["abcd"]
    assert capsys.readouterr().out.splitlines() == [
        rows[0],
        f'"a, b",{first},ab',
        f"x,{second},abcd",
    ]


def test_an_absent_target_stands_where_training_has_it(
    inflection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write(tmp_path / "german.covered.tst", "lemma\ttags", "ab\tV;PST", "ba\tV")
    assert predicted(inflection, table) == 0
    transducer = Transducer(inflection)
    forms = [transducer.predict(*query, "german").text for query in (("ab", "V;PST"), ("ba", "V"))]
    assert capsys.readouterr().out.splitlines() == [
        "lemma\ttags\ttarget", f"ab\tV;PST\t{forms[0]}", f"ba\tV\t{forms[1]}"
    ]  # fmt: skip


# --- several outputs ---------------------------------------------------------------------------


def test_details_are_those_of_the_predictions(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write(tmp_path / "words.tsv", "abq", "c")
    assert predicted(model, table, "--n_best", 2) == 0
    expected = []
    for source in ("abq", "c"):
        prediction = Transducer(model, n_best=2).predict(source)
        for rank, output in enumerate(prediction.outputs, 1):
            details = [str(rank), f"{output.prob:.6g}", prediction.level]
            warnings = "; ".join(prediction.warnings)
            expected.append("\t".join([source, output.text, *details, warnings]))
    captured = capsys.readouterr()
    assert captured.out.splitlines() == expected
    assert len(expected) == 4
    assert "unknown character q (rows with warnings: 1 of 2)" in captured.err


def test_all_possible_outputs_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_phones(tmp_path / "model", 12, end=3)
    table = write(tmp_path / "words.tsv", "ab")
    assert predicted(model, table, "--all") == 0
    found = Transducer(model, n_best=0).predict("ab")
    assert found.level == "exhaustive"
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[1] for line in lines] == [each.text for each in found.outputs]


class Least(NamedTuple):
    """Rows of outputs of at least a probability, which only three of four sources have."""

    least: float
    possible: dict[str, Sequence[Output]]
    """All outputs of each source."""
    rows: list[list[str]]
    """Source, output, rank, probability, certificate and warnings."""
    errors: str

    def rows_of(self, source: str) -> list[list[str]]:
        return [row for row in self.rows if row[0] == source]

    def kept(self, source: str) -> list[str]:
        """Return the outputs that are probable enough."""
        return [each.text for each in self.possible[source] if each.prob >= self.least]


@pytest.fixture(params=[True, False], ids=["file", "printed"])
def least(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Least:
    model = write_phones(tmp_path / "model", 12, end=3)
    table = write(tmp_path / "words.tsv", *SOURCES)
    possible = {source: Transducer(model, n_best=0).predict(source).outputs for source in SOURCES}
    lowest, second, *_ = sorted(outputs[0].prob for outputs in possible.values())
    least = round((lowest + second) / 2, 6)
    output = tmp_path / "out.tsv"
    options = ("--output", output) if request.param else ()
    assert predicted(model, table, "--all", "--least", least, *options) == 0
    captured = capsys.readouterr()
    text = output.read_text(encoding="utf-8") if request.param else captured.out
    return Least(least, possible, [row.split("\t") for row in text.splitlines()], captured.err)


def test_improbable_outputs_are_not_listed(least: Least) -> None:
    listed = [source for source in SOURCES if least.kept(source)]
    assert len(listed) == 3
    for source in listed:
        rows = least.rows_of(source)
        assert [row[1] for row in rows] == least.kept(source)
        assert [row[2] for row in rows] == [str(rank) for rank in range(1, len(rows) + 1)]


def test_a_row_that_has_no_probable_output_keeps_its_line(least: Least) -> None:
    (source,) = (source for source in SOURCES if not least.kept(source))
    (row,) = least.rows_of(source)
    assert row[1:4] == ["", "", ""]


def test_outputs_left_out_are_counted_in_each_row(least: Least) -> None:
    for source in SOURCES:
        count = len(least.possible[source]) - len(least.kept(source))
        note = f"{counted(count, 'output')} below {least.least:g} left out" if count else ""
        assert {row[5] for row in least.rows_of(source)} == {note}


def test_outputs_left_out_are_counted_at_the_end(least: Least) -> None:
    """They do not count as warnings."""
    count = sum(len(least.possible[source]) - len(least.kept(source)) for source in SOURCES)
    assert count > 1
    note = f"{count} outputs below {least.least:g} left out; rows that have no other: 1 of 4"
    assert note in least.errors
    assert "rows with warnings" not in least.errors


# --- tables and languages ----------------------------------------------------------------------


def test_several_tables_go_into_a_folder_each_in_its_language(
    inflection: Path, tmp_path: Path
) -> None:
    """The name of a table says its language, also by a code."""
    tables = [
        write(tmp_path / f"{name}.covered.tst", "ab\tV;PST", "ba\tV") for name in ("deu", "english")
    ]
    out = tmp_path / "out"
    assert predicted(inflection, *tables, "--output", out) == 0
    transducer = Transducer(inflection)
    for name, language in (("deu", "german"), ("english", "english")):
        form = transducer.predict("ab", "V;PST", language).text
        lines = (out / f"{name}.covered.tst").read_text(encoding="utf-8").splitlines()
        assert lines[0] == f"ab\tV;PST\t{form}"
    assert sorted(each.name for each in out.iterdir()) == [each.name for each in tables]


def test_languages_may_be_a_column(
    inflection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write(tmp_path / "x.tsv", "german\tab\tV", "eng\tab\tV")
    columns = ("--columns", "language,source,tags")
    assert predicted(inflection, table, *columns) == 0
    transducer = Transducer(inflection)
    forms = [transducer.predict("ab", "V", each).text for each in ("german", "english")]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[3] for line in lines] == forms


def test_a_column_of_languages_needs_no_other_language(inflection: Path, tmp_path: Path) -> None:
    table = write(tmp_path / "x.tsv", "german\tab\tV")
    columns = ("--columns", "language,source,tags")
    assert "leave --language out" in refusal(
        predict.main, [inflection, table, *columns, "--language", "german"]
    )


class TestColumnsInAnotherOrderThanInTraining:
    """Their tags show them, in `evaluate` too: a tag is neither a word nor a target."""

    NAMED = ("--columns", "source,target,tags")

    @pytest.fixture
    def table(self, tmp_path: Path) -> Path:
        return write(tmp_path / "german.tst", "ab\tbb\tV;PST", "ba\tbb\tV")

    @pytest.fixture
    def evaluation(self, table: Path, inflection: Path) -> list[str]:
        """The arguments of an evaluation of the table by itself."""
        return [str(table), "--reference", str(table), "--model", str(inflection)]

    def test_are_refused(self, inflection: Path, table: Path) -> None:
        message = "column 3 has the tags of the model, and not column 2; --columns"
        assert message in refusal(predict.main, [inflection, table])

    def test_are_refused_by_an_evaluation(self, evaluation: list[str]) -> None:
        message = "column 3 has the tags of the model, and not column 2; --columns"
        assert message in refusal(evaluate.main, evaluation)

    def test_may_be_named(self, inflection: Path, table: Path) -> None:
        assert predicted(inflection, table, *self.NAMED) == 0

    def test_may_be_named_for_an_evaluation(
        self, evaluation: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert exit_status(evaluate.main, [*evaluation, *self.NAMED]) == 0
        assert "100.00" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("klingon.tst", (), "the model knows no language 'klingon'"),
        ("test.tsv", (), "no language is named, and the model knows english, german"),
        ("german.tst", ("--language", "klingon"), "no language 'klingon'"),
    ],
)
def test_a_language_is_checked_before_anything_is_predicted(
    inflection: Path, tmp_path: Path, name: str, more: tuple[object, ...], message: str
) -> None:
    table = write(tmp_path / name, "ab\tV")
    output = tmp_path / "out.tsv"
    assert message in refusal(predict.main, [inflection, table, "--output", output, *more])
    assert not output.exists()


# --- bad rows, and what is refused -------------------------------------------------------------


class TestBadRowsOfTwoTables:
    class Tables(NamedTuple):
        """Tables of three and two rows, one of which is bad in each."""

        first: Path
        second: Path
        words: tuple[object, ...]
        """Arguments of the command."""

    @pytest.fixture
    def tables(self, tmp_path: Path) -> Tables:
        first = write(tmp_path / "a.tsv", "ab\t", "\tp", "da\t")
        second = write(tmp_path / "b.tsv", "a\tb\tc", "c\t")
        words = (first, second, "--columns", "source,target", "--output", tmp_path / "out")
        return self.Tables(first, second, words)

    def test_are_all_told_before_anything_is_predicted(
        self, model: Path, tables: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert predicted(model, *tables.words) == 2
        lines = capsys.readouterr().err.splitlines()
        assert lines[0] == f"warning: {tables.first}:2: source is empty"
        assert lines[1].startswith(f"warning: {tables.second}:1: expected 2 columns")
        assert "2 of 5 rows cannot be read" in lines[2]
        assert not (tmp_path / "out").exists()

    def test_are_left_out_on_request(
        self, model: Path, expected: dict[str, str], tables: Tables, tmp_path: Path
    ) -> None:
        assert predicted(model, *tables.words, "--skip-bad", tmp_path / "bad") == 0
        assert (tmp_path / "out/a.tsv").read_text().splitlines() == [
            f"{source}\t{expected[source]}" for source in ("ab", "da")
        ]

    def test_are_written_with_their_places(
        self, model: Path, tables: Tables, tmp_path: Path
    ) -> None:
        assert predicted(model, *tables.words, "--skip-bad", tmp_path / "bad") == 0
        rows = [line.split("\t", 2) for line in (tmp_path / "bad").read_text().splitlines()]
        assert [(place, row) for place, _reason, row in rows] == [
            (f"{tables.first}:2", "\tp"),
            (f"{tables.second}:1", "a\tb\tc"),
        ]


def test_memory_does_not_grow_with_the_table(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither while it is checked nor while it is predicted: some windows, not the file."""
    rows, word = 40_000, "abcd" * 15
    table = write(tmp_path / "words.tsv", *[word] * rows)
    transducer = Transducer(model)
    canned = transducer.predict("ab")
    monkeypatch.setattr(
        Transducer, "predictions", lambda self, queries, size: (canned for _ in queries)
    )
    monkeypatch.setattr(predict, "WINDOW", 100)
    read = with_layout(TableFile(table, "words", None), transducer, (), None)
    tracemalloc.start()
    try:
        (checked,) = check_tables([read], transducer, None)
        form = OutputLayout.of(checked.layout, transducer.task, details=True)
        counts = PredictionCounts()
        parts = predict.parts_of(checked, form, transducer, 64, counts)
        size = sum(map(len, parts))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert counts.rows == rows
    assert size > rows * len(word)
    assert peak < 1e6 < table.stat().st_size


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--output", "words.tsv"), id="output"),
        pytest.param(("--output", "."), id="folder of the output"),
        pytest.param(("--skip-bad", "words.tsv"), id="bad rows"),
        pytest.param(("--output", "link.tsv"), id="a link"),
    ],
)
def test_an_input_is_never_overwritten(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("words.tsv"), "ab")
    os.link("words.tsv", "link.tsv")
    message = "is read, and would be overwritten"
    assert message in refusal(predict.main, [model, "words.tsv", *options])
    assert Path("words.tsv").read_text() == "ab\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--columns", "target"), "--columns: source is missing"),
        (("--columns", "source,word"), "--columns: 'word' is none of source, target"),
        (("--columns", "source,source"), "--columns: source is there twice"),
        (("--language", "german"), "the model reads none"),
        (("--n_best", "0"), "at least|from 1"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(
    model: Path, tmp_path: Path, more: tuple[str, ...], message: str
) -> None:
    table = write(tmp_path / "words.tsv", "ab")
    assert re.search(message, refusal(predict.main, [model, table, *more]))


def test_tables_of_one_name_are_refused(model: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first, second = (write(folder / "words.tsv", "ab") for folder in (tmp_path, tmp_path / "a"))
    output = tmp_path / "out"
    message = f"{first} and {second} would both be written to {output}/words.tsv"
    assert message in refusal(predict.main, [model, first, second, "--output", output])


def test_several_tables_need_a_folder(model: Path, tmp_path: Path) -> None:
    tables = [write(tmp_path / name, "ab") for name in ("a.tsv", "b.tsv")]
    assert "need --output, a folder" in refusal(predict.main, [model, *tables])


def test_models_are_averaged(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_model(
        tmp_path / "other", 4, words(LETTERS, (*PHONES, "x")), 0,
        task_options(separators={"target": " "}),
    )  # fmt: skip
    table = write(tmp_path / "words.tsv", "ab")
    assert predicted(model, table, "--details", "--ensemble", other) == 0
    (cells,) = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    found = Transducer([model, other]).predict("ab")
    proven = ["1", f"{found.outputs[0].prob:.6g}", found.level]
    assert cells[1:5] == [found.text, *proven]


def test_text_that_is_no_utf8_is_named_as_the_user_knows_it(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"ab\n\xff\n")))
    assert "error: standard input:2: not UTF-8" in refusal(predict.main, [model, "-"])


def test_a_single_column_may_have_a_heading(
    model: Path, expected: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write(tmp_path / "t.tsv", "Word", *SOURCES)
    assert predicted(model, table) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == ["Word\ttarget", *(f"{s}\t{expected[s]}" for s in SOURCES)]
    assert "columns source between tabs; heading 'Word' left out" in said.err


def test_a_file_is_no_folder_for_tables(model: Path, tmp_path: Path) -> None:
    tables = [write(tmp_path / name, "ab") for name in ("a.tsv", "b.tsv")]
    output = write(tmp_path / "out", "before")
    said = refusal(predict.main, [model, *tables, "--output", output])
    assert f"--output {output}: is a file, and several tables need a folder" in said
    assert output.read_text() == "before\n"


@pytest.mark.parametrize(("text", "ending"), [("ab,\n", "csv"), ("ab\t\n", "tsv"), ("ab\n", "tsv")])
def test_the_standard_input_has_the_ending_of_its_columns_in_a_folder(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, ending: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    (tmp_path / "out").mkdir()
    assert predicted(model, "-", "--output", tmp_path / "out") == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"stdin.{ending}"]


def test_the_real_command_reads_a_pipe(
    model: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "onmt_entmax", "predict", str(model), "-"]
    done = subprocess.run(
        command, input="ab\nda\n", capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"ab\t{expected['ab']}\nda\t{expected['da']}\n"


def test_the_real_command_from_a_table_to_its_score(model: Path, tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.tsv", "ab\tp", "da\ta j")
    output = tmp_path / "out.tsv"
    succeed("onmt_entmax", "predict", model, gold, "--output", output, "--details")
    said = succeed("onmt_entmax", "evaluate", output, "--reference", gold, "--model", model)
    assert "PER" in said
    assert "certificates" in said
    assert run("onmt_entmax", "predict", model, output, "--columns", "source").returncode == 2
