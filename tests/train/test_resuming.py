"""Resuming: which checkpoint, with which changes, and what is refused."""

import json
import os
import signal
from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import (
    CheckpointError,
    best_step,
    checkpoint_steps,
    load,
    remember_best,
)
from onmt_entmax.checksums import write_list
from onmt_entmax.cli.train import main as train
from onmt_entmax.data.corpus import CorpusError
from onmt_entmax.errors import UserError
from onmt_entmax.locks import LockedError, locked
from onmt_entmax.options.reader import OptionError
from onmt_entmax.options.train import training_setup
from onmt_entmax.train import run as training_run
from onmt_entmax.train.resuming import resume
from onmt_entmax.train.run_folder import clear
from onmt_entmax.train.signals import collected_signals
from tests.commands import weights
from tests.toy import write_config


@pytest.fixture
def begun(tmp_path: Path) -> list[str]:
    """Train six updates with a checkpoint every two; return the arguments."""
    path = write_config(
        tmp_path, train_steps=6, save_checkpoint_steps=2, valid_steps=2, rnn_size=8, report_every=1
    )
    assert train(["-config", str(path)]) == 0
    return ["-config", str(path)]


def changed(begun: list[str], *more: object) -> int:
    return train([*begun, *map(str, more)])


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


def test_nothing_of_a_run_stays_that_another_would_take_for_its_own(
    begun: list[str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    remember_best(run, 6, "loss", 0.1)
    (run / "nonfinite_step_5.json").write_text("{}")
    clear(run, 2)
    assert (checkpoint_steps(run), best_step(run)) == ([2], None)
    assert (run / "metrics.jsonl").is_file()
    clear(run, 0)
    assert [path.name for path in run.iterdir()] == [".lock"]


def test_overwriting_waits_until_the_new_run_is_known_to_begin(
    begun: list[str], tmp_path: Path, capsys
) -> None:
    run, vocabularies = tmp_path / "run", [tmp_path / "vocab.src", tmp_path / "vocab.tgt"]
    named = ["-src_vocab", vocabularies[0], "-tgt_vocab", vocabularies[1]]
    kept = weights(run, 6)
    with pytest.raises(UserError, match="no pair is left"):
        changed(begun, "-overwrite", *named, "-transforms", "filtertoolong", "-src_seq_length", 1)
    assert checkpoint_steps(run) == [2, 4, 6]
    assert not any(path.exists() for path in vocabularies)
    with pytest.raises(UserError, match="cannot be written"):  # it is under a file
        changed(begun, "-overwrite", "-src_vocab", tmp_path / "train.src" / "vocab")
    assert checkpoint_steps(run) == [2, 4, 6]
    (tmp_path / "train.tgt").rename(tmp_path / "whole.tgt")
    (tmp_path / "train.tgt").write_bytes(b"\xff\n" * 240)
    for path in vocabularies:
        path.write_text("\n".join("abcdef") + "\n")
    with pytest.raises(UserError, match="not valid UTF-8"):
        changed(begun, "-overwrite", *named)
    assert checkpoint_steps(run) == [2, 4, 6]
    (tmp_path / "whole.tgt").rename(tmp_path / "train.tgt")
    capsys.readouterr()
    assert changed(begun, "-overwrite") == 0
    assert f"-overwrite: deletes from {run}: step_2, step_4, step_6\n" in capsys.readouterr().err
    for name, tensor in weights(run, 6).items():  # that its data was read before changes nothing
        assert tensor.equal(kept[name])


def test_vocabularies_of_other_data_are_warned_of(begun: list[str], tmp_path: Path, capsys) -> None:
    path = tmp_path / "vocab.src"
    path.write_text("x\ny\na\n")
    capsys.readouterr()
    assert changed(begun, "-overwrite", "-src_vocab", path) == 0
    printed = capsys.readouterr().err
    assert "warning: corpus 'valid': " in printed
    assert " of 40 lines, not in the source vocabulary" in printed
    assert "is the text in the language and the tokens of the training data?" in printed
    assert "target tokens (" not in printed


def test_a_new_run_from_old_weights_needs_a_folder_of_its_own(
    begun: list[str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    anew = ["-train_from", run, "-reset_optim", "all", "-train_steps", 2]
    for overwrite in ([], ["-overwrite"]):
        with pytest.raises(CheckpointError, match="choose another save_model"):
            changed(begun, *anew, *overwrite)
    assert changed(begun, *anew, "-save_model", tmp_path / "new") == 0
    assert checkpoint_steps(tmp_path / "new") == [2]
    assert checkpoint_steps(run) == [2, 4, 6]
    with pytest.raises(CheckpointError, match="already holds checkpoints"):
        changed(begun, "-train_from", run, "-train_steps", 8, "-save_model", tmp_path / "new")
    on = ["-train_from", run / "step_2", "-train_steps", 4, "-overwrite"]
    assert changed(begun, *on, "-save_model", tmp_path / "new") == 0
    assert weights(tmp_path / "new", 4)["generator.weight"].equal(
        weights(run, 4)["generator.weight"]
    )


def test_a_damaged_checkpoint_costs_no_whole_one(begun: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "step_6" / "training" / "state.pt").write_bytes(b"damaged")
    (run / "best.json").unlink()
    more = ["-train_steps", 5, "-save_checkpoint_steps", 1, "-keep_checkpoint", 1]
    assert changed(begun, "-train_from", run, *more) == 0
    assert 5 in checkpoint_steps(run)
    assert load(run / "step_5").model is not None
    assert best_step(run) in checkpoint_steps(run)


@pytest.mark.parametrize(
    ("limit", "finished"),
    [
        (["-train_steps", 5], "step 6, train_steps 5"),
        (["-max_seconds", 0.001, "-train_steps", 9], "step 6, max_seconds 0.001"),
    ],
)
def test_a_checkpoint_beyond_a_limit(
    begun: list[str], tmp_path: Path, capsys, limit: list[object], finished: str
) -> None:
    """Another folder gets no copy of it; in its own folder, the run is finished."""
    run, other = tmp_path / "run", tmp_path / "other"
    begin = ["-train_from", run, *limit]
    with pytest.raises(CheckpointError, match=f"nothing is left to train: {finished};"):
        changed(begun, *begin, "-save_model", other)
    assert not checkpoint_steps(other)
    capsys.readouterr()
    assert changed(begun, *begin) == 0
    assert f"note: nothing is left to train: {finished}\n" in capsys.readouterr().err
    assert checkpoint_steps(run) == [2, 4, 6]
    assert changed(begun, *begin, "-save_model", other, "-reset_optim", "all") == 0


def test_a_signal_in_the_last_validation_loses_nothing(tmp_path: Path, monkeypatch) -> None:
    path = write_config(
        tmp_path, train_steps=5, save_checkpoint_steps=100, valid_steps=3, rnn_size=8
    )
    steps: list[int] = []

    def asked_to_end(*_: object) -> object:
        def evaluate(model: object) -> dict[str, float]:
            steps.append(len(steps))
            if len(steps) == 2:  # at step 5; at step 3 nobody asks
                os.kill(os.getpid(), signal.SIGTERM)
            return {"loss": 1.0, "token_accuracy": 50.0, "support": 2.0}

        return evaluate

    def died(*_: object) -> None:
        raise AssertionError("the signal was not collected")

    monkeypatch.setattr(training_run, "make_evaluate", asked_to_end)
    before = signal.signal(signal.SIGTERM, died)
    try:
        train(["-config", str(path)])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert len(steps) == 2
    assert 5 in checkpoint_steps(tmp_path / "run")


def test_signals_are_collected_unless_they_are_ignored() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with collected_signals() as received:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            assert received == [signal.SIGTERM]
            os.kill(os.getpid(), signal.SIGTERM)  # as a job scheduler and torchrun do
        assert (received, heard) == ([signal.SIGTERM] * 2, [])
        signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
        for first in (signal.SIGINT, signal.SIGHUP):
            heard.clear()
            with collected_signals() as received:
                os.kill(os.getpid(), first)
                os.kill(os.getpid(), signal.SIGINT)  # by a user who does not want to wait
            assert (received, heard) == ([first], [signal.SIGINT])
            with collected_signals(alone=False) as received:
                os.kill(os.getpid(), first)
                os.kill(os.getpid(), signal.SIGINT)
            assert (received, heard) == ([first, signal.SIGINT], [signal.SIGINT])
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, ignored)


def test_a_model_is_no_run(begun: list[str], tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is a model itself"):
        changed(begun, "-save_model", tmp_path / "run" / "step_2")
    with pytest.raises(OptionError, match="save_model: must name a folder"):
        changed(begun, "-save_model", "")


def test_a_state_of_a_later_version_and_damaged_metrics(begun: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    path = run / "step_6" / "training" / "state.pt"
    state = torch.load(path, weights_only=True)
    state["run"]["later"] = 1
    state["position"]["later"] = 1
    torch.save(state, path)
    write_list(run / "step_6")
    with open(run / "metrics.jsonl", "ab") as file:
        file.write(b'\0\0}\n\xff}\n[1]}\n{"step": null}\n')
    assert changed(begun, "-train_from", run, "-train_steps", 7) == 0
    steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert max(steps) == 7


def test_a_finished_run_is_left_alone(begun: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "run" / "step_6"
    before = folder.stat().st_ino
    assert changed(begun, "-train_from", tmp_path / "run") == 0
    assert folder.stat().st_ino == before


def test_what_the_end_of_a_run_measures_is_kept(tmp_path: Path) -> None:
    path = write_config(tmp_path, train_steps=6, valid_steps=4, save_checkpoint_steps=3, rnn_size=8)
    assert train(["-config", str(path)]) == 0
    for _ in range(2):
        assert changed(["-config", str(path)], "-train_from", tmp_path / "run") == 0
    lines = map(json.loads, (tmp_path / "run" / "metrics.jsonl").read_text().splitlines())
    assert [line["step"] for line in lines if line["kind"] == "valid"] == [4, 6]


@pytest.mark.parametrize(
    ("bucket", "change"), [(1000, ["-batch_size", 48]), (100, ["-bucket_size", 1000])]
)
def test_larger_batches_and_buckets_end_the_epoch(
    tmp_path: Path, bucket: int, change: list[object]
) -> None:
    path = write_config(
        tmp_path, train_steps=9, valid_steps=100, save_checkpoint_steps=100, rnn_size=8,
        bucket_size=bucket,
    )  # fmt: skip
    begun = ["-config", str(path)]
    assert train(begun) == 0
    assert changed(begun, "-train_from", tmp_path / "run", "-train_steps", 12, *change) == 0
    assert checkpoint_steps(tmp_path / "run") == [9, 12]


def test_parts_can_be_frozen_where_the_optimiser_begins_anew(
    begun: list[str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    with pytest.raises(CheckpointError, match=r"freeze_encoder False.*-reset_optim all"):
        changed(begun, "-train_from", run, "-train_steps", 8, "-freeze_encoder")
    more = ["-freeze_encoder", "-freeze_word_vecs_enc", "-save_model", tmp_path / "frozen"]
    anew = ["-train_from", run, "-reset_optim", "all", "-train_steps", 2]
    assert changed(begun, *anew, *more) == 0
    before, after = weights(run, 6), weights(tmp_path / "frozen", 2)
    for name, tensor in before.items():
        assert after[name].equal(tensor) == name.startswith("encoder."), name
    # What was frozen stays so in the run that continues.
    assert changed(begun, "-train_from", more[-1], "-train_steps", 4, *more) == 0
    assert load(tmp_path / "frozen" / "step_4").config.freeze_encoder
    # And what was frozen is trained again where nobody asks for it.
    frozen = tmp_path / "frozen"
    anew[1] = frozen
    assert changed(begun, *anew, "-save_model", tmp_path / "free") == 0
    before, after = weights(frozen, 4), weights(tmp_path / "free", 2)
    assert not any(after[name].equal(tensor) for name, tensor in before.items())


def test_dropout_may_change(begun: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    on = ["-train_from", run, "-train_steps", 8]
    assert changed(begun, *on, "-save_model", tmp_path / "same") == 0
    assert changed(begun, *on, "-dropout", 0.6, "-save_model", tmp_path / "more") == 0
    assert load(tmp_path / "more" / "step_8").config.dropout == 0.6
    name = "decoder.rnn.layers.0.weight_ih"
    assert not weights(tmp_path / "more", 8)[name].equal(weights(tmp_path / "same", 8)[name])


def test_another_optimiser_needs_a_state_of_its_own(begun: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    for change in (["-optim", "adagrad"], ["-adam_beta1", 0.8], ["-adam_beta2", 0.99]):
        with pytest.raises(CheckpointError, match=r"trained with .*-reset_optim all"):
            changed(begun, "-train_from", run, "-train_steps", 8, *change)


def test_another_measure_makes_the_best_anew(begun: list[str], tmp_path: Path) -> None:
    run = tmp_path / "run"
    more = ["-train_from", run, "-train_steps", 8, "-selection", "token_accuracy"]
    assert changed(begun, *more) == 0
    best = json.loads((run / "best.json").read_text())
    assert (best["step"], best["metric"]) == (8, "token_accuracy")


def test_another_measure_is_waited_for_anew(begun: list[str], tmp_path: Path) -> None:
    path = tmp_path / "run" / "step_6" / "training" / "state.pt"
    state = torch.load(path, weights_only=True)
    state["run"]["waited"] = 5
    torch.save(state, path)
    write_list(tmp_path / "run" / "step_6")
    for selection, waited in (("loss", 5), ("token_accuracy", 0)):
        more = ["-train_from", str(tmp_path / "run"), "-selection", selection]
        made = training_setup([*begun, *more])
        resumed = resume(made.run, made.model, made.training, print)
        assert resumed is not None
        assert resumed.state is not None
        assert resumed.state["run"]["waited"] == waited


def test_the_seed_decides_the_first_weights(tmp_path: Path) -> None:
    path = write_config(tmp_path, train_steps=1, valid_steps=100, rnn_size=8, learning_rate=1e-9)
    first = []
    for number, seed in enumerate((3, 3, 4)):
        run = tmp_path / str(number)
        assert changed(["-config", str(path)], "-seed", seed, "-save_model", run) == 0
        first.append(weights(run, 1)["generator.weight"])
    assert first[0].equal(first[1])
    assert (first[0] - first[2]).abs().max() > 0.01


def test_another_folder_has_a_best_of_its_own(begun: list[str], tmp_path: Path) -> None:
    """Even if the best checkpoint of the other folder is better."""
    run, other = tmp_path / "run", tmp_path / "other"
    worse = ["-train_steps", 8, "-learning_rate", 1e-9, "-dropout", 0.9]
    assert changed(begun, "-train_from", run / "step_2", "-save_model", other, *worse) == 0
    assert best_step(other) in (4, 6, 8)


def test_tokens_that_a_model_does_not_know(begun: list[str], tmp_path: Path) -> None:
    """The model would read and learn them as `<unk>`."""
    for more in ([], ["-reset_optim", "all", "-save_model", tmp_path / "new"]):
        with pytest.raises(CheckpointError, match=r"run: cannot continue: .* '<mask>'"):
            changed(begun, "-train_from", tmp_path / "run", "-transforms", "tokenmask", *more)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("rare", "named"), [(0, "2 source tokens of the training data: 'lang=y', '+z'"),
                        (2, "1 source token of the training data: 'lang=y'")],
)  # fmt: skip
def test_tokens_of_new_languages_are_warned_of(
    rare: int, named: str, tmp_path: Path, capsys
) -> None:
    """A resumed run keeps its vocabulary, which may lack rare tokens on purpose."""
    changes = {"src_words_min_frequency": rare, "rnn_size": 8}
    path = write_config(tmp_path, train_steps=1, save_checkpoint_steps=1, valid_steps=1, **changes)
    source = tmp_path / "train.src"
    lines = source.read_text().splitlines(keepends=True)
    told = f"reads <unk> instead of {named}; only a new run"
    for first, more in (("lang=x", []), ("lang=y +z", ["-train_from", tmp_path / "run"])):
        source.write_text("".join([f"{first} a\n", *(f"lang=x {line}" for line in lines[1:])]))
        assert changed(["-config", str(path)], *more) == 0
        assert (told in capsys.readouterr().err) is bool(more)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"encoder_type": "mean", "word_vec_size": 4}, "src_word_vec_size"),
        (
            {"encoder_type": "mean", "enc_layers": 1, "dec_layers": 2, "layers": None},
            "dec_layers",
        ),
        ({"enc_layers": 1, "dec_layers": 2, "layers": None}, "dec_layers"),
        ({"adam_beta2": 1.5}, "adam_beta2"),
        ({"seed": 10**20}, "seed"),
        ({"param_init": float("inf")}, "param_init: must be a number from 0 to 100"),
        ({"transforms": 5}, "transforms"),
        ({"self_attn_type": "scaled_dot"}, "self_attn_type"),
        ({"position_encoding": True, "word_vec_size": 15}, "position_encoding"),
        ({"attention_warmup_steps": 5, "global_attention": "none"}, "attention_warmup_steps"),
    ],
)
def test_configurations_that_cannot_train(tmp_path: Path, changes: dict, key: str) -> None:
    with pytest.raises(OptionError, match=key):
        train(["-config", str(write_config(tmp_path, **changes))])


@pytest.mark.parametrize("rule", [{"decay_method": "plateau"}, {"early_stopping": 2}])
def test_rules_that_need_a_development_set(tmp_path: Path, rule: dict) -> None:
    data = {"corpus_1": {"path_src": str(tmp_path / "train.src"), "path_tgt": ""}}
    write_config(tmp_path)
    data["corpus_1"]["path_tgt"] = str(tmp_path / "train.tgt")
    with pytest.raises(OptionError, match="needs a corpus named valid"):
        train(["-config", str(write_config(tmp_path, data=data, **rule))])


def test_settings_that_begin_later_and_fewer_layers_train(tmp_path: Path) -> None:
    path = write_config(
        tmp_path, train_steps=4, valid_steps=100, layers=None, enc_layers=2, dec_layers=1,
        dropout=[0.3, 0.1], attention_dropout=[0.1, 0.1], dropout_steps=[2, 3], rnn_size=8,
    )  # fmt: skip
    assert train(["-config", str(path)]) == 0


def test_transforms_that_cannot_be_made_are_named(tmp_path: Path) -> None:
    path = write_config(tmp_path, transforms=["sentencepiece"])
    with pytest.raises(UserError, match="the transform sentencepiece cannot be made"):
        train(["-config", str(path)])


def test_a_development_set_of_which_nothing_is_left(tmp_path: Path) -> None:
    path = write_config(tmp_path, train_steps=2, transforms=["filtertoolong"], src_seq_length=1)
    with pytest.raises(CorpusError, match="no pair is left"):
        train(["-config", str(path)])


def test_a_folder_in_which_another_process_trains_is_left_alone(tmp_path: Path) -> None:
    """A second run would delete the checkpoint and the log that the first is writing."""
    path, run = write_config(tmp_path, train_steps=2, rnn_size=8), tmp_path / "run"
    assert train(["-config", str(path)]) == 0
    (run / ".step_3.123.tmp").mkdir()  # a checkpoint that is being written, or was when it died
    before = sorted(run.iterdir())
    again = ["-config", str(path), "-train_from", str(run), "-train_steps", "4"]
    with locked(run):
        with pytest.raises(LockedError, match=f"run: process {os.getpid()} on .* works here"):
            train(again)
        assert sorted(run.iterdir()) == before
    assert train(again) == 0
    assert (run / "step_4").is_dir()
    assert not (run / ".step_3.123.tmp").exists()


def test_tensorboard_writes_into_the_run(tmp_path: Path) -> None:
    path = write_config(tmp_path, train_steps=2, rnn_size=8, tensorboard=True)
    assert train(["-config", str(path)]) == 0
    assert list((tmp_path / "run" / "tensorboard").glob("events.*"))
