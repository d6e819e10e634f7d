"""Which model folder a path stands for: the best of a run, an imported one, or none."""

import json
import os
from math import inf, isnan, nan
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import best_step, checkpoint_steps, find_model, read_best
from onmt_entmax.checkpoint.finding import Best
from onmt_entmax.train.kept_checkpoints import remember_best
from tests.checkpoint.refusals import error_line

# --- the best checkpoint of a run ------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run folder with checkpoints of steps 1, 2 and 12, and no file that names the best."""
    for step in (1, 2, 12):
        (tmp_path / f"step_{step}").mkdir()
    return tmp_path


def test_a_run_stands_for_its_newest_checkpoint_if_no_best_one_is_named(run: Path) -> None:
    assert find_model(run) == run / "step_12"


def test_a_run_stands_for_its_best_checkpoint(run: Path) -> None:
    remember_best(run, 2, "loss", 0.25)
    assert find_model(run) == run / "step_2"


def test_a_missing_best_checkpoint_is_replaced_by_the_newest(run: Path) -> None:
    remember_best(run, 2, "loss", 0.25)
    (run / "step_2").rmdir()
    with pytest.warns(UserWarning, match=r"best.json: names step_2, which is not .*, step_12$"):
        assert find_model(run) == run / "step_12"


@pytest.mark.parametrize("name", ["step_0099", "step_9\u0669"], ids=["zeros", "an Arabic digit"])
def test_a_folder_whose_number_no_run_would_write_is_no_checkpoint(run: Path, name: str) -> None:
    """Otherwise `step_012` and `step_12` would be the same step."""
    (run / name).mkdir()
    assert checkpoint_steps(run) == [1, 2, 12]


each_damaged_step = pytest.mark.parametrize(
    "step",
    [
        pytest.param("NaN", id="no number"),
        pytest.param("true", id="a boolean"),
        pytest.param('"2"', id="a text"),
        pytest.param("null", id="null"),
        pytest.param("[2]", id="a list"),
        pytest.param("9" * 5000, id="more digits than Python reads"),
        pytest.param("[" * 10**5, id="lists too deep"),
        pytest.param("\0", id="a zero byte"),
        pytest.param("1}, {", id="two objects"),
    ],
)


def write_best(run: Path, step: str) -> None:
    """Write the file that names the best checkpoint, with this text as its step."""
    (run / "best.json").write_text(f'{{"metric": "loss", "value": 0.5, "step": {step}}}')


def test_an_undamaged_name_of_the_best_checkpoint_is_a_step(run: Path) -> None:
    write_best(run, "2")
    assert best_step(run) == 2


@each_damaged_step
def test_a_damaged_name_of_the_best_checkpoint_is_refused(run: Path, step: str) -> None:
    write_best(run, step)
    assert error_line(lambda: find_model(run)).startswith(f"{run}/best.json: ")


@each_damaged_step
def test_a_damaged_name_of_the_best_checkpoint_is_no_step(run: Path, step: str) -> None:
    write_best(run, step)
    assert best_step(run) is None


@pytest.mark.parametrize("name", Best._fields)
def test_a_best_checkpoint_without_a_field_is_refused(run: Path, name: str) -> None:
    content = {"step": 2, "metric": "loss", "value": 0.5}
    del content[name]
    (run / "best.json").write_text(json.dumps(content))
    assert error_line(lambda: find_model(run)).startswith(f"{run}/best.json: damaged")


@pytest.mark.parametrize("value", [inf, nan], ids=str)
def test_the_value_of_the_best_checkpoint_is_nan_if_it_was_not_finite(
    run: Path, value: float
) -> None:
    """It is not as long as no validation of the run had a finite one."""
    remember_best(run, 3, "loss", value)
    best = read_best(run)
    assert best is not None
    assert isnan(best.value)


def test_the_best_checkpoint_is_read_with_its_measure_and_value(run: Path) -> None:
    remember_best(run, 3, "loss", 0.5)
    assert read_best(run) == Best(3, "loss", 0.5)


# --- names of OpenNMT-py's checkpoints -------------------------------------------------------


@pytest.fixture
def run_of_step_5(tmp_path: Path) -> Path:
    """A run folder `model`, where OpenNMT-py would write files such as `model_step_5.pt`."""
    (tmp_path / "model/step_5").mkdir(parents=True)
    return tmp_path / "model"


def test_opennmts_name_of_a_checkpoint_leads_to_ours(run_of_step_5: Path) -> None:
    path = run_of_step_5.with_name("model_step_5.pt")
    message = f"{path}: no such model folder; did you mean {run_of_step_5}/step_5?"
    assert error_line(lambda: find_model(path)) == message


def test_opennmts_name_of_a_step_that_is_missing_leads_nowhere(run_of_step_5: Path) -> None:
    path = run_of_step_5.with_name("model_step_6.pt")
    assert "did you mean" not in error_line(lambda: find_model(path))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with the name of a checkpoint of OpenNMT-py."""
    (tmp_path / "other.pt").touch()
    return tmp_path / "other.pt"


@pytest.fixture
def imported(file: Path) -> Path:
    """The folder into which that file is imported, beside it."""
    folder = file.with_suffix("")
    folder.mkdir()
    (folder / "config.yaml").touch()
    return folder


def test_a_checkpoint_of_opennmt_is_refused_with_the_command_to_import_it(file: Path) -> None:
    message = error_line(lambda: find_model(file))
    assert message.endswith(f": onmt-entmax import-onmt {file} {file.with_suffix('')}")


def test_a_checkpoint_of_opennmt_stands_for_its_imported_folder(file: Path, imported: Path) -> None:
    assert find_model(file) == imported


@pytest.mark.usefixtures("imported")
def test_a_checkpoint_that_is_newer_than_its_imported_folder_is_refused(file: Path) -> None:
    """It may be another model; the command imports it beside the folder."""
    in_the_future = 2**33  # seconds since 1970
    os.utime(file, (in_the_future, in_the_future))
    message = error_line(lambda: find_model(file))
    assert message.endswith(f": onmt-entmax import-onmt {file} {file}.imported")


# --- paths without a model -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "no such model folder"),
        ("empty", "not a model folder (it has neither config.yaml nor step_N)"),
        ("model.pt", "a file, and models are folders; convert a checkpoint of OpenNMT-py: "),
    ],
)
def test_a_path_without_a_model_is_refused_with_the_reason(
    tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "model.pt").touch()
    line = error_line(lambda: find_model(tmp_path / name))
    assert line.startswith(f"{tmp_path / name}: {message}")


def test_the_working_directory_may_not_be_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its path `.` has no name from which an ending could be removed."""
    monkeypatch.chdir(tmp_path)
    assert ".: not a model folder" in error_line(lambda: find_model(Path()))


def test_a_folder_of_prepare_leads_to_its_model(tmp_path: Path) -> None:
    for run in ("a", "model"):
        (tmp_path / f"data/{run}/step_5").mkdir(parents=True)
    line = error_line(lambda: find_model(tmp_path / "data"))
    message = "not a model folder (it has neither config.yaml nor step_N); did you mean"
    assert line.startswith(f"{tmp_path}/data: {message} {tmp_path}/data/model?")
