"""`onmt-entmax prepare files`: from parallel text to subwords and the YAML that goes with them."""

import gzip
import json
import random
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from onmt_entmax.cli import prepare_files
from tests.commands import succeed
from tests.in_process import exit_status, refusal

WORDS = {
    "en": "the dog runs across the street and barks , because it hunts cats .".split(),
    "ro": "câinele aleargă peste stradă şi latră , pentru că vânează pisici .".split(),
}


def sentences(language: str, count: int) -> list[str]:
    """Return lines that have as many words as those of the other language."""
    generator = random.Random(3)
    return [
        " ".join(generator.choices(WORDS[language], k=generator.randint(3, 9)))
        for _ in range(count)
    ]


def write_pairs(folder: Path) -> None:
    """Write 300 pairs to train on, and 20 for development or test."""
    for language in WORDS:
        lines = [f"{line}\n" for line in sentences(language, 320)]
        (folder / f"train.{language}").write_text("".join(lines[:300]), encoding="utf-8")
        (folder / f"dev.{language}").write_text("".join(lines[300:]), encoding="utf-8")


def arguments_of(**changes: Sequence[object]) -> list[str]:
    """Return the arguments of `prepare files` for the pairs; an option may be changed or added."""
    options: dict[str, Sequence[object]] = {
        "languages": ["ro", "en"],
        "train": ["train.ro", "train.en"],
        "symbols": [60],
        "out": ["data"],
        **changes,
    }
    return [str(word) for name, values in options.items() for word in (f"--{name}", *values)]


DEV = {"val": ["dev.ro", "dev.en"]}


# --- a whole run: prepare, train, translate, score ---


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
    command = ["prepare", "files", *arguments_of(**DEV), "--subwords", "separate"]
    return Prepared(folder, command, succeed("onmt_entmax", *command, cwd=folder))


def test_the_numbers_of_pairs_are_printed(prepared: Prepared) -> None:
    summary = "data: 300 pairs to train on, 20 to validate on, 0 to test on; left out: 0 "
    assert summary in prepared.printed


def test_a_second_run_does_the_same(prepared: Prepared) -> None:
    contents = prepared.contents()
    assert succeed("onmt_entmax", *prepared.command, cwd=prepared.folder) == prepared.printed
    assert prepared.contents() == contents


def test_the_files_are_text_subword_models_and_a_configuration(prepared: Prepared) -> None:
    texts = {f"{part}.{language}" for part in ("train", "val") for language in ("ro", "en")}
    models = {"bpe.ro.model", "bpe.en.model"}
    assert set(prepared.contents()) == texts | models | {"prepare.json", "train.yaml"}


def test_romanian_has_no_diacritics(prepared: Prepared) -> None:
    assert not set("âăşîţ") & set(prepared.contents()["train.ro"].decode())


class Printed(NamedTuple):
    """What the commands printed that `prepare files` names."""

    train: str
    bleu: str


@pytest.fixture(scope="module")
def trained(prepared: Prepared) -> Printed:
    """Run the printed commands, with a smaller model."""
    # The standard output comes first, then, on the standard error, what is being learned.
    _, *commands = prepared.printed[: prepared.printed.index("learning")].splitlines()
    train, translate, bleu = (shlex.split(command)[1:] for command in commands)
    small = ["-rnn_size", 16, "-word_vec_size", 16, "-train_steps", 4, "-warmup_steps", 2]
    small += ["-valid_steps", 2, "-save_checkpoint_steps", 4]
    quick = ["-stop", "first", "-beam_size", 2]
    folder = prepared.folder
    training = succeed("train.py", *train[1:], *small, cwd=folder)
    succeed("translate.py", *translate[1:], *quick, cwd=folder)
    return Printed(training, succeed("onmt_entmax", "bleu", *bleu[1:], cwd=folder))


def test_the_training_reports_bleu(trained: Printed) -> None:
    assert "  BLEU " in trained.train


def test_the_translations_have_a_bleu_score(trained: Printed) -> None:
    assert "BLEU 13a" in trained.bleu


@pytest.mark.usefixtures("trained")
def test_translations_come_back_as_text(prepared: Prepared) -> None:
    translations = (prepared.folder / "data" / "val.out").read_text(encoding="utf-8")
    assert translations.count("\n") == 20
    assert "￭" not in translations  # the mark of subwords


# --- options ---


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the pairs."""
    monkeypatch.chdir(tmp_path)
    write_pairs(tmp_path)
    return tmp_path


def line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


@pytest.mark.usefixtures("pyonmttok")
def test_paths_of_a_configuration_may_have_spaces_and_yaml_marks(folder: Path) -> None:
    out = Path("it: is #1")
    assert exit_status(prepare_files.main, arguments_of(out=[out], **DEV)) == 0
    settings = yaml.safe_load((out / "train.yaml").read_text())
    assert settings["src_subword_model"] == str(out / "bpe.model")
    assert settings["data"]["valid"]["path_tgt"] == str(out / "val.en")


@pytest.fixture
def held_out(folder: Path, pyonmttok: object) -> Path:
    """The output of a run that holds out ten pairs, and leaves out those of unequal lengths."""
    options = {"val_size": [10], "test": ["dev.ro", "dev.en"], "max_ratio": [1.5]}
    assert exit_status(prepare_files.main, arguments_of(**options)) == 0
    return folder / "data"


def test_few_pairs_take_the_fewest_updates(held_out: Path) -> None:
    settings = yaml.safe_load((held_out / "train.yaml").read_text())
    assert (settings["train_steps"], settings["valid_steps"]) == (2_000, 250)


def test_a_development_set_is_held_out(held_out: Path) -> None:
    assert line_count(held_out / "val.en") == 10


def test_a_test_set_is_copied(folder: Path, held_out: Path) -> None:
    assert (held_out / "test" / "test.en").read_text() == (folder / "dev.en").read_text()


def test_the_record_says_where_all_pairs_are(held_out: Path) -> None:
    pairs: dict[str, Any] = json.loads((held_out / "prepare.json").read_text())["pairs"]
    to_train_on = line_count(held_out / "train.en")
    assert pairs["unfit"] > 0
    assert pairs["read"] == to_train_on + 10 + pairs["shared_with_val"] + pairs["unfit"]


# --- errors ---


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param(
            {"dev.en": b"one\n"}, "dev.en: 1 line, but dev.ro has 20;", id="lengths differ"
        ),
        pytest.param(
            {"dev.en": b"a\n" + b"\n" * 19},
            "dev.en: line 2 is empty on one side",
            id="a line without a partner",
        ),
        pytest.param({"train.ro": None}, "no such file, nor with .xz or .gz", id="a missing file"),
        pytest.param(
            {"train.ro": None, "train.ro.gz": gzip.compress(b"a\n")[:-9]},
            "train.ro.gz: cannot read",
            id="a cut archive",
        ),
        pytest.param({"train.ro": b"a\n\xff\n"}, ":2: not UTF-8 text", id="another encoding"),
        pytest.param(
            {"data": b"a file"},
            "cannot be written, since data is a file, not a folder",
            id="a file in place of the folder",
        ),
    ],
)
def test_a_bad_file_is_one_line_and_nothing_is_written(
    changes: dict[str, bytes | None], message: str, folder: Path
) -> None:
    """The changes name contents of files; None is a file that is missing."""
    for name, content in changes.items():
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)
    assert message in refusal(prepare_files.main, arguments_of(**DEV), progress=True)
    assert not (folder / "data" / "train.ro").exists()
