"""What works without pyonmttok, which Python 3.13 and later do not have."""

import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import yaml

from onmt_entmax.cli.parallel_subwords import available_subword_type
from onmt_entmax.libraries import BrokenLibraryError, import_pyonmttok
from tests.hidden_libraries import run_without
from tests.toy import write_config


class TestBleu:
    """The command `bleu` has several tokenisers, of which one is pyonmttok's."""

    COMMAND = ("bleu", "text", "--reference", "text", "--metrics", "bleu")

    @pytest.fixture(autouse=True)
    def text(self, tmp_path: Path) -> None:
        (tmp_path / "text").write_text("a b c d\n", encoding="utf-8")

    def test_is_computed_with_another_tokeniser(self, tmp_path: Path) -> None:
        done = run_without("pyonmttok", *self.COMMAND, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert "BLEU 13a" in done.stdout

    def test_is_refused_with_that_of_pyonmttok(self, tmp_path: Path) -> None:
        done = run_without("pyonmttok", *self.COMMAND, "--tokenize", "onmt", cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr == (
            "onmt-entmax bleu: error: pyonmttok is not installed: pip install pyonmttok "
            "(up to Python 3.12), or name another tokeniser\n"
        )


def test_a_training_that_needs_pyonmttok_names_other_transforms(tmp_path: Path) -> None:
    path = write_config(tmp_path, transforms=["onmt_tokenize"], train_steps=2)
    done = run_without("pyonmttok", "train", "-config", path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "onmt-entmax train: error: the transform onmt_tokenize cannot be made: pyonmttok is not "
        "installed: pip install pyonmttok (up to Python 3.12), or train with the transform "
        "sentencepiece or bpe instead of onmt_tokenize"
    )


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ImportError("libx.so: cannot open"), id="a shared library"),
        pytest.param(
            ModuleNotFoundError("libx.so: cannot open", name="pyonmttok._ext"), id="a part of it"
        ),
    ],
)
def test_a_broken_pyonmttok_is_called_broken_not_missing(
    monkeypatch: pytest.MonkeyPatch, error: ImportError
) -> None:
    finder = SimpleNamespace(find_spec=Mock(side_effect=error))
    monkeypatch.setattr(sys, "meta_path", [finder])
    monkeypatch.delitem(sys.modules, "pyonmttok", raising=False)
    with pytest.raises(BrokenLibraryError) as caught:
        import_pyonmttok("do without")
    assert str(caught.value) == (
        "pyonmttok cannot be imported: libx.so: cannot open; repair it, or do without"
    )


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pyonmttok be installed, but lack a shared library."""
    finder = SimpleNamespace(find_spec=Mock(side_effect=ImportError("libx.so: cannot open")))
    monkeypatch.setattr(sys, "meta_path", [finder])
    monkeypatch.delitem(sys.modules, "pyonmttok", raising=False)


@pytest.mark.usefixtures("broken")
def test_text_is_prepared_with_sentencepiece_if_pyonmttok_is_broken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert available_subword_type(None) == "sentencepiece"
    assert capsys.readouterr().err == (
        "note: pyonmttok cannot be imported (libx.so: cannot open): --subword_type sentencepiece\n"
    )


@pytest.mark.usefixtures("broken")
def test_a_broken_pyonmttok_is_named_to_a_user_who_wants_bpe() -> None:
    with pytest.raises(BrokenLibraryError, match=r"libx\.so: cannot open; repair it, or use"):
        available_subword_type("bpe")


class TestParallelText:
    """`prepare files` divides it into subwords of SentencePiece, unless another type is named."""

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
        done = run_without("pyonmttok", *self.PREPARE, cwd=folder)
        assert done.returncode == 0, done.stderr
        return done

    def test_cannot_be_prepared_with_bpe_which_needs_pyonmttok(self, folder: Path) -> None:
        more = ("--subword_type", "bpe", "--out", "bpe")
        done = run_without("pyonmttok", *self.PREPARE, *more, cwd=folder)
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
        done = run_without("pyonmttok", *train, *small.split(), cwd=folder)
        assert done.returncode == 0, done.stderr
        done = run_without("pyonmttok", *translate, "-beam_size", 1, "-max_length", 5, cwd=folder)
        assert done.returncode == 0, done.stderr
        output = (folder / "out/val.out").read_text(encoding="utf-8")
        assert len(output.splitlines()) == 20
        assert "▁" not in output
