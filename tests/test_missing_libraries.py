"""Python 3.13 has no pyonmttok, and pip then installs no OpenNMT-py: what works without them."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from onmt_entmax.libraries import MissingLibraryError, importing_opennmt
from tests.commands import execute
from tests.hidden import without
from tests.toy import write_config

NO_OPENNMT = "OpenNMT-py 2.3.0 is not installed: pip install --no-deps OpenNMT-py==2.3.0"

_IMPORTS = """
from tests.hidden import hide
hide(["onmt", "torchtext", "sacrebleu", "flask"])
import torch
from onmt_entmax import entmax, entmax_attention, entmax_loss
print(entmax(torch.tensor([1.0, 0.5, -3.0]), alpha=2).tolist())
try:
    from onmt_entmax import Translator
except ImportError as error:
    print(error)
"""


def test_mappings_need_torch_alone() -> None:
    """Whatever needs OpenNMT-py says how to install it."""
    done = execute([sys.executable, "-c", _IMPORTS])
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"[0.75, 0.25, 0.0]\n{NO_OPENNMT}\n"


def test_a_library_that_opennmt_needs_is_named() -> None:
    message = r"needs torchtext: pip install torchtext$"
    with pytest.raises(MissingLibraryError, match=message), importing_opennmt():
        raise ModuleNotFoundError("No module named 'torchtext.data'", name="torchtext.data")


@pytest.mark.parametrize("command", ["train -config x", "inflect spanish a V"])
def test_commands_say_in_one_line_how_to_install_opennmt(command: str) -> None:
    done = without("onmt,pyonmttok", *command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"onmt-entmax {command.split()[0]}: error: {NO_OPENNMT}\n"


class TestBleu:
    """It needs pyonmttok for its tokeniser alone."""

    COMMAND = ("bleu", "text", "--reference", "text", "--metrics", "bleu")

    @pytest.fixture(autouse=True)
    def text(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("a b c d\n", encoding="utf-8")

    def test_by_another_tokeniser(self, tmp_path: Path) -> None:
        done = without("pyonmttok", *self.COMMAND, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "BLEU 13a" in done.stdout

    def test_by_its_tokeniser(self, tmp_path: Path) -> None:
        done = without("pyonmttok", *self.COMMAND, "--tokenize", "onmt", cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr == (
            "onmt-entmax bleu: error: pyonmttok is not installed: pip install pyonmttok "
            "(up to Python 3.12), or name another tokeniser\n"
        )


def test_a_training_that_needs_pyonmttok_names_other_transforms(tmp_path: Path) -> None:
    path = write_config(tmp_path, transforms=["onmt_tokenize"], train_steps=2)
    done = without("pyonmttok", "train", "-config", path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "onmt-entmax train: error: the transform onmt_tokenize cannot be made: pyonmttok is not "
        "installed: pip install pyonmttok (up to Python 3.12), or train with the transform "
        "sentencepiece or bpe instead of onmt_tokenize"
    )


class TestTextWithoutPyonmttok:
    """It is prepared, trained and translated with SentencePiece."""

    PREPARE = (
        *("prepare", "files", "--out", "out", "--languages", "de", "en", "--symbols", 80),
        *("--train", "train.de", "train.en", "--val", "val.de", "val.en"),
    )

    @pytest.fixture(scope="class")
    def folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """A hundred pairs to train on, and twenty of a development set."""
        folder = tmp_path_factory.mktemp("text")
        for language, text in (("de", "der Hund läuft über die Straße"), ("en", "the dog runs by")):
            lines = [f"{text} {n}\n" for n in range(120)]
            (folder / f"train.{language}").write_text("".join(lines[:100]), encoding="utf-8")
            (folder / f"val.{language}").write_text("".join(lines[100:]), encoding="utf-8")
        return folder

    @pytest.fixture(scope="class")
    def prepared(self, folder: Path) -> subprocess.CompletedProcess[str]:
        done = without("pyonmttok", *self.PREPARE, cwd=folder)
        assert done.returncode == 0, done.stderr
        return done

    def test_is_not_prepared_with_bpe(self, folder: Path) -> None:
        more = ("--subword_type", "bpe", "--out", "bpe")
        done = without("pyonmttok", *self.PREPARE, *more, cwd=folder)
        assert done.returncode == 2
        assert done.stderr.endswith("or use --subword_type sentencepiece\n")
        assert not (folder / "bpe").exists()

    def test_is_prepared_with_sentencepiece(
        self, folder: Path, prepared: subprocess.CompletedProcess[str]
    ) -> None:
        note = "note: pyonmttok is not installed: --subword_type sentencepiece\n"
        assert note in prepared.stderr
        settings = yaml.safe_load((folder / "out/train.yaml").read_text(encoding="utf-8"))
        assert settings["transforms"] == ["sentencepiece"]

    def test_is_trained_and_translated_by_the_printed_commands(
        self, folder: Path, prepared: subprocess.CompletedProcess[str]
    ) -> None:
        _, *commands = prepared.stdout.splitlines()
        train, translate, _ = (shlex.split(command)[1:] for command in commands)
        small = "-rnn_size 16 -word_vec_size 16 -train_steps 2 -warmup_steps 1 -valid_steps 2"
        done = without("pyonmttok", *train, *small.split(), cwd=folder)
        assert done.returncode == 0, done.stderr
        done = without("pyonmttok", *translate, "-beam_size", 1, "-max_length", 5, cwd=folder)
        assert done.returncode == 0, done.stderr
        output = (folder / "out/val.out").read_text(encoding="utf-8")
        assert len(output.splitlines()) == 20
        assert "▁" not in output
