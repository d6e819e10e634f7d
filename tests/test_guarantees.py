"""What users rely on whatever happens, by real commands; kinds of files have their own tests."""

import subprocess
import time
from pathlib import Path

import pytest
import torch
import yaml

from onmt_entmax.files.checksums import write_list
from tests.cli.test_import_onmt_checkpoint import Evil
from tests.commands import CONSOLE, ENVIRONMENT, fail, run
from tests.toy import write_config

MODEL = Path(__file__).parent / "data" / "model_1.0"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "s").write_text("a b c\nd e\n" * 200)
    return tmp_path / "s"


def translate(source: Path, output: object, **more: object) -> subprocess.CompletedProcess[str]:
    command = [*CONSOLE, "translate", "-model", MODEL, "-src", source, "-output", output]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, **more)


def test_an_output_is_the_old_or_the_whole_new_one(source: Path) -> None:
    """Killed while it writes; on a disk that is full; and where it would replace its input."""
    output = source.with_name("o")
    output.write_text("OLD\n")
    limited = ["bash", "-c", 'ulimit -f 1; exec "$@"', "limited"]
    command = [*CONSOLE, "translate", "-model", MODEL, "-src", source, "-output", output]
    done = subprocess.run([*limited, *command], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("o: cannot be written (File too large)")
    assert "would be overwritten" in fail("translate.py", *command[4:-1], source)
    assert output.read_text() == "OLD\n"
    assert source.read_text().startswith("a b c\n")
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=-1, stderr=-1)
    while process.poll() is None and not list(source.parent.glob(".o.*.tmp")):
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert output.read_text() == "OLD\n" or output.read_text().count("\n") == 400
    assert run("onmt_entmax", *command[3:]).returncode == 0
    assert output.read_text().count("\n") == 400


def test_devices_and_pipes_are_written_in_place(source: Path) -> None:
    done = translate(source, "/dev/stdout")
    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "e d")
    assert translate(source, "/dev/null").returncode == 0
    assert Path("/dev/null").is_char_device()
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*CONSOLE, "translate", "-h"], stdout=full, stderr=-1, text=True, env=ENVIRONMENT
        )
    assert done.returncode == 2
    assert done.stderr == "onmt-entmax translate: error: No space left on device\n"


def test_no_file_runs_code(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    config = write_config(tmp_path, train_steps=2, save_checkpoint_steps=2, valid_steps=2)
    assert run("train.py", "-config", config).returncode == 0
    torch.save({"model": Evil(ran)}, tmp_path / "run/step_2/training/state.pt")
    write_list(tmp_path / "run/step_2")
    message = fail("train.py", "-config", config, "-train_from", tmp_path / "run")
    assert "state.pt: cut short or damaged" in message
    config.write_text(config.read_text() + f"x: !!python/object/apply:os.mkdir ['{ran}']\n")
    assert "not valid YAML" in fail("train.py", "-config", config)
    assert not ran.exists()


def test_a_network_of_absurd_size_takes_no_memory(tmp_path: Path, trained: Path) -> None:
    model = tmp_path / "model"
    subprocess.run(["cp", "-r", trained / "run" / "step_400", model], check=True)
    content = yaml.safe_load((model / "config.yaml").read_text())
    content["model"]["rnn_size"] = 1_000_000
    (model / "config.yaml").write_text(yaml.safe_dump(content))
    arguments = ["translate", "-model", model, "-src", tmp_path / "s", "-output", tmp_path / "o"]
    (tmp_path / "s").write_text("a b\n")
    assert "checksum differs" in fail("translate.py", *arguments[1:])
    write_list(model)
    assert "does not fit in memory" in fail("translate.py", *arguments[1:])
