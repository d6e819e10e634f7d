"""`onmt-entmax inflect --json`: the records that it writes to a file."""

from pathlib import Path
from typing import Any

import pytest

from onmt_entmax import Inflector
from onmt_entmax.cli import inflect
from onmt_entmax.inflector import Inflection, Question
from tests.commands import json_lines
from tests.in_process import exit_status
from tests.inflection_models import write_model

# Model and beam are such that no number is trivial.
QUESTIONS = (Question("german", "ab", ("V", "PST")), Question("german", "b", ("V",)))


@pytest.fixture
def answers(tmp_path: Path) -> list[Inflection]:
    model = write_model(tmp_path / "model", 5, end=1)
    return list(Inflector([model], n_best=1, beam_size=1).answers(QUESTIONS))


@pytest.fixture
def records(
    answers: list[Inflection], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> list[Any]:
    """What the command writes of the same questions, without their language."""
    (tmp_path / "in.tsv").write_text("ab\tV;PST\nb\tV\n", encoding="utf-8")
    files = ["--input", str(tmp_path / "in.tsv"), "--output", str(tmp_path / "out.jsonl")]
    options = ["--language", "german", "--json", "--beam_size", "1"]
    model = ["--model", str(tmp_path / "model")]
    assert exit_status(inflect.main, [*files, *options, *model]) == 0
    assert capsys.readouterr().out == ""
    return json_lines(tmp_path / "out.jsonl")


def test_a_file_of_json_has_the_answers(records: list[Any], answers: list[Inflection]) -> None:
    assert records == [answer.to_dict() for answer in answers]


@pytest.mark.parametrize("number", [0, 1])
def test_a_record_has_the_query_its_forms_and_what_is_proven(
    records: list[Any], answers: list[Inflection], number: int
) -> None:
    answer = answers[number]
    (form,) = answer.forms
    proof = answer.certificate
    assert records[number] == {
        "language": "german",
        "lemma": answer.question.lemma,
        "tags": [*answer.question.tags],
        "forms": [{"form": form.text, "prob": form.prob, "log_prob": form.log_prob}],
        "certificate": answer.level,
        "proven": proof.proven,
        "bound": proof.bound,
        "mass": proof.mass,
        "warnings": [],
    }


def test_bound_and_mass_of_a_record_are_not_trivial(records: list[Any]) -> None:
    assert 0 < records[0]["bound"] < records[0]["mass"] < 0.99
