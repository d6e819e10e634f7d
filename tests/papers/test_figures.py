"""`tools.papers.figures`: every figure is written, and shows what the model says."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.model import build_model
from onmt_entmax.report.lattice import Node
from onmt_entmax.translator import Translator
from tests.in_process import exit_status, refusal
from tests.models import small, words
from tests.papers.texts import write_texts
from tools.papers import figures, forced_steps, pictures, sparsity

VOCABULARIES = words("abcd", "uvw")
SOURCES, TARGETS = ["a b c", "b", "c d a b"], ["u v", "w", "v v u"]


def write_model(folder: Path, alpha: float) -> Path:
    torch.manual_seed(0)
    config = small(generator_alpha=alpha, global_attention_alpha=alpha, param_init=1.0)
    save(folder, build_model(config, VOCABULARIES).eval(), config, VOCABULARIES, {})
    return folder


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are written to the working directory."""
    monkeypatch.chdir(tmp_path)


def write_run(folder: Path) -> None:
    """Write a run of three steps that was killed while it wrote its log."""
    write_model(folder / "step_3", 1.5)
    rows = []
    for step in (1, 2, 3):
        row = {"step": step, "seconds": 60.0 * step, "loss": 2 / step}
        rows.append({"kind": "train", **row})
        rows.append({"kind": "valid", **row, "token_accuracy": 30.0 * step})
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "metrics.jsonl").write_text(lines + '{"kind": "val')


def draw_twice(arguments: Sequence[str]) -> None:
    for name in ("one", "two"):
        assert exit_status(figures.main, [*arguments, "--output", f"{name}.png"]) == 0


@pytest.mark.parametrize(("ending", "start"), [("pdf", b"%PDF"), ("png", b"\x89PNG")])
@pytest.mark.parametrize(
    "command",
    [
        "attention run/step_3 --source a+b+c",
        "attention run/step_3 --source a+b+c --target u+$v$+w",
        "forced run/step_3 --source a+b+c --target u+$v$+w",
        "mappings",
        "time run run --names x x",
        "curves run",
        "sweep run",
    ],
)
def test_every_figure_is_drawn(command: str, ending: str, start: bytes) -> None:
    """The files of two runs are the same, bit for bit. (+ stands for a space.)"""
    write_run(Path("run"))
    draw_twice([word.replace("+", " ") for word in command.split()])
    first = Path(f"one.{ending}").read_bytes()
    assert first.startswith(start)
    assert Path(f"two.{ending}").read_bytes() == first


# --- sweeps over alphas ---


class Result(NamedTuple):
    """The result of a pair of alphas, of which each seed has this BLEU and its number."""

    attention: float
    output: float
    bleu: float


RESULTS = (Result(1.0, 1.5, 30.0), Result(1.5, 1.5, 32.0), Result(1.5, 2.0, 28.0))


@pytest.fixture
def sweep_folder() -> Path:
    """The runs of a sweep, with two seeds."""
    for result in RESULTS:
        for seed in (1, 2):
            run = Path("sweep") / f"{result.attention}-{result.output}" / f"seed-{seed}"
            run.mkdir(parents=True)
            row = {"attention_alpha": result.attention, "output_alpha": result.output}
            (run / "figures.json").write_text(json.dumps({**row, "bleu": result.bleu + seed}))
    return Path("sweep")


@pytest.fixture
def sweep_table() -> Path:
    """The same sweep as a CSV file of a spreadsheet."""
    lines = ["attention_alpha,output_alpha,bleu"]
    for result in RESULTS:
        lines += [f"{result.attention},{result.output},{result.bleu + seed}" for seed in (1, 2)]
    Path("table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    return Path("table.csv")


@pytest.mark.parametrize("sweep", ["sweep_folder", "sweep_table"])
def test_a_sweep_is_the_mean_over_seeds(sweep: str, request: pytest.FixtureRequest) -> None:
    """One panel varies alpha of attention, the other that of the output."""
    pictures.prepare()
    picture = figures.draw_sweep([request.getfixturevalue(sweep)], None, None, 1.5)
    attention, output = (axis.lines[0].get_xydata().tolist() for axis in picture.axes)
    assert attention == [[1.0, 31.5], [1.5, 33.5]]
    assert output == [[1.5, 33.5], [2.0, 29.5]]
    assert picture.axes[0].get_ylabel() == "BLEU"


@pytest.mark.usefixtures("sweep_folder")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sweep sweep --measure accuracy", "no accuracy in it"),
        ("time sweep --names a b", "2 for 1 model"),
        ("attention absent --source a", "no such model folder"),
    ],
)
def test_what_cannot_be_drawn_is_one_line_and_no_file(command: str, message: str) -> None:
    assert message in refusal(figures.main, [*command.split(), "--output", "out"])
    assert not Path("out.pdf").exists()


# --- numbers of positive probabilities ---


class Step(NamedTuple):
    """A step of a target that the model is made to write."""

    source_length: int
    position: int
    node: Node


def steps_of(model: Path) -> list[Step]:
    """Return all steps of the targets, from the lattice of each."""
    return [
        Step(len(source.split()), position, node)
        for source, target in zip(SOURCES, TARGETS, strict=True)
        for position, node in enumerate(figures.sentence([model], source, target).nodes, 1)
    ]


class Sparsity(NamedTuple):
    """A model, and what the command measured and printed of it."""

    alpha: float
    model: Path
    measured: dict[str, Any]
    printed: str


@pytest.fixture(params=[1.0, 1.5], ids=["softmax", "entmax"])
def sparse(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Sparsity:
    model = write_model(Path("model"), request.param)
    texts = write_texts(Path(), SOURCES, TARGETS)
    assert exit_status(figures.main, ["sparsity", str(model), *texts, "--output", "counts"]) == 0
    measured = json.loads(Path("counts.json").read_text())["model"]["forced"]
    return Sparsity(request.param, model, measured, capsys.readouterr().out)


def check_counts(measured: dict[str, Any], counts: list[int], steps: list[Step]) -> None:
    """Fail unless the measures are those of a count at each step."""
    first = [count for count, step in zip(counts, steps, strict=True) if step.position == 1]
    assert measured["steps"] == len(counts)
    assert measured["mean"] == pytest.approx(sum(counts) / len(counts))
    assert measured["most"] == max(counts)
    assert measured["share_of_one"] == pytest.approx(counts.count(1) / len(counts))
    assert measured["by_position"]["1"]["mean"] == pytest.approx(sum(first) / len(first))
    assert measured["by_rank"]["end"]["steps"] == len(TARGETS)


def test_nonzeros_of_the_output_are_those_of_the_distributions(sparse: Sparsity) -> None:
    steps = steps_of(sparse.model)
    check_counts(sparse.measured["output"], [step.node.support for step in steps], steps)


def test_nonzeros_of_attention_are_those_of_the_distributions(sparse: Sparsity) -> None:
    """Softmax attends to all, even where a weight rounds to zero."""
    steps = steps_of(sparse.model)
    if sparse.alpha == 1:
        counts = [step.source_length for step in steps]
    else:
        counts = [sum(weight > 0 for weight in step.node.attention) for step in steps]
    check_counts(sparse.measured["attention"], counts, steps)


def test_nonzeros_are_printed_and_drawn(sparse: Sparsity) -> None:
    assert "| model |" in sparse.printed
    assert Path("counts.png").stat().st_size > 1000


def test_nonzeros_do_not_depend_on_the_batch_size(sparse: Sparsity) -> None:
    translator = Translator.from_folders([sparse.model], attention=True)
    pairs = forced_steps.read_pairs(translator, Path("source.txt"), Path("target.txt"))
    one, three = (sorted(forced_steps.steps_of(translator, pairs, size)) for size in (1, 3))
    assert one == three


UNKNOWN, END, FIRST = 0, 3, 4  # ids of <unk>, </s> and the most frequent token


@pytest.mark.parametrize(
    ("token", "name"),
    [
        (FIRST, "1-10"),
        (FIRST + 9, "1-10"),
        (FIRST + 10, "11-100"),
        (FIRST + 99, "11-100"),
        (FIRST + 10_000, "10001-"),
        (END, "end"),
        (UNKNOWN, "unknown"),
    ],
)
def test_frequency_classes(token: int, name: str) -> None:
    assert sparsity.rank_class(token, END) == name
