"""`onmt-entmax audit --model`: rows that a named model excludes."""

from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import audit
from onmt_entmax.files.checksums import write_list
from onmt_entmax.inflector import Inflector
from tests.cli.tables import write_table
from tests.commands import succeed
from tests.in_process import refusal
from tests.inflection_models import write_model


class Named(NamedTuple):
    """An audit by a named model of a table whose last form the model cannot produce.

    Attributes:
        forms: the forms in the table.
        out: the folder of the results.
        arguments: the command's arguments behind the table, up to `--language`.
    """

    forms: list[str]
    out: Path
    arguments: list[object]


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


def test_another_table_needs_another_folder(named: Named, tmp_path: Path) -> None:
    """Here the last form was corrected."""
    corrected = [*named.forms[:-1], named.forms[0]]
    table = write_table(tmp_path / "table", *(f"ab\t{form}\tV " for form in corrected))
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


def test_a_table_is_read_by_the_heading_of_the_model(tmp_path: Path) -> None:
    """The usual names would exchange the columns, and `aa` is no source that has these forms."""
    options = {"task": {"columns": ["source", "target", "tags"], "heading": ["form", "lemma", "x"]}}
    model = write_model(tmp_path / "model", 8, end=3, options=options)
    table = write_table(tmp_path / "table", "lemma\tform\ttags", "bbbbbb\tab\tV")
    succeed(
        *("onmt_entmax", "audit", table, "--out", tmp_path / "out", "--model", model),
        *("--language", "german"),
    )
    assert (tmp_path / "out/suspects.tsv").read_text("utf-8").startswith("2\tab\tbbbbbb\tV\t")


def test_a_column_with_another_language_is_refused(named: Named, tmp_path: Path) -> None:
    table = write_table(tmp_path / "table", "lemma\tform\ttags\tlanguage", "ab\ta\tV\teng")
    message = refusal(audit.main, [table, *named.arguments, "german"])
    assert "table:2: its language is english, but --language names german" in message


def test_rows_with_tags_in_another_order_are_counted(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", 8, end=3)
    (model / "cells.tsv").write_text("german\tV;PST\t3\n", encoding="utf-8")
    write_list(model)  # with the new checksum
    table = write_table(tmp_path / "table", "ab\ta\tPST;V", "ab\tb\tV;PST", "ba\ta\tV;PST")
    arguments = ["--out", tmp_path / "out", "--model", model, "--language", "german"]
    printed = succeed("onmt_entmax", "audit", table, *arguments)
    assert "which is another query: 1 of 3, such as line 1" in printed
