"""Where the rooms meet: a training run and a translation run, from configuration to files."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from onmt_entmax.checkpoint import (
    CheckpointError,
    LoadedModel,
    RunFolder,
    checkpoint_steps,
    find_model,
    load,
    read_training_state,
    remove_leftovers,
)
from onmt_entmax.errors import UserError
from onmt_entmax.files import count_lines, read_lines, replaced_when_done, write_atomically
from onmt_entmax.model import (
    ModelConfig,
    SparseNMTModel,
    build_model,
    count_parameters,
    device_of,
)
from onmt_entmax.opennmt import SequenceTooLongError
from onmt_entmax.options.train import TrainingSetup, training_setup
from onmt_entmax.options.train_parser import training_parser
from onmt_entmax.options.translate import TranslationSetup, translation_parser, translation_setup
from onmt_entmax.records import Records
from onmt_entmax.reports.writers import Answer, AnswerWriter, Summary
from onmt_entmax.sharding import Windows, connected, in_order, send_answers
from onmt_entmax.text.corpus import (
    CorpusError,
    all_pairs,
    check_corpus,
    extra_specials,
    target_frequencies,
)
from onmt_entmax.text.stream import TrainingBatches
from onmt_entmax.text.vectors import fill, read_vectors
from onmt_entmax.text.vocabulary import Vocabularies, build_vocabularies
from onmt_entmax.training import (
    Outcome,
    ProcessError,
    Processes,
    Trainer,
    TrainingConfig,
)
from onmt_entmax.translation import Translator
from onmt_entmax.validation import make_evaluate

_HELP = ("-h", "--help", "-help")


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _silent(message: str) -> None:
    """What the other processes of a run say."""


def _device(gpu: int | None, local_rank: int | None = None) -> torch.device:
    """The device asked for; with several processes, each takes the GPU of its own number."""
    if gpu is None:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        if not local_rank:
            _say(f"note: no CUDA device here, so GPU {gpu} is not used; running on the CPU")
        return torch.device("cpu")
    return torch.device("cuda", gpu if local_rank is None else local_rank)


# --- training --------------------------------------------------------------------------------


def train(arguments: Sequence[str]) -> int:
    """`train.py`: returns the exit status.

    Raises:
        UserError: anything that the user can mend, before or while training.
    """
    if set(arguments) & set(_HELP):
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
    say = _say if processes.writes else _silent
    device = _device(setup.run.gpu, processes.local_rank if processes.count > 1 else None)
    config = _shared_updates(setup, processes)
    resumed = _resumed(setup, say)
    for corpus in [*setup.data.corpora, *([setup.data.valid] if setup.data.valid else [])]:
        check_corpus(corpus)
    vocabularies = resumed.loaded.vocabularies if resumed else _vocabularies(setup)
    torch.manual_seed(setup.run.seed)
    model = resumed.loaded.model if resumed else build_model(setup.model, vocabularies)
    if resumed is None:
        _start_from_vectors(setup, model, vocabularies, say)
    model.to(device)
    if processes.rank > 0:  # other dropout masks than the first process has
        torch.manual_seed(setup.run.seed + 1_000_003 * processes.rank)
    _announce(setup, model, vocabularies, processes, say)
    processes.connect(device)
    try:
        outcome = _train(setup, config, model, vocabularies, resumed, processes)
    except RuntimeError as error:
        if processes.count == 1:
            raise
        raise ProcessError(
            f"another process of the run has died ({str(error).splitlines()[0]}); continue from "
            f"the last checkpoint with -train_from {setup.run.save_model}"
        ) from None
    finally:
        processes.disconnect()
    say(f"stopped at step {outcome.step} ({outcome.reason}); checkpoints: {setup.run.save_model}")
    if outcome.signal is not None:
        say(f"continue with the same command and -train_from {setup.run.save_model}")
        return 128 + outcome.signal
    return 0


def _train(
    setup: TrainingSetup,
    config: TrainingConfig,
    model: SparseNMTModel,
    vocabularies: Vocabularies,
    resumed: Resumed | None,
    processes: Processes,
) -> Outcome:
    """Put the parts of a run together and run it."""
    run_path = Path(setup.run.save_model)
    if processes.writes:
        remove_leftovers(run_path)
        if setup.run.overwrite and setup.run.train_from is None:
            _clear(run_path)
    state = resumed.state if resumed else None
    first = 0 if state is None else int(state["run"]["step"])
    run = RunFolder(run_path, setup.model, vocabularies, setup.record, setup.run.keep_checkpoint)
    evaluate = make_evaluate(setup, vocabularies) if setup.data.valid else None
    if setup.run.label_smoothing_prior == "unigram":
        prior = target_frequencies(setup.data, vocabularies)
        model.generator.prior = prior.to(device_of(model))
    board = None if setup.run.tensorboard is None else Path(setup.run.tensorboard)
    with ExitStack() as stack:
        records = None
        if processes.writes:
            records = stack.enter_context(Records(run_path, first, config.train_steps, board))
        batches = TrainingBatches(setup.data, vocabularies)
        trainer = Trainer(model, batches, config, evaluate, run, records, processes)
        if state is not None:
            trainer.load_state_dict(state)
        return trainer.train()


def _shared_updates(setup: TrainingSetup, processes: Processes) -> TrainingConfig:
    """The training configuration, with the batches of an update shared out to the processes.

    An update of OpenNMT-py takes `accum_count` batches in each of `world_size` processes. It
    takes as many here, whatever the number of processes that share them.

    Raises:
        ProcessError: they cannot be shared evenly.
    """
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


@dataclass(frozen=True)
class Resumed:
    """A checkpoint to continue from."""

    loaded: LoadedModel
    state: dict[str, Any] | None  # None where only the weights are taken over


def _resumed(setup: TrainingSetup, say: Callable[[str], None]) -> Resumed | None:
    """The checkpoint to continue from, checked against what is asked for now.

    Raises:
        CheckpointError: there is none, it is of another model, or none of a run is whole.
    """
    run_path = Path(setup.run.save_model)
    if setup.run.train_from is None:
        if checkpoint_steps(run_path) and not setup.run.overwrite:
            raise CheckpointError(
                f"{run_path}: already holds checkpoints; continue with -train_from {run_path}, "
                f"start anew with -overwrite, or choose another save_model"
            )
        return None
    given = Path(setup.run.train_from)
    steps = checkpoint_steps(given)
    # Of a run folder, the newest checkpoint that is whole.
    candidates = [given / f"step_{step}" for step in reversed(steps)] or [find_model(given)]
    for number, folder in enumerate(candidates, 1):
        try:
            loaded = load(folder)
            fresh = setup.record["reset_optim"] == "all"
            state = None if fresh else read_training_state(folder)
        except CheckpointError as error:
            if number == len(candidates):
                raise
            say(f"warning: {error}; trying the checkpoint before")
            continue
        _check_same_model(setup.model, loaded.config, folder)
        say(f"continuing from {folder}")
        return Resumed(loaded, state)
    raise AssertionError("the last candidate either loads or raises")


def _check_same_model(now: ModelConfig, saved: ModelConfig, folder: Path) -> None:
    for field in fields(ModelConfig):
        asked, made = getattr(now, field.name), getattr(saved, field.name)
        if asked != made and not field.name.startswith(("param_init", "freeze_")):
            raise CheckpointError(
                f"{folder}: cannot continue: the model was made with {field.name} {made!r}, "
                f"the configuration now says {asked!r}"
            )


def _clear(run: Path) -> None:
    """Delete what an earlier run left, and nothing else."""
    for step in checkpoint_steps(run):
        shutil.rmtree(run / f"step_{step}")
    for path in [run / "best.json", run / "metrics.jsonl", *run.glob("nonfinite_step_*.json")]:
        path.unlink(missing_ok=True)


def _vocabularies(setup: TrainingSetup) -> Vocabularies:
    return build_vocabularies(setup.vocabulary, all_pairs(setup.data), extra_specials(setup.data))


def _start_from_vectors(
    setup: TrainingSetup,
    model: SparseNMTModel,
    vocabularies: Vocabularies,
    say: Callable[[str], None],
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
            say(f"{path}: vectors for {len(vectors)} of {len(vocabulary)} tokens")


def _announce(
    setup: TrainingSetup,
    model: SparseNMTModel,
    vocabularies: Vocabularies,
    processes: Processes,
    say: Callable[[str], None],
) -> None:
    source, target = vocabularies
    say(
        f"{count_parameters(model):,} weights, vocabularies of {len(source)} source and "
        f"{len(target)} target tokens, attention alpha {setup.model.global_attention_alpha:g}, "
        f"output alpha {setup.model.generator_alpha:g}, on {device_of(model)}"
    )
    if setup.run.world_size > processes.count:
        say(
            f"note: world_size {setup.run.world_size} but {processes.count} process: it "
            f"accumulates the gradients of all batches, which gives the same updates"
        )


# --- translation -----------------------------------------------------------------------------


def translate(arguments: Sequence[str]) -> int:
    """`translate.py`: returns the exit status.

    Raises:
        UserError: anything that the user can mend; then no output file is changed.
    """
    if set(arguments) & set(_HELP):
        translation_parser().print_help()
        return 0
    processes = Processes()
    with connected(processes):
        if not processes.writes:
            return send_answers(lambda: _answers(translation_setup(arguments), processes)[0])
        summary = run_translation(translation_setup(arguments), processes)
    print(summary.text())
    return 0


def _answers(
    setup: TranslationSetup, processes: Processes
) -> tuple[Iterator[Answer], int, Windows]:
    """The answers to the lines of this process, how many lines there are, and which are its."""
    lines = count_lines(setup.src)
    if lines == 0:
        raise UserError(f"{setup.src}: the file is empty, there is nothing to translate")
    if setup.prefixes is not None and count_lines(setup.prefixes) != lines:
        raise UserError(f"{setup.prefixes}: must have {lines} lines, as many as {setup.src}")
    translator = Translator.from_folders(
        setup.models,
        setup.task,
        _device(setup.gpu, processes.local_rank if processes.count > 1 else None),
        transforms=setup.transforms,
        transform_options=setup.transform_options,
        attention=setup.exactness_report is not None,
        unknown=setup.unknown,
    )
    prefixes = None if setup.prefixes is None else read_lines(setup.prefixes)
    windows = Windows.of(lines, processes)
    answers = translator.answers(read_lines(setup.src), setup.batch_size, prefixes, windows)
    return answers, lines, windows


def run_translation(setup: TranslationSetup, processes: Processes) -> Summary:
    """Translate a file as `setup` says, with its report and summary where asked for.

    Of several processes this is what the first does; the others send it their answers.
    """
    report = setup.exactness_report
    started = time.monotonic()
    paths = [setup.output] + ([report] if report is not None else [])
    with replaced_when_done(paths) as files:
        own, lines, windows = _answers(setup, processes)
        answers = in_order(own, lines, windows)
        writer = AnswerWriter(files[0], files[1] if report else None, setup.n_best)
        for answer in tqdm(answers, total=lines, unit="line", disable=None):
            writer.write(answer)
    summary = writer.summary
    if report is not None:
        described = summary.as_dict() | {
            "seconds": round(time.monotonic() - started, 2),
            "search": setup.task.method,
            "beam_size": setup.task.config.beam_size,
            "max_length": setup.task.config.max_length,
            "models": [str(find_model(model)) for model in setup.models],
        }
        _write_json(report.with_name(report.name + ".summary.json"), described)
    return summary


def _write_json(path: Path, content: dict[str, object]) -> None:
    import json

    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    def write(temporary: Path) -> None:
        temporary.write_text(text, encoding="utf-8")

    write_atomically(path, write)
