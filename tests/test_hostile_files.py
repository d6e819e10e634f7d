"""Commands that read a stranger's files run no code from them, and ask for no absurd memory."""

import shutil
from pathlib import Path

import pytest
import torch
import yaml

from onmt_entmax.files.checksums import write_list
from tests.commands import fail, run
from tests.evil import Evil
from tests.toy import write_config


def test_a_checkpoint_runs_no_code(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    config = write_config(tmp_path, train_steps=2, save_checkpoint_steps=2, valid_steps=2)
    assert run("train.py", "-config", config).returncode == 0
    torch.save({"model": Evil(ran)}, tmp_path / "run/step_2/training/state.pt")
    write_list(tmp_path / "run/step_2")
    message = fail("train.py", "-config", config, "-train_from", tmp_path / "run")
    assert "state.pt: cut short or damaged" in message
    assert not ran.exists()


def test_a_configuration_runs_no_code(tmp_path: Path) -> None:
    ran, config = tmp_path / "ran", write_config(tmp_path)
    config.write_text(config.read_text() + f"x: !!python/object/apply:os.mkdir ['{ran}']\n")
    assert "not valid YAML" in fail("train.py", "-config", config)
    assert not ran.exists()


class TestANetworkOfAbsurdSize:
    @pytest.fixture
    def model(self, trained: Path, tmp_path: Path) -> Path:
        """A model folder whose configuration asks for a million units."""
        folder = Path(shutil.copytree(trained / "run" / "step_400", tmp_path / "model"))
        content = yaml.safe_load((folder / "config.yaml").read_text())
        content["model"]["rnn_size"] = 1_000_000
        (folder / "config.yaml").write_text(yaml.safe_dump(content))
        return folder

    def refusal(self, model: Path) -> str:
        """Return the error of a translation by the model."""
        source = model.with_name("source")
        source.write_text("a b c\n")
        output = model.with_name("output")
        return fail("translate.py", "-model", model, "-src", source, "-output", output)

    def test_is_refused_by_its_checksum(self, model: Path) -> None:
        assert "checksum differs" in self.refusal(model)

    def test_is_refused_before_it_takes_memory_if_checksums_agree(self, model: Path) -> None:
        write_list(model)  # checksums that agree, which a stranger can write, too
        assert "does not fit in memory" in self.refusal(model)
