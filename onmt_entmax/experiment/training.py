"""A training run, from configuration to checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from onmt_entmax.checkpoint import (
    CheckpointError,
    RunFolder,
    checkpoint_steps,
    remove_leftovers,
)
from onmt_entmax.experiment.console import HELP, device_for, say, silent
from onmt_entmax.experiment.resuming import Resumed, clear, continues, resume
from onmt_entmax.files import write_files
from onmt_entmax.locks import locked
from onmt_entmax.model import SparseNMTModel, build_model, count_parameters, device_of
from onmt_entmax.opennmt import SequenceTooLongError
from onmt_entmax.options.train import TrainingSetup, training_setup
from onmt_entmax.options.train_parser import training_parser
from onmt_entmax.processes import ProcessError, Processes
from onmt_entmax.records import Records
from onmt_entmax.text.corpus import (
    CorpusError,
    all_pairs,
    check_corpus,
    extra_specials,
)
from onmt_entmax.text.drawing import draws_of_each_process
from onmt_entmax.text.stream import TrainingBatches, target_frequencies
from onmt_entmax.text.vectors import fill, read_vectors
from onmt_entmax.text.vocabulary import Vocabularies, build_vocabularies
from onmt_entmax.training import Evaluate, Outcome, Trainer, TrainingConfig
from onmt_entmax.validation import make_evaluate


def train(arguments: Sequence[str]) -> int:
    """`train.py`: returns the exit status.

    Raises:
        UserError: anything that the user can mend, before or while training.
    """
    if set(arguments) & set(HELP):
        training_parser().print_help()
        return 0
    setup = training_setup(arguments)
    try:
        return run_training(setup)
    except SequenceTooLongError:
        raise CorpusError(
            "a sentence is longer than the 5000 positions of a Transformer: use the transform "
            "filtertoolong, or src_seq_length_trunc and tgt_seq_length_trunc"
        ) from None


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
