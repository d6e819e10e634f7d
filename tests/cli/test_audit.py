"""`onmt-entmax audit`: rows that models of the other rows exclude."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import audit
from tests.cli.tables import write_table
from tests.commands import succeed
from tests.in_process import refusal

# --- models of the other rows ---

ROWS = 400
TO_LOOK_AT = 5  # rows that a speaker should look at
WRONG_LINE = 7  # any line would do
WRONG_FORM, RIGHT_FORM = "abay", "abax"


def write_language(path: Path, rows: int) -> list[str]:
    """Write a table in which one line is wrong; return its lines.

    In its language the past adds a letter, x after a and y after others; the present adds none.
    """
    generator = random.Random(3)
    lines = []
    for _ in range(rows):
        lemma = "".join(generator.choices("abc", k=3))
        past = "x" if lemma.endswith("a") else "y"
        tag, end = generator.choice([("PST", past), ("PRS", "")])
        lines.append(f"{lemma}\t{lemma}{end}\tV;{tag}")
    lines[WRONG_LINE - 1] = f"aba\t{WRONG_FORM}\tV;PST"
    write_table(path, *lines)
    return lines


class Suspect(NamedTuple):
    """A row of `suspects.tsv` behind the number of its line."""

    lemma: str
    form: str
    tags: str
    admitted: str
    """The forms of the model with their probabilities."""
    certificate: str


class Audit(NamedTuple):
    """An audit of a table with a wrong line."""

    lines: list[str]
    command: list[object]
    suspects: dict[int, Suspect]
    """By the number of the line."""
    out: Path


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    folder = tmp_path_factory.mktemp("audit")
    lines = write_language(folder / "table", ROWS)
    command = ["audit", folder / "table", "--out", folder / "out", "--folds", 2]
    command += ["--updates", 500, "--ask", TO_LOOK_AT]
    succeed("onmt_entmax", *command)
    rows = [row.split("\t") for row in (folder / "out" / "suspects.tsv").read_text().splitlines()]
    suspects = {int(number): Suspect(*columns) for number, *columns in rows}
    return Audit(lines, command, suspects, folder / "out")


@pytest.mark.slow
def test_a_wrong_form_is_a_suspect(planted: Audit) -> None:
    assert planted.suspects[WRONG_LINE].form == WRONG_FORM


@pytest.mark.slow
def test_the_model_has_the_right_form_instead(planted: Audit) -> None:
    assert planted.suspects[WRONG_LINE].admitted.startswith(f"{RIGHT_FORM} ")


@pytest.mark.slow
def test_hardly_any_other_row_is_a_suspect(planted: Audit) -> None:
    assert 1 <= len(planted.suspects) < len(planted.lines) / 10


@pytest.mark.slow
def test_suspects_are_rows_of_the_table(planted: Audit) -> None:
    assert planted.suspects
    for number, (lemma, form, tags, *_) in planted.suspects.items():
        assert f"{lemma}\t{form}\t{tags}" == planted.lines[number - 1]


@pytest.mark.slow
def test_the_list_for_a_speaker_has_as_many_rows_as_asked_for(planted: Audit) -> None:
    assert len((planted.out / "ask.tsv").read_text().splitlines()) == TO_LOOK_AT


@pytest.mark.slow
def test_a_finished_audit_trains_nothing_again(planted: Audit) -> None:
    assert "onmt-entmax train" not in succeed("onmt_entmax", *planted.command)


# --- tables that are refused ---


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        pytest.param(
            "ab\tabx\tV;PST\n" * 15,
            [],
            "50 rows or more are needed for 5 --folds, not 15",
            id="too few rows",
        ),
        pytest.param(None, [], "cannot be read", id="no table"),
        pytest.param("a b\n", [], "no tabs, commas or semicolons divide columns", id="no columns"),
        pytest.param(
            "a\tb\tV\nc\td\tV;;X\n" * 2,
            ["--columns", "form,lemma,tags"],
            "2 of 4 rows cannot be read; mend them",
            id="bad rows",
        ),
    ],
)
def test_a_table_that_cannot_be_audited_is_refused_and_nothing_is_written(
    tmp_path: Path, content: str | None, options: list[str], message: str
) -> None:
    if content is not None:
        (tmp_path / "table").write_text(content)
    arguments = [tmp_path / "table", "--out", tmp_path / "out", *options]
    assert message in refusal(audit.main, arguments, progress=True)
    assert not (tmp_path / "out").exists()
