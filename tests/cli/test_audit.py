"""`onmt-entmax audit`: rows that models of the other rows exclude."""

import random
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import audit
from onmt_entmax.inflector import Inflector
from tests.cli.tables import write_table
from tests.commands import run, succeed
from tests.in_process import refusal
from tests.inflection_models import write_model

# --- models of the other rows ---

TO_LOOK_AT = 5  # rows


def write_language(path: Path, rows: int) -> list[str]:
    """Write a table whose line 7 is wrong; return its lines.

    In its language the past adds a letter, x after a and y after others; the present adds none.
    """
    generator = random.Random(3)
    lines = []
    for _ in range(rows):
        lemma = "".join(generator.choices("abc", k=3))
        past = "x" if lemma.endswith("a") else "y"
        tag, end = generator.choice([("PST", past), ("PRS", "")])
        lines.append(f"{lemma}\t{lemma}{end}\tV;{tag}")
    lines[6] = "aba\tabay\tV;PST"  # for abax
    write_table(path, *lines)
    return lines


class Audit(NamedTuple):
    """An audit of a table whose line 7 is wrong."""

    lines: list[str]
    command: list[object]
    suspects: dict[int, list[str]]
    """Columns by the number of the line."""
    out: Path


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    folder = tmp_path_factory.mktemp("audit")
    lines = write_language(folder / "table", 400)
    command = ["audit", folder / "table", "--out", folder / "out", "--folds", 2]
    command += ["--updates", 500, "--ask", TO_LOOK_AT]
    succeed("onmt_entmax", *command)
    rows = [row.split("\t") for row in (folder / "out" / "suspects.tsv").read_text().splitlines()]
    suspects = {int(number): columns for number, *columns in rows}
    return Audit(lines, command, suspects, folder / "out")


@pytest.mark.slow
def test_a_planted_error_is_excluded_and_hardly_any_other_row(planted: Audit) -> None:
    """The model has the right form instead."""
    _, _, _, admitted, *_ = planted.suspects[7]
    assert admitted.startswith("abax ")
    assert len(planted.suspects) < len(planted.lines) / 10


@pytest.mark.slow
def test_suspects_are_rows_of_the_table(planted: Audit) -> None:
    for number, columns in planted.suspects.items():
        assert "\t".join(columns[:3]) == planted.lines[number - 1]


@pytest.mark.slow
def test_as_many_rows_as_asked_for_are_to_be_looked_at(planted: Audit) -> None:
    assert len((planted.out / "ask.tsv").read_text().splitlines()) == TO_LOOK_AT


@pytest.mark.slow
def test_an_audit_that_is_done_is_not_done_again(planted: Audit) -> None:
    assert "onmt-entmax train" not in run("onmt_entmax", *planted.command).stdout


# --- a named model ---


class Named(NamedTuple):
    """An audit by a named model of a table whose last form the model cannot produce."""

    forms: list[str]
    out: Path
    arguments: list[object]
    """All but the table and the language."""


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Named:
    folder = tmp_path_factory.mktemp("named")
    model, out = write_model(folder / "model", 8, end=3), folder / "out"
    everything = Inflector([model], n_best=0).inflect("german", "ab", "V")
    possible = {form.text for form in everything.forms}
    forms = [*sorted(filter(str.isalpha, possible)), "bbbb"]
    assert len(forms) > 2
    assert "bbbb" not in possible
    table = write_table(folder / "table", *(f"ab\t{form}\tV " for form in forms))
    arguments = ["--out", out, "--model", model, "--language"]
    succeed("onmt_entmax", "audit", table, *arguments, "german")
    return Named(forms, out, arguments)


def test_a_named_model_excludes_the_rows_that_it_cannot_produce(named: Named) -> None:
    (suspect,) = (named.out / "suspects.tsv").read_text("utf-8").splitlines()
    assert suspect.startswith(f"{len(named.forms)}\tab\tbbbb\tV\t")


def test_a_corrected_table_needs_another_folder(named: Named, tmp_path: Path) -> None:
    corrected = [f"ab\t{named.forms[0]}\tV"] * len(named.forms)
    table = write_table(tmp_path / "table", *corrected)
    assert "name another --out" in refusal(audit.main, [table, *named.arguments, "german"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(["dutch"], "knows no language 'dutch'", id="language"),
        pytest.param(["german", "--folds", 5], "--model names one", id="folds"),
    ],
)
def test_options_that_do_not_fit_a_named_model_are_refused(
    named: Named, tmp_path: Path, options: list[object], message: str
) -> None:
    table = write_table(tmp_path / "table", "ab\ta\tV")
    assert message in refusal(audit.main, [table, *named.arguments, *options])


# --- mistakes ---


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
def test_mistakes_are_one_line_and_nothing_is_written(
    tmp_path: Path, content: str | None, options: list[str], message: str
) -> None:
    if content is not None:
        (tmp_path / "table").write_text(content)
    arguments = [tmp_path / "table", "--out", tmp_path / "out", *options]
    assert message in refusal(audit.main, arguments, progress=True)
    assert not (tmp_path / "out").exists()
