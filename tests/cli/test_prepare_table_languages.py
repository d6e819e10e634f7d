"""`prepare table`: languages, which the names of files say or `--language` names."""

from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_sigmorphon, prepare_table
from tests.cli.preparing import FORMS, Printed, prepare, read_lines, write_tables
from tests.in_process import Main, refusal

pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.fixture
def two_languages(working_folder: Path) -> Printed:
    """What the command prints about files whose names begin with a language."""
    names = [f"{name}.{split}" for name in ("heb", "heb-unvoc") for split in ("trn", "dev")]
    write_tables(dict.fromkeys(names, FORMS))
    return prepare("--train", *Path().glob("*.trn"), "--dev", *Path().glob("*.dev"))


@pytest.mark.usefixtures("two_languages")
def test_languages_are_the_names_of_several_files() -> None:
    languages = {line.split()[0] for line in read_lines("out/train.src")}
    assert languages == {"lang=heb", "lang=heb-unvoc"}


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("language heb: train: heb.trn (3 rows); dev: heb.dev (3 rows)", id="one"),
        pytest.param("train.{src,tgt}: 6 rows, 2 languages", id="all"),
    ],
)
def test_rows_of_each_language_and_of_all_are_counted(two_languages: Printed, line: str) -> None:
    assert f"{line}\n" in two_languages.out


class TestTwoFilesOfOneLanguage:
    WARNING = "train: heb.trn, heb.train are one language here, heb; "

    @pytest.fixture
    def arguments(self, working_folder: Path) -> list[str]:
        """Arguments that name two files of Hebrew and one of Arabic."""
        write_tables(
            {"heb.trn": FORMS[:1], "heb.train": FORMS[1:], "arb.trn": FORMS, "heb.dev": FORMS}
        )
        return ["--train", "heb.trn", "heb.train", "arb.trn", "--dev", "heb.dev"]

    def test_give_a_warning(self, arguments: list[str]) -> None:
        assert f"warning: {self.WARNING}" in prepare(*arguments).errors

    def test_give_no_warning_if_their_language_is_named(self, arguments: list[str]) -> None:
        assert "one language here" not in prepare(*arguments, "--language", "x").errors

    def test_have_their_named_language_in_the_next_command(self, arguments: list[str]) -> None:
        printed = prepare(*arguments, "--language", "x")
        assert "heb.dev --output out/dev.predicted.tsv --language x " in printed.out


@pytest.mark.parametrize(
    ("main", "advice"),
    [
        (prepare_table.main, "or name a column of languages with --columns"),
        (prepare_sigmorphon.main, "or let `prepare table` read a column of languages"),
    ],
)
def test_a_file_whose_name_says_no_language_is_refused_with_what_helps(
    main: Main, advice: str
) -> None:
    write_tables(dict.fromkeys(("deu.trn", "tur.trn", "dev.tsv", "test.tsv"), FORMS))
    files = ["--train", "deu.trn", "tur.trn", "--dev", "dev.tsv", "--test", "test.tsv"]
    message = refusal(main, [*files, "--out", "out"])
    assert "dev.tsv and 1 file more: the name of the file says no language" in message
    assert advice in message


def prepare_two_languages(dev: str) -> Printed:
    """Prepare training tables of the languages a and b, and a development table."""
    write_tables({"a.trn": FORMS, "b.trn": FORMS, dev: ["walk\tV;PST\twalked"]})
    return prepare("--train", "a.trn", "b.trn", "--dev", dev)


def test_a_training_language_that_dev_lacks_gives_a_warning() -> None:
    warning = "dev: languages of the training rows that it lacks: b; they have no part"
    assert f"warning: {warning}" in prepare_two_languages("a.dev").errors


def test_a_dev_language_that_training_lacks_gives_a_warning() -> None:
    warning = "dev: languages that the training rows lack: c; these have a, b\n"
    assert f"warning: {warning}" in prepare_two_languages("c.dev").errors


# --- tables of one language, which their rows do not name ---


@pytest.mark.parametrize(
    ("train", "dev", "options", "is_warned"),
    [
        pytest.param("deu_train.tsv", "nld_dev.tsv", [], True, id="two codes"),
        pytest.param("deu_train.tsv", "dutch-dev", [], True, id="a code and a name"),
        pytest.param("deu_train.tsv", "ger_dev.tsv", [], False, id="two codes of one language"),
        pytest.param("deu_latn_train.tsv", "deu_dev.tsv", [], False, id="a code and its script"),
        pytest.param("deu_train.tsv", "words.tsv", [], False, id="no language"),
        pytest.param("train.tsv", "nld_dev.tsv", [], False, id="no language of training"),
        pytest.param("deu_train.tsv", "nld_dev.tsv", ["--language", "x"], False, id="an option"),
    ],
)
def test_a_dev_file_of_another_language_than_the_only_training_file_gives_a_warning(
    train: str, dev: str, options: list[str], is_warned: bool
) -> None:
    write_tables({train: FORMS, dev: FORMS})
    errors = prepare("--train", train, "--dev", dev, *options).errors
    warning = (
        f"warning: dev: {dev} is of the language dutch by its name, and the training tables are "
        "of german\n"
    )
    assert (warning in errors) == is_warned
    assert ("by its name" in errors) == is_warned
