"""What a training prints at its end: the best checkpoint, and a command that uses it."""

import io
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path

import pytest

from onmt_entmax.cli.train import main as train
from onmt_entmax.cli.translate import main as translate
from onmt_entmax.config import VocabularyConfig
from onmt_entmax.data.training import TrainingData
from onmt_entmax.strings.task import INFLECTION, StringTask
from onmt_entmax.strings.units import Unit
from onmt_entmax.train.next_command import next_command
from tests.data.corpora import data_config, write_corpus
from tests.toy import write_config

PHONES = StringTask(target=Unit.between(" "), languages=True)
TAGGED = StringTask(("source", "target", "tags"))


def command_after(folder: Path, sources: list[str], task: StringTask) -> str:
    """Return the next command after a training on these sources."""
    corpus = write_corpus(folder, "x", sources, ["a b"] * len(sources))
    config = replace(data_config(corpus), task=task)
    return next_command(Path("my run"), TrainingData.read(config, VocabularyConfig()))


@pytest.mark.parametrize(
    ("sources", "query"),
    [
        pytest.param(["lang=x +V +PST a b c"], "x abc 'V;PST'", id="the first source"),
        pytest.param(["lang=x a b", "lang=x c"], "x ab ''", id="a language without tags"),
        pytest.param(
            ["lang=x a b", "lang=x +V", "lang=x +V c"],
            "x c V",
            id="the first source with tags and a lemma",
        ),
    ],
)
def test_the_next_command_has_the_tags_of_its_language(
    tmp_path: Path, sources: list[str], query: str
) -> None:
    command = command_after(tmp_path, sources, INFLECTION)
    assert command == f"onmt-entmax inflect --model 'my run' {query}"


def test_the_next_command_predicts_one_string(tmp_path: Path) -> None:
    command = command_after(tmp_path, ["a ▁ b"], StringTask())
    assert command == "echo 'a b' | onmt-entmax predict 'my run' -"


@pytest.mark.parametrize(
    ("task", "source", "command"),
    [
        (
            PHONES,
            "lang=x a ▁ b",
            "echo 'a b' | onmt-entmax predict 'my run' - --language x",
        ),
        (
            replace(PHONES, columns=("language", "source", "-", "target")),
            "lang=x a ▁ b",
            r"printf '%s\t%s\n' x 'a b' | onmt-entmax predict 'my run' -",
        ),
        (
            TAGGED,
            "+V +PST a ▁ b",
            r"printf '%s\t%s\n' 'a b' 'V;PST' | onmt-entmax predict 'my run' -",
        ),
        (
            replace(PHONES, columns=("tags", "source", "target")),
            "lang=x +V +PST a ▁ b",
            r"printf '%s\t%s\n' 'V;PST' 'a b' | onmt-entmax predict 'my run' - --language x",
        ),
    ],
    ids=["a language", "a column of languages", "tags", "a language and tags"],
)
def test_the_next_command_writes_a_row_of_the_columns(
    tmp_path: Path, task: StringTask, source: str, command: str
) -> None:
    assert command_after(tmp_path, [source], task) == command


# --- the last lines of a training ----------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("last-lines")


@pytest.fixture(scope="module")
def lines(folder: Path) -> list[str]:
    """What a training of four updates prints at its end."""
    config = write_config(folder, train_steps=4, valid_steps=4, valid_loss_size=20)
    with redirect_stderr(io.StringIO()) as printed:
        assert train(["-config", str(config)]) == 0
    return printed.getvalue().splitlines()[-3:]


def test_a_training_says_how_it_ended(lines: list[str]) -> None:
    assert lines[0] == "finished at step 4 (train_steps)"


def test_a_training_names_its_best_checkpoint(lines: list[str], folder: Path) -> None:
    assert lines[1].startswith(f"best checkpoint: {folder}/run/step_4, loss ")
    assert lines[1].endswith(" on the development set (at most 20 pairs)")


def test_a_training_ends_with_a_command_that_can_be_pasted(lines: list[str], folder: Path) -> None:
    next_, program, command, *arguments = lines[2].split()
    assert (next_, program, command) == ("next:", "onmt-entmax", "translate")
    assert translate(arguments) == 0
    assert len((folder / "valid.out").read_text().splitlines()) == 40
