"""Answers of the page of `serve`: every task of strings, several models, and what it opens with."""

from pathlib import Path
from typing import Any

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.checkpoint import CELLS
from onmt_entmax.errors import UserError
from onmt_entmax.files.checksums import write_list
from onmt_entmax.search import Budget, SearchConfig, SearchTask
from onmt_entmax.strings.cells import cells_text
from onmt_entmax.transducer import Transducer
from tests.inflection_models import write_model
from tests.models import words
from tests.string_models import PHONES, task_options, write_phones

TASK = SearchTask(SearchConfig(beam_size=4, n_best=4, max_length=6), "exact", Budget(500))


def pairs(record: dict[str, Any]) -> list[tuple[str, float]]:
    return [(each["text"], pytest.approx(each["prob"], abs=1e-6)) for each in record["hypotheses"]]


def test_pronunciations_are_symbols_between_spaces(tmp_path: Path) -> None:
    folder = write_phones(tmp_path / "model", 3)
    answer = Answering(folder, TASK).answer({"source": " abc "})
    expected = Transducer(folder, 4, 4, 6).predict("abc")
    assert len(expected.outputs) > 1
    assert any(" " in output.text for output in expected.outputs)
    assert pairs(answer["record"]) == [(each.text, each.prob) for each in expected.outputs]
    assert answer["record"]["written"]
    assert answer["drawing"]["source"] == ["a", "b", "c"]
    assert answer["tags"] == ()


def test_symbols_of_a_source_have_their_separator(tmp_path: Path) -> None:
    options = task_options(separators={"source": "-", "target": " "})
    folder = write_model(tmp_path / "model", 3, words(("ts", "a"), PHONES), options=options)
    answering = Answering(folder, TASK)
    assert answering.description()["source"] == {
        "label": "Symbols",
        "placeholder": "symbols between '-', such as ts-a",
        "kind": "symbols",
    }
    assert answering.answer({"source": "ts-a"})["drawing"]["source"] == ["ts", "a"]
    with pytest.raises(UserError, match="empty symbol: '-' at an end"):
        answering.answer({"source": "ts-"})


def test_tags_need_no_language(tmp_path: Path) -> None:
    options = task_options(("source", "target", "tags"), {"tags": "|"})
    folder = write_model(tmp_path / "model", 3, words(("+V", "+PST", *"ab"), "ab"), options=options)
    answering = Answering(folder, TASK)
    answer = answering.answer({"source": "ab", "tags": "V|PST"})
    assert answer["drawing"]["source"] == ["+V", "+PST", "a", "b"]
    assert answer["tags"] == ("V", "PST")
    for name in ("source", "lemma", "sentence"):  # as release 1.0 named it, too
        assert answering.answer({name: "ab"})["drawing"]["source"] == ["a", "b"]
    said = answering.description()
    assert (said["languages"], said["tags"]) == (None, ["PST", "V"])
    assert (said["tag_separator"], said["needs_tags"]) == ("|", False)


def test_languages_need_no_tags(tmp_path: Path) -> None:
    letters = words(("lang=tur", "lang=x", *"kitap"[:5]), PHONES)
    options = task_options(("language", "source", "target"), {"target": " "})
    answering = Answering(write_model(tmp_path / "model", 3, letters, options=options), TASK)
    said = answering.description()
    assert (said["languages"], said["tags"]) == (["tur", "x"], None)
    assert said["example"] == {"language": "tur", "source": "kitap"}
    answer = answering.answer({"language": "turkish", "source": "ta"})
    assert answer["drawing"]["source"] == ["lang=tur", "t", "a"]
    with pytest.raises(UserError, match="no language 'y'"):
        answering.answer({"language": "y", "source": "ta"})


@pytest.mark.parametrize("listed", [1, 4])
def test_models_of_two_directions_are_averaged(tmp_path: Path, listed: int) -> None:
    folders = [
        write_phones(tmp_path / "forward", 3, 4),
        write_phones(tmp_path / "backward", 4, 4, target_order="right_to_left"),
    ]
    config = SearchConfig(beam_size=4, n_best=listed, max_length=6)
    answering = Answering(folders, SearchTask(config, "exact", Budget(500)))
    answer = answering.answer({"source": "ab"})
    expected = Transducer(folders, 0, 4, 6, budget=500).predict("ab")
    assert len(expected.outputs) > 4
    record = answer["record"]
    assert pairs(record) == [(each.text, each.prob) for each in expected.outputs[:listed]]
    assert record["finished"] == len(expected.outputs)
    assert record["certificate"] == expected.certificate.level
    assert record["bound"] == expected.certificate.bound
    assert "no common pictures" in record["no_pictures"]
    assert answer["drawing"] is None


def test_models_of_one_vocabulary_have_pictures(tmp_path: Path) -> None:
    folders = [write_phones(tmp_path / str(seed), seed) for seed in (3, 4)]
    answer = Answering(folders, TASK).answer({"source": "ab"})
    expected = Transducer(folders, 4, 4, 6).predict("ab")
    assert pairs(answer["record"]) == [(each.text, each.prob) for each in expected.outputs]
    assert answer["drawing"]["source"] == ["a", "b"]


def test_models_of_different_tasks_are_refused(tmp_path: Path) -> None:
    other = write_model(tmp_path / "other", 3, words("abcd", PHONES), options=task_options())
    with pytest.raises(UserError, match="different tasks; target"):
        Answering([write_phones(tmp_path / "phones", 3), other], TASK)


def test_copied_symbols_are_named(tmp_path: Path) -> None:
    vocabularies = words(("a", "<copy1>"), ("a", "<copy1>"))
    options = task_options(copy_frequency=2)
    answering = Answering(write_model(tmp_path / "model", 3, vocabularies, options=options), TASK)
    assert answering.answer({"source": "aö"})["record"]["copied"] == {"character ö": 1}


@pytest.mark.parametrize(("kind", "longest"), [("", 80), ("-", 500)])
def test_long_sources_are_refused(tmp_path: Path, kind: str, longest: int) -> None:
    options = task_options(separators={"source": kind} if kind else {})
    answering = Answering(
        write_model(tmp_path / "model", 3, words("a", "a"), options=options), TASK
    )
    assert answering.description()["longest"]["source"] == longest
    with pytest.raises(UserError, match=f"^source: longer than {longest} characters$"):
        answering.answer({"source": "a" * (longest + 1)})


# --- what the page opens with ---------------------------------------------------------------------


def inflection(folder: Path, languages: str, letters: str, tags: str, cells: Any) -> Answering:
    marks = [f"lang={name}" for name in languages.split()] + [f"+{tag}" for tag in tags.split()]
    model = write_model(folder, 3, words((*marks, *letters), letters))
    (model / CELLS).write_text(cells_text(cells), encoding="utf-8")
    write_list(model)
    return Answering(model, TASK)


def test_a_word_whose_cell_the_folder_records(tmp_path: Path) -> None:
    """In the order of the cell, under the name that the model has for the language."""
    cells = {"tur": {("N", "DAT"): 9, ("N", "SG", "ACC"): 2}, "aaa": {("V",): 9}}
    answering = inflection(tmp_path / "m", "aaa tur", "kitap", "N SG ACC DAT V", cells)
    assert answering.description()["example"] == {
        "language": "tur", "source": "kitap", "tags": "N;SG;ACC",
    }  # fmt: skip


def test_else_the_most_frequent_cell_of_the_part_of_speech(tmp_path: Path) -> None:
    cells = {"turkish": {("V", "X"): 9, ("N", "DAT"): 5, ("N", "GEN"): 2}}
    answering = inflection(tmp_path / "m", "turkish", "kitap", "N V X DAT GEN", cells)
    assert answering.description()["example"]["tags"] == "N;DAT"


@pytest.mark.parametrize(("language", "letters"), [("turkish", "kita"), ("aaa", "kitap")])
def test_without_a_word_language_and_tags_are_filled_in(
    tmp_path: Path, language: str, letters: str
) -> None:
    """No word is known of the language, or one with letters that the model lacks."""
    cells = {language: {("N", "ACC", "SG"): 9, ("V",): 2}}
    answering = inflection(tmp_path / "m", language, letters, "N ACC SG V", cells)
    assert answering.description()["example"] == {
        "language": language, "source": "", "tags": "N;ACC;SG",
    }  # fmt: skip


def test_nothing_is_known_of_words_without_a_language(tmp_path: Path) -> None:
    said = Answering(write_phones(tmp_path / "model", 3), TASK).description()
    assert said["example"] == {}
    assert said["source"] == {"label": "Word", "placeholder": "type a word", "kind": "characters"}
