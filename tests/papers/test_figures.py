"""`tools.papers.figures`: every figure is drawn, and a sweep shows the means over seeds."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.in_process import exit_status, refusal
from tests.papers.figure_models import write_model
from tools.papers import figures, pictures


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


# --- sweeps over alphas ----------------------------------------------------------------------


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
    pictures.set_style()
    picture = figures.draw_sweep([request.getfixturevalue(sweep)], None, None, 1.5)
    attention, output = (axis.lines[0].get_xydata().tolist() for axis in picture.axes)
    assert attention == [[1.0, 31.5], [1.5, 33.5]]
    assert output == [[1.5, 33.5], [2.0, 29.5]]
    assert picture.axes[0].get_ylabel() == "BLEU"


@pytest.mark.usefixtures("sweep_folder")
@pytest.mark.parametrize(
    ("figures_json", "message"),
    [
        ({"output_alpha": 1.5, "bleu": 30.0}, "has no attention_alpha"),
        (
            {"attention_alpha": "learned", "output_alpha": 1.5, "bleu": 30.0},
            "attention_alpha is 'learned', and must be a number",
        ),
    ],
)
def test_a_result_without_a_number_is_named(figures_json: dict[str, object], message: str) -> None:
    """The first path is fine."""
    Path("bad").mkdir()
    Path("bad/figures.json").write_text(json.dumps(figures_json))
    line = refusal(figures.main, ["sweep", "sweep", "bad", "--output", "out"])
    assert line.endswith(f"error: bad/figures.json: {message}")


def test_a_line_of_a_table_without_the_measure_is_named(sweep_table: Path) -> None:
    with sweep_table.open("a") as table:
        table.write("1.5,1.5,none\n")
    line = refusal(figures.main, ["sweep", str(sweep_table), "--output", "out"])
    assert line.endswith("error: table.csv:8: bleu is 'none', and must be a number")


@pytest.mark.usefixtures("sweep_folder")
def test_a_run_whose_model_was_not_validated_is_named() -> None:
    write_run(Path("run"))
    row = {"kind": "valid", "step": 2, "token_accuracy": 60.0}
    Path("run/metrics.jsonl").write_text(json.dumps(row) + "\n")
    line = refusal(figures.main, ["sweep", "sweep", "run", "--output", "out"])
    assert "error: run/metrics.jsonl: no validation at step 3, that of run/step_3" in line


@pytest.mark.usefixtures("sweep_folder")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sweep sweep --measure accuracy", "no accuracy in it"),
        ("sweep sweep --fixed 3", "sweep: no training with attention or output alpha 3"),
        ("sweep empty", "empty: no figures.json, and no metrics.jsonl of a run"),
        ("time sweep --names a b", "2 for 1 model"),
        ("attention absent --source a", "no such model folder"),
    ],
)
def test_what_cannot_be_drawn_is_one_line_and_no_file(command: str, message: str) -> None:
    Path("empty").mkdir()
    assert message in refusal(figures.main, [*command.split(), "--output", "out"])
    assert not Path("out.pdf").exists()
