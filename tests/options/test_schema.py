"""The JSON Schema of the options of a command, by which editors check its YAML file."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator as Validator

from onmt_entmax.cli.main import run
from onmt_entmax.errors import UserError
from onmt_entmax.options.help import schema
from onmt_entmax.options.train import training_setup
from onmt_entmax.options.translate_table import translation_options
from tests.commands import ROOT
from tests.toy import write_corpus


@pytest.mark.parametrize(
    "arguments",
    [["--schema", "x"], ["-config", "x.yaml", "--schema"]],
    ids=["before another", "after another"],
)
@pytest.mark.parametrize("command", ["train", "translate"])
def test_a_schema_takes_no_other_argument(
    command: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, arguments, f"onmt-entmax {command}") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--schema: stands alone, and prints; write to a file with --schema > FILE" in line


def test_the_schema_of_translation_is_valid() -> None:
    Validator.check_schema(schema(translation_options()))


# --- the schema of training ------------------------------------------------------------------


@pytest.fixture
def validator(capsys: pytest.CaptureFixture[str]) -> Validator:
    """A validator of the schema that `train --schema` prints."""
    assert run("train", ["--schema"], "onmt-entmax train") == 0
    printed = capsys.readouterr().out
    return Validator(json.loads(printed, parse_constant=pytest.fail))


def training_files() -> list[Path]:
    """Return the files of trainings in the repository, which name corpora under `data`."""
    paths = [*(ROOT / "config").rglob("*.yaml"), *(ROOT / "tests" / "stock").glob("*.yaml")]
    return [path for path in paths if isinstance(content_of(path).get("data"), dict)]


def content_of(path: Path) -> Any:
    """Return the content of a YAML file."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_the_files_of_trainings_are_found() -> None:
    named = ("config/morphology/pilot.yaml", "config/mt/ja-en.yaml", "config/demo/demo.yaml")
    assert {ROOT / name for name in named} <= {*training_files()}


def test_the_schema_accepts_the_files_of_trainings(validator: Validator) -> None:
    files = training_files()
    assert [path for path in files if not validator.is_valid(content_of(path))] == []


class TrainingFile:
    """A file of a training, as users write it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "train.yaml"
        self.options: dict[str, Any] = {
            "data": {"c": write_corpus(folder, "train", size=2, seed=1)},
            "save_model": "run",
        }

    def read(self) -> None:
        """Write the options, and read them as `train` does."""
        self.path.write_text(yaml.safe_dump(self.options))
        training_setup(["-config", str(self.path)])


@pytest.fixture
def file(tmp_path: Path) -> TrainingFile:
    """A file that has the required options."""
    return TrainingFile(tmp_path)


def test_the_schema_accepts_a_file_that_can_be_read(
    validator: Validator, file: TrainingFile
) -> None:
    file.read()
    assert validator.is_valid(file.options)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rnn_siz": 3},
        {"rnn_size": 0},
        {"optim": "adamw"},
        {"dropout": [1.0]},
        {"copy_attn": True},
        {"learning_rate": 0},
        {"save_model": False},
        {"data": {"c": {"path_scr": "a"}}},
        {"data": {"c": {"path_src": "train.src"}}},
        {"data": None},
    ],
    ids=str,
)
def test_the_schema_refuses_a_file_that_reading_refuses(
    validator: Validator, file: TrainingFile, wrong: dict[str, Any]
) -> None:
    file.options |= wrong
    with pytest.raises(UserError):
        file.read()
    assert not validator.is_valid(file.options)
