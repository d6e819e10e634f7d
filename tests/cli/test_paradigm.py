"""onmt-entmax paradigm: every form of every cell, tables, and lists for other programs."""

import csv
import json
import math
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax.answering import Answering
from onmt_entmax.checkpoint import read_cells
from onmt_entmax.cli import export, inflect, paradigm, verify
from onmt_entmax.files.checksums import write_list
from onmt_entmax.inflector import Form, Inflection, Inflector, Question
from onmt_entmax.paradigm import (
    WordList,
    as_csv,
    as_html,
    as_text,
    cell_text,
    cells_of,
    sections,
)
from onmt_entmax.search import SearchConfig, SearchTask
from onmt_entmax.search.certificate import Certificate
from onmt_entmax.strings.cells import cells_text, count_cells
from tests.commands import succeed
from tests.ended import ended, refused
from tests.inflection_models import VOCABULARIES, write_model
from tests.models import words

CELLS = {"german": {("V",): 3, ("V", "PST"): 2}, "english": {("V", "PST"): 1, ("N", "PL"): 1}}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "model", 4, end=4)  # a handful of forms


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cells") / "cells.tsv"
    path.write_text(cells_text(CELLS), encoding="utf-8")
    return path


def run(model: Path, cells: Path, *arguments: object) -> int:
    given = [*map(str, arguments), "--model", str(model), "--cells", str(cells)]
    return ended(paradigm.main, given)


def test_cells_are_counted_and_read_back(cells: Path) -> None:
    sources = [
        " ".join(["lang=" + language, *("+" + tag for tag in tags), "a"])
        for language, some in CELLS.items()
        for tags, number in some.items()
        for _ in range(number)
    ]
    assert count_cells(["", "a b", "lang=german a", *sources]) == CELLS
    assert read_cells(cells.parent) == CELLS
    assert read_cells(cells.parent / "none") == {}
    turned = {"x": {("V", "A", "B"): 2, ("V", "B", "A"): 1}}
    assert cells_of(turned, "x", "V") == [("V", "A", "B")]


def test_training_keeps_the_cells_for_every_later_command(tmp_path) -> None:
    data, model, clean = tmp_path / "data", tmp_path / "data/model", tmp_path / "clean"
    rows = ["ab\tabx\tV;PST", "b\tbx\tV;PST", "a\ta\tV;NOM(3,SG)", "a\ta\tN"]
    for part in ("train", "dev"):
        (tmp_path / f"x-{part}").write_text("\n".join(rows) + "\n", encoding="utf-8")
    succeed("onmt_entmax", "prepare", "sigmorphon", "--data", tmp_path, "--out", data)
    small = ("-train_steps", 2, "-rnn_size", 8, "-word_vec_size", 8, "-valid_steps", 2)
    train = ("train", "-config", data / "train.yaml", *small)
    succeed("onmt_entmax", *train, "-save_checkpoint_steps", 2)
    expected = {("V", "PST"): 2, ("N",): 1, ("V", "NOM(3,SG)"): 1}
    assert read_cells(model / "step_2") == {"x": expected}
    assert ended(export.main, [str(model), str(clean)]) == 0
    assert ended(verify.main, [str(clean), str(model)]) == 0
    for folder in (model, clean):
        words = ("paradigm", "x", "ab", "--pos", "V", "--format", "json", "--model", folder)
        shown = json.loads(succeed("onmt_entmax", *words))
        tags = {cell["tags"] for section in shown["sections"] for cell in section["cells"]}
        assert tags == {"V;PST", "V;NOM(3,SG)"}
    # Cells of an earlier training stay; those counted again are not added to.
    for each in (data / "train.src", data / "dev.src"):
        each.write_text(each.read_text().replace("+N ", "+PRS ").replace("lang=x", "lang=y", 1))
    succeed("onmt_entmax", *train, "-train_steps", 4, "-train_from", model)
    again = read_cells(model / "step_4")
    assert again["x"] == {**expected, ("V", "PST"): 1, ("PRS",): 1}
    # A changed file is refused.
    with open(clean / "cells.tsv", "a", encoding="utf-8") as file:
        file.write("x\tV;FUT\t1\n")
    words = ["x", "ab", "--pos", "V", "--model", clean]
    assert "cells.tsv: its content is not what was written" in refused(paradigm.main, words)


def test_a_table_has_every_form_of_inflect(model, cells, capsys) -> None:
    assert run(model, cells, "german", "ab", "--format", "json", "--budget", 1000) == 0
    [section] = json.loads(capsys.readouterr().out)["sections"]
    assert {cell["tags"] for cell in section["cells"]} == {"V", "V;PST"}
    everything = Inflector([model], 0)
    for cell in section["cells"]:
        expected = everything.inflect("german", "ab", cell["tags"])
        assert [each["form"] for each in cell["forms"]] == [form.text for form in expected.forms]
        mass = sum(each["prob"] for each in cell["forms"])
        assert (cell["certificate"], mass) == (
            "exhaustive", pytest.approx(expected.certificate.mass, abs=1e-5)
        )  # fmt: skip
    # One step of an enumeration finds less than a beam.
    beam, both = (Inflector([model], 0, 2, budget=n) for n in (0, 1))
    assert beam.inflect("german", "b a", "V;PST") == both.inflect("german", "b a", "V;PST")


@pytest.mark.parametrize(
    ("tags", "titles", "rows", "columns"),
    [
        (
            ["N;NOM;SG", "N;NOM;PL", "N;ACC;SG", "N;NOM;SG;PSS1S"],
            ["noun", "noun, my"], ("nominative", "accusative"), ("singular", "plural"),
        ),
        (
            ["V;IND;PRS;1;SG", "V;IND;PST;1;SG", "V;NFIN"],
            ["verb", "verb, indicative"], ("non-finite",), ("",),
        ),
        # A participle is no verb besides.
        (
            ["V.PTCP;PST", "V.PTCP;PRS"],
            ["participle"], ("present", "past"), ("",),
        ),
        # Two tags of the same name are two rows.
        (["N;INS;SG", "N;INST;SG"], ["noun"], ("instrumental", "instrumental"), ("singular",)),
        # Layered tags, as of SIGMORPHON 2023, have the same grids.
        (
            ["N;NOM(SG)", "N;NOM(PL)", "N;ACC(SG)"],
            ["noun"], ("nominative", "accusative"), ("singular", "plural"),
        ),
        (
            ["V;PRS;NOM(1,SG)", "V;PST;NOM(1,SG)", "V;PST;NOM(2,PL)"],
            ["verb"], ("singular first", "plural second"), ("present", "past"),
        ),
        (
            ["V;PST;ACC(2,SG);NOM(1,SG)", "V;PST;NOM(1,SG);ACC(3,PL)"],
            ["verb, accusative (second singular)", "verb, accusative (third plural)"],
            ("singular first",), ("past",),
        ),
        (["N;SG;PSS(3,SG)"], ["noun, possessor (third singular)"], ("",), ("singular",)),
        # No cell takes the place of another one.
        (["N;NOM(SG)", "N;NOM;SG"], ["noun", "noun, N;NOM;SG"], ("nominative",), ("singular",)),
    ],
)  # fmt: skip
def test_rows_and_columns_are_those_of_a_grammar(model, tags, titles, rows, columns) -> None:
    inflector = Inflector([model])
    cells = [inflector.inflect("german", "ab", f"V;{each}") for each in tags]
    for cell, each in zip(cells, tags, strict=True):
        object.__setattr__(cell.question, "tags", tuple(each.split(";")))
    tables = sections(cells)
    assert [table.title for table in tables] == titles
    assert (tables[0].rows, tables[0].columns) == (rows, columns)
    assert sum(len(table.cells) for table in tables) == len(tags)


def test_a_table_fits_a_terminal(model, cells, tmp_path, monkeypatch, capsys) -> None:
    answer = Inflector([model], 0).inflect("german", "ab", "V;PST")
    object.__setattr__(answer.question, "tags", ("N", "NOM", "SG"))
    plain = as_text([answer]).splitlines()
    least = max(len(f"  nominative  {form.text} 100% /") for form in answer.forms)
    for width in (least, len(plain[2]) - 1):
        lines = as_text([answer], width).splitlines()
        assert len(plain) < len(lines)
        assert max(map(len, lines)) <= width
        assert " ".join(lines).split() == " ".join(plain).split()
    assert as_text([answer], len(plain[2])).splitlines() == plain
    monkeypatch.setenv("COLUMNS", "1")  # a file does not depend on it
    assert run(model, cells, "german", "ab", "--output", tmp_path / "table") == 0
    assert run(model, cells, "german", "ab") == 0
    assert len(capsys.readouterr().out) > len((tmp_path / "table").read_text("utf-8"))


def test_word_lists_hold_all_forms_and_say_so(model, cells, tmp_path, capsys) -> None:
    (tmp_path / "v.dic").write_text("ab\nb a\tV\n", encoding="utf-8")
    asked = ("german", "--lemmas", tmp_path / "v.dic", "--budget", 2000)
    expected, in_cell = defaultdict(float), {}
    for lemma in ("ab", "b a"):
        for tags in ("V", "V;PST"):
            for form in Inflector([model], 0).inflect("german", lemma, tags).forms:
                expected[form.text] += form.prob
                in_cell[lemma, tags, form.text] = form.prob

    def written(kind: str, name: str, *more: object) -> tuple[list[str], str]:
        assert run(model, cells, *asked, "--format", kind, "--output", tmp_path / "w", *more) == 0
        return (tmp_path / name).read_text("utf-8").splitlines(), capsys.readouterr().out

    words_alone = {form for form in expected if form.split() == [form]}
    lines, said = written("hunspell", "w.dic")
    assert (int(lines[0]), set(lines[1:])) == (len(words_alone), words_alone)
    phrases = (tmp_path / "w.phrases.txt").read_text("utf-8").splitlines()
    assert len(phrases) == len(expected) - len(words_alone) > 1
    assert set(phrases) == set(expected) - words_alone
    apart = (
        f"{len(phrases)} of {len(expected)} forms, which Hunspell cannot read as a word, are in "
    )
    assert said.startswith("incomplete: mass at least 0.")
    assert said.endswith(f" in each cell; {apart}.phrases.txt\n")
    lines, cut = written("hunspell", "w.dic", "--least", 0.2)
    likely = {form for (*_, form), prob in in_cell.items() if prob >= 0.2}
    assert set(lines[1:]) == likely & words_alone
    assert cut.startswith("incomplete: mass at least 0.")
    lines, said = written("keyman", "w")
    assert lines.pop() == f"# {said.strip()}"
    assert {line.split("\t")[0] for line in lines} == set(expected) - {""}
    for word, weight, _ in (line.split("\t") for line in lines):
        assert int(weight) == max(round(1000 * expected[word]), 1)
    lines, said = written("att", "w")
    assert read_att(lines) == pytest.approx(in_cell, rel=1e-4)
    # Sequences with symbols that are no characters, which a search excludes, have the rest.
    assert said.startswith("complete: mass 0.9")
    assert run(model, cells, *asked, "--format", "hunspell", "--output", tmp_path / "v") == 2
    assert run(model, cells, *asked) == 0
    assert "\n\nb a\n\nverb" in capsys.readouterr().out


class TestLeast:
    """Forms below `--least` are not shown, but counted and said, in every format."""

    @pytest.fixture(scope="class")
    def left_out(self, model) -> dict[str, int]:
        """For each cell the number of forms below 0.2."""
        found = {}
        for tags in ("V", "V;PST"):
            answer = Inflector([model], 0).inflect("german", "ab", tags)
            assert answer.level == "exhaustive"
            found[tags] = sum(form.prob < 0.2 for form in answer.forms)
        assert min(found.values()) > 0
        return found

    @pytest.fixture
    def written(self, model, cells, tmp_path, capsys):
        def written(kind: str, least: float = 0.2) -> tuple[str, str]:
            words = ("german", "ab", "--format", kind, "--budget", 2000, "--output", tmp_path / "w")
            assert run(model, cells, *words, *(("--least", least) if least else ())) == 0
            captured = capsys.readouterr()
            text = (tmp_path / "w").read_text("utf-8") if (tmp_path / "w").exists() else ""
            return text, captured.out + captured.err

        return written

    def test_tables_show_and_say_it(self, written, left_out) -> None:
        said = f"{sum(left_out.values())} forms below 0.2 left out"
        table, told = written("table")
        assert table.rstrip().splitlines()[-1] == said
        assert f"note: {said}" in told
        assert table.count(" ...") == 2  # one a cell
        assert "<1%" not in table
        page, told = written("html")
        assert f'<p class="muted">{said}</p>' in page
        assert page.count("</span> ...</td>") == 2
        assert "all forms of probability 0.2 or more" in page
        for number in left_out.values():
            assert f"; {number} forms below 0.2 left out" in page
        assert f"note: {said}" in told

    def test_records_count_it_by_cell(self, written, left_out) -> None:
        text, told = written("json")
        content = json.loads(text)
        assert content["least"] == 0.2
        cells = [cell for section in content["sections"] for cell in section["cells"]]
        assert {cell["tags"]: cell["left_out"] for cell in cells} == left_out
        assert all(form["prob"] >= 0.2 for cell in cells for form in cell["forms"])
        assert "left out" in told
        rows = list(csv.DictReader(written("csv")[0].splitlines()))
        assert {row["tags"]: int(row["left_out"]) for row in rows} == left_out

    def test_no_list_that_left_forms_out_is_complete(self, written, left_out) -> None:
        assert written("att", 0)[1].startswith("complete: ")
        said = f"{sum(left_out.values())} forms below 0.2 left out in 2 of 2 cells"
        assert f"in each cell; {said}\n" in written("att")[1]
        keyman, told = written("keyman")
        assert said in keyman.splitlines()[-1]
        assert said in told

    def test_a_table_that_is_printed_says_it_once(self, model, cells, capsys) -> None:
        assert run(model, cells, "german", "ab", "--least", 0.2) == 0
        captured = capsys.readouterr()
        assert captured.out.count("below 0.2 left out") == 1
        assert "left out" not in captured.err

    def test_a_cell_may_lose_its_only_form(self) -> None:
        """Rounding may leave it just below 1."""
        form = Form("ab", math.log(0.999), 0.999)
        cell = Inflection(Question("x", "a", ("N",)), (form,), PROOF, (), True).at_least(1)
        assert cell_text(cell) == "(none) ..."
        assert "(none) ..." in as_html([[cell]])
        assert as_csv([cell]) == "x,a,N,,,only,,1\n"


def read_att(lines: list[str]) -> dict[tuple[str, str, str], float]:
    """Read an automaton in AT&T's format: the probability of each lemma, tags and form."""
    ends = {int(line) for line in lines if "\t" not in line}
    arcs = defaultdict(list)
    for source, target, upper, lower, *weight in (x.split("\t") for x in lines if "\t" in x):
        arcs[int(source)].append((int(target), upper, lower, float(weight[0]) if weight else 0.0))
    paths, stack = {}, [(0, "", "", 0.0)]
    while stack:
        state, left, right, weight = stack.pop()
        if state in ends:
            lemma, *tags = left.split("+")
            paths[lemma, ";".join(tags), right] = math.exp(-weight)
        for target, upper, lower, more in arcs[state]:
            symbols = {"@0@": "", "@_SPACE_@": " "}
            sides = left + symbols.get(upper, upper), right + symbols.get(lower, lower)
            stack.append((target, *sides, weight + more))
    return paths


PROOF = Certificate("exhaustive", -math.inf, math.inf, 9, 1.0, 0, 0, 0.0, -math.inf, True)
KINDS = ("table", "csv", "json", "html", "hunspell", "keyman", "att")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("lemma", "warnings"),
    [
        ("ab", []),
        ("ac", ["unknown character c"]),
        (
            "ba\u0308",
            [
                "unknown character U+0308",
                "the lemma is not in Unicode's normal form NFC, in which training has ä: normalise "
                "it",
            ],
        ),
    ],
)
def test_a_lemma_that_the_model_misreads_is_warned_of(
    tmp_path, capsys, cells, kind, lemma, warnings
) -> None:
    """In every format; and no list is complete then."""
    source = (*VOCABULARIES.source.tokens[2:], "ä")
    known = words(source, "abä")
    model = write_model(tmp_path / "model", 4, known, end=4)
    output = tmp_path / "out"
    more = ("--format", kind, "--output", output, "--budget", 1000)
    assert run(model, cells, "german", lemma, *more) == 0
    captured = capsys.readouterr()
    said = [f"warning: {lemma}: {text} (2 of 2 cells)" for text in warnings]
    assert captured.err.splitlines() == said
    if kind in ("hunspell", "keyman", "att"):
        doubts = "there are warnings in 2 of 2 cells"
        assert (doubts in captured.out) == bool(warnings)
        # One form is empty, which is no word of the others.
        assert captured.out.startswith("complete: ") == (not warnings and kind == "att")
        comment = output.with_name("out.aff") if kind == "hunspell" else output
        assert kind == "att" or captured.out in comment.read_text("utf-8")


def test_a_dictionary_names_the_characters_of_words_that_are_no_letters() -> None:
    """Else Hunspell divides words there; phrases are apart, and so are forms that are no words."""
    found = WordList()
    forms = ["м’яч", "a-b", "4a/b", "x\u0301", "of it", " led", "", "#a", "a\tb"]
    listed = tuple(Form(text, math.log(1 / 9), 1 / 9) for text in forms)
    found.add(Inflection(Question("x", "m\tn", ("N",)), listed, PROOF, (), False))
    dictionary = found.texts("hunspell", Path("o"))
    assert [path.name for path in dictionary] == ["o.dic", "o.aff", "o.phrases.txt"]
    entries, affixes, phrases = (text.splitlines() for text in dictionary.values())
    assert entries == ["5", "#a", "4a\\/b", "a-b", "x\u0301", "м’яч"]
    assert affixes[1:] == ["SET UTF-8", "WORDCHARS #-/4\u0301’"]
    assert phrases == ["", " led", "a\\tb", "of it"]
    assert found.completeness("hunspell") == (
        "incomplete: mass at least 1.000000 in each cell; 4 of 9 forms, which Hunspell cannot read "
        "as a word, are in .phrases.txt"
    )
    [table] = found.texts("keyman", Path("o")).values()
    assert [line.split("\t") for line in table.splitlines()[:-1]] == [
        [word, "111", "m\\tn"] for word in sorted({*forms} - {"", "#a", "a\tb"})
    ]
    assert "3 of 9 forms, which Keyman cannot read as a word, are left out" in table
    assert found.completeness("att") == "complete: mass 1.000000"


def test_five_warnings_are_named_and_the_others_counted() -> None:
    doubts = paradigm.Doubts()
    for number in range(9):
        cell = Inflection(
            Question("x", f"w{number}", ("N",)), (), PROOF, ("a", f"b{number}"), False
        )
        doubts.add(cell)
    doubts.add(Inflection(Question("x", "w", ("N",)), (), PROOF, (), False))
    assert (doubts.cells, doubts.doubtful) == (10, 9)
    named = [f"w{number}: b{number} (1 of 10 cells)" for number in range(4)]
    assert doubts.lines() == ["w0: a (9 of 10 cells)", *named, "others (5 of 10 cells)"]


@pytest.mark.skipif(not shutil.which("hunspell"), reason="hunspell is not installed")
def test_hunspell_checks_words_with_it(model, cells, tmp_path) -> None:
    words = ("english", "ab", "--pos", "V", "--format", "hunspell", "--output", tmp_path / "w")
    assert run(model, cells, *words, "--least", 0.1) == 0
    listed = (tmp_path / "w.dic").read_text("utf-8").split("\n")[1:-1]
    command = ["hunspell", "-d", str(tmp_path / "w"), "-l"]
    asked = "\n".join([*listed, "bbabbabba"])
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["bbabbabba"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["english", "ab"], "--pos: english has N (1 cell), V (1 cell); choose one"),
        (["english", "ab", "--pos", "X"], "--pos: english has N (1 cell), V (1 cell); choose one"),
        (["dutch", "ab"], "no cells of the language 'dutch' are known"),
        (["German", "ab"], "no cells of the language 'German' are known; did you mean 'german'?"),
        (["german"], "name one lemma, or a file of them with --lemmas"),
        (["german", "ab", "--format", "att"], "--format att needs --output, a file"),
        (
            ["german", "a\tb", "--pos", "V", "--format", "keyman", "--output", "o"],
            "'a\\tb': a tab or line end, which a column cannot have",
        ),
        (
            ["german", "ab", "--format", "hunspell", "--output", "/dev/stdout"],
            "--output /dev/stdout: --format hunspell writes two files, OUTPUT.dic and OUTPUT.aff; "
            "name a file",
        ),
    ],
)
def test_mistakes_are_one_line(model, cells, capsys, words, message) -> None:
    assert run(model, cells, *words) == 2
    assert capsys.readouterr().err == f"paradigm.py: error: {message}\n"


def test_a_file_without_cells_is_named(model, tmp_path) -> None:
    (tmp_path / "cells").touch()
    words = ["german", "ab", "--model", model, "--cells", tmp_path / "cells"]
    assert "cells: has no cells; its lines are language, tags" in refused(paradigm.main, words)


@pytest.mark.parametrize(
    ("kind", "apart"),
    [("hunspell", ["a\tb", "a\u2028"]), ("keyman", ["#b", "a\tb", "a\u2028"]), ("att", [])],
)
def test_forms_that_a_line_of_a_format_cannot_hold_are_apart(model, kind, apart) -> None:
    """A tab divides columns, and a line of Keyman that begins with # is a comment."""
    given = ("a", "a\tb", "a\u2028", "#b", "b#")
    forms = tuple(Form(text, math.log(0.2), 0.2) for text in given)
    answer = Inflector([model], 0).inflect("german", "ab", "V")
    certificate = replace(answer.certificate, level="exhaustive")
    cell = replace(answer, forms=forms, certificate=certificate, only=False, warnings=())
    words = WordList()
    words.add(cell)
    assert words.apart(kind) == apart
    assert words.completeness(kind).startswith("incomplete: " if apart else "complete: ")
    if kind == "att":
        text = words.texts(kind, Path("w"))[Path("w")]
        assert {form for *_, form in read_att(text.splitlines())} == {
            "a", "aU+0009b", "aU+2028", "#b", "b#",
        }  # fmt: skip


def test_forms_that_are_left_out_are_named(model, cells, tmp_path, monkeypatch, capsys) -> None:
    words = ("german", "ab", "--pos", "V", "--format", "keyman", "--output", tmp_path / "w")
    assert run(model, cells, *words) == 0
    assert "left out" not in capsys.readouterr().err
    monkeypatch.setattr("onmt_entmax.paradigm.words._NO_ENTRY", re.compile("^a$"))
    assert run(model, cells, *words) == 0
    assert "warning: left out, as no line of the list can hold them: 'a'" in capsys.readouterr().err


def test_a_language_may_be_named_by_its_code(model, cells, capsys) -> None:
    assert run(model, cells, "german", "ab", "--pos", "V", "--format", "csv") == 0
    named = capsys.readouterr().out
    assert run(model, cells, "deu", "ab", "--pos", "V", "--format", "csv") == 0
    assert capsys.readouterr().out == named


def test_a_language_without_tags_has_no_paradigm(tmp_path) -> None:
    """That is said, with a command that inflects, and not an older version blamed."""
    model = write_model(tmp_path / "model", 4, words(("lang=ady", "a"), "a"), end=4)
    said = refused(paradigm.main, ["ady", "a", "--model", model])
    assert "training data for ady has no tags" in said
    command = shlex.split(said[said.index("onmt-entmax inflect") : said.index(" prints")])
    assert command[2:] == ["--model", str(model), "ady", "a", ""]
    assert ended(inflect.main, command[2:]) == 0


def test_a_model_without_cells_says_where_they_come_from(model, capsys) -> None:
    assert ended(paradigm.main, ["german", "ab", "--model", str(model)]) == 2
    assert "trained by a version that kept no cells.tsv" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["x\tV", "\tV\t1", "x y\tV\t1", "x\t\t1", "x\tV\t²", "x\tV\t1\t"])
def test_other_lines_are_no_cells(model, tmp_path, line) -> None:
    (tmp_path / "cells").write_text(f"german\tV\t1\n{line}\n", encoding="utf-8")
    words = ["german", "ab", "--model", model, "--cells", tmp_path / "cells"]
    assert "cells:2: expected language, tags and number" in refused(paradigm.main, words)


def test_the_page_and_serve_show_the_same_cells(model, cells, tmp_path, capsys) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    shutil.copy(cells, folder)
    write_list(folder)
    assert run(model, cells, "german", "ab", "--format", "html") == 0
    page = capsys.readouterr().out
    answering = Answering(folder, SearchTask(SearchConfig()))
    assert answering.description()["pos"]["english"] == {"V": 1, "N": 1}
    record = answering.answer({"language": "german", "source": "ab", "pos": "V"})
    for cell in record["sections"][0]["cells"]:
        assert all(f"<bdi>{each['form']}</bdi>" in page for each in cell["forms"])
