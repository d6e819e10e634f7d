"""`onmt-entmax predict --analogies`: training tables whose words vote.

`test_analogy_languages.py` tests the languages of these tables.
"""

from pathlib import Path

import pytest

from onmt_entmax import Query, Transducer
from tests.cli.predicting import predicted
from tests.cli.tables import write_table
from tests.inflection_models import write_model
from tests.models import vocabularies_of
from tests.string_models import LETTERS, task_options

# In this language a word that ends in b gets a d.
ROWS = ("ab\tabd", "cb\tcbd", "acb\tacbd", "dab\tdabd")
PAIRS = [(Query(source), target) for source, target in (row.split("\t") for row in ROWS)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model from letters to letters."""
    folder = tmp_path_factory.mktemp("letters") / "model"
    return write_model(folder, 3, vocabularies_of(LETTERS, LETTERS), options=task_options())


@pytest.fixture
def training(tmp_path: Path) -> Path:
    return write_table(tmp_path / "train.tsv", *ROWS)


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    return write_table(tmp_path / "words.tsv", "db", "aab", "ca")


def test_outputs_are_those_of_the_mixture(
    model: Path, training: Path, queries: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert predicted(model, queries, "--analogies", training) == 0
    transducer = Transducer(model, analogies=PAIRS)
    sources = queries.read_text().split()
    assert capsys.readouterr().out.splitlines() == [
        f"{source}\t{transducer.predict(source).text}" for source in sources
    ]


def test_analogies_change_an_output(model: Path) -> None:
    """A control: otherwise the test above would compare models alone."""
    with_analogies, alone = Transducer(model, analogies=PAIRS), Transducer(model)
    assert with_analogies.predict("db").text != alone.predict("db").text


def test_the_accuracy_of_analogies_is_printed(
    model: Path, training: Path, queries: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert predicted(model, queries, "--analogies", training) == 0
    accuracy = "note: analogies with other training words are right for 100 % of them\n"
    assert accuracy in capsys.readouterr().err


def test_training_rows_that_cannot_be_read_are_counted(
    model: Path, queries: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "train.tsv", *ROWS, "dd\t", "\td")
    assert predicted(model, queries, "--analogies", table) == 0
    warning = f"warning: {table}: 2 of 6 rows cannot be read; left out\n"
    assert warning in capsys.readouterr().err


def test_a_table_without_targets_is_refused(
    model: Path, queries: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "covered.tsv", "ab\t", "cb\t")
    output = tmp_path / "out.tsv"
    assert predicted(model, queries, "--output", output, "--analogies", table) == 2
    error = f"--analogies: {table}: no row with a target that can be read"
    assert error in capsys.readouterr().err
    assert not output.exists()


def test_rows_on_which_no_word_can_vote_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The training words have another separator of tags."""
    options = task_options(["source", "target", "tags"])
    vocabularies = vocabularies_of(("+V", "+N", *LETTERS), LETTERS)
    folder = write_model(tmp_path / "tagged", 3, vocabularies, options=options)
    table = write_table(tmp_path / "train.tsv", "ab\tabd\tV|N", "cb\tcbd\tV")
    queries = write_table(tmp_path / "words.tsv", "db\tV;N", "aab\tV;N", "ca\tV")
    assert predicted(folder, queries, "--analogies", table) == 0
    note = "note: --analogies: no training word has the language and tags of 2 of 3 rows\n"
    assert note in capsys.readouterr().err


def test_an_error_about_columns_does_not_advise_to_name_them(
    model: Path, queries: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--columns` names the columns of the queries, not those of the training table."""
    table = write_table(tmp_path / "train.tsv", "ab\tabd\tV\t1")
    assert predicted(model, queries, "--analogies", table) == 2
    error = capsys.readouterr().err
    assert f"--analogies: {table}: 4 columns, not 2" in error
    assert "--columns" not in error


def test_a_training_table_is_not_overwritten(
    model: Path, training: Path, queries: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = training.read_text()
    assert predicted(model, queries, "--output", training, "--analogies", training) == 2
    assert f"{training}: is read, and would be overwritten" in capsys.readouterr().err
    assert training.read_text() == before
