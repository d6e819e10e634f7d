"""Right-to-left models of inflection give their forms in natural order."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax import Inflector
from onmt_entmax.cli import export, inflect
from onmt_entmax.ensembles import TranslationError
from onmt_entmax.report.answer_records import answer_record
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.translator import Translator
from tests.in_process import exit_status
from tests.inflection_models import write_model


def test_a_right_to_left_model_gives_its_forms_in_natural_order(
    left_to_right: Path, right_to_left: Path
) -> None:
    """The two models have the same weights: one writes what the other writes backwards."""
    forwards = Inflector([left_to_right], n_best=5).inflect("english", "ab", "V")
    backwards = Inflector([right_to_left], n_best=5).inflect("english", "ab", "V")
    mirrored = tuple(replace(form, text=form.text[::-1]) for form in forwards.forms)
    assert mirrored != forwards.forms
    assert backwards == replace(forwards, forms=mirrored)


def test_translate_gives_forms_in_natural_order(left_to_right: Path, right_to_left: Path) -> None:
    task = SearchTask(SearchConfig(beam_size=5, n_best=5))
    line = "lang=english +V a b"
    (forwards,) = Translator.from_folders([left_to_right], task).answers([line])
    (backwards,) = Translator.from_folders([right_to_left], task).answers([line])
    texts = [hypothesis.text for hypothesis in forwards.hypotheses]
    reversed_texts = [" ".join(reversed(text.split())) for text in texts]
    assert reversed_texts != texts
    assert [hypothesis.text for hypothesis in backwards.hypotheses] == reversed_texts
    assert answer_record(backwards)["certificate"] == answer_record(forwards)["certificate"]


@pytest.fixture
def exported(right_to_left: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder that `export` makes of the right-to-left model."""
    folder = tmp_path / "exported"
    assert exit_status(export.main, [str(right_to_left), str(folder)]) == 0
    capsys.readouterr()
    return folder


def test_the_card_of_an_exported_model_says_its_direction(exported: Path) -> None:
    card = (exported / "README.md").read_text("utf-8")
    assert "inflect --model exported LANGUAGE" in card
    assert "It writes from right to left" in card


def test_an_exported_model_keeps_its_direction(
    right_to_left: Path, exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = ["english", "ab", "V", "--model"]
    assert exit_status(inflect.main, [*query, str(right_to_left)]) == 0
    expected = capsys.readouterr().out
    assert expected
    assert exit_status(inflect.main, [*query, str(exported)]) == 0
    assert capsys.readouterr().out == expected


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_user_can_add_the_direction_to_a_folder_of_release_1_0(
    right_to_left: Path, tmp_path: Path
) -> None:
    """The guide says how: a line in config.yaml, whose checksum is then renewed."""
    model = write_model(tmp_path / "model", 5, end=1, options={"seed": 1})
    config, checksums = model / "config.yaml", model / "SHA256SUMS"
    old_checksum = sha256(config)
    options = "options:\n  target_order: right_to_left"
    config.write_text(config.read_text().replace("options:", options))
    checksums.write_text(checksums.read_text().replace(old_checksum, sha256(config)))
    query = ("english", "ab", "V")
    expected = Inflector(right_to_left, n_best=5).inflect(*query)
    assert Inflector(model, n_best=5).inflect(*query) == expected


def test_a_right_to_left_model_takes_no_prefix(right_to_left: Path) -> None:
    translator = Translator.from_folders([right_to_left])
    with pytest.raises(TranslationError, match="prefix of line 1: a model that writes from right"):
        list(translator.answers(["lang=english +V a"], prefixes=["a"]))
