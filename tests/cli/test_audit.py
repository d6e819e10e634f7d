"""`onmt-entmax audit`: rows that models of the other rows exclude."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.cli import audit
from onmt_entmax.cli.audited_rows import AuditedRow, excluded_rows, surest_first
from onmt_entmax.errors import UserError
from onmt_entmax.inflector import Inflector
from onmt_entmax.strings.tables import Row
from onmt_entmax.strings.task import INFLECTION, Query
from tests.commands import run, succeed
from tests.in_process import exit_status, refusal
from tests.inflection_models import write_model
from tests.reports import record


def write_table(path: Path, rows: int) -> list[str]:
    """A language in which the past adds a letter that the stem decides; line 7 is wrong."""
    generator = random.Random(3)
    lines = []
    for _ in range(rows):
        lemma = "".join(generator.choices("abc", k=3))
        tag, end = generator.choice([("PST", "x" if lemma[-1] == "a" else "y"), ("PRS", "")])
        lines.append(f"{lemma}\t{lemma}{end}\tV;{tag}")
    lines[6] = "aba\tabay\tV;PST"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
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
    lines = write_table(folder / "table", 400)
    command = ["audit", folder / "table", "--out", folder / "out", "--folds", 2]
    command += ["--updates", 500, "--ask", 5]
    succeed("onmt_entmax", *command)
    rows = (folder / "out" / "suspects.tsv").read_text().splitlines()
    suspects = {int(number): columns for number, *columns in (row.split("\t") for row in rows)}
    return Audit(lines, command, suspects, folder / "out")


@pytest.mark.slow
def test_a_planted_error_is_excluded_and_hardly_any_other_row(planted: Audit) -> None:
    """The model has the right form instead."""
    assert planted.suspects[7][3].startswith("abax ")
    assert len(planted.suspects) < 40


@pytest.mark.slow
def test_suspects_are_rows_of_the_table(planted: Audit) -> None:
    for number, columns in planted.suspects.items():
        assert "\t".join(columns[:3]) == planted.lines[number - 1]


@pytest.mark.slow
def test_as_many_rows_as_asked_for_are_to_be_looked_at(planted: Audit) -> None:
    assert len((planted.out / "ask.tsv").read_text().splitlines()) == 5


@pytest.mark.slow
def test_an_audit_that_is_done_is_not_done_again(planted: Audit) -> None:
    assert "onmt-entmax train" not in run("onmt_entmax", *planted.command).stdout


class Named(NamedTuple):
    """A table whose last form a model cannot produce, and the call that audits it."""

    table: Path
    forms: list[str]
    arguments: list[object]
    """All but the language."""


@pytest.fixture
def named(tmp_path: Path) -> Named:
    model = write_model(tmp_path / "model", 8, end=3)
    possible = {form.text for form in Inflector([model], 0).inflect("german", "ab", "V").forms}
    forms = [*sorted(filter(str.isalpha, possible)), "bbbb"]
    assert len(forms) > 2
    assert "bbbb" not in possible
    table = tmp_path / "table"
    table.write_text("".join(f"ab\t{form}\tV \n" for form in forms), encoding="utf-8")
    arguments = [table, "--out", tmp_path / "out", "--model", model, "--language"]
    return Named(table, forms, arguments)


def test_a_named_model_excludes_the_rows_that_it_cannot_produce(named: Named) -> None:
    succeed("onmt_entmax", "audit", *named.arguments, "german")
    out = named.table.with_name("out")
    (suspect,) = (out / "suspects.tsv").read_text("utf-8").splitlines()
    assert suspect.startswith(f"{len(named.forms)}\tab\tbbbb\tV\t")


def test_a_corrected_table_needs_another_folder(named: Named) -> None:
    assert exit_status(audit.main, [*map(str, named.arguments), "german"]) == 0
    named.table.write_text(f"ab\t{named.forms[0]}\tV\n" * len(named.forms), encoding="utf-8")
    assert "name another --out" in refusal(audit.main, [*named.arguments, "german"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["dutch"], "knows no language 'dutch'"),
        (["german", "--folds", 5], "--model names one"),
    ],
)
def test_options_that_do_not_fit_a_named_model_are_refused(
    named: Named, options: list[object], message: str
) -> None:
    assert message in refusal(audit.main, [*named.arguments, *options])


def checked_row(form: str, log_prob: float | None, best: str, copies: int = 1, line: int = 1):
    answer = {"hypotheses": [{"text": " ".join(best), "prob": 0.9}], "certificate": "optimal"}
    row = Row(line, Query("ab", ("V", "PST")), form, ())
    return AuditedRow(row, INFLECTION, log_prob, answer, copies)


@pytest.mark.parametrize(
    ("form", "copies", "other", "best", "variant"),
    [
        ("abt", 1, 1, "abed", True),  # both forms are once in the table
        ("abt", 2, 1, "abed", True),
        ("abt", 1, 2, "abed", False),  # the table prefers that of the model
        ("abt", 1, 1, "abd", False),  # which the table does not have
        ("abt", 1, 0, "abed", False),
    ],
)
def test_a_second_form_of_a_cell_is_no_suspect(
    form: str, copies: int, other: int, best: str, variant: bool
) -> None:
    checked = [checked_row(form, None, best, copies)]
    checked += [checked_row("abed", -0.1, best, other, 2)] * bool(other)
    suspects, variants = excluded_rows(checked)
    assert (variants if variant else suspects) == checked[:1]
    assert not (suspects if variant else variants)
    assert surest_first(checked) == suspects


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Sequence[Row], Sequence[Row]]]:
    """Training and held-out rows of each part, which nothing is trained on."""
    parts = []

    def check_part(folder, train, held_out, task, options, training_flags) -> None:
        parts.append((train, held_out))
        folder.mkdir(parents=True)
        empty = record("lang=x", "none", bound=1.0)
        (folder / "dev.report.jsonl").write_text(f"{empty}\n" * len(held_out))
        (folder / "scores.jsonl").write_text('{"log_prob": -1.0}\n' * len(held_out))

    monkeypatch.setattr(audit, "check_part", check_part)
    return parts


@pytest.mark.parametrize("folds", [2, 5])
def test_equal_rows_and_forms_of_a_cell_are_held_out_together(
    tmp_path: Path, parts: list[tuple[Sequence[Row], Sequence[Row]]], folds: int
) -> None:
    """Each different row once; all of them, copies too, in the training of the other parts."""
    rows = [f"{stem}a\t{stem}{end}\tV;{tag}" for stem in "bcdfghjk" for end, tag in ENDS]
    turned = [row.replace("V;PST", "PST;V") for row in rows if row.endswith("PST")]
    lines = [*rows, *rows, *turned]
    (tmp_path / "table").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = [tmp_path / "table", "--out", tmp_path / "out", "--folds", folds, "--ask", 1000]
    assert exit_status(audit.main, [*map(str, words)]) == 0
    assert len(parts) == folds
    listed = [row for _, held_out in parts for row in held_out]
    assert sorted(row.number for row in listed) == [*range(1, 25), *range(49, 65)]
    for train, held_out in parts:
        assert not {map_cell(row) for row in train} & {map_cell(row) for row in held_out}
        assert {row.number for row in train} == {
            number
            for number, line in enumerate(lines, 1)
            if map_cell(row_of(line)) not in {map_cell(row) for row in held_out}
        }
    assert len((tmp_path / "out/ask.tsv").read_text().splitlines()) == 40


ENDS = (("ed", "PST"), ("t", "PST"), ("s", "PRS"))


def row_of(line: str) -> Row:
    lemma, form, tags = line.split("\t")
    return Row(0, Query(lemma, tuple(tags.split(";"))), form, ())


def map_cell(row: Row) -> tuple[str, frozenset[str]]:
    return row.query.source, frozenset(row.query.tags)


def test_rows_that_mix_scripts_are_listed(
    tmp_path: Path,
    parts: list[tuple[Sequence[Row], Sequence[Row]]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    model = write_model(tmp_path / "model", 8, end=3)
    lines = ["ab\tab\tV", "cа\tcа\tV", "ab\tаб\tV"]
    (tmp_path / "table").write_text(
        "\n".join(["Lemma\tForm\tMSD", *lines]) + "\n", encoding="utf-8"
    )
    words = [tmp_path / "table", "--out", tmp_path / "out", "--model", model]
    assert exit_status(audit.main, [*map(str, words), "--language", "german"]) == 0
    listed = (tmp_path / "out/scripts.tsv").read_text("utf-8").splitlines()
    assert [line.split("\t")[:2] for line in listed] == [["3", "cа"], ["4", "ab"]]
    assert listed[0].endswith("\t'cа' mixes scripts: Latin with Cyrillic а (U+0430)")
    assert listed[1].endswith("\t'аб' is in Cyrillic, its lemma Latin")
    said = capsys.readouterr().out
    assert "table, 3 rows: columns source, target, tags between tabs; heading " in said
    assert "scripts.tsv: 2 of 3 rows mix scripts\n" in said


def test_a_row_is_written_with_all_that_the_model_admits() -> None:
    hypotheses = [{"text": "a b ▁", "prob": 0.75}, {"text": "a", "prob": 0.25}]
    answer = {"hypotheses": hypotheses, "certificate": "exhaustive", "finished": 3}
    checked = AuditedRow(Row(3, Query("ab", ("V", "PST")), "aab", ()), INFLECTION, None, answer)
    assert checked.line() == "3\tab\taab\tV;PST\tab  0.75, a 0.25, ...\texhaustive"
    assert checked.certainty == 0.75
    answer |= {"certificate": "optimal", "finished": 2}
    assert checked.line().endswith(", ...\toptimal")


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
        pytest.param("a b\n", [], "table: no tabs, nor commas, divide columns", id="no columns"),
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


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ('{"log_prob": -1.0}\n{"log_p', "scores.jsonl:2: cut or damaged; delete the file"),
        ('{"log_prob": -1.0}\n', "scores.jsonl: cut or damaged, 1 line, not 2; delete the file"),
        ('{"log_prob": "x"}\n{}\n', "scores.jsonl:1: cut or damaged"),
        ('{"log_prob": -1.0}\n{}\n', "scores.jsonl:2: cut or damaged"),
        ("[]\n[]\n", "scores.jsonl:1: cut or damaged"),
    ],
)
def test_scores_that_are_cut_are_one_line(tmp_path: Path, scores: str, message: str) -> None:
    (tmp_path / "scores.jsonl").write_text(scores)
    with pytest.raises(UserError, match=f"^{tmp_path}/{message}"):
        audit.read_scores(tmp_path / "scores.jsonl", 2)


def test_scores_are_numbers_or_null(tmp_path: Path) -> None:
    (tmp_path / "scores.jsonl").write_text('{"log_prob": -1.5}\n{"log_prob": null}\n')
    assert audit.read_scores(tmp_path / "scores.jsonl", 2) == [-1.5, None]
