"""`onmt-entmax evaluate` of predicted tables: figures by hand, languages, and what is refused."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.cli import evaluate
from onmt_entmax.report.string_scores import Guess, score_strings
from onmt_entmax.strings.task import Query
from onmt_entmax.strings.units import CHARACTERS, Unit
from tests.ended import ended, refused
from tests.inflection_models import write_model
from tests.models import words
from tests.string_models import task_options, write_phones

PHONES = Unit.between(" ")
GOLD = ("cat\tk æ t", "read\tɹ iː d", "read\tɹ ɛ d", "gnu\tn j uː")


def write(path: Path, *rows: str) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def evaluated(*arguments: object) -> int:
    return ended(evaluate.main, [str(each) for each in arguments])


def content(tmp_path: Path, *arguments: object) -> dict:
    assert evaluated(*arguments, "--json", tmp_path / "scores.json") == 0
    return json.loads((tmp_path / "scores.json").read_text())


def test_any_of_several_gold_targets_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = write(tmp_path / "gold.tsv", *GOLD)
    predicted = write(tmp_path / "p.tsv", "gnu\tg n uː", "cat\tk æ t", "read\tɹ ɛ d")
    found = content(tmp_path, predicted, "--reference", gold)
    assert found["all"]["queries"] == 3
    assert found["average"]["accuracy"] == pytest.approx(2 / 3)
    # g n uː for n j uː: two edits of nine phones.
    assert found["average"]["error_rate"] == pytest.approx(2 / 9)
    said = capsys.readouterr().out
    assert "target: symbols between ' ' (guessed" in said
    assert "queries with several gold targets: 1 of 3" in said
    rows = [line.split() for line in said.splitlines()]
    assert ["language", "queries", "accuracy", "WER", "PER"] in rows
    assert ["average", "3", "66.67", "33.33", "22.22"] in rows


def test_a_divided_symbol_is_another_target(tmp_path: Path) -> None:
    """`ts a` and `t s a` are different strings, and one is two edits from the other."""
    gold = write(tmp_path / "gold.tsv", "x\tt s a", "y\tb")
    predicted = write(tmp_path / "p.tsv", "x\tts a", "y\tb")
    found = content(tmp_path, predicted, "--reference", gold, "--separator", "target= ")
    assert found["all"]["accuracy"] == 0.5
    assert found["all"]["error_rate"] == pytest.approx(2 / 4)


def test_nothing_is_normalised(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.tsv", "x\t\u00e4", "y\ta")
    predicted = write(tmp_path / "p.tsv", "x\ta\u0308", "y\ta ")
    found = content(tmp_path, predicted, "--reference", gold)
    assert found["all"]["accuracy"] == 0
    assert found["unit"] == "characters"


def test_files_are_paired_by_language_and_averaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever their order; a code pairs with a name."""
    gold = [
        write(tmp_path / "gold/german.tst", "a\tV;PST\taa", "b\tV;PST\tbb")
        if language == "german"
        else write(tmp_path / "gold/fra.tst", "a\tV;PST\tcc")
        for language in ("german", "fra")
        if (tmp_path / "gold").mkdir(exist_ok=True) is None
    ]
    (tmp_path / "out").mkdir()
    predicted = [
        write(tmp_path / "out/fra.covered.tst", "a\tV;PST\tcc"),
        write(tmp_path / "out/deu.covered.tst", "b\tV;PST\tb", "a\tV;PST\taa"),
    ]
    columns = ("--columns", "source,tags,target")
    found = content(tmp_path, *predicted, "--reference", *gold, *columns)
    assert found["languages"]["german"]["accuracy"] == 0.5
    assert found["languages"]["fra"]["accuracy"] == 1.0
    assert found["average"]["accuracy"] == 0.75
    assert found["average"]["error_rate"] == pytest.approx((1 / 4 + 0) / 2)
    assert found["all"]["accuracy"] == pytest.approx(2 / 3)


def test_certificates_are_counted_by_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of several outputs the first counts."""
    gold = write(tmp_path / "gold.tsv", *(f"{n}\tp a" for n in range(5)))
    rows = [
        "0\tp a\t1\t0.9\tonly\t",
        "1\tp a\t1\t0.9\toptimal\t",
        "1\tp\t2\t0.1\toptimal\t",
        "2\tp\t1\t0.6\toptimal\tunknown character x",
        "2\tp a\t2\t0.4\toptimal\tunknown character x",
        "3\t\t\t0\tnone\t",
        "4\tp a\t1\t0.8\tonly\t",
    ]
    predicted = write(tmp_path / "p.tsv", *rows)
    found = content(tmp_path, predicted, "--reference", gold)
    assert found["all"]["accuracy"] == pytest.approx(3 / 5)
    assert found["all"]["certificates"] == {
        "only": {"share": 0.4, "accuracy": 1.0},
        "optimal": {"share": 0.4, "accuracy": 0.5},
        "none": {"share": 0.2, "accuracy": 0.0},
    }
    captured = capsys.readouterr()
    assert "several predictions" not in captured.err
    said = [line.split() for line in captured.out.splitlines()]
    assert ["gold", *"40.00 100.00 0.00 - 40.00 50.00 20.00 0.00".split()] not in said
    assert ["all", *"40.00 100.00 0.00 - 40.00 50.00 20.00 0.00".split()] in said


def test_details_below_a_heading_are_found(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.tsv", "word\tpronunciation", "a\tp a", "b\tp a")
    heading = "word\tpronunciation\trank\tprobability\tcertificate\twarnings"
    predicted = write(tmp_path / "p.tsv", heading, "a\tp a\t1\t1\tonly\t", "b\tp\t1\t1\tonly\t")
    found = content(tmp_path, predicted, "--reference", gold)
    assert found["all"]["certificates"] == {"only": {"share": 1.0, "accuracy": 0.5}}


def test_a_gold_query_without_a_prediction_is_wrong_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = write(tmp_path / "gold.tsv", *GOLD)
    predicted = write(tmp_path / "p.tsv", "cat\tk æ t")
    found = content(tmp_path, predicted, "--reference", gold)
    assert found["missing"] == 2
    assert found["all"]["accuracy"] == pytest.approx(1 / 3)
    assert found["all"]["error_rate"] == pytest.approx(6 / 9)
    assert "gold queries without a prediction: 2 of 3" in capsys.readouterr().err


def test_languages_without_any_prediction_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = [write(tmp_path / f"{name}.tsv", "a\tb", "c\td") for name in ("xx", "yy", "zz")]
    (tmp_path / "out").mkdir()
    predicted = [write(tmp_path / "out/yy.tsv", "a\tb")]
    assert evaluated(*predicted, "--reference", *gold) == 0
    said = capsys.readouterr().err
    assert "gold queries without a prediction: 5 of 6 (all of xx, zz); they count as wrong" in said


def test_empty_predictions_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of `predict` may have nothing else."""
    gold = write(tmp_path / "gold.tsv", *GOLD)
    assert evaluated(write(tmp_path / "p.tsv", "cat\t", "gnu\tn"), "--reference", gold) == 0
    assert "warning: empty predictions: 1 of 2" in capsys.readouterr().err
    predicted = write(tmp_path / "p.tsv", "cat\t\t\t0\tnone\t", "gnu\t\t\t0\tnone\t")
    assert evaluated(predicted, "--reference", gold) == 0
    assert "warning: empty predictions: 2 of 2" in capsys.readouterr().err


def test_a_heading_names_other_columns_than_those_of_the_gold_table(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.tsv", "xx\tcat\tk a t", "yy\tcat\tk")
    predicted = write(tmp_path / "p.tsv", "pronunciation\tword\tlanguage", "k\tcat\tyy")
    columns = ("--columns", "language,source,target")
    found = content(tmp_path, predicted, "--reference", gold, *columns)
    assert found["languages"]["yy"]["accuracy"] == 1


def test_several_predictions_of_a_query_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = write(tmp_path / "gold.tsv", *GOLD)
    rows = ("cat\tk æ t", "cat\tk a t", "read\tɹ ɛ d", "read\tɹ ɛ d", "gnu\tn uː")
    found = content(tmp_path, write(tmp_path / "p.tsv", *rows), "--reference", gold)
    assert found["all"]["accuracy"] == pytest.approx(2 / 3)
    assert "several predictions, of which the first counts: 1" in capsys.readouterr().err


def test_a_table_without_any_target_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = write(tmp_path / "gold.tsv", *GOLD)
    rows = ("cat\t", "read\t", "gnu\t")
    found = content(tmp_path, write(tmp_path / "p.tsv", *rows), "--reference", gold)
    assert found["all"]["accuracy"] == 0
    assert "p.tsv: all targets are empty: are they predictions?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "more", "message"),
    [
        (
            ("dog\td ɒ ɡ",),
            (),
            "no gold row has this query: dog (all); the columns are read as source, target",
        ),
        (
            ("cat\tk æ t", "gnu\tn", "cat"),
            (),
            "p.tsv: 1 row cannot be read: line 3: expected 2 columns",
        ),
        (("cat",), (), "no targets, hence no predictions"),
        (("cat\tk",), ("--source", "x"), "--source goes with files of tokens"),
        (("cat\tk",), ("--nbest", 2), "--nbest goes with files of tokens"),
        (("cat\tk",), ("--columns", "source"), "--columns: target is missing"),
        (("cat\tk",), ("--separator", "form"), "--separator 'form': expected source="),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path, rows: tuple[str, ...], more: tuple[object, ...], message: str
) -> None:
    gold = write(tmp_path / "gold.tsv", *GOLD)
    predicted = write(tmp_path / "p.tsv", *rows)
    words = [predicted, "--reference", gold, "--columns", "source,target"]
    words = words[: 3 if "--columns" in more or "no targets" in message else None]
    assert message in refused(evaluate.main, [*words, *more])


def test_a_gold_table_without_targets_is_refused(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.tsv", "word\tfeatures", "a\tV", "b\tN")
    predicted = write(tmp_path / "p.tsv", "a\tV\tb")
    assert "no targets, so nothing is right" in refused(
        evaluate.main, [predicted, "--reference", gold]
    )


def test_a_language_without_a_gold_table_is_refused(tmp_path: Path) -> None:
    gold = [write(tmp_path / f"{name}.tsv", "a\tb") for name in ("xx", "yy")]
    predicted = write(tmp_path / "zz_test.covered.tsv", "a\tb")
    message = "of the language zz by its name, of which there is no gold table"
    assert message in refused(evaluate.main, [predicted, "--reference", *gold])


class TestAgainst:
    """Two sets of predicted tables on the same gold rows, in other orders."""

    @pytest.fixture
    def tables(self, tmp_path: Path) -> dict[str, list[Path]]:
        contents = {
            "gold": {"xx": [*GOLD, "dog\td ɒ ɡ"], "yy": ["cat\tk a"]},
            # cat, read and dog are right, and gnu is not.
            "ours": {"xx": ["cat\tk æ t", "read\tɹ ɛ d", "dog\td ɒ ɡ", "gnu\tn"], "yy": ["cat\tk"]},
            # read, by its other target.
            "theirs": {
                "xx": ["gnu\tn u", "read\tɹ iː d", "dog\td", "cat\tk"],
                "yy": ["cat\tk a"],
            },
        }
        for name, files in contents.items():
            (tmp_path / name).mkdir()
            for language, rows in files.items():
                write(tmp_path / name / f"{language}.tsv", *rows)
        return {name: sorted((tmp_path / name).iterdir()) for name in contents}

    def test_words_that_one_side_alone_has_right(
        self, tables: dict[str, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = (*tables["ours"], "--reference", *tables["gold"], "--against", *tables["theirs"])
        found = content(tmp_path, *words, "--separator", "target= ")
        assert found["all"]["accuracy"] == 3 / 5
        assert found["against"] == {
            "xx": {"won": 2, "lost": 0, "p": 0.5},
            "yy": {"won": 0, "lost": 1, "p": 1.0},
            "all": {"won": 2, "lost": 1, "p": 1.0},
        }
        said = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert ["xx", "2", "0", "0.5000"] in said
        head = ["language", "only", "this", "right", "only", str(tmp_path / "theirs"), "p"]
        assert head in said

    @pytest.mark.parametrize("side", ["ours", "theirs"])
    def test_other_rows_are_refused(
        self, tables: dict[str, list[Path]], tmp_path: Path, side: str
    ) -> None:
        """Whichever side lacks them."""
        (first, _) = tables[side]
        write(first, *first.read_text(encoding="utf-8").splitlines()[:3])
        lacked = {"ours": "gnu", "theirs": "cat"}[side]
        other = {"ours": "theirs", "theirs": "ours"}[side]
        words = (*tables["ours"], "--reference", *tables["gold"], "--against", *tables["theirs"])
        said = refused(evaluate.main, [*words, "--json", tmp_path / "scores.json"])
        assert f"{tmp_path / side}: has no prediction for 1 of 5 rows of {tmp_path / other}" in said
        assert f"such as {lacked} (xx); --against compares predictions of the same rows" in said
        assert not (tmp_path / "scores.json").exists()

    def test_a_query_that_both_lack_is_a_tie(
        self, tables: dict[str, list[Path]], tmp_path: Path
    ) -> None:
        words = (tables["gold"][1], "--reference", *tables["gold"], "--against", tables["gold"][1])
        found = content(tmp_path, *words)
        assert found["missing"] == 4
        assert found["against"]["all"] == {"won": 0, "lost": 0, "p": 1.0}


def test_a_single_table_of_another_language_is_refused(tmp_path: Path) -> None:
    """Where a model knows both names; codes are names too."""
    source = ("lang=german", "lang=english", *"ab")
    options = task_options()
    model = write_model(tmp_path / "model", 1, words(source, "ab"), options=options)
    gold = write(tmp_path / "deu_test.tsv", "a\tb")
    for name, right in (("eng", False), ("german", True), ("words", True)):
        predicted = write(tmp_path / f"{name}.tsv", "a\tb")
        arguments = [str(each) for each in (predicted, "--reference", gold, "--model", model)]
        if right:
            assert ended(evaluate.main, arguments) == 0
        else:
            assert (
                "eng.tsv: of the language english by its name, and the gold table is of german"
                in (refused(evaluate.main, arguments))
            )


def test_options_of_tables_need_tables(tmp_path: Path) -> None:
    assert "--model goes with predicted tables" in refused(evaluate.main, ["--model", tmp_path])
    assert "--source, --reference, --predictions, or predicted tables" in refused(evaluate.main, [])


def test_a_model_says_columns_and_units(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_phones(tmp_path / "model", 3)
    gold = write(tmp_path / "gold.tsv", "a\tp", "b\tp a")
    found = content(tmp_path, gold, "--reference", gold, "--model", model)
    assert found["unit"] == "symbols between ' '"
    assert found["all"]["accuracy"] == 1
    assert "the model says so" in refused(
        evaluate.main, [gold, "--reference", gold, "--model", model, "--separator", "target= "]
    )


def distance(first: list[str], second: list[str]) -> int:
    """Levenshtein's distance by its definition."""
    if not first or not second:
        return len(first) + len(second)
    return min(
        distance(first[1:], second) + 1,
        distance(first, second[1:]) + 1,
        distance(first[1:], second[1:]) + (first[0] != second[0]),
    )


TEXT = st.lists(st.sampled_from(["a", "b", "ts"]), min_size=1, max_size=4).map(" ".join)


@given(st.lists(st.tuples(st.lists(TEXT, min_size=1, max_size=3), TEXT), min_size=1, max_size=4))
def test_rates_are_those_of_the_definition(pairs) -> None:
    gold = {Query(str(n), (), "x"): some for n, (some, _) in enumerate(pairs)}
    guesses = {Query(str(n), (), "x"): Guess(text) for n, (_, text) in enumerate(pairs)}
    for unit, split in ((PHONES, str.split), (CHARACTERS, list)):
        scores = score_strings(gold, guesses, unit)
        near = [
            min((distance(split(each), split(text)), -len(split(each))) for each in some)
            for some, text in pairs
        ]
        assert scores.all.distance == sum(number for number, _ in near)
        assert scores.all.length == -sum(length for _, length in near)
        assert scores.all.right == sum(text in some for some, text in pairs)
