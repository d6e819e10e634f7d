"""`onmt-entmax distill`: options and inputs that it refuses."""

from pathlib import Path

import pytest

from onmt_entmax.cli import distill as command
from tests.cli.changed_calls import changed_call
from tests.cli.distilling import write_inputs
from tests.in_process import refusal


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of training sources and models."""
    return write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            "--out train", "train.src: is read, and would be overwritten", id="output is the input"
        ),
        pytest.param("--weights 1", "--weights has 1 number for 2 models", id="weights"),
        pytest.param(
            "--each 0", "--each: must be a whole number from 1 to 10,000", id="no queries"
        ),
        pytest.param("--prob nan", "--prob: must be above 0 and at most 1, not 'nan'", id="nan"),
        pytest.param(
            "--prob 0.5 --at-most 0.4", "--prob 0.5 is above --at-most 0.4", id="empty range"
        ),
        pytest.param("--models nowhere", "nowhere: no such model folder", id="no model"),
        pytest.param(
            "--models forward words", "words: not a model of inflection", id="another task"
        ),
        pytest.param(
            "--reversed backward", "--reversed: no such option; the model folder", id="old option"
        ),
        pytest.param("--train none.src", "none.src: cannot be read", id="no training sources"),
    ],
)
def test_options_and_files_that_do_not_fit_are_refused_and_nothing_is_written(
    inputs: Path, options: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(inputs)
    before = sorted(inputs.rglob("*"))
    usual = {"--train": "train.src", "--models": "forward backward", "--out": "x"}
    assert message in refusal(command.main, changed_call(usual, options))
    assert sorted(inputs.rglob("*")) == before
