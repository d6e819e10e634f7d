"""What users rely on whatever happens, by real commands; kinds of files have their own tests."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest
import torch
import yaml

from onmt_entmax.files.checksums import write_list
from tests.commands import CONSOLE, ENVIRONMENT, fail, run, started
from tests.evil import Evil
from tests.toy import write_config

MODEL = Path(__file__).parent / "data" / "model_1.0"


LINES = 400  # of the source


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "s").write_text("a b c\nd e\n" * (LINES // 2))
    return tmp_path / "s"


def command(source: Path, output: object) -> list[object]:
    """Return the command line of a translation."""
    return [*CONSOLE, "translate", "-model", MODEL, "-src", source, "-output", output]


class TestAnOutput:
    """It is the old one, or the whole new one."""

    @pytest.fixture
    def output(self, tmp_path: Path) -> Path:
        (tmp_path / "o").write_text("OLD\n")
        return tmp_path / "o"

    def test_stays_on_a_disk_that_is_full(self, source: Path, output: Path) -> None:
        limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "limited", *command(source, output)]
        done = subprocess.run(limited, capture_output=True, text=True, env=ENVIRONMENT)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1].endswith("o: cannot be written (File too large)")
        assert output.read_text() == "OLD\n"

    def test_does_not_replace_the_input(self, source: Path) -> None:
        files = ("-model", MODEL, "-src", source, "-output", source)
        assert "would be overwritten" in fail("translate.py", *files)
        assert source.read_text().startswith("a b c\n")

    def test_is_whole_or_old_after_a_kill_while_it_is_written(
        self, source: Path, output: Path
    ) -> None:
        quiet = subprocess.DEVNULL
        with started(
            command(source, output), env=ENVIRONMENT, stdout=quiet, stderr=quiet
        ) as process:
            while process.poll() is None and not list(source.parent.glob(".o.*.tmp")):
                time.sleep(0.01)
        text = output.read_text()
        assert text == "OLD\n" or text.count("\n") == LINES
        # The next run replaces it.
        arguments = command(source, output)[len(CONSOLE) :]
        assert run("onmt_entmax", *arguments).returncode == 0
        assert output.read_text().count("\n") == LINES


@pytest.fixture
def few_lines(tmp_path: Path) -> Path:
    (tmp_path / "few").write_text("a b c\nd e\n")
    return tmp_path / "few"


def test_an_output_may_be_a_pipe(few_lines: Path) -> None:
    done = subprocess.run(
        command(few_lines, "/dev/stdout"), capture_output=True, text=True, env=ENVIRONMENT
    )
    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "e d")


def test_a_device_stays_one(few_lines: Path) -> None:
    done = subprocess.run(command(few_lines, "/dev/null"), capture_output=True, env=ENVIRONMENT)
    assert done.returncode == 0
    assert Path("/dev/null").is_char_device()


def test_a_full_device_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*CONSOLE, "translate", "-h"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
    assert done.returncode == 2
    assert done.stderr == "onmt-entmax translate: error: No space left on device\n"


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

    def refusal(self, model: Path, source: Path) -> str:
        output = source.with_name("o")
        return fail("translate.py", "-model", model, "-src", source, "-output", output)

    def test_is_noticed_by_its_checksum(self, model: Path, few_lines: Path) -> None:
        assert "checksum differs" in self.refusal(model, few_lines)

    def test_takes_no_memory(self, model: Path, few_lines: Path) -> None:
        write_list(model)
        assert "does not fit in memory" in self.refusal(model, few_lines)
