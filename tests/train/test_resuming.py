"""Run folders: which checkpoint a run continues from, with which changes, and what is refused."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from onmt_entmax.checkpoint import (
    STATE,
    CheckpointError,
    RunFolder,
    best_step,
    checkpoint_steps,
    find_model,
    load,
    prune,
    remember_best,
    remove_checkpoint,
)
from onmt_entmax.cli.train import main as train
from onmt_entmax.errors import UserError
from onmt_entmax.files import FileError, locked
from onmt_entmax.files.checksums import write_list
from onmt_entmax.model import build_model
from tests.commands import weights
from tests.models import SMALL, VOCABULARIES
from tests.toy import write_config


@pytest.fixture
def begun(tmp_path: Path) -> list[str]:
    """Train six updates with a checkpoint every two; return the arguments."""
    path = write_config(
        tmp_path, train_steps=6, save_checkpoint_steps=2, valid_steps=2, rnn_size=8, report_every=1,
        overwrite=True,  # has no effect in a file
    )  # fmt: skip
    assert train(["-config", str(path)]) == 0
    return ["-config", str(path)]


def changed(begun: list[str], *more: object) -> int:
    return train([*begun, *map(str, more)])


def change_state(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the training state of a checkpoint, and sign it again."""
    state = torch.load(folder / STATE, weights_only=True)
    change(state)
    torch.save(state, folder / STATE)
    write_list(folder)


# --- the folder of a run ---------------------------------------------------------------------


def test_a_run_keeps_the_newest_and_the_best(tmp_path: Path) -> None:
    model = build_model(SMALL, VOCABULARIES)
    run = RunFolder(tmp_path / "run", SMALL, VOCABULARIES, {}, keep=2)
    for step in (1, 2, 3, 4, 5):
        run.save(step, model, {"step": step})
        if step == 2:
            remember_best(run.path, 2, "loss", 0.1)
    assert checkpoint_steps(run.path) == [2, 4, 5]
    assert find_model(run.path).name == "step_2"


def test_a_best_checkpoint_that_is_gone_is_said_and_replaced(begun, tmp_path: Path, capsys) -> None:
    run = tmp_path / "run"
    change_state(run / "step_6", lambda state: state["run"].update(best=0.0, best_step=2))
    remember_best(run, 2, "loss", 0.0)
    remove_checkpoint(run, 2)
    capsys.readouterr()
    assert changed(begun, "-train_from", run, "-train_steps", 8, "-valid_steps", 8) == 0
    said = capsys.readouterr().err
    assert f"warning: {run}: step_2, the best checkpoint so far, is gone" in said
    assert f"best checkpoint: {run}/step_8" in said
    assert best_step(run) == 8
    remove_checkpoint(run, 8)
    change_state(run / "step_6", lambda state: state["run"].update(best=None, best_step=-1))
    assert changed(begun, "-train_from", run, "-valid_steps", 100) == 0
    assert f"last checkpoint: {run}/step_6" in capsys.readouterr().err


@pytest.mark.parametrize("keep", [1, 5, 10, -1])
def test_as_many_checkpoints_stay_as_asked_for(tmp_path: Path, keep: int) -> None:
    (tmp_path / "step_99").mkdir()  # damaged: the run continued from one before
    for step in range(1, 9):
        (tmp_path / f"step_{step}").mkdir()
        prune(tmp_path, keep, step)
        first = 1 if keep < 0 else max(step - keep + 1, 1)
        assert checkpoint_steps(tmp_path) == [*range(first, step + 1), 99]


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
        changed(["-config", str(path)], *more)
    left = {path.name for path in tmp_path.rglob("*")} - {path.name for path in before}
    assert left <= {"new", "run", ".lock"}


def test_a_folder_in_which_another_process_trains_is_left_alone(
    begun: list[str], tmp_path: Path, capsys
) -> None:
    """A second run would delete the checkpoint and the log that the first is writing."""
    run = tmp_path / "run"
    (run / ".step_3.123.tmp").mkdir()  # a checkpoint that is being written, or was when it died
    (run / "step_6").rename(run / ".step_6.old")  # and one that was being replaced
    before = sorted(run.iterdir())
    with locked(run):
        with pytest.raises(FileError, match="run: another process works here"):
            changed(begun, "-train_from", run, "-train_steps", 7)
        assert sorted(run.iterdir()) == before
    assert changed(begun, "-train_from", run, "-train_steps", 7) == 0
    assert not (run / ".step_3.123.tmp").exists()
    assert f"continuing from {run}/step_6\n" in capsys.readouterr().err


# --- overwriting -----------------------------------------------------------------------------


def test_going_back_does_not_mix_with_what_came_later(begun: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    back = ["-train_from", run / "step_2", "-train_steps", 4, "-learning_rate", 0.1]
    with pytest.raises(CheckpointError, match="later steps, up to 6; delete them with -overwrite"):
        changed(begun, *back)
    before = weights(run, 4)
    assert changed(begun, *back, "-overwrite") == 0
    assert checkpoint_steps(run) == [2, 4]
    assert best_step(run) in (2, 4)
    assert not all(weights(run, 4)[name].equal(tensor) for name, tensor in before.items())
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert max(steps) == 4


def test_overwriting_waits_until_the_new_run_is_known_to_begin(
    begun: list[str], tmp_path: Path, capsys
) -> None:
    run, vocabularies = tmp_path / "run", [tmp_path / "vocab.src", tmp_path / "vocab.tgt"]
    named = ["-src_vocab", vocabularies[0], "-tgt_vocab", vocabularies[1]]
    kept = weights(run, 6)
    with pytest.raises(CheckpointError, match="already holds checkpoints; continue with -train_f"):
        changed(begun)
    for more, message in (
        ([*named, "-transforms", "filtertoolong", "-src_seq_length", 1], "no pair is left"),
        (["-src_vocab", tmp_path / "train.src" / "vocab"], "cannot be written"),  # under a file
    ):
        with pytest.raises(UserError, match=message):
            changed(begun, "-overwrite", *more)
        assert checkpoint_steps(run) == [2, 4, 6]
    assert not any(path.exists() for path in vocabularies)
    capsys.readouterr()
    assert changed(begun, "-overwrite", *named) == 0
    told = capsys.readouterr().err
    assert f"-overwrite: deletes from {run}: step_2, step_4, step_6\n" in told
    assert f"note: {vocabularies[0]}: was not there; written" in told
    assert all(path.exists() for path in vocabularies)
    for name, tensor in weights(run, 6).items():  # that its data was read before changes nothing
        assert tensor.equal(kept[name])


def test_a_new_run_from_old_weights_needs_a_folder_of_its_own(
    begun: list[str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    anew = ["-train_from", run, "-reset_optim", "all", "-train_steps", 2]
    with pytest.raises(CheckpointError, match="choose another save_model"):
        changed(begun, *anew, "-overwrite")
    assert changed(begun, *anew, "-save_model", tmp_path / "new") == 0
    assert checkpoint_steps(tmp_path / "new") == [2]
    with pytest.raises(CheckpointError, match="already holds checkpoints"):
        changed(begun, "-train_from", run, "-train_steps", 8, "-save_model", tmp_path / "new")
    on = ["-train_from", run / "step_2", "-train_steps", 4, "-overwrite"]
    assert changed(begun, *on, "-save_model", tmp_path / "new") == 0
    assert weights(tmp_path / "new", 4)["generator.weight"].equal(
        weights(run, 4)["generator.weight"]
    )
    with pytest.raises(CheckpointError, match="is a model itself"):
        changed(begun, "-save_model", run / "step_2")


def test_a_run_that_ended_in_its_time_has_nothing_left(
    begun: list[str], tmp_path: Path, capsys
) -> None:
    """Its last checkpoint was begun when its time was not over yet."""
    run = tmp_path / "run"
    spent = {"seconds": 97.0, "validating": 4.0, "saving": 3.0}
    change_state(run / "step_6", lambda state: state["run"].update(spent))
    assert changed(begun, "-train_from", run, "-max_seconds", 100, "-train_steps", 9) == 0
    assert "nothing is left to train: step 6, max_seconds 100" in capsys.readouterr().err
    assert checkpoint_steps(run)[-1] == 6


def test_a_run_that_has_reached_its_limit_has_nothing_left(
    begun: list[str], tmp_path: Path, capsys
) -> None:
    run, left = tmp_path / "run", "nothing is left to train: step 6, train_steps 6"
    with pytest.raises(CheckpointError, match=f"{left}; set a higher limit, or take the weights"):
        changed(begun, "-train_from", run, "-save_model", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert changed(begun, "-train_from", run) == 0
    assert f"note: {left}\n" in capsys.readouterr().err
    assert checkpoint_steps(run) == [2, 4, 6]


# --- damaged checkpoints ---------------------------------------------------------------------


def _moment(change: Callable[[torch.Tensor], Any]) -> Callable[[dict[str, Any]], object]:
    def apply(state: dict[str, Any]) -> None:
        state["optimizer"][0]["exp_avg"] = change(state["optimizer"][0]["exp_avg"])

    return apply


@pytest.mark.parametrize(
    "change",
    [
        None,
        _moment(lambda moment: moment[:-1]),
        lambda state: state.pop("random"),
        lambda state: state["optimizer"].update({999: state["optimizer"][0]}),
        lambda state: state["run"].update(step="six"),
        lambda state: state.update(position=7),
        lambda state: state.update(raw_weights=[torch.zeros(2)]),
    ],
)
def test_a_damaged_checkpoint_costs_no_whole_one(
    begun: list[str], tmp_path: Path, capsys, change: Callable[[dict[str, Any]], object] | None
) -> None:
    """Also one that was changed and signed again; the checkpoint before is taken."""
    run = tmp_path / "run"
    if change is None:
        (run / "step_6" / STATE).write_bytes(b"damaged")
    else:
        change_state(run / "step_6", change)
    (run / "best.json").unlink()
    more = ["-train_steps", 5, "-save_checkpoint_steps", 1, "-keep_checkpoint", 1]
    capsys.readouterr()
    assert changed(begun, "-train_from", run, *more) == 0
    told = capsys.readouterr().err
    assert f"continuing from {run}/step_4\n" in told
    assert told.count("warning: ") == told.count("; trying the checkpoint before\n") == 1
    load(run / "step_5")
    with pytest.raises(CheckpointError, match="step_6"):
        changed(begun, "-train_from", run / "step_6", *more)


# --- what may change -------------------------------------------------------------------------


def test_another_network_or_optimiser_is_refused_by_name(begun: list[str], tmp_path: Path) -> None:
    more = ["-train_from", tmp_path / "run", "-train_steps", 8]
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
            changed(begun, *more, option, value)
    assert checkpoint_steps(tmp_path / "run") == [2, 4, 6]


def test_parts_can_be_frozen_where_the_optimiser_begins_anew(
    begun: list[str], tmp_path: Path
) -> None:
    run, frozen = tmp_path / "run", tmp_path / "frozen"
    more = ["-freeze_encoder", "-freeze_word_vecs_enc", "-save_model", frozen]
    anew = ["-train_from", run, "-reset_optim", "all", "-train_steps", 2]
    assert changed(begun, *anew, *more) == 0
    before, after = weights(run, 6), weights(frozen, 2)
    for name, tensor in before.items():
        assert after[name].equal(tensor) == name.startswith("encoder."), name
    # What was frozen stays so in the run that continues, and is trained again in another.
    assert changed(begun, "-train_from", frozen, "-train_steps", 4, *more) == 0
    assert weights(frozen, 4)["encoder.embeddings.make_embedding.emb_luts.0.weight"].equal(
        before["encoder.embeddings.make_embedding.emb_luts.0.weight"]
    )
    anew[1] = frozen
    assert changed(begun, *anew, "-save_model", tmp_path / "free") == 0
    before, after = weights(frozen, 4), weights(tmp_path / "free", 2)
    assert not any(after[name].equal(tensor) for name, tensor in before.items())


def test_another_measure_or_folder_makes_the_best_anew(begun: list[str], tmp_path: Path) -> None:
    """Even if the best checkpoint of the other folder is better."""
    run, other = tmp_path / "run", tmp_path / "other"
    unreached = {"best": 1e9, "best_planned": 1e9, "waited": 5}
    change_state(run / "step_6", lambda state: state["run"].update(unreached))
    worse = ["-train_steps", 8, "-learning_rate", 1e-9, "-dropout", 0.9]
    assert changed(begun, "-train_from", run / "step_2", "-save_model", other, *worse) == 0
    assert best_step(other) in (4, 6, 8)
    more = ["-train_from", run, "-keep_checkpoint", 1, "-selection", "token_accuracy"]
    fewer = "-valid_loss_size", 2
    for step, best, *measure in ((8, 8), (10, 10, *fewer), (12, 10, *fewer)):
        assert changed(begun, *more, "-train_steps", step, *measure) == 0
        assert best_step(run) == best
        assert checkpoint_steps(run) == sorted({best, step})
        change_state(run / f"step_{step}", lambda state: state["run"].update(unreached))
    corpora = yaml.safe_load(Path(begun[1]).read_text())["data"]
    corpora["valid"] = corpora["corpus_1"]  # another development set
    assert changed(begun, *more, *fewer, "-train_steps", 14, "-data", json.dumps(corpora)) == 0
    assert best_step(run) == 14


# --- data that does not fit ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rare", "tags", "named"),
    [(0, 1, "'lang=y', '+z'"), (2, 1, "'lang=y'"), (2, 99, "'+z' (99), 'lang=y'")],
)
def test_tokens_of_new_data_are_warned_of(
    rare: int, tags: int, named: str, tmp_path: Path, capsys
) -> None:
    """A resumed run keeps its vocabulary, which may lack rare tokens on purpose."""
    changes = {"src_words_min_frequency": rare, "rnn_size": 8}
    path = write_config(tmp_path, train_steps=1, save_checkpoint_steps=1, valid_steps=1, **changes)
    source, target = tmp_path / "train.src", tmp_path / "train.tgt"
    lines, last = source.read_text().splitlines(keepends=True), target.read_text()
    new = f"lang=y {'+z ' * tags}"
    for first, form, more in (("lang=x", "", []), (new, "z ", ["-train_from", tmp_path / "run"])):
        source.write_text("".join([f"{first} a\n", *(f"lang=x {line}" for line in lines[1:])]))
        target.write_text(form + last)
        assert changed(["-config", str(path)], *more) == 0
        told = capsys.readouterr().err
        for warning in (
            f" source tokens of the training data: {named}; only a new run",
            " target tokens of the training data: 'z'; only a new run",
            "cells.tsv: its content is not what was written",  # derived data: counted again
        ):
            assert (warning in told) is bool(more)
        (tmp_path / "run" / "step_1" / "cells.tsv").write_text("damaged")
    assert load(tmp_path / "run").vocabularies.source.seen == {"lang=x": frozenset("abcdef")}
