"""`tools.papers.figures`: every figure is written, and shows what the model says."""

import json
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.model import build_model
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
    for words_, said in (
        ("sweep sweep --measure accuracy", "no accuracy in it"),
        ("time sweep --names a b", "2 for 1 model"),
        ("attention absent --source a", "no such model folder"),
    ):
        assert said in refused(figures.main, [*words_.split(), "--output", "out"])
    assert not Path("out.pdf").exists()


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


def test_frequency_classes() -> None:
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
