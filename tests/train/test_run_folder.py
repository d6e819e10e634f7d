"""The folder of a run: one run at a time, and no trace of a refused one."""

import os
import secrets
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from onmt_entmax.checkpoint import (
    best_step,
    checkpoint_steps,
    find_model,
    load,
    remember_best,
)
from onmt_entmax.cli.train import main as train
from onmt_entmax.errors import UserError
from onmt_entmax.locks import LockedError, locked
from onmt_entmax.model import build_model
from onmt_entmax.processes import Processes
from onmt_entmax.train import run as training_run
from onmt_entmax.train.run_folder import RunFolder, clear, prune, remove_leftovers
from tests.commands import ENVIRONMENT, weights
from tests.test_model import SMALL, VOCABULARIES
from tests.test_processes import torchrun
from tests.toy import write_config


def short(folder: Path, **changes: object) -> list[str]:
    """Return the arguments of a run of six updates that validates every two."""
    settings = {"train_steps": 6, "valid_steps": 2, "save_checkpoint_steps": 4, "rnn_size": 8}
    return ["-config", str(write_config(folder, **settings | changes))]


def while_counting(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Do something once, when a run counts its vocabulary."""
    count = training_run.build_vocabularies

    def counting(*arguments: object) -> object:
        monkeypatch.setattr(training_run, "build_vocabularies", count)
        do()
        return count(*arguments)

    monkeypatch.setattr(training_run, "build_vocabularies", counting)


def while_evaluating(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Do something once, in the first validation."""
    make = training_run.make_evaluate

    def make_evaluate(*arguments: object) -> object:
        evaluate = make(*arguments)

        def evaluating(model: object) -> object:
            if todo:
                todo.pop()()
            return evaluate(model)

        return evaluating

    todo = [do]
    monkeypatch.setattr(training_run, "make_evaluate", make_evaluate)


def test_a_run_keeps_the_newest_and_the_best(tmp_path: Path) -> None:
    model = build_model(SMALL, VOCABULARIES)
    run = RunFolder(tmp_path / "run", SMALL, VOCABULARIES, {}, keep=2)
    for step in (1, 2, 3, 4, 5):
        run.save(step, model, {"step": step})
        if step == 2:
            remember_best(run.path, 2, "loss", 0.1)
    assert checkpoint_steps(run.path) == [2, 4, 5]
    assert best_step(run.path) == 2
    assert find_model(run.path).name == "step_2"
    assert find_model(run.path, newest=True).name == "step_5"


@pytest.mark.parametrize("keep", [1, 2, 3, 4, 5, 10, -1])
def test_as_many_checkpoints_stay_as_asked_for(tmp_path: Path, keep: int) -> None:
    for step in range(1, 13):
        (tmp_path / f"step_{step}").mkdir()
        prune(tmp_path, keep, step)
        first = 1 if keep < 0 else max(step - keep + 1, 1)
        assert checkpoint_steps(tmp_path) == list(range(first, step + 1))


def test_what_is_named_later_than_the_run_is_does_not_count(tmp_path: Path) -> None:
    """Step 6 was damaged, and the run continued from step 4."""
    for step in (2, 4, 5, 6):
        (tmp_path / f"step_{step}").mkdir()
    prune(tmp_path, 1, 5)
    assert checkpoint_steps(tmp_path) == [5, 6]


def test_leftovers_are_those_of_the_run(tmp_path: Path) -> None:
    """Older versions have numbers of processes in temporary names."""
    names = ("step_3", "best.json", "metrics.jsonl", "nonfinite_step_3.json")
    places = [f".{name}.{secrets.token_hex(8)}.tmp" for name in names]
    (tmp_path / places[0]).mkdir()
    (tmp_path / ".step_5.71.tmp").symlink_to("step_2")
    for name in (".step_3.71.tmp", ".step_2.old", "step_2", ".step_4.old"):
        (tmp_path / name).mkdir()
    older = [".best.json.71.tmp", ".metrics.jsonl.tmp", ".nonfinite_step_3.json.71.tmp"]
    for name in places[1:] + older:
        (tmp_path / name).touch()
    others = [".test.out.71.tmp", ".step_x.71.tmp", "step_3.tmp", ".mine.old"]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / ".step_4.old" / "whole").touch()
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*others, "step_2", "step_4"}
    assert (tmp_path / "step_4" / "whole").exists()
    remove_leftovers(tmp_path / "none")


def test_a_damaged_best_is_cleared_with_the_earlier_run(tmp_path: Path) -> None:
    (tmp_path / "step_2").mkdir()
    (tmp_path / "best.json").write_text("damaged")
    clear(tmp_path, 0)
    assert not list(tmp_path.iterdir())


def test_a_model_of_inflection_knows_what_it_saw_of_each_language(tmp_path: Path) -> None:
    def corpus(name: str, line: str) -> dict[str, dict[str, str]]:
        path = tmp_path / f"{name}.txt"
        path.write_text(f"{line}\n" * 20)
        return {name: {"path_src": str(path), "path_tgt": str(path)}}

    first = corpus("one", "lang=x a b") | corpus("two", "lang=y b c")
    assert train(short(tmp_path, data=first)) == 0
    run = tmp_path / "run"
    expected = {"lang=x": frozenset("ab"), "lang=y": frozenset("bc")}
    assert load(run).vocabularies.source.seen == expected
    more = {"data": corpus("three", "lang=x c"), "save_model": str(tmp_path / "more")}
    assert train([*short(tmp_path, **more), "-train_from", str(run), "-reset_optim", "all"]) == 0
    seen = load(tmp_path / "more").vocabularies.source.seen
    assert seen == expected | {"lang=x": frozenset("abc")}


def test_a_second_run_is_refused_while_the_first_counts_its_vocabulary(
    tmp_path: Path, monkeypatch
) -> None:
    arguments, refused = short(tmp_path), []

    def second() -> None:
        with pytest.raises(LockedError, match="run: another process works here; end it first"):
            train([*arguments, "-seed", "9", "-overwrite"])
        refused.append(True)

    while_counting(monkeypatch, second)
    assert train(arguments) == 0
    assert refused == [True]
    first = weights(tmp_path / "run", 6)
    assert train(short(tmp_path, save_model=str(tmp_path / "alone"))) == 0
    assert all(first[name].equal(weight) for name, weight in weights(tmp_path / "alone", 6).items())


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-train_from", "missing"], "no such model folder"),
        (["-src_vocab_size", "5", "-src_embeddings", "missing"], "missing"),
        (["-data", '{"a": {"path_src": "missing", "path_tgt": "missing"}}'], "missing"),
        (["-transforms", "filtertoolong", "-src_seq_length", "1"], "no pair is left"),
    ],
)
def test_a_refused_start_leaves_no_trace(tmp_path: Path, more: Sequence[str], message: str) -> None:
    arguments = short(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=message):
        train([*arguments, *more])
    assert sorted(tmp_path.rglob("*")) == before


def test_a_signal_while_counting_leaves_no_trace(tmp_path: Path, monkeypatch) -> None:
    arguments = short(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    while_counting(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(SystemExit) as raised:
        train(arguments)
    assert raised.value.code == 128 + signal.SIGTERM
    assert sorted(tmp_path.rglob("*")) == before


def test_no_process_goes_on_if_the_first_is_refused(tmp_path: Path, monkeypatch) -> None:
    processes = Processes()
    processes.rank, processes.count = 1, 2
    monkeypatch.setattr(processes, "from_first", lambda value: True)
    with pytest.raises(SystemExit) as raised, training_run._alone(tmp_path / "run", processes):
        pytest.fail("it goes on")
    assert raised.value.code == 2
    monkeypatch.setattr(processes, "from_first", lambda value: False)
    with training_run._alone(tmp_path / "run", processes):
        pass
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_several_processes_are_refused_together(tmp_path: Path) -> None:
    arguments = short(tmp_path)
    with locked(tmp_path / "run"):
        done = subprocess.run(
            torchrun(2, *arguments), env=ENVIRONMENT, capture_output=True, text=True, timeout=120
        )
    assert done.returncode != 0
    assert done.stderr.count("train.py: error: ") == 1
    assert "run: another process works here" in done.stderr
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]
