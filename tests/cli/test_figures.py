"""`onmt-entmax figures`: every figure is written, and shows what the model says."""

import json
import math
from pathlib import Path

import pytest

from onmt_entmax.cli import figures
from onmt_entmax.experiment.matrix import read_matrices
from onmt_entmax.experiment.measures import EVALUATIONS
from onmt_entmax.figures import runs as figures_runs
from onmt_entmax.figures import sentence as figures_sentence
from onmt_entmax.figures import style
from onmt_entmax.report.lattice import Branch, Node
from tests.cli.test_sparsity import write_model
from tests.commands import ROOT, succeed
from tests.ended import ended, refused
from tests.toy import write_config


def written(folder: Path, name: str) -> None:
    """Both files of a figure are there, and nothing else of that name."""
    assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(folder.glob(f"*{name}*"))) == 2


def test_attention_and_forced_decoding_are_drawn(tmp_path) -> None:
    write_model(tmp_path / "model", 1.5)
    arguments = ["onmt_entmax", "figures", "attention", tmp_path / "model", "--source", "a b c"]
    assert "one.pdf" in succeed(*arguments, "--output", tmp_path / "one.png")
    written(tmp_path, "one")
    source = ["--source", "a b c", "--target", "u $v$ w"]
    for command in ("attention", "forced"):
        output = ["--output", str(tmp_path / command)]
        assert ended(figures.main, [command, str(tmp_path / "model"), *source, *output]) == 0
        written(tmp_path, command)


def test_the_same_command_writes_the_same_files(tmp_path) -> None:
    write_model(tmp_path / "model", 1.5)
    source = ["--source", "a b", "--target", "u v"]
    for name in ("one", "two"):
        output = ["--output", str(tmp_path / name)]
        assert ended(figures.main, ["forced", str(tmp_path / "model"), *source, *output]) == 0
    for ending in ("pdf", "png"):
        assert len({(tmp_path / f"{n}.{ending}").read_bytes() for n in ("one", "two")}) == 1


def drawn(*nodes: Node) -> figures_sentence.Sentence:
    names = ("<unk>", "<blank>", "<s>", "</s>", "u", "v")
    target = tuple(names[next(b.token for b in node.branches if b.kept)] for node in nodes)
    return figures_sentence.Sentence(("a", "b"), target, nodes, names)


def node(*branches: Branch, others: float = 0.0, count: int = 0, attention=(1.0, 0.0)) -> Node:
    return Node((), 0.0, branches, others, count, attention)


def test_columns_join_what_is_certain_and_show_what_is_excluded() -> None:
    half = math.log(0.5)
    choice = node(Branch(5, half), Branch(4, half - 1e-9, child=1), others=0.0004, count=2)
    certain = node(Branch(4, 0.0, child=1))
    excluded = node(Branch(5, 0.0), Branch(4, -math.inf, child=1))
    end = node(Branch(3, 0.0, hypothesis=0))
    columns = figures_sentence.columns_of(drawn(choice, certain, certain, excluded, end))
    assert [column.certain for column in columns] == [False, True, False, True]
    entries = columns[0].entries
    assert [(e.text, e.share, e.gold) for e in entries] == [
        ("v", "50.0%", False),
        ("u", "50.0%", True),
        ("2 more", "<0.1%", False),
    ]
    assert [e.text for e in columns[1].entries] == ["u u"]
    assert [(e.text, e.excluded, e.share) for e in columns[2].entries] == [
        ("v", False, "100.0%"),
        ("u", True, "0"),
    ]
    assert [e.text for e in columns[3].entries] == ["</s>"]


def test_zero_attention_is_white_and_nothing_else_is() -> None:
    style.prepare()
    picture = figures_sentence.draw_attention(
        drawn(
            node(Branch(4, 0.0, child=1), attention=(1e-7, 1.0)),
            node(Branch(3, 0.0, hypothesis=0), attention=(1.0, 0.0)),
        )
    )
    axis = picture.axes[0]
    shown = axis.images[0].get_array()
    assert shown.mask.tolist() == [[False, False], [False, True]]
    outlined = {(patch.get_x() + 0.5, patch.get_y() + 0.5) for patch in axis.patches}
    assert outlined == {(0, 0), (1, 0), (0, 1)}
    palest = axis.images[0].cmap(0.0)[:3]
    assert min(palest) < 0.9, "the palest colour is no white"


def write_sweep(folder: Path) -> None:
    for cell, attention, output, bleu in (
        ("a", 1.0, 1.5, 30.0),
        ("b", 1.5, 1.5, 32.0),
        ("c", 1.5, 2.0, 28.0),
    ):
        for seed in (1, 2):
            place = folder / cell / f"seed-{seed}"
            place.mkdir(parents=True)
            content = {"attention_alpha": attention, "output_alpha": output, "bleu": bleu + seed}
            (place / "figures.json").write_text(json.dumps(content))
    (folder / "a" / "ensemble").mkdir()
    (folder / "a" / "ensemble" / "figures.json").write_text("{}")


def test_a_sweep_is_read_from_an_experiment_and_from_csv(tmp_path) -> None:
    write_sweep(tmp_path / "sweep")
    points, label = figures_runs.read_points([tmp_path / "sweep"], None)
    assert (len(points), label) == (6, "BLEU")
    assert figures_runs.Point(1.0, 1.5, 31.0) in points
    table = tmp_path / "table.csv"
    rows = [f"{p.attention},{p.output},{p.value}" for p in points]
    table.write_text("\n".join(["attention_alpha,output_alpha,bleu", *rows]) + "\n")
    assert figures_runs.read_points([table], "bleu")[0] == points
    table.write_text(table.read_text(), encoding="utf-8-sig")  # as spreadsheets write it
    assert figures_runs.read_points([table], "bleu")[0] == points
    style.prepare()
    picture = figures_runs.draw_sweep(points, label, 1.5)
    lines = [axis.lines[0].get_xydata().tolist() for axis in picture.axes]
    assert lines == [[[1.0, 31.5], [1.5, 33.5]], [[1.5, 33.5], [2.0, 29.5]]]
    arguments = ["sweep", str(tmp_path / "sweep"), "--output", str(tmp_path / "figure")]
    assert ended(figures.main, arguments) == 0
    written(tmp_path, "figure")


def test_the_sweep_of_the_paper_is_two_lines_through_the_alphas() -> None:
    path = ROOT / "config" / "mt" / "sweep" / "multi30k.yaml"
    cells = read_matrices(path, EVALUATIONS, [])[0].cells
    alphas = [
        (cell.training["global_attention_alpha"], cell.training["generator_alpha"])
        for cell in cells
    ]
    steps = (1, 1.25, 1.5, 1.75, 2, 2.25)
    assert len(alphas) == 11
    assert set(alphas) == {(a, 1.5) for a in steps} | {(1.5, a) for a in steps}
    for cell in cells:
        functions = ("global_attention_function", "generator_function")
        assert {cell.training[name] for name in functions} == {"entmax"}


def test_runs_are_drawn_over_time_and_as_points_of_a_sweep(tmp_path) -> None:
    config = write_config(tmp_path, train_steps=20)
    succeed("train.py", "-config", config)
    run = tmp_path / "run"
    curves, label = figures_runs.read_curves([run, run], ["one", "two"], None)
    assert [curve.name for curve in curves] == ["one", "two"]
    assert len(curves[0].values) == 2
    assert label == "token accuracy (%)"
    points, _ = figures_runs.read_points([run], "token_accuracy")
    assert (points[0].attention, points[0].output) == (1.5, 1.5)
    assert points[0].value in curves[0].values
    output = ["--output", str(tmp_path / "time")]
    assert ended(figures.main, ["time", str(run), "--names", "toy", *output]) == 0
    written(tmp_path, "time")


def test_bad_input_is_one_line(tmp_path) -> None:
    write_model(tmp_path / "model", 1.5)
    write_sweep(tmp_path / "sweep")
    (tmp_path / "bad.csv").write_text("attention_alpha,output_alpha,bleu\n1,1.5,much\n")
    model, output = str(tmp_path / "model"), ["--output", str(tmp_path / "out")]

    def told(*arguments: object) -> str:
        return refused(figures.main, [*arguments, *output])

    assert "no word" in told("attention", model, "--source", " ")
    for empty, said in (("", "--output: is empty"), (".", "--output .: names no file")):
        assert said in refused(
            figures.main, ["attention", model, "--source", "a", "--output", empty]
        )
    assert "not UTF-8 text" in told("attention", model, "--source", "\udcff")
    assert "not UTF-8 text" in told("time", str(tmp_path / "run"), "--label", "\udcff")
    assert "no such model folder" in told("attention", "absent", "--source", "a")
    sweep = str(tmp_path / "sweep")
    assert "no accuracy in it" in told("sweep", sweep, "--measure", "accuracy")
    assert "attention alpha or output alpha 3" in told("sweep", sweep, "--fixed", "3")
    assert "as numbers" in told("sweep", str(tmp_path / "bad.csv"))
    assert "no figures.json" in told("sweep", str(tmp_path / "nothing"))
    assert told("time", sweep, "--names", "a", "b").endswith("for 1 run")
    assert "No such file" in told("time", sweep)
    assert not (tmp_path / "out.pdf").exists()


def test_letters_from_right_to_left_where_matplotlib_does_not_order_them(monkeypatch) -> None:
    monkeypatch.setattr("matplotlib.__version__", "3.10.8")
    alef, bet, qamats, dagesh = "\u05d0", "\u05d1", "\u05b8", "\u05bc"
    for token, seen in {
        alef + bet: bet + alef,
        alef + "12": "12" + alef,
        f"{alef}abc{bet}": f"{bet}abc{alef}",
        bet + dagesh + qamats + alef: alef + bet + dagesh + qamats,
        qamats + alef: alef + qamats,
        "\u0628\u0661\u0662": "\u0661\u0662\u0628",  # an Arabic letter and Arabic digits
        "1a": "1a",
    }.items():
        assert style.readable(token) == seen
    monkeypatch.setattr("matplotlib.__version__", "3.11.0")
    assert style.readable(alef + "12") == alef + "12"


def test_letters_that_no_font_has_are_told_once(capsys) -> None:
    style.prepare(["plain", "ünïcode", "\U000f0000\U000f0001"])
    assert "no font here has 2 characters" in capsys.readouterr().err
    style.prepare(["plain", "￭en"])
    assert capsys.readouterr().err == ""
    assert style.readable("en￭") == "en▪"
    assert style.readable("x" * 40) == "x" * 17 + "…"


@pytest.mark.parametrize("kind", ["attention", "forced"])
def test_tokens_outside_the_vocabularies_are_told(tmp_path, capsys, kind) -> None:
    write_model(tmp_path / "model", 1.5)
    texts = ["--source", "a never", "--target", "seen"]
    output = ["--output", str(tmp_path / "out")]
    assert ended(figures.main, [kind, str(tmp_path / "model"), *texts, *output]) == 0
    source, target = capsys.readouterr().err.splitlines()
    assert source.startswith("warning: 1 of 2 source tokens")
    assert "'never'" in source
    assert target.startswith("warning: 1 of 1 target token ")
    assert "'seen'" in target
