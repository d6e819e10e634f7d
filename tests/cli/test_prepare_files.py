"""`onmt-entmax prepare files`: a whole run from parallel text to the BLEU of translations."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.parallel_pairs import DEV, arguments_with, write_pairs
from tests.cli.preparing import next_commands
from tests.commands import succeed

# --- prepare ---


class Prepared(NamedTuple):
    """A folder that the real command has prepared."""

    folder: Path
    command: list[str]
    printed: str
    """What the command printed."""

    def contents(self) -> dict[str, bytes]:
        """Return the bytes of all files, by name."""
        files = (path for path in sorted((self.folder / "data").rglob("*")) if path.is_file())
        return {path.name: path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, pyonmttok: object) -> Prepared:
    folder = tmp_path_factory.mktemp("prepared")
    write_pairs(folder)
    command = ["prepare", "files", *arguments_with(f"{DEV} --subwords separate")]
    return Prepared(folder, command, succeed("onmt_entmax", *command, cwd=folder))


def test_the_numbers_of_pairs_are_printed(prepared: Prepared) -> None:
    summary = "data: 300 pairs to train on, 20 to validate on, 0 to test on; left out: 0 "
    assert summary in prepared.printed


def test_preparing_again_writes_the_same_files(prepared: Prepared) -> None:
    contents = prepared.contents()
    assert succeed("onmt_entmax", *prepared.command, cwd=prepared.folder) == prepared.printed
    assert prepared.contents() == contents


def test_the_files_are_text_subword_models_and_a_configuration(prepared: Prepared) -> None:
    texts = {f"{part}.{language}" for part in ("train", "val") for language in ("ro", "en")}
    models = {"bpe.ro.model", "bpe.en.model"}
    assert set(prepared.contents()) == texts | models | {"prepare.json", "train.yaml"}


def test_romanian_has_no_diacritics(prepared: Prepared) -> None:
    assert not set("âăşîţ") & set(prepared.contents()["train.ro"].decode())


# --- train, translate, score ---


class Printed(NamedTuple):
    """What the commands printed that `prepare files` names."""

    train: str
    bleu: str


@pytest.fixture(scope="module")
def trained(prepared: Prepared) -> Printed:
    """The printed commands were run, with a smaller model."""
    train, translate, bleu = (
        shlex.split(command)[1:] for command in next_commands(prepared.printed)
    )
    small = ["-rnn_size", 16, "-word_vec_size", 16, "-train_steps", 4, "-warmup_steps", 2]
    small += ["-valid_steps", 2, "-save_checkpoint_steps", 4]
    quick = ["-stop", "first", "-beam_size", 2]
    folder = prepared.folder
    training = succeed("onmt_entmax", *train, *small, cwd=folder)
    succeed("onmt_entmax", *translate, *quick, cwd=folder)
    return Printed(training, succeed("onmt_entmax", *bleu, cwd=folder))


def test_the_validations_of_the_training_measure_bleu(trained: Printed) -> None:
    assert re.search(r"validation .*  BLEU +\d+\.\d+", trained.train)


def test_the_translations_have_a_bleu_score(trained: Printed) -> None:
    assert re.search(r"BLEU 13a.* \d+\.\d+", trained.bleu, re.DOTALL)


@pytest.mark.usefixtures("trained")
def test_translations_come_back_as_text(prepared: Prepared) -> None:
    translations = (prepared.folder / "data" / "val.out").read_text(encoding="utf-8")
    assert translations.count("\n") == 20
    assert "￭" not in translations  # the mark of subwords
