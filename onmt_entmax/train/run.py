"""A training run, from configuration to checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import (
    CheckpointError,
    LoadedModel,
    RunFolder,
    best_step,
    checkpoint_steps,
    find_model,
    load,
    read_training_state,
    remove_leftovers,
)
from onmt_entmax.data.corpus import all_pairs, check_corpus, extra_specials
from onmt_entmax.data.stream import TrainingBatches, target_frequencies
from onmt_entmax.data.transforms import draws_of_each_process
from onmt_entmax.data.vectors import fill, read_vectors
from onmt_entmax.data.vocabulary import Vocabularies, build_vocabularies
from onmt_entmax.files import locked, write_files
from onmt_entmax.model import SparseNMTModel, build_model, count_parameters, device_of, freeze
from onmt_entmax.options.train import TrainingSetup
from onmt_entmax.processes import ProcessError, Processes, device_for, say, silent
from onmt_entmax.train import Evaluate, Outcome, Trainer, TrainingConfig
from onmt_entmax.train.evaluation import make_evaluate
from onmt_entmax.train.records import Records

# Where a training run begins: at nothing, or at a checkpoint that fits what is asked for now.

# What the state of an optimiser depends on, besides the weights that are trained.
_OPTIMIZER = ("optim", "adam_beta1", "adam_beta2")
# What may change from one part of a run to the next: it is not in the weights.
_FREE = ("param_init", "param_init_glorot", "dropout", "attention_dropout")


@dataclass(frozen=True)
class Resumed:
    """A checkpoint to continue from."""

    loaded: LoadedModel
    state: dict[str, Any] | None  # None where only the weights are taken over

    @property
    def step(self) -> int:
        """Updates that are done."""
        return 0 if self.state is None else int(self.state["run"]["step"])


def resume(setup: TrainingSetup, say: Callable[[str], None]) -> Resumed | None:
    """The checkpoint to continue from, checked against what is asked for now; None for none.

    Raises:
        CheckpointError: there is none, it is of another model or optimiser, none of a run is
            whole, or the folder to write to holds checkpoints that are not continued.
    """
    if setup.run.train_from is None:
        _check_folder(setup, None)
        return None
    given = Path(setup.run.train_from)
    steps = checkpoint_steps(given)
    # Of a run folder, the newest checkpoint that is whole.
    candidates = [given / f"step_{step}" for step in reversed(steps)] or [find_model(given)]
    fresh = setup.record["reset_optim"] == "all"
    for number, folder in enumerate(candidates, 1):
        try:
            loaded = load(folder)
            state = None if fresh else read_training_state(folder)
        except CheckpointError as error:
            if number == len(candidates):
                raise
            say(f"warning: {error}; trying the checkpoint before")
            continue
        _check_same_model(setup, loaded, folder, fresh)
        freeze(loaded.model, setup.model)
        loaded.model.update_dropout(setup.model.dropout, setup.model.attention_dropout)
        selection = setup.training.selection
        other_measure = loaded.options.get("selection", selection) != selection
        if state is not None and (other_measure or not continues(setup)):
            # The best so far was the best by another measure, or stays in the other folder.
            state["run"] |= {"best": None, "best_step": -1, "best_planned": None, "waited": 0}
        resumed = Resumed(loaded, state)
        _check_folder(setup, resumed)
        say(f"continuing from {folder}")
        return resumed
    raise AssertionError("the last candidate either loads or raises")


def _check_same_model(setup: TrainingSetup, loaded: LoadedModel, folder: Path, fresh: bool) -> None:
    """Refuse a checkpoint of another model, or one whose optimiser's state would not fit."""
    for field in fields(setup.model):
        asked, made = getattr(setup.model, field.name), getattr(loaded.config, field.name)
        frozen = field.name.startswith("freeze_")
        if asked == made or field.name in _FREE or (frozen and fresh):
            continue
        hint = "; -reset_optim all takes the weights alone" if frozen else ""
        raise CheckpointError(
            f"{folder}: cannot continue: the model was made with {field.name} {made!r}, "
            f"the configuration now says {asked!r}{hint}"
        )
    for name in () if fresh else _OPTIMIZER:
        asked, made = setup.record[name], loaded.options.get(name)
        if made is not None and asked != made:
            raise CheckpointError(
                f"{folder}: cannot continue: it was trained with {name} {made!r}, the "
                f"configuration now says {asked!r}; -reset_optim all takes the weights alone"
            )


def continues(setup: TrainingSetup) -> bool:
    """Whether the run goes on in the folder that it continues."""
    run = Path(setup.run.save_model).resolve()
    given = Path(setup.run.train_from or "").resolve()
    return setup.run.train_from is not None and run in (given, given.parent)


def _check_folder(setup: TrainingSetup, resumed: Resumed | None) -> None:
    """Refuse to mix a run with what another one, or a later part of it, has left in its folder."""
    run = Path(setup.run.save_model)
    steps = checkpoint_steps(run)
    if (run / "config.yaml").is_file():
        raise CheckpointError(f"{run}: is a model itself, and not a run; choose another save_model")
    if continues(setup) and resumed is not None:
        if resumed.state is None:
            raise CheckpointError(
                f"{run}: holds what -train_from names: -reset_optim all begins another run, so "
                f"choose another save_model"
            )
        if Path(str(setup.run.train_from)).resolve() == run.resolve():
            return  # what is later is damaged, and will be written anew
        steps = [step for step in steps if step > resumed.step]
        if steps and not setup.run.overwrite:
            raise CheckpointError(
                f"{run}: holds checkpoints of later steps, up to {steps[-1]}; delete them with "
                f"-overwrite, or choose another save_model"
            )
    elif steps and not setup.run.overwrite:
        raise CheckpointError(
            f"{run}: already holds checkpoints; continue with -train_from {run}, "
            f"start anew with -overwrite, or choose another save_model"
        )


def clear(run: Path, step: int) -> None:
    """Delete what an earlier run left of the time after `step`, and nothing else.

    What it measured up to then stays, see `onmt_entmax.records`.
    """
    best = best_step(run)
    if best is not None and best > step:
        (run / "best.json").unlink()
    for later in checkpoint_steps(run):
        if later > step:
            shutil.rmtree(run / f"step_{later}")
    if step == 0:
        for path in [run / "metrics.jsonl", *run.glob("nonfinite_step_*.json")]:
            path.unlink(missing_ok=True)


def run_training(setup: TrainingSetup) -> int:
    """Train as `setup` says, from the start or from a checkpoint; returns the exit status."""
    processes = Processes()
    tell = say if processes.writes else silent
    device = device_for(setup.run.gpu, processes.local_rank if processes.count > 1 else None)
    config = _shared_updates(setup, processes)
    resumed = resume(setup, tell)
    for corpus in [*setup.data.corpora, *([setup.data.valid] if setup.data.valid else [])]:
        check_corpus(corpus)
    if resumed is not None:
        _check_specials(setup, resumed.loaded.vocabularies)
    files: dict[Path, str] = {}
    if resumed is not None:
        vocabularies = resumed.loaded.vocabularies
    else:
        vocabularies, files = build_vocabularies(
            setup.vocabulary, all_pairs(setup.data), extra_specials(setup.data)
        )
    torch.manual_seed(setup.run.seed)
    model = resumed.loaded.model if resumed else build_model(setup.model, vocabularies)
    if resumed is None:
        _start_from_vectors(setup, model, vocabularies, tell)
    if setup.run.label_smoothing_prior == "unigram":
        model.generator.prior = target_frequencies(setup.data, vocabularies)
    model.to(device)
    if processes.rank > 0:  # other dropout masks than the first process has
        torch.manual_seed(setup.run.seed + 1_000_003 * processes.rank)
    _announce(setup, model, vocabularies, processes, tell)
    processes.connect(device)
    try:
        evaluate = None
        if setup.data.valid is not None:
            evaluate = make_evaluate(setup.data, setup.validation, vocabularies, tell)
        with _alone(setup, processes):
            if processes.writes:
                _make_room(setup, vocabularies, resumed, files, tell)
            outcome = _train(setup, config, model, vocabularies, evaluate, resumed, processes)
    except RuntimeError as error:
        if processes.count == 1:
            raise
        raise ProcessError(
            f"this or another process of the run has failed ({str(error).splitlines()[0]}); "
            f"continue from the last checkpoint with -train_from {setup.run.save_model}"
        ) from None
    finally:
        processes.disconnect()
    tell(f"stopped at step {outcome.step} ({outcome.reason}); checkpoints: {setup.run.save_model}")
    if outcome.signal is not None:
        tell(f"continue with the same command and -train_from {setup.run.save_model}")
        return 128 + outcome.signal
    return 0


@contextmanager
def _alone(setup: TrainingSetup, processes: Processes) -> Iterator[None]:
    """Hold the run's folder, which two runs at once would take to pieces.

    Raises:
        CheckpointError: another run holds it.
    """
    if not processes.writes:
        yield
        return
    with locked(Path(setup.run.save_model)) as lock:
        if lock is None:
            raise CheckpointError(
                f"{setup.run.save_model}: another process is training here; end it first, or give "
                f"another save_model"
            )
        yield


def _train(
    setup: TrainingSetup,
    config: TrainingConfig,
    model: SparseNMTModel,
    vocabularies: Vocabularies,
    evaluate: Evaluate | None,
    resumed: Resumed | None,
    processes: Processes,
) -> Outcome:
    """Put the parts of a run together and run it."""
    run_path = Path(setup.run.save_model)
    first = resumed.step if resumed else 0
    run = RunFolder(run_path, setup.model, vocabularies, setup.record, setup.run.keep_checkpoint)
    board = None if setup.run.tensorboard is None else Path(setup.run.tensorboard)
    with ExitStack() as stack:
        records = None
        if processes.writes:
            records = stack.enter_context(Records(run_path, first, config.train_steps, board))
        batches = TrainingBatches(setup.data, vocabularies)
        trainer = Trainer(model, batches, config, evaluate, run, records, processes)
        if resumed is not None and resumed.state is not None:
            trainer.load_state_dict(resumed.state)
        return trainer.train()


def _make_room(
    setup: TrainingSetup,
    vocabularies: Vocabularies,
    resumed: Resumed | None,
    files: Mapping[Path, str],
    tell: Callable[[str], None],
) -> None:
    """Write the run's vocabulary files and delete what it replaces. Called after everything that is
    read has been read, the first batch last: what fails later finds the earlier run gone."""
    run = Path(setup.run.save_model)
    remove_leftovers(run)
    first = resumed.step if resumed and continues(setup) else 0
    steps = checkpoint_steps(run) if setup.run.overwrite else []
    replaced = [step for step in steps if step > first]
    if replaced or files:
        with closing(iter(TrainingBatches(replace(setup.data, num_workers=0), vocabularies))) as it:
            next(it)
    write_files(files)
    for path in files:
        tell(f"note: {path}: was not there; written, with the tokens counted in the data")
    if replaced:
        steps_text = ", ".join(map(str, replaced))
        tell(f"note: -overwrite: deletes the checkpoints of {run} of steps {steps_text}")
    if setup.run.overwrite:
        clear(run, first)


def _check_specials(setup: TrainingSetup, vocabularies: Vocabularies) -> None:
    """Refuse transforms whose special tokens a checkpoint does not know, and so reads as `<unk>`.

    Raises:
        CheckpointError: there is one.
    """
    for tokens, vocabulary in zip(extra_specials(setup.data), vocabularies, strict=True):
        for token in tokens:
            if token not in vocabulary:
                raise CheckpointError(
                    f"{setup.run.train_from}: cannot continue: a transform of the data writes "
                    f"{token!r}, which the vocabularies of that model do not have"
                )


def _shared_updates(setup: TrainingSetup, processes: Processes) -> TrainingConfig:
    """The training configuration, with the batches of an update shared out to the processes.

    An update of OpenNMT-py takes `accum_count` batches in each of `world_size` processes. It
    takes as many here, whatever the number of processes that share them.

    Raises:
        ProcessError: they cannot be shared evenly, or each process would draw others.
    """
    names = {name for corpus in setup.data.corpora for name in corpus.transforms}
    if processes.count > 1 and draws_of_each_process(names, setup.data.transform_options):
        raise ProcessError(
            "src_subword_nbest or tgt_subword_nbest: the transform sentencepiece draws subwords "
            "that no seed makes the same in all processes: use one process, or onmt_tokenize or bpe"
        )
    config = setup.training
    if processes.count > 1 and setup.run.world_size == 1:
        several = tuple(count * processes.count for count in config.accum_count)
        config = replace(config, accum_count=several)
    for count in config.accum_count:
        if count % processes.count:
            raise ProcessError(
                f"an update takes {count} batches (world_size times accum_count), which "
                f"{processes.count} processes cannot share evenly; start another number of them"
            )
    return config


def _start_from_vectors(
    setup: TrainingSetup,
    model: SparseNMTModel,
    vocabularies: Vocabularies,
    tell: Callable[[str], None],
) -> None:
    """Word vectors from files, where these are asked for; other tokens keep fresh ones."""
    for path, part, vocabulary in (
        (setup.run.src_embeddings, model.encoder, vocabularies.source),
        (setup.run.tgt_embeddings, model.decoder, vocabularies.target),
    ):
        if path is not None:
            table = part.embeddings.word_lut.weight
            kind = setup.run.embeddings_type or "GloVe"
            vectors = read_vectors(Path(path), kind, vocabulary, table.shape[1])
            fill(table, vectors)
            tell(f"{path}: vectors for {len(vectors)} of {len(vocabulary)} tokens")


def _announce(
    setup: TrainingSetup,
    model: SparseNMTModel,
    vocabularies: Vocabularies,
    processes: Processes,
    tell: Callable[[str], None],
) -> None:
    source, target = vocabularies
    tell(
        f"{count_parameters(model):,} weights, vocabularies of {len(source)} source and "
        f"{len(target)} target tokens, attention alpha {setup.model.global_attention_alpha:g}, "
        f"output alpha {setup.model.generator_alpha:g}, on {device_of(model)}"
    )
    if setup.run.world_size > processes.count:
        tell(
            f"note: world_size {setup.run.world_size} but {processes.count} process: it "
            f"accumulates the gradients of all batches, which gives the same updates"
        )
