"""`tools.papers.errors words`: accuracy by kind of word, and errors by kind."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.in_process import refusal, success
from tests.reports import record
from tools.papers import error_kinds, errors, inflected_words


@pytest.mark.parametrize(
    ("form", "prediction", "kind"),
    [
        ("abc", "", "nothing predicted"),
        ("abc", "lemma", "the lemma itself"),
        ("ábc", "abc", "accents and other marks only"),
        ("abc", "Abc", "upper and lower case only"),
        ("abc", "abd", "one character"),
        ("abc", "bcd", "two characters"),
        ("abc", "xyz", "three characters or more"),
    ],
)
def test_an_error_is_of_the_first_kind_that_fits(form: str, prediction: str, kind: str) -> None:
    word = inflected_words.Word(
        "x", ("V",), "lemma", form, prediction, level="none", probability=0.5, right=False
    )
    assert error_kinds.error_kind(word) == kind


class ThreeWords(NamedTuple):
    """The arguments to read three words of the working directory, and the records of their report.

    The second word is wrong: the model gives its lemma.
    """

    arguments: list[str]
    records: list[str]


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ThreeWords:
    monkeypatch.chdir(tmp_path)
    sources = ["lang=x +V a b", "lang=x +V c", "lang=y +N a"]
    files = {
        "train.src": ["lang=x +V a b", "lang=y +V c"],
        "train.tgt": ["b a", "d"],
        "dev.src": sources,
        "dev.tgt": ["b a", "c d", "a"],
    }
    for name, lines in files.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    records = [
        record(sources[0], "exhaustive", ("b a", 1.0)),
        record(sources[1], "optimal", ("c", 0.6), ("d", 0.3)),
        record(sources[2], "none", ("a", 0.2)),
    ]
    Path("report").write_text("\n".join(records) + "\n")
    return ThreeWords("words --train train --dev dev --report report".split(), records)


@pytest.fixture
def tables(words: ThreeWords) -> str:
    """The tables that the command prints."""
    return success(errors.main, words.arguments)


def test_words_and_errors_are_counted(tables: str) -> None:
    assert tables.startswith("3 words: 66.67 % right, 1 error.")


@pytest.mark.parametrize(
    "row",
    [
        pytest.param("| one form has all the probability | 1 | 100.0 | 0.0 |", id="unique form"),
        pytest.param("| the most probable form proven | 1 | 0.0 | 100.0 |", id="proven form"),
        pytest.param("| 0.5 to 0.7 | 1 | 0.0 | 100.0 |", id="probability"),
        pytest.param("| 1 or 2 | 2 | 50.0 | 100.0 |", id="tags of one training row"),
        pytest.param("| never | 1 | 100.0 | 0.0 |", id="tags that training lacks"),
        pytest.param("| unseen in its language | 2 | 50.0 | 100.0 |", id="unseen characters"),
        pytest.param("| y | 1 | 100.0 | 0.0 |", id="language"),
    ],
)
def test_a_kind_of_words_has_its_number_accuracy_and_share_of_errors(tables: str, row: str) -> None:
    assert row in tables


def test_a_kind_of_errors_has_its_number_and_share(tables: str) -> None:
    assert "| the lemma itself | 1 | 100.0 |" in tables


def test_only_the_least_accurate_languages_are_listed(tables: str, words: ThreeWords) -> None:
    """Half of the words of x are right, and all of y."""
    shorter = success(errors.main, [*words.arguments, "--languages", "1"])
    assert [row for row in tables.splitlines() if row not in shorter.splitlines()] == [
        "| y | 1 | 100.0 | 0.0 |"
    ]
    assert "| x | 2 | 50.0 | 100.0 |" in shorter


def test_a_report_of_other_words_is_refused(words: ThreeWords) -> None:
    Path("report").write_text(words.records[0] + "\n")
    assert "report: not of dev.src" in refusal(errors.main, words.arguments)
