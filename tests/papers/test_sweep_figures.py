"""`tools.papers.figures sweep`: means over seeds by alpha, and results that it refuses."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.in_process import refusal
from tests.papers.figure_models import write_run
from tools.papers import figures, pictures


@pytest.fixture(autouse=True)
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results and figures are written to the working directory."""
    monkeypatch.chdir(tmp_path)


class Result(NamedTuple):
    """Two alphas, and the BLEU of their trainings."""

    attention: float
    output: float
    bleu: float
    """Of seed 0; that of seed n is n points higher."""


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
    """The left panel varies the alpha of attention, the right one that of the output."""
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
        pytest.param({"output_alpha": 1.5, "bleu": 30.0}, "has no attention_alpha", id="no alpha"),
        pytest.param(
            {"attention_alpha": "learned", "output_alpha": 1.5, "bleu": 30.0},
            "attention_alpha is 'learned', and must be a number",
            id="a learned alpha",
        ),
    ],
)
def test_a_result_without_a_number_is_named(figures_json: dict[str, object], message: str) -> None:
    """The wrong result is in the second folder."""
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
