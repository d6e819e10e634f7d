"""`onmt-entmax prepare sigmorphon`: the configuration of a training."""

import pytest

from tests.cli.preparing import read_lines
from tests.cli.sigmorphon import SAMPLES, Prepared, prepare_into

FEWEST_UPDATES = 4_000
PASSES = 40
MULTIPLE = 500  # updates are rounded up to one


@pytest.fixture(scope="module")
def one_language(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """English, whose 1,080 rows take fewer than `FEWEST_UPDATES` for the passes."""
    folder = tmp_path_factory.mktemp("one")
    return prepare_into(folder, "--data", SAMPLES, "--languages", "english")


@pytest.fixture(scope="module")
def four_languages(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """All samples, whose 4,080 rows take more than `FEWEST_UPDATES` for the passes."""
    folder = tmp_path_factory.mktemp("four")
    return prepare_into(folder, "--data", SAMPLES, "--languages", "all")


# --- length ---


def test_few_rows_get_the_fewest_updates(one_language: Prepared) -> None:
    assert one_language.setup().training.train_steps == FEWEST_UPDATES


def test_many_rows_get_forty_passes(four_languages: Prepared) -> None:
    setup = four_languages.setup()
    rows = len(read_lines(four_languages.folder / "train.src"))
    updates = PASSES * rows / setup.data.batch_size
    assert updates > FEWEST_UPDATES
    assert updates <= setup.training.train_steps < updates + MULTIPLE
    assert setup.training.train_steps % MULTIPLE == 0


def test_training_is_validated_twenty_times(four_languages: Prepared) -> None:
    training = four_languages.setup().training
    assert 20 * training.valid_steps == training.train_steps


def test_a_comment_names_the_option_that_plans_for_a_time(one_language: Prepared) -> None:
    configuration = (one_language.folder / "train.yaml").read_text(encoding="utf-8")
    comments = [line for line in configuration.splitlines() if line.startswith("#")]
    assert any("--minutes of `prepare`" in comment for comment in comments)


# --- model ---


def test_a_model_of_one_language_is_selected_by_its_accuracy(one_language: Prepared) -> None:
    assert one_language.setup().training.selection == "exact_match"


def test_a_model_of_several_languages_is_selected_by_the_mean_of_their_accuracies(
    four_languages: Prepared,
) -> None:
    assert four_languages.setup().training.selection == "macro_accuracy"


def test_the_output_of_the_model_is_entmax(one_language: Prepared) -> None:
    assert one_language.setup().model.generator_alpha == 1.5
