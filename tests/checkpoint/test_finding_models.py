"""Which model folder a path stands for: the best of a run, an imported one, or none."""

import os
from math import inf, isfinite, nan
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import best_step, checkpoint_steps, find_model, read_best
from onmt_entmax.train.run_folder import remember_best
from tests.checkpoint.refusals import refusal


class TestTheBestCheckpointOfARun:
    @pytest.fixture
    def run(self, tmp_path: Path) -> Path:
        """A run folder with checkpoints, and no file that names the best."""
        for step in (1, 2, 12):
            (tmp_path / f"step_{step}").mkdir()
        return tmp_path

    def test_is_the_newest_if_none_is_named(self, run: Path) -> None:
        assert find_model(run).name == "step_12"

    def test_is_the_one_that_is_named(self, run: Path) -> None:
        remember_best(run, 2, "loss", 0.25)
        assert find_model(run).name == "step_2"
        assert checkpoint_steps(run)[-1] == 12

    def test_is_the_newest_if_the_one_that_is_named_is_missing(self, run: Path) -> None:
        remember_best(run, 2, "loss", 0.25)
        (run / "step_2").rmdir()
        with pytest.warns(UserWarning, match=r"best.json: names step_2, which is not .*, step_12$"):
            assert find_model(run).name == "step_12"

    def test_is_none_whose_number_begins_with_zeros(self, run: Path) -> None:
        """No run writes one, and `step_012` and `step_12` would be the same step."""
        (run / "step_0099").mkdir()
        assert checkpoint_steps(run) == [1, 2, 12]

    @pytest.mark.parametrize(
        "step",
        ["NaN", "true", '"2"', "null", "[2]", "9" * 5000, "[" * 10**5, "\0", "1}, {"],
        ids=lambda step: repr(step[:5]),
    )
    def test_is_not_read_from_a_damaged_file(self, run: Path, step: str) -> None:
        (run / "best.json").write_text(f'{{"step": {step}}}')
        assert best_step(run) is None
        assert "best.json: " in refusal(lambda: find_model(run))

    @pytest.mark.parametrize(("value", "is_finite"), [(inf, False), (nan, False), (0.5, True)])
    def test_may_have_a_value_that_is_not_finite(
        self, run: Path, value: float, is_finite: bool
    ) -> None:
        """A run has such a value as long as no validation had a finite one."""
        remember_best(run, 3, "loss", value)
        best = read_best(run)
        assert best is not None
        assert (best.step, best.metric) == (3, "loss")
        assert isfinite(best.value) is is_finite


class TestNamesOfOpenNMTsCheckpoints:
    """It writes `model_step_5.pt`; an imported folder beside such a file stands for it."""

    def test_lead_to_our_checkpoint_of_the_step(self, tmp_path: Path) -> None:
        (tmp_path / "model/step_5").mkdir(parents=True)
        message = refusal(lambda: find_model(tmp_path / "model_step_5.pt"))
        assert message.endswith(f"no such model folder; did you mean {tmp_path}/model/step_5?")

    def test_of_another_step_lead_nowhere(self, tmp_path: Path) -> None:
        (tmp_path / "model/step_5").mkdir(parents=True)
        message = refusal(lambda: find_model(tmp_path / "model_step_6.pt"))
        assert "did you mean" not in message

    def test_lead_to_the_command_that_imports_them(self, tmp_path: Path) -> None:
        (tmp_path / "other.pt").touch()
        message = refusal(lambda: find_model(tmp_path / "other.pt"))
        assert message.endswith(f"/other.pt {tmp_path}/other")

    @pytest.fixture
    def imported(self, tmp_path: Path) -> Path:
        """The folder of an imported file, beside the file."""
        (tmp_path / "other.pt").touch()
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "config.yaml").touch()
        return tmp_path / "other"

    def test_stand_for_their_imported_folder(self, imported: Path, tmp_path: Path) -> None:
        assert find_model(tmp_path / "other.pt") == imported

    @pytest.mark.usefixtures("imported")
    def test_are_imported_again_if_they_are_newer(self, tmp_path: Path) -> None:
        in_the_future = 2**33  # seconds since 1970
        os.utime(tmp_path / "other.pt", (in_the_future, in_the_future))
        message = refusal(lambda: find_model(tmp_path / "other.pt"))
        assert message.endswith("/other.pt.imported")


# --- paths without a model -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "no such model folder"),
        ("empty", "not a model folder (it has neither config.yaml nor step_N)"),
        ("model.pt", "a file, and models are folders; convert a checkpoint of OpenNMT-py: onmt-en"),
    ],
)
def test_a_path_without_a_model_is_refused_with_the_reason(
    tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "model.pt").touch()
    line = refusal(lambda: find_model(tmp_path / name))
    assert line.startswith(f"{tmp_path / name}: {message}")


def test_the_working_directory_may_not_be_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its path `.` has no name from which an ending could be removed."""
    monkeypatch.chdir(tmp_path)
    assert ".: not a model folder" in refusal(lambda: find_model(Path()))


def test_a_folder_of_prepare_leads_to_its_model(tmp_path: Path) -> None:
    for run in ("a", "model"):
        (tmp_path / f"data/{run}/step_5").mkdir(parents=True)
    line = refusal(lambda: find_model(tmp_path / "data"))
    message = "not a model folder (it has neither config.yaml nor step_N); did you mean"
    assert line.startswith(f"{tmp_path}/data: {message} {tmp_path}/data/model?")
