"""A training run from its configuration to its checkpoints.

It reads the data, starts anew or resumes from a compatible checkpoint, and calls the trainer.
"""

import os
import shlex
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import (
    CELLS,
    CheckpointError,
    RunFolder,
    best_step,
    checkpoint_steps,
    clear,
    read_best,
    read_cells,
    remove_leftovers,
    with_subword_files,
)
from onmt_entmax.config import DataConfig, ModelConfig, RunConfig, TrainingConfig, VocabularyConfig
from onmt_entmax.data.stream import TrainingBatches, target_frequencies
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.unknown import named
from onmt_entmax.data.vectors import read_vectors
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import FileError, locked, write_files
from onmt_entmax.model import (
    SparseNMTModel,
    build_model,
    count_parameters,
    device_of,
    refuse_too_large,
)
from onmt_entmax.parallel.processes import ProcessError, Processes
from onmt_entmax.sparse.backends import cpu
from onmt_entmax.strings.cells import Cells, cells_text
from onmt_entmax.strings.task import LANGUAGE_COLUMN, SOURCE, TAGS
from onmt_entmax.strings.units import CHARACTERS, UNKNOWN
from onmt_entmax.train.evaluation import ValidationConfig, make_evaluate
from onmt_entmax.train.log import Log, measure
from onmt_entmax.train.resuming import Resumed, resume, same_folder
from onmt_entmax.train.trainer import Trainer

_RARE = 0.05  # share of all tokens that a vocabulary may lack on purpose, without a warning
Tell = Callable[[str], None]


def run_training(
    *,
    run: RunConfig,
    data: DataConfig,
    vocabulary: VocabularyConfig,
    model: ModelConfig,
    training: TrainingConfig,
    validation: ValidationConfig,
    record: Mapping[str, Any],
    began: float | None = None,
) -> int:
    """Train a model, from the start or from a checkpoint.

    Args:
        run: folder, start and device.
        data: corpora and batches.
        vocabulary: files and sizes of the vocabularies.
        model: the network.
        training: loss, limits and schedule.
        validation: measures on the development set.
        record: every option by name, saved with each checkpoint, as are the subword files.
        began: when the command began, in seconds of `time.monotonic`, from which `max_seconds`
            count; None: now.

    Returns:
        The exit status: 0, or 128 plus the signal that ended the run.

    Raises:
        UserError: for everything that the user can fix.
    """
    began = time.monotonic() if began is None else began
    processes = Processes()
    tell: Tell = processes.say
    device = processes.device(run.gpu, "gpu_ranks")
    if training.matmul_dtype == "tf32" and device.type != "cuda":
        tell("warning: matmul_dtype: tf32 is of GPUs; float32 on the CPU")
        training = replace(training, matmul_dtype="float32")
    training = _shared(training, run.world_size, data, processes.count, tell)
    folder = Path(run.save_model)
    record, others = with_subword_files(record)
    with (
        _connected(processes, device, folder),
        _alone(folder, processes) as unchanged,
        ExitStack() as stack,
    ):
        resumed = resume(run, model, training, record, tell)
        corpora = TrainingData(data, vocabulary, resumed.loaded.vocabularies if resumed else None)
        vocabularies = corpora.vocabularies
        if unknown := corpora.counts[1][UNKNOWN]:
            tell(
                f"warning: {unknown:,} of {counted(corpora.counts[1].total(), 'target token')} of "
                "the training data are <unk>, which the model learns to write; translate "
                "-ban_unk_token excludes it"
            )
        if resumed is not None:
            _check_vocabularies(str(run.train_from), corpora, vocabulary, tell)
        torch.manual_seed(run.seed)
        if resumed is not None:
            network = resumed.loaded.model
        else:
            # Weights and gradients, and the two moments of Adam.
            copies = 4 if training.optimizer.optim == "adam" else 2
            refuse_too_large(model, vocabularies, copies, device)
            network = build_model(model, vocabularies)
            _load_vectors(run, network, vocabularies, tell)
        if run.label_smoothing_prior == "unigram":
            network.generator.prior = target_frequencies(corpora)
        network.to(device)
        if processes.rank > 0:  # each process draws its own dropout masks
            torch.manual_seed(run.seed + 1_000_003 * processes.rank)
        tell(
            f"{count_parameters(network):,} weights, vocabularies of "
            f"{len(vocabularies.source):,} source and "
            f"{counted(len(vocabularies.target), 'target token')}, {model.attention_text}, "
            f"output alpha {model.generator_alpha:g}, on {device_of(network)}"
        )
        compiled = os.environ.get("ONMT_ENTMAX_NATIVE") == "0" or cpu.module is not None
        if device.type == "cpu" and not compiled:
            tell(
                "warning: the C++ kernels of onmt_entmax.sparse were not compiled, so training "
                "takes longer; install the package again where there is a C++ compiler"
            )
        evaluate = None if data.valid is None else make_evaluate(corpora, validation, tell)
        following = next_command(folder, corpora)
        log = None
        if processes.writes:
            _clean_folder(run, corpora, resumed, tell)
            done = resumed.step if resumed else 0
            log = Log(folder, done, training, model.generator_alpha, run.tensorboard)
            stack.enter_context(closing(log))
        if processes.writes and (cells := corpora.cells()):
            # As with tokens seen, what an earlier training counted of other cells is kept.
            earlier: Cells = {}
            try:
                earlier = read_cells(resumed.loaded.folder) if resumed else {}
            except UserError as error:
                tell(f"warning: {error}; only the cells of this data are kept")
            both = {each: {**earlier.get(each, {}), **cells[each]} for each in cells}
            others[CELLS] = cells_text({**earlier, **both}).encode()
        saves = RunFolder(
            folder, model, vocabularies, record, run.keep_checkpoint, others, unchanged
        )
        batches = TrainingBatches(corpora, data.num_workers)
        trainer = Trainer(network, batches, training, evaluate, saves, log, processes, began)
        if trainer.no_graphs is not None:
            tell(f"note: updates without CUDA graphs: {trainer.no_graphs}")
        if resumed is not None and resumed.state is not None:
            trainer.load_state_dict(resumed.state)
        outcome = trainer.train()
    if outcome.signal is not None:
        tell(f"stopped at step {outcome.step} ({outcome.reason}); checkpoints: {folder}")
        tell(f"continue with the same command and -train_from {folder}")
        return 128 + outcome.signal
    tell(f"finished at step {outcome.step} ({outcome.reason})")
    if best_step(folder) not in checkpoint_steps(folder):
        tell(f"last checkpoint: {folder}/step_{outcome.step}")
    else:
        best: Any = read_best(folder)
        value, taken = measure(best["metric"], best["value"]), validation.conditions(best["metric"])
        how = f" ({taken})" if taken else ""
        tell(f"best checkpoint: {folder}/step_{best['step']}, {value} on the development set{how}")
    tell(f"next: {following}")
    return 0


def _check_vocabularies(
    train_from: str, data: TrainingData, config: VocabularyConfig, tell: Tell
) -> None:
    """Warn of tokens that the vocabularies of the checkpoint lack, so that it reads `<unk>`.

    If these lack rare tokens on purpose, then of languages alone, unless there are many others.

    Raises:
        CheckpointError: a transform writes a special token that they lack.
    """
    for tokens, vocabulary in zip(data.specials, data.vocabularies, strict=True):
        for token in tokens:
            if token not in vocabulary:
                raise CheckpointError(
                    f"{train_from}: cannot continue: a transform of the data writes "
                    f"{token!r}, which the vocabularies of that model do not have"
                )
    sides = zip(("src", "tgt"), data.counts, data.vocabularies, strict=True)
    for side, counts, vocabulary in sides:
        lacking = Counter({token: n for token, n in counts.items() if token not in vocabulary})
        limited = (
            getattr(config, f"{side}_words_min_frequency") > 1
            or len(vocabulary) >= getattr(config, f"{side}_vocab_size")
            or config.src_vocab
            or config.tgt_vocab
        )
        if limited and lacking.total() <= _RARE * counts.total():
            lacking = Counter({token: n for token, n in lacking.items() if token in data.languages})
        if lacking:
            of = {"src": "source token", "tgt": "target token"}[side]
            tell(
                f"warning: {train_from} reads <unk> instead of {lacking.total():,} of "
                f"{counted(counts.total(), of)} of the training data: {named(lacking)}; only a new "
                "run learns them"
            )


# --- the run folder --------------------------------------------------------------------------


@contextmanager
def _alone(folder: Path, processes: Processes) -> Iterator[Callable[[], None] | None]:
    """Lock the run folder in the first process; two runs at once would delete each other's files.

    Reading needs no lock: a checkpoint gets its name when it is complete.

    Yields:
        In the first process, a function that raises FileError if the folder was deleted or
        replaced meanwhile; None in the others.

    Raises:
        FileError: another run holds the lock.
        SystemExit: the first process was refused, and says so; this is another process.
    """
    with ExitStack() as stack:
        refusal, unchanged = None, None
        if processes.writes:
            try:
                unchanged = stack.enter_context(locked(folder))
                remove_leftovers(folder)
            except FileError as error:
                refusal = error
        if processes.from_first(refusal is not None):
            raise refusal or SystemExit(2)
        yield unchanged


def _clean_folder(run: RunConfig, data: TrainingData, resumed: Resumed | None, tell: Tell) -> None:
    """Write the new vocabulary files and delete what the run replaces.

    Nothing is written or deleted before all inputs, the first batch included, have been read: a
    run that cannot start leaves the earlier one as it was. `tell` receives a line for everything
    written or deleted.
    """
    folder = Path(run.save_model)
    first = resumed.step if resumed and same_folder(run) else 0
    steps = checkpoint_steps(folder) if run.overwrite else []
    replaced = [step for step in steps if step > first]
    if replaced or data.new_files:
        with closing(iter(TrainingBatches(data))) as stream:
            next(stream)
    write_files(data.new_files)
    for path in data.new_files:
        tell(f"note: {path}: was not there; written, with the tokens counted in the data")
    if replaced:
        names = ", ".join(f"step_{step}" for step in replaced)
        tell(f"note: -overwrite: deletes from {folder}: {names}")
    if run.overwrite:
        clear(folder, first)


# --- several processes -----------------------------------------------------------------------


@contextmanager
def _connected(processes: Processes, device: torch.device, folder: Path) -> Iterator[None]:
    """Connect to the other processes, if there are any, and disconnect at the end.

    Each update communicates, in many places, so any RuntimeError may be of another process. In
    `sharding.connected` few places do, and one process reports for all.

    Raises:
        ProcessError: this or another process failed.
    """
    advice = f"continue from the last checkpoint with -train_from {folder}"
    with processes.connected(device, advice):
        try:
            yield
        except RuntimeError as error:
            if processes.count == 1:
                raise
            # torchrun ends the other processes now; let them report their error first.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            raise ProcessError(
                f"this or another process of the run has failed ({str(error).splitlines()[0]}); "
                f"{advice}"
            ) from None


def _shared(
    training: TrainingConfig, world_size: int, data: DataConfig, processes: int, tell: Tell
) -> TrainingConfig:
    """Return the configuration with the batches of an update, all processes together.

    OpenNMT-py takes `accum_count` batches in each of `world_size` processes. An update has as many
    batches here, whatever the number of processes that share them. `accum_count` is already times
    the configured `world_size`.

    Raises:
        ProcessError: the processes cannot share an update evenly, or a transform gives each other
            batches.
    """
    names = {name for corpus in data.corpora for name in corpus.transforms}
    samples = {data.transform_options.get(f"{side}_subword_nbest", 1) for side in ("src", "tgt")}
    # Newer versions of sentencepiece seed their generator differently in each process.
    if processes > 1 and "sentencepiece" in names and samples - {0, 1}:
        raise ProcessError(
            "src_subword_nbest or tgt_subword_nbest: the transform sentencepiece draws subwords "
            "that no seed makes the same in all processes: use one process, or onmt_tokenize or bpe"
        )
    accum_count = training.accum_count
    if processes > 1 and world_size == 1:
        accum_count = tuple(count * processes for count in accum_count)
    for count in accum_count:
        if count % processes:
            raise ProcessError(
                f"an update takes {counted(count, 'batch')} (world_size times accum_count), which "
                f"{processes} processes cannot share evenly; start another number of them"
            )
    if world_size > processes:
        tell(
            f"note: world_size {world_size} but {counted(processes, 'process')}: gradients of all "
            "batches are accumulated, which gives the same updates"
        )
    return replace(training, accum_count=accum_count)


# --- start and end ---------------------------------------------------------------------------


def _load_vectors(
    run: RunConfig, network: SparseNMTModel, vocabularies: Vocabularies, tell: Tell
) -> None:
    """Copy pretrained word vectors into the embeddings; other tokens keep their initial ones."""
    for path, part, vocabulary in (
        (run.src_embeddings, network.encoder, vocabularies.source),
        (run.tgt_embeddings, network.decoder, vocabularies.target),
    ):
        if path is not None:
            table = part.embeddings.word_lut.weight
            kind = run.embeddings_type or "GloVe"
            vectors = read_vectors(Path(path), kind, vocabulary, table.shape[1])
            with torch.no_grad():
                for index, vector in vectors.items():
                    table[index] = vector
            tell(f"{path}: vectors for {len(vectors):,} of {counted(len(vocabulary), 'token')}")


def next_command(folder: Path, data: TrainingData) -> str:
    """Return a command that uses the model of a run, to paste into a shell.

    A model of inflection inflects a word of its data, one of other strings predicts the target of
    a row, and any other translates the development set.
    """
    lines, task = list(islice(data.lines(), 100)), data.config.task
    queries = [task.decode_source(line.source.split()) for line in lines]
    inflects = task.languages and task.has_tags and task.source == task.target == CHARACTERS
    if queries and task.source.kind != "text" and not inflects:
        query = max(queries, key=lambda query: bool(query.source))
        row = {SOURCE: query.source, LANGUAGE_COLUMN: query.language}
        row[TAGS] = task.tag_separator.join(query.tags)
        cells = [row[column] for column in task.columns if column in row]
        command = ["onmt-entmax", "predict", str(folder), "-"]
        if task.languages and LANGUAGE_COLUMN not in task.columns:
            command += ["--language", query.language]
        printed = ["printf", "\\t".join(["%s"] * len(cells)) + "\\n", *cells]
        asked = ["echo", *cells] if len(cells) == 1 else printed
        return f"{shlex.join(asked)} | {shlex.join(command)}"
    if not queries or not all(query.language for query in queries):
        # Where `prepare` proposes it, but never in the place of the reference.
        corpus = lines[0].corpus
        output = folder.parent / f"{Path(corpus.path_src).stem}.out"
        if output.absolute() == Path(corpus.path_tgt).absolute():
            output = folder / output.name
        files = ["-src", corpus.path_src, "-output", str(output)]
        return shlex.join(["onmt-entmax", "translate", "-model", str(folder), *files])
    # Tags are empty only where a language has none.
    lemma, tags, language = max(queries, key=lambda query: (bool(query.source), bool(query.tags)))
    words = [language, lemma, ";".join(tags)]
    return shlex.join(["onmt-entmax", "inflect", "--model", str(folder), *words])
