"""`tools.papers.figures`: every figure is written, and shows what the model says."""

import json
import math
import warnings
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.model import build_model
from onmt_entmax.report.lattice import Branch, Node
from onmt_entmax.translator import Translator
from tests.ended import ended, refused
from tests.models import small, words
from tools.papers import figures, pictures, sparsity

VOCABULARIES = words("abcd", "uvw")
SOURCES, TARGETS = ["a b c", "b", "c d a b"], ["u v", "w", "v v u"]


def write_model(folder: Path, alpha: float) -> Path:
    torch.manual_seed(0)
    config = small(generator_alpha=alpha, global_attention_alpha=alpha, param_init=1.0)
    save(folder, build_model(config, VOCABULARIES).eval(), config, VOCABULARIES, {})
    return folder


def draw(*arguments: object) -> None:
    """Draw a figure, whose files are there afterwards, twice the same."""
    for name in ("one", "two"):
        output = Path(f"{name}.png")
        assert ended(figures.main, [*map(str, arguments), "--output", str(output)]) == 0
    for ending, start in (("pdf", b"%PDF"), ("png", b"\x89PNG")):
        contents = [Path(f"{name}.{ending}").read_bytes() for name in ("one", "two")]
        assert contents[0].startswith(start)
        assert contents[0] == contents[1]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_run(run: Path) -> None:
    rows = [
        {"kind": kind, "step": step, "seconds": 60.0 * step, "loss": 2 / step, **more}
        for step in (1, 2, 3)
        for kind, more in (("train", {}), ("valid", {"token_accuracy": 30.0 * step}))
    ]
    write_model(run / "step_3", 1.5)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (run / "metrics.jsonl").write_text(text + '{"kind": "val')  # killed


def test_every_figure_is_drawn() -> None:
    model = write_model(Path("model"), 1.5)
    draw("attention", model, "--source", "a b c")
    for command in ("attention", "forced"):
        draw(command, model, "--source", "a b c", "--target", "u $v$ w")
    draw("mappings")
    write_run(Path("run"))
    draw("time", "run", "run", "--names", "x", "x")
    draw("curves", "run")
    draw("sweep", "run")


def node(*branches: Branch, others: float = 0.0, count: int = 0, attention=(1.0, 0.0)) -> Node:
    return Node((), 0.0, branches, others, count, attention)


def drawn(*nodes: Node) -> figures.Sentence:
    names = ("<unk>", "<blank>", "<s>", "</s>", "u", "v")
    target = tuple(names[next(b.token for b in node.branches if b.kept)] for node in nodes)
    return figures.Sentence(("a", "b"), target, nodes, names)


def test_columns_join_what_is_certain_and_show_what_is_excluded() -> None:
    half = math.log(0.5)
    choice = node(Branch(5, half), Branch(4, half - 1e-9, child=1), others=0.0004, count=2)
    certain = node(Branch(4, 0.0, child=1))
    excluded = node(Branch(5, 0.0), Branch(4, -math.inf, child=1))
    end = node(Branch(3, 0.0, hypothesis=0))
    columns = figures.columns_of(drawn(choice, certain, certain, excluded, end))
    assert [tuple(entry) for entry in columns[0]] == [
        ("v", "50.0%", False),
        ("u", "50.0%", True),
        ("2 more", "<0.1%", False),
    ]
    assert [tuple(entry) for entry in columns[1]] == [("u u", "", True)]
    assert [tuple(entry) for entry in columns[2]] == [("v", "100.0%", False), ("u", "0", True)]
    assert [entry.text for entry in columns[3]] == ["</s>"]


def test_zero_attention_is_white_and_nothing_else_is() -> None:
    pictures.prepare()
    first = node(Branch(4, 0.0, child=1), attention=(1e-7, 1.0))
    picture = figures.draw_attention(drawn(first, node(Branch(3, 0.0, hypothesis=0))))
    axis = picture.axes[0]
    assert axis.images[0].get_array().mask.tolist() == [[False, False], [False, True]]
    outlined = {(patch.get_x() + 0.5, patch.get_y() + 0.5) for patch in axis.patches}
    assert outlined == {(0, 0), (1, 0), (0, 1)}
    assert min(axis.images[0].cmap(0.0)[:3]) < 0.9  # the palest colour is no white


def test_a_sweep_is_the_mean_over_seeds_and_csv_is_the_same(folder: Path) -> None:
    lines = ["attention_alpha,output_alpha,bleu"]
    for attention, output, bleu in ((1.0, 1.5, 30.0), (1.5, 1.5, 32.0), (1.5, 2.0, 28.0)):
        for seed in (1, 2):
            place = folder / "sweep" / f"{attention}-{output}" / f"seed-{seed}"
            place.mkdir(parents=True)
            row = {"attention_alpha": attention, "output_alpha": output, "bleu": bleu + seed}
            (place / "figures.json").write_text(json.dumps(row))
            lines.append(f"{attention},{output},{bleu + seed}")
    Path("table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    pictures.prepare()
    for path in (Path("sweep"), Path("table.csv")):
        picture = figures.draw_sweep([path], None, None, 1.5)
        points = [axis.lines[0].get_xydata().tolist() for axis in picture.axes]
        assert points == [[[1.0, 31.5], [1.5, 33.5]], [[1.5, 33.5], [2.0, 29.5]]]
        assert picture.axes[0].get_ylabel() == "BLEU"
    Path("bad.csv").write_text("attention_alpha,output_alpha,bleu\n1,1.5,much\n")
    for words_, said in (
        ("sweep sweep --measure accuracy", "no accuracy in it"),
        ("sweep sweep --fixed 3", "no training with attention or output alpha 3"),
        ("sweep bad.csv", "as numbers"),
        ("time sweep", "No such file"),
        ("time sweep --names a b", "2 for 1 model"),
        ("attention absent --source a", "no such model folder"),
    ):
        assert said in refused(figures.main, [*words_.split(), "--output", "out"])
    assert not Path("out.pdf").exists()


def test_letters_that_no_font_has_are_told() -> None:
    with pytest.warns(UserWarning, match="no font here has 2 characters"):
        pictures.prepare(["plain", "ünïcode", "\U000f0000\U000f0001"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pictures.prepare(["plain", "￭en"])
    assert pictures.readable("en￭") == "en▪"
    assert pictures.readable("x" * 40) == "x" * 17 + "…"


@pytest.fixture
def files() -> list[str]:
    for name, lines in (("src", SOURCES), ("tgt", TARGETS)):
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    return ["--source", "src", "--target", "tgt"]


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_nonzeros_are_those_of_the_distributions(alpha: float, files: list[str], capsys) -> None:
    """Compared with the lattice of each target."""
    model = write_model(Path("model"), alpha)
    assert ended(figures.main, ["sparsity", str(model), *files, "--output", "counts"]) == 0
    found = json.loads(Path("counts.json").read_text())["model"]["forced"]
    nodes = [
        (len(source.split()), place, node)
        for source, target in zip(SOURCES, TARGETS, strict=True)
        for place, node in enumerate(figures.sentence([model], source, target).nodes, 1)
    ]
    supports = [node.support for _, _, node in nodes]
    attended = [
        length if alpha == 1 else sum(weight > 0 for weight in node.attention)
        for length, _, node in nodes
    ]
    for side, counts in (("output", supports), ("attention", attended)):
        measured = found[side]
        assert measured["steps"] == len(counts)
        assert measured["mean"] == pytest.approx(sum(counts) / len(counts))
        assert measured["most"] == max(counts)
        assert measured["share_of_one"] == pytest.approx(counts.count(1) / len(counts))
        first = [count for count, (_, place, _) in zip(counts, nodes, strict=True) if place == 1]
        assert measured["by_position"]["1"]["mean"] == pytest.approx(sum(first) / len(first))
        assert measured["by_rank"]["end"]["steps"] == len(TARGETS)
    assert "| model |" in capsys.readouterr().out
    assert Path("counts.png").stat().st_size > 1000
    translator = Translator.from_folders([model], attention=True)
    pairs = sparsity.read_pairs(translator, Path("src"), Path("tgt"))
    steps = [sorted(sparsity.steps_of(translator, pairs, size)) for size in (1, 3)]
    assert steps[0] == steps[1]


def test_frequency_classes_and_bad_text(files: list[str]) -> None:
    ids = {
        4: "1-10",
        13: "1-10",
        14: "11-100",
        103: "11-100",
        10_004: "10001-",
        3: "end",
        0: "unknown",
    }
    assert {token: sparsity.rank_class(token, 3) for token in ids} == ids
    model = write_model(Path("model"), 1.5)
    Path("src").write_text("a\n\nb\n")
    line = refused(figures.main, ["sparsity", model, *files, "--output", "counts"])
    assert "src: line 2 is blank" in line
