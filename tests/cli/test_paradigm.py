"""onmt-entmax paradigm: every form of every cell, tables, and lists for other programs."""

import json
import math
import shutil
import subprocess
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import read_cells
from onmt_entmax.cli import export, paradigm, serve, verify
from onmt_entmax.data.inflection import cells_text, count_cells
from onmt_entmax.files.checksums import write_list
from onmt_entmax.inflector import Form, Inflector
from onmt_entmax.search import SearchConfig, SearchTask
from tests.commands import succeed
from tests.ended import ended, refused
from tests.inflection_models import write_model

CELLS = {"german": {("V",): 3, ("V", "PST"): 2}, "english": {("V", "PST"): 1, ("N", "PL"): 1}}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "model", 4, end=4)  # a handful of forms


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cells") / "cells.tsv"
    path.write_text(cells_text(CELLS), encoding="utf-8")
    return path


def run(model: Path, cells: Path, *words: object) -> int:
    return ended(paradigm.main, [*map(str, words), "--model", str(model), "--cells", str(cells)])


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
    assert paradigm.cells_of(turned, "x", "V") == [("V", "A", "B")]


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
    ],
)  # fmt: skip
def test_rows_and_columns_are_those_of_a_grammar(model, tags, titles, rows, columns) -> None:
    inflector = Inflector([model])
    cells = [inflector.inflect("german", "ab", f"V;{each}") for each in tags]
    for cell, each in zip(cells, tags, strict=True):
        object.__setattr__(cell.question, "tags", tuple(each.split(";")))
    tables = paradigm.sections(cells)
    assert [table.title for table in tables] == titles
    assert (tables[0].rows, tables[0].columns) == (rows, columns)
    assert sum(len(table.cells) for table in tables) == len(tags)


def test_a_table_fits_a_terminal(model, cells, tmp_path, monkeypatch, capsys) -> None:
    answer = Inflector([model], 0).inflect("german", "ab", "V;PST")
    object.__setattr__(answer.question, "tags", ("N", "NOM", "SG"))
    plain = paradigm.as_text([answer]).splitlines()
    least = max(len(f"  nominative  {form.text} 100% /") for form in answer.forms)
    for width in (least, len(plain[2]) - 1):
        lines = paradigm.as_text([answer], width).splitlines()
        assert len(plain) < len(lines)
        assert max(map(len, lines)) <= width
        assert " ".join(lines).split() == " ".join(plain).split()
    assert paradigm.as_text([answer], len(plain[2])).splitlines() == plain
    monkeypatch.setenv("COLUMNS", "1")  # a file does not depend on it
    assert run(model, cells, "german", "ab", "--output", tmp_path / "table") == 0
    assert run(model, cells, "german", "ab") == 0
    assert len(capsys.readouterr().out) > len((tmp_path / "table").read_text("utf-8"))


def test_word_lists_hold_all_forms_and_say_so(model, cells, tmp_path, capsys) -> None:
    (tmp_path / "v.dic").write_text("ab\nb a\tV\n", encoding="utf-8")
    words = ("german", "--lemmas", tmp_path / "v.dic", "--budget", 2000)
    expected, in_cell = defaultdict(float), {}
    for lemma in ("ab", "b a"):
        for tags in ("V", "V;PST"):
            for form in Inflector([model], 0).inflect("german", lemma, tags).forms:
                expected[form.text] += form.prob
                in_cell[lemma, tags, form.text] = form.prob

    def written(kind: str, name: str, *more: object) -> tuple[list[str], str]:
        assert run(model, cells, *words, "--format", kind, "--output", tmp_path / "w", *more) == 0
        return (tmp_path / name).read_text("utf-8").splitlines(), capsys.readouterr().out

    lines, said = written("hunspell", "w.dic")
    assert (int(lines[0]), set(lines[1:])) == (len(expected), set(expected))
    # Sequences with symbols that are no characters, which a search excludes, have the rest.
    assert said.startswith("complete: mass 0.9")
    lines, cut = written("hunspell", "w.dic", "--least", 0.2)
    assert set(lines[1:]) == {form for (*_, form), prob in in_cell.items() if prob >= 0.2}
    assert cut.startswith("incomplete: mass at least 0.")
    lines, _ = written("keyman", "w")
    assert lines.pop() == f"# {said.strip()}"
    for word, weight, _ in (line.split("\t") for line in lines):
        assert int(weight) == max(round(1000 * expected[word]), 1)
    lines, _ = written("att", "w")
    assert read_att(lines) == pytest.approx(in_cell, rel=1e-4)
    assert run(model, cells, *words, "--format", "hunspell", "--output", tmp_path / "v") == 2
    assert run(model, cells, *words) == 0
    assert "\n\nb a\n\nverb" in capsys.readouterr().out


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
        (["german", "ab", "--least", "0.1"], "--least goes with --format hunspell, keyman, att"),
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
    ("kind", "lost"),
    [("hunspell", ["a\tb", "a\u2028"]), ("keyman", ["a\tb", "a\u2028", "#b"]), ("att", [])],
)
def test_forms_that_a_line_of_a_format_cannot_hold_are_left_out(model, kind, lost) -> None:
    """A tab divides columns, and a line of Keyman that begins with # is a comment."""
    given = ("a", "a\tb", "a\u2028", "#b", "b#")
    forms = tuple(Form(text, math.log(0.2), 0.2) for text in given)
    answer = Inflector([model], 0).inflect("german", "ab", "V")
    certificate = replace(answer.certificate, level="exhaustive")
    cell = replace(answer, forms=forms, certificate=certificate, only=False, warnings=())
    words = paradigm.WordList(0.0, kind)
    words.add(cell)
    assert list(words.unfit) == lost
    assert list(words.weights) == [text for text in given if text not in lost]
    assert words.completeness().startswith("incomplete: " if lost else "complete: ")
    if kind == "att":
        text = words.texts(kind, Path("w"))[Path("w")]
        assert {form for *_, form in read_att(text.splitlines())} == {
            "a", "aU+0009b", "aU+2028", "#b", "b#",
        }  # fmt: skip


def test_forms_that_are_left_out_are_named(model, cells, tmp_path, monkeypatch, capsys) -> None:
    words = ("german", "ab", "--pos", "V", "--format", "keyman", "--output", tmp_path / "w")
    assert run(model, cells, *words) == 0
    assert "left out" not in capsys.readouterr().err
    monkeypatch.setattr(paradigm.WordList, "_fits", lambda _, word: word != "a")
    assert run(model, cells, *words) == 0
    said = "warning: left out, as a line of --format keyman cannot hold them: 'a'"
    assert said in capsys.readouterr().err


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
    answering = serve.Answering(folder, SearchTask(SearchConfig()))
    assert answering.description()["pos"]["english"] == {"V": 1, "N": 1}
    record = answering.answer({"language": "german", "lemma": "ab", "pos": "V"})
    for cell in record["sections"][0]["cells"]:
        assert all(f"<bdi>{each['form']}</bdi>" in page for each in cell["forms"])
