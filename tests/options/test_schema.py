"""The JSON Schema of options, which editors check files of training with."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from onmt_entmax.cli.main import run
from onmt_entmax.errors import UserError
from onmt_entmax.options.help import schema
from onmt_entmax.options.train import training_setup
from onmt_entmax.options.translate_table import translation_options
from tests.commands import ROOT
from tests.toy import write_corpus


@pytest.mark.parametrize("arguments", [["--schema", "x"], ["-config", "x.yaml", "--schema"]])
@pytest.mark.parametrize("command", ["train", "translate"])
def test_a_schema_takes_no_other_argument(
    command: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, arguments, f"onmt-entmax {command}") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--schema: stands alone, and prints; write to a file with --schema > FILE" in line


def shipped_files() -> dict[Path, object]:
    """Return the YAML files of trainings in the repository; others are of other programs."""
    paths = [*(ROOT / "config").rglob("*.yaml"), *(ROOT / "tests" / "stock").glob("*.yaml")]
    contents = {path: yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths}
    return {
        path: content for path, content in contents.items() if isinstance(content.get("data"), dict)
    }


class TestTheSchemaOfTraining:
    @pytest.fixture
    def validator(self, capsys: pytest.CaptureFixture[str]) -> jsonschema.Draft202012Validator:
        assert run("train", ["--schema"], "onmt-entmax train") == 0
        printed = capsys.readouterr().out
        return jsonschema.Draft202012Validator(json.loads(printed, parse_constant=pytest.fail))

    def test_accepts_the_shipped_files(self, validator: jsonschema.Draft202012Validator) -> None:
        files = shipped_files()
        named = ("config/morphology/pilot.yaml", "config/mt/ja-en.yaml", "config/demo/demo.yaml")
        assert {ROOT / name for name in named} <= files.keys()
        assert [path for path, content in files.items() if not validator.is_valid(content)] == []

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
    def test_refuses_what_reading_refuses(
        self,
        validator: jsonschema.Draft202012Validator,
        wrong: dict[str, object],
        tmp_path: Path,
    ) -> None:
        corpus = write_corpus(tmp_path, "train", size=2, seed=1)
        right = {"data": {"c": corpus}, "save_model": "run"}
        path = tmp_path / "train.yaml"
        path.write_text(yaml.safe_dump(right))
        training_setup(["-config", str(path)])
        assert validator.is_valid(right)
        path.write_text(yaml.safe_dump(right | wrong))
        with pytest.raises(UserError):
            training_setup(["-config", str(path)])
        assert not validator.is_valid(right | wrong)


def test_the_schema_of_translation_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(schema(translation_options()))
