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
from tests.string_models import write_phones

GERMAN = ("--language", "german")


def suspects_in(out: Path) -> list[list[str]]:
    """Return the columns of each suspect: line, lemma, form, tags, and what the model admits."""
    lines = (out / "suspects.tsv").read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines]


class AuditedForms(NamedTuple):
    """An audit of forms of one German cell, of which the model excludes the last.

    Attributes:
        forms: the forms in the table, a row for each.
        out: the folder of the results.
        options: the options that name this folder and the model.
    """

    forms: list[str]
    out: Path
    options: list[object]

    def write_table(self, path: Path) -> Path:
        """Write a table of the forms; the space behind the tags is not part of them."""
        return write_table(path, *(f"ab\t{form}\tV " for form in self.forms))


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> AuditedForms:
    folder = tmp_path_factory.mktemp("audited")
    model, out = write_model(folder / "model", 8, end=3), folder / "out"
    possible = {form.text for form in Inflector(model, n_best=0).inflect("german", "ab", "V").forms}
    assert "bbbb" not in possible
    words = sorted(filter(str.isalpha, possible))
    assert len(words) > 1
    audited = AuditedForms([*words, "bbbb"], out, ["--out", out, "--model", model])
    table = audited.write_table(folder / "table")
    succeed("onmt_entmax", "audit", table, *audited.options, *GERMAN)
    return audited


def test_only_the_row_that_the_model_excludes_is_a_suspect(audited: AuditedForms) -> None:
    (suspect,) = suspects_in(audited.out)
    assert suspect[:4] == [str(len(audited.forms)), "ab", "bbbb", "V"]


def test_another_table_needs_another_folder(audited: AuditedForms, tmp_path: Path) -> None:
    """Here the last form was corrected."""
    corrected = audited._replace(forms=[*audited.forms[:-1], audited.forms[0]])
    table = corrected.write_table(tmp_path / "table")
    assert "name another --out" in refusal(audit.main, [table, *audited.options, *GERMAN])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(["--language", "dutch"], "knows no language 'dutch'", id="language"),
        pytest.param([*GERMAN, "--folds", 5], "--model names one", id="folds"),
    ],
)
def test_options_that_do_not_fit_a_named_model_are_refused(
    audited: AuditedForms, tmp_path: Path, options: list[object], message: str
) -> None:
    table = write_table(tmp_path / "table", "ab\ta\tV")
    assert message in refusal(audit.main, [table, *audited.options, *options])


def test_a_model_that_reads_no_language_is_refused(tmp_path: Path) -> None:
    model = write_phones(tmp_path / "model", 3)
    table = write_table(tmp_path / "table", "ab\tp a")
    arguments = [table, "--out", tmp_path / "out", "--model", model, *GERMAN]
    assert f"{model}: not a model of inflection" in refusal(audit.main, arguments)


def test_a_column_with_another_language_is_refused(audited: AuditedForms, tmp_path: Path) -> None:
    table = write_table(tmp_path / "table", "lemma\tform\ttags\tlanguage", "ab\ta\tV\teng")
    message = refusal(audit.main, [table, *audited.options, *GERMAN])
    assert "table:2: its language is english, but --language names german" in message


# --- tables that are read as the model's training was ---


def test_a_table_is_read_by_the_heading_of_the_model(tmp_path: Path) -> None:
    """In its training, the column `form` had the sources, and `lemma` the targets."""
    heading = ["form", "lemma", "x"]
    options = {"task": {"columns": ["source", "target", "tags"], "heading": heading}}
    model = write_model(tmp_path / "model", 8, end=3, options=options)
    table = write_table(tmp_path / "table", "lemma\tform\ttags", "bbbbbb\tab\tV")
    out = tmp_path / "out"
    succeed("onmt_entmax", "audit", table, "--out", out, "--model", model, *GERMAN)
    assert [suspect[:4] for suspect in suspects_in(out)] == [["2", "ab", "bbbbbb", "V"]]


def test_rows_with_tags_in_another_order_are_counted(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", 8, end=3)
    (model / "cells.tsv").write_text("german\tV;PST\t3\n", encoding="utf-8")
    write_list(model)  # with the new checksum
    table = write_table(tmp_path / "table", "ab\ta\tPST;V", "ab\tb\tV;PST", "ba\ta\tV;PST")
    options = ["--out", tmp_path / "out", "--model", model, *GERMAN]
    printed = succeed("onmt_entmax", "audit", table, *options)
    assert "which is another query: 1 of 3, such as line 1" in printed
