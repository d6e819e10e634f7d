"""Run folders: which checkpoint a run continues from, with which changes, and what is refused."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from onmt_entmax.checkpoint import (
    STATE,
    CheckpointError,
    best_step,
    checkpoint_steps,
    find_model,
    load,
)
from onmt_entmax.cli.train import main as train
from onmt_entmax.errors import UserError
from onmt_entmax.files import FileError, locked
from onmt_entmax.files.checksums import write_list
from onmt_entmax.model import build_model
from onmt_entmax.train.run_folder import RunFolder, prune, remember_best, remove_checkpoint
from tests.commands import weights
from tests.models import SMALL, VOCABULARIES
from tests.toy import write_config

State = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train six updates, with a checkpoint every two; a copy of the run is in `pristine`."""
    folder = tmp_path_factory.mktemp("resuming")
    path = write_config(
        folder, train_steps=6, save_checkpoint_steps=2, valid_steps=2, rnn_size=8, report_every=1,
        overwrite=True,  # has no effect in a file
    )  # fmt: skip
    assert train(["-config", str(path)]) == 0
    shutil.copytree(folder / "run", folder / "pristine")
    return folder


@pytest.fixture
def run(folder: Path) -> Path:
    """The run of six updates, as it was."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    return Path(shutil.copytree(folder / "pristine", folder / "run"))


@pytest.fixture
def arguments(folder: Path, run: Path) -> list[str]:
    """The arguments of that run."""
    return ["-config", str(folder / "toy.yaml")]


def train_again(arguments: list[str], *more: object) -> int:
    """Train with further arguments; return the exit status."""
    return train([*arguments, *map(str, more)])


def change_state(folder: Path, change: Callable[[State], object]) -> None:
    """Change the training state of a checkpoint, and write its checksum again."""
    state = torch.load(folder / STATE, weights_only=True)
    change(state)
    torch.save(state, folder / STATE)
    write_list(folder)


def change_run_state(folder: Path, **values: object) -> None:
    """Change fields of the entry `run` of a checkpoint."""
    change_state(folder, lambda state: state["run"].update(values))


# --- the folder of a run ---------------------------------------------------------------------


def test_a_run_keeps_the_newest_and_the_best(tmp_path: Path) -> None:
    model = build_model(SMALL, VOCABULARIES)
    folder = RunFolder(tmp_path / "run", SMALL, VOCABULARIES, {}, keep=2)
    for step in (1, 2, 3, 4, 5):
        folder.save(step, model, {"step": step})
        if step == 2:
            remember_best(folder.path, 2, "loss", 0.1)
    assert checkpoint_steps(folder.path) == [2, 4, 5]
    assert find_model(folder.path).name == "step_2"


def test_a_best_checkpoint_that_was_deleted_is_replaced(arguments, run: Path, capsys) -> None:
    change_run_state(run / "step_6", best=0.0, best_step=2)
    remember_best(run, 2, "loss", 0.0)
    remove_checkpoint(run, 2)
    capsys.readouterr()
    assert train_again(arguments, "-train_from", run, "-train_steps", 8, "-valid_steps", 8) == 0
    printed = capsys.readouterr().err
    assert f"warning: {run}: step_2, the best checkpoint so far, is gone" in printed
    assert f"best checkpoint: {run}/step_8" in printed
    assert best_step(run) == 8


def test_a_run_without_a_validation_names_its_last_checkpoint(arguments, run: Path, capsys) -> None:
    (run / "best.json").unlink()
    change_run_state(run / "step_6", best=None, best_step=-1)
    assert train_again(arguments, "-train_from", run, "-valid_steps", 100) == 0
    assert f"last checkpoint: {run}/step_6" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("keep", "kept"), [(1, [8]), (5, [4, 5, 6, 7, 8]), (10, [*range(1, 9)]), (-1, [*range(1, 9)])]
)
def test_the_newest_checkpoints_are_kept(tmp_path: Path, keep: int, kept: list[int]) -> None:
    """Checkpoint 99 is damaged: the run continued from one before."""
    (tmp_path / "step_99").mkdir()
    for step in range(1, 9):
        (tmp_path / f"step_{step}").mkdir()
        prune(tmp_path, keep, step)
    assert checkpoint_steps(tmp_path) == [*kept, 99]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-train_from", "missing"], "no such model folder"),
        (["-data", '{"a": {"path_src": "missing", "path_tgt": "missing"}}'], "missing"),
        (["-transforms", "filtertoolong", "-src_seq_length", "1"], "no pair is left"),
    ],
)
def test_a_refused_start_writes_no_file(tmp_path: Path, more: Sequence[str], message: str) -> None:
    path = write_config(tmp_path, save_model=str(tmp_path / "new" / "run"))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=message):
        train_again(["-config", str(path)], *more)
    left = {path.name for path in tmp_path.rglob("*")} - {path.name for path in before}
    assert left <= {"new", "run", ".lock"}


def test_a_folder_in_which_another_process_trains_is_left_alone(
    arguments: list[str], run: Path
) -> None:
    """A second run would delete the checkpoint and the log that the first is writing."""
    (run / ".step_3.123.tmp").mkdir()  # a checkpoint that is being written
    before = sorted(run.iterdir())
    with locked(run):
        with pytest.raises(FileError, match="run: another process works here"):
            train_again(arguments, "-train_from", run, "-train_steps", 7)
        assert sorted(run.iterdir()) == before


def test_checkpoints_that_a_killed_run_was_writing_are_mended(
    arguments: list[str], run: Path, capsys
) -> None:
    (run / ".step_3.123.tmp").mkdir()
    (run / "step_6").rename(run / ".step_6.old")  # it was being replaced
    assert train_again(arguments, "-train_from", run, "-train_steps", 7) == 0
    assert not (run / ".step_3.123.tmp").exists()
    assert f"continuing from {run}/step_6\n" in capsys.readouterr().err


# --- overwriting -----------------------------------------------------------------------------


BACK = ("-train_steps", 4, "-learning_rate", 0.1)


def test_going_back_needs_overwrite(arguments: list[str], run: Path) -> None:
    with pytest.raises(CheckpointError, match="later steps, up to 6; delete them with -overwrite"):
        train_again(arguments, "-train_from", run / "step_2", *BACK)


def test_going_back_does_not_mix_with_what_came_later(arguments: list[str], run: Path) -> None:
    before = weights(run, 4)
    assert train_again(arguments, "-train_from", run / "step_2", *BACK, "-overwrite") == 0
    assert checkpoint_steps(run) == [2, 4]
    assert best_step(run) in (2, 4)
    assert not all(weights(run, 4)[name].equal(tensor) for name, tensor in before.items())
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert max(steps) == 4


class TestOverwriting:
    @pytest.fixture
    def vocabularies(self, tmp_path: Path) -> list[Path]:
        """Vocabulary files that are not there yet."""
        return [tmp_path / "vocab.src", tmp_path / "vocab.tgt"]

    @pytest.fixture
    def vocabulary_options(self, vocabularies: list[Path]) -> list[object]:
        return ["-src_vocab", vocabularies[0], "-tgt_vocab", vocabularies[1]]

    def test_is_asked_for(self, arguments: list[str]) -> None:
        with pytest.raises(CheckpointError, match=r"already holds checkpoints; .* -train_from"):
            train_again(arguments)

    def test_of_a_start_that_is_refused_deletes_and_writes_nothing(
        self, arguments: list[str], run: Path, vocabularies, vocabulary_options
    ) -> None:
        no_pair = ["-transforms", "filtertoolong", "-src_seq_length", 1]
        with pytest.raises(UserError, match="no pair is left"):
            train_again(arguments, "-overwrite", *vocabulary_options, *no_pair)
        assert checkpoint_steps(run) == [2, 4, 6]
        assert not any(path.exists() for path in vocabularies)

    def test_waits_until_the_vocabulary_can_be_written(
        self, arguments: list[str], run: Path, folder: Path
    ) -> None:
        under_a_file = folder / "train.src" / "vocab"
        with pytest.raises(UserError, match="cannot be written"):
            train_again(arguments, "-overwrite", "-src_vocab", under_a_file)
        assert checkpoint_steps(run) == [2, 4, 6]

    def test_says_what_it_deletes_and_writes(
        self, arguments: list[str], run: Path, vocabularies, vocabulary_options, capsys
    ) -> None:
        before = weights(run, 6)
        capsys.readouterr()
        assert train_again(arguments, "-overwrite", *vocabulary_options) == 0
        printed = capsys.readouterr().err
        assert f"-overwrite: deletes from {run}: step_2, step_4, step_6\n" in printed
        assert f"note: {vocabularies[0]}: was not there; written" in printed
        assert all(path.exists() for path in vocabularies)
        # The data is read before the old run is deleted, which changes no random number.
        for name, tensor in weights(run, 6).items():
            assert tensor.equal(before[name])


# --- another folder --------------------------------------------------------------------------


def test_a_new_run_from_old_weights_does_not_overwrite_them(
    arguments: list[str], run: Path
) -> None:
    anew = ["-train_from", run, "-reset_optim", "all", "-train_steps", 2]
    with pytest.raises(CheckpointError, match="choose another save_model"):
        train_again(arguments, *anew, "-overwrite")


def test_a_new_run_from_old_weights_has_its_own_folder(
    arguments: list[str], run: Path, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    anew = ["-train_from", run, "-reset_optim", "all", "-train_steps", 2, "-save_model", new]
    assert train_again(arguments, *anew) == 0
    assert checkpoint_steps(new) == [2]


class TestContinuingInAnotherFolder:
    @pytest.fixture
    def other(self, run: Path, tmp_path: Path) -> Path:
        """A folder that holds a checkpoint."""
        (tmp_path / "other" / "step_2").mkdir(parents=True)
        return tmp_path / "other"

    def test_that_holds_checkpoints_is_refused(
        self, arguments: list[str], run: Path, other: Path
    ) -> None:
        with pytest.raises(CheckpointError, match="already holds checkpoints"):
            train_again(arguments, "-train_from", run, "-train_steps", 8, "-save_model", other)

    def test_gives_the_same_weights(self, arguments: list[str], run: Path, other: Path) -> None:
        back = ["-train_from", run / "step_2", "-train_steps", 4, "-overwrite"]
        assert train_again(arguments, *back, "-save_model", other) == 0
        name = "generator.weight"
        assert weights(other, 4)[name].equal(weights(run, 4)[name])


def test_a_model_folder_is_no_run_folder(arguments: list[str], run: Path) -> None:
    with pytest.raises(CheckpointError, match="is a model itself"):
        train_again(arguments, "-save_model", run / "step_2")


# --- nothing left to train -------------------------------------------------------------------


def test_a_run_that_ended_in_its_time_has_nothing_left(
    arguments: list[str], run: Path, capsys
) -> None:
    """Its last checkpoint was begun when its time was not over yet."""
    change_run_state(run / "step_6", seconds=97.0, validating=4.0, saving=3.0)
    assert train_again(arguments, "-train_from", run, "-max_seconds", 100, "-train_steps", 9) == 0
    assert "nothing is left to train: step 6, max_seconds 100" in capsys.readouterr().err
    assert checkpoint_steps(run)[-1] == 6


def test_a_run_that_has_reached_its_limit_has_nothing_left(
    arguments: list[str], run: Path, capsys
) -> None:
    assert train_again(arguments, "-train_from", run) == 0
    assert "note: nothing is left to train: step 6, train_steps 6\n" in capsys.readouterr().err
    assert checkpoint_steps(run) == [2, 4, 6]


def test_a_run_that_has_reached_its_limit_is_not_continued_in_another_folder(
    arguments: list[str], run: Path, tmp_path: Path
) -> None:
    message = "nothing is left to train: .*; set a higher limit, or take the weights"
    with pytest.raises(CheckpointError, match=message):
        train_again(arguments, "-train_from", run, "-save_model", tmp_path / "new")
    assert not (tmp_path / "new").exists()


# --- damaged checkpoints ---------------------------------------------------------------------


def write_damaged(folder: Path) -> None:
    (folder / STATE).write_bytes(b"damaged")


def drop_a_row_of_a_moment(state: State) -> None:
    moments = state["optimizer"][0]
    moments["exp_avg"] = moments["exp_avg"][:-1]


def forget_random_states(state: State) -> None:
    del state["random"]


def add_moments_of_no_weight(state: State) -> None:
    state["optimizer"][999] = state["optimizer"][0]


def write_the_step_as_a_word(state: State) -> None:
    state["run"]["step"] = "six"


def write_the_position_as_a_number(state: State) -> None:
    state["position"] = 7


def add_weights_of_another_shape(state: State) -> None:
    state["raw_weights"] = [torch.zeros(2)]


@pytest.mark.parametrize(
    "change",
    [
        None,
        drop_a_row_of_a_moment,
        forget_random_states,
        add_moments_of_no_weight,
        write_the_step_as_a_word,
        write_the_position_as_a_number,
        add_weights_of_another_shape,
    ],
)
def test_a_damaged_checkpoint_costs_no_whole_one(
    arguments: list[str], run: Path, capsys, change: Callable[[State], None] | None
) -> None:
    """Also one whose checksum is right; the checkpoint before is taken."""
    if change is None:
        write_damaged(run / "step_6")
    else:
        change_state(run / "step_6", change)
    (run / "best.json").unlink()
    more = ["-train_steps", 5, "-save_checkpoint_steps", 1, "-keep_checkpoint", 1]
    capsys.readouterr()
    assert train_again(arguments, "-train_from", run, *more) == 0
    printed = capsys.readouterr().err
    assert f"continuing from {run}/step_4\n" in printed
    assert printed.count("warning: ") == printed.count("; trying the checkpoint before\n") == 1
    load(run / "step_5")
    with pytest.raises(CheckpointError, match="step_6"):
        train_again(arguments, "-train_from", run / "step_6", *more)


# --- what may change -------------------------------------------------------------------------


def test_another_network_or_optimiser_is_refused_by_name(arguments: list[str], run: Path) -> None:
    for option, value, message in (
        ("-rnn_size", 16, "rnn_size 8, the configuration now says 16$"),
        ("-global_attention_function", "softmax", "global_attention_alpha 1.5, .* says 1.0$"),
        ("-freeze_encoder", "true", "freeze_encoder False, .* True; -reset_optim all"),
        ("-optim", "adagrad", "optim 'adam', .* 'adagrad'; -reset_optim all"),
        ("-adam_beta1", 0.8, "adam_beta1 0.9, .* 0.8; -reset_optim all"),
        ("-target_order", "right_to_left", "target_order 'left_to_right', .* 'right_to_left'"),
        ("-copy_frequency", 2, "copying .* False, the configuration now says True"),
        ("-transforms", "tokenmask", "run: cannot continue: .* '<mask>'"),  # read as <unk>
    ):
        with pytest.raises(CheckpointError, match=message):
            train_again(arguments, "-train_from", run, "-train_steps", 8, option, value)
    assert checkpoint_steps(run) == [2, 4, 6]


class TestFrozenParts:
    """The encoder can be frozen where the optimiser begins anew."""

    OPTIONS = ("-freeze_encoder", "-freeze_word_vecs_enc")

    @pytest.fixture
    def frozen(self, arguments: list[str], run: Path, tmp_path: Path) -> Path:
        """A run of two updates whose encoder was frozen at step 6 of `run`."""
        anew = ["-train_from", run, "-reset_optim", "all", "-train_steps", 2]
        folder = tmp_path / "frozen"
        assert train_again(arguments, *anew, *self.OPTIONS, "-save_model", folder) == 0
        return folder

    def test_keep_their_weights(self, frozen: Path, run: Path) -> None:
        before, after = weights(run, 6), weights(frozen, 2)
        for name, tensor in before.items():
            assert after[name].equal(tensor) == name.startswith("encoder."), name

    def test_stay_frozen_in_the_run_that_continues(
        self, arguments: list[str], frozen: Path, run: Path
    ) -> None:
        more = ["-train_from", frozen, "-train_steps", 4, "-save_model", frozen]
        assert train_again(arguments, *more, *self.OPTIONS) == 0
        name = "encoder.embeddings.make_embedding.emb_luts.0.weight"
        assert weights(frozen, 4)[name].equal(weights(run, 6)[name])

    def test_are_trained_in_another_run(
        self, arguments: list[str], frozen: Path, tmp_path: Path
    ) -> None:
        anew = ["-train_from", frozen, "-reset_optim", "all", "-train_steps", 2]
        assert train_again(arguments, *anew, "-save_model", tmp_path / "free") == 0
        before, after = weights(frozen, 2), weights(tmp_path / "free", 2)
        assert not any(after[name].equal(tensor) for name, tensor in before.items())


# --- the best checkpoint after a change ------------------------------------------------------


# A value of `selection` better than any that a later checkpoint of the run can have.
UNREACHED = {"best": 1e9, "best_planned": 1e9, "waited": 5}
ACCURACY = ("-selection", "token_accuracy", "-keep_checkpoint", 1)
FEWER_PAIRS = ("-valid_loss_size", 2)


def test_the_best_of_another_folder_does_not_count(
    arguments: list[str], run: Path, tmp_path: Path
) -> None:
    """Even if it is better."""
    other = tmp_path / "other"
    worse = ["-train_steps", 8, "-learning_rate", 1e-9, "-dropout", 0.9]
    assert train_again(arguments, "-train_from", run / "step_2", "-save_model", other, *worse) == 0
    assert best_step(other) in (4, 6, 8)


def test_the_best_by_another_measure_does_not_count(arguments: list[str], run: Path) -> None:
    change_run_state(run / "step_6", **UNREACHED)
    assert train_again(arguments, "-train_from", run, *ACCURACY, "-train_steps", 8) == 0
    assert best_step(run) == 8
    assert checkpoint_steps(run) == [8]


class TestTheBestOfAnotherDevelopmentSet:
    @pytest.fixture
    def accurate(self, arguments: list[str], run: Path) -> Path:
        """The run, with a best checkpoint by accuracy that cannot be reached: step 8."""
        assert train_again(arguments, "-train_from", run, *ACCURACY, "-train_steps", 8) == 0
        change_run_state(run / "step_8", **UNREACHED)
        return run

    def test_does_not_count_if_the_set_has_fewer_pairs(
        self, arguments: list[str], accurate: Path
    ) -> None:
        more = ["-train_from", accurate, *ACCURACY, *FEWER_PAIRS, "-train_steps", 10]
        assert train_again(arguments, *more) == 0
        assert best_step(accurate) == 10
        assert checkpoint_steps(accurate) == [10]

    def test_does_not_count_if_the_set_is_another_corpus(
        self, arguments: list[str], accurate: Path
    ) -> None:
        corpora = yaml.safe_load(Path(arguments[1]).read_text())["data"]
        corpora["valid"] = corpora["corpus_1"]
        more = ["-train_from", accurate, *ACCURACY, "-data", json.dumps(corpora)]
        assert train_again(arguments, *more, "-train_steps", 10) == 0
        assert best_step(accurate) == 10

    def test_counts_if_nothing_changed(self, arguments: list[str], accurate: Path) -> None:
        more = ["-train_from", accurate, *ACCURACY, "-train_steps", 10]
        assert train_again(arguments, *more) == 0
        assert best_step(accurate) == 8
        assert checkpoint_steps(accurate) == [8, 10]


# --- data that does not fit ------------------------------------------------------------------


def train_and_add_tokens(folder: Path, rare: int = 0, tags: int = 1) -> list[str]:
    """Train one update; then add a language, tags and a target token to the first pair.

    Args:
        folder: of the corpora and the run.
        rare: source tokens of lower frequency are not in the vocabulary.
        tags: how often the first source has the new tag.

    Returns:
        The arguments of the training.
    """
    changes = {"train_steps": 1, "save_checkpoint_steps": 1, "valid_steps": 1, "rnn_size": 8}
    arguments = ["-config", str(write_config(folder, src_words_min_frequency=rare, **changes))]
    source, target = folder / "train.src", folder / "train.tgt"
    _, *lines = source.read_text().splitlines(keepends=True)
    others = "".join(f"lang=x {line}" for line in lines)
    source.write_text(f"lang=x a\n{others}")
    assert train(arguments) == 0
    source.write_text(f"lang=y {'+z ' * tags}a\n{others}")
    target.write_text(f"z {target.read_text()}")
    return arguments


@pytest.mark.parametrize(
    ("rare", "tags", "tokens"),
    [(0, 1, "'lang=y', '+z'"), (2, 1, "'lang=y'"), (2, 99, "'+z' (99), 'lang=y'")],
    ids=["all tokens", "not a rare tag", "a frequent tag"],
)
def test_new_tokens_of_the_data_are_warned_of(
    rare: int, tags: int, tokens: str, tmp_path: Path, capsys
) -> None:
    """A resumed run keeps its vocabulary, which may lack rare tokens on purpose."""
    arguments = train_and_add_tokens(tmp_path, rare, tags)
    assert "only a new run" not in capsys.readouterr().err
    assert train_again(arguments, "-train_from", tmp_path / "run") == 0
    printed = capsys.readouterr().err
    assert f" source tokens of the training data: {tokens}; only a new run" in printed
    assert " target tokens of the training data: 'z'; only a new run" in printed


def test_a_language_that_is_not_in_the_vocabulary_is_not_recorded(tmp_path: Path) -> None:
    arguments = train_and_add_tokens(tmp_path)
    assert train_again(arguments, "-train_from", tmp_path / "run", "-train_steps", 2) == 0
    assert load(tmp_path / "run" / "step_2").vocabularies.source.seen == {
        "lang=x": frozenset("abcdef")
    }


def test_damaged_cells_are_counted_again_with_a_warning(tmp_path: Path, capsys) -> None:
    """They are derived from the data."""
    arguments = train_and_add_tokens(tmp_path)
    (tmp_path / "run" / "step_1" / "cells.tsv").write_text("damaged")
    assert train_again(arguments, "-train_from", tmp_path / "run") == 0
    assert "cells.tsv: its content is not what was written" in capsys.readouterr().err
