"""`prepare table`: options and tables that are refused before anything is written."""

from pathlib import Path

import pytest

from onmt_entmax.cli import prepare_table
from tests.cli.changed_calls import changed_call
from tests.cli.preparing import FORMS, write_tables
from tests.in_process import refusal

USUAL = {"--train": "a.trn", "--dev": "a.dev", "--out": "out"}  # a call without mistakes


@pytest.fixture
def files(working_folder: Path) -> None:
    """The tables of the usual call, and others that the cases name.

    `short` has no targets, `long` has two columns too many, and `empty` has no rows.
    `out/train.yaml` has the rows of a table, and the name of a file that the command writes.
    """
    write_tables({"a.trn": FORMS, "a.dev": FORMS, "empty": []})
    write_tables({"short": ["draw\tV;PST"], "long": ["a\tb\tc\td\te"]})
    Path("out").mkdir()
    Path("out/train.yaml").write_text("a\tV;PST\tb\n")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            "--skip-bad a.trn", "a.trn: is read, and would be overwritten", id="bad rows to table"
        ),
        pytest.param(
            "--skip-bad out/train.src",
            "--skip-bad out/train.src: prepare writes other lines there; name",
            id="bad rows to training text",
        ),
        pytest.param(
            "--dev out/train.yaml",
            "out/train.yaml: is read, and would be overwritten",
            id="output as a table",
        ),
        pytest.param(
            "--dev /dev/stdin",
            "/dev/stdin: is a pipe or a device, but is read more than once",
            id="a pipe, of which the first rows would be lost",
        ),
        pytest.param(
            "--separator tags=", "--separator tags=: tags need a sign between", id="no separator"
        ),
        pytest.param(
            "--separator x=;",
            "--separator 'x=;': expected source=, target= or tags= and",
            id="separator of nothing",
        ),
        pytest.param(
            "--separator source=- --separator lemma=+",
            "--separator: source has two separators, '-' and '+'; name one",
            id="two separators of one column",
        ),
        pytest.param(
            "--columns source,tag,target",
            "--columns: 'tag' is none of source, target, tags",
            id="unknown column",
        ),
        pytest.param(
            "--columns=-,source,tags", "--columns: target is missing", id="no target column"
        ),
        pytest.param(
            "--columns source,target,language --language x",
            "a column has it too",
            id="a language beside a column of them",
        ),
        pytest.param(
            "--language 'a b'", "--language 'a b': must be one word without spaces", id="two words"
        ),
        pytest.param(
            "--dev short",
            "short: columns source, tags between tabs; no targets, but a.trn has",
            id="no targets",
        ),
        pytest.param(
            "--dev long",
            "long: 5 columns, not 3 (source, tags, target), or 2 without the",
            id="too many columns",
        ),
        pytest.param("--dev empty", "empty: no rows", id="no rows"),
        pytest.param(
            "--columns source,target",
            "a.trn: 3 columns, such as 'draw | V;PST | drew'; --columns names 2: source, target",
            id="too few named columns",
        ),
        pytest.param(
            "--out short",
            "cannot be written, since short is a file, not a folder; name",
            id="file as a folder",
        ),
    ],
)
def test_options_and_tables_that_do_not_fit_are_refused_and_nothing_is_written(
    options: str, message: str
) -> None:
    assert message in refusal(prepare_table.main, changed_call(USUAL, options))
    assert [path.name for path in Path("out").iterdir()] == ["train.yaml"]
