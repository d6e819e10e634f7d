"""`onmt-entmax prepare sigmorphon`: the configuration of a training, and the next commands."""

import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.preparing import commands_in, next_commands, read_lines, shorten_training
from tests.cli.sigmorphon import SAMPLES, Prepared, prepare_into, run_prepare_sigmorphon
from tests.commands import succeed

# --- the configuration ---


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """One language."""
    folder = tmp_path_factory.mktemp("english")
    return prepare_into(folder, "--data", SAMPLES, "--languages", "english")


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """All languages of the samples."""
    folder = tmp_path_factory.mktemp("several")
    return prepare_into(folder, "--data", SAMPLES, "--languages", "all")


@pytest.fixture(params=["english", "several"])
def prepared(request: pytest.FixtureRequest) -> Prepared:
    prepared: Prepared = request.getfixturevalue(request.param)
    return prepared


def test_training_makes_at_least_4000_updates_and_40_passes(prepared: Prepared) -> None:
    setup = prepared.setup()
    rows = len(read_lines(prepared.folder / "train.src"))
    assert setup.training.train_steps >= max(4000, 40 * rows / setup.data.batch_size)


def test_training_is_validated_twenty_times(prepared: Prepared) -> None:
    training = prepared.setup().training
    assert training.valid_steps == training.train_steps // 20


def test_a_model_of_one_language_is_selected_by_its_accuracy(english: Prepared) -> None:
    assert english.setup().training.selection == "exact_match"


def test_a_model_of_several_languages_is_selected_by_the_mean_of_theirs(several: Prepared) -> None:
    assert several.setup().training.selection == "macro_accuracy"


def test_the_configured_model_has_entmax(prepared: Prepared) -> None:
    assert prepared.setup().model.generator_alpha == 1.5


def test_the_configuration_names_the_option_that_plans_for_a_time(prepared: Prepared) -> None:
    assert "--minutes of `prepare`" in (prepared.folder / "train.yaml").read_text()


def test_the_printed_query_is_of_a_prepared_language(prepared: Prepared) -> None:
    assert f"inflect --model {prepared.folder}/model english " in prepared.printed


# --- the next commands ---


class Example(NamedTuple):
    """A folder made of twenty rows each of two languages, and the commands that were printed."""

    folder: Path
    commands: list[str]


@pytest.fixture
def example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Example:
    folder = tmp_path / "a: b"  # a path that a shell and YAML read otherwise without quotes
    for language in ("english", "german"):
        for part in ("train", "dev"):
            name = f"{language}-{part}"
            rows = (SAMPLES / name).read_text(encoding="utf-8").splitlines(keepends=True)
            (tmp_path / name).write_text("".join(rows[:20]), encoding="utf-8")
    run_prepare_sigmorphon("--data", tmp_path, "--out", folder)
    return Example(folder, next_commands(capsys.readouterr().out))


def test_the_printed_commands_stand_in_the_configuration(example: Example) -> None:
    comments, *_ = (example.folder / "train.yaml").read_text().partition("\ndata:")
    assert commands_in(comments) == example.commands


def test_commands_from_training_to_a_report_are_printed(example: Example) -> None:
    names = [command.split()[1] for command in example.commands]
    assert names == ["train", "inflect", "predict", "evaluate", "translate", "report"]


def test_the_printed_commands_make_the_report(example: Example) -> None:
    """They run here with fewer updates and a smaller model."""
    shorten_training(example.folder / "train.yaml")
    for command in example.commands:
        succeed("onmt_entmax", *shlex.split(command)[1:])
    assert "</html>" in (example.folder / "dev.html").read_text()
