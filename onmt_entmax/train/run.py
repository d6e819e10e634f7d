"""A training run from its configuration to its checkpoints.

It reads the data, starts anew or resumes from a compatible checkpoint, and calls the trainer. The
command `train` and `train_model` run it.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from onmt_entmax.checkpoint import (
    CELLS,
    CheckpointError,
    best_step,
    checkpoint_steps,
    read_best,
    read_cells,
    with_subword_files,
)
from onmt_entmax.config import DataConfig, ModelConfig, RunConfig, TrainingConfig, VocabularyConfig
from onmt_entmax.data.stream import TrainingBatches, target_frequencies
from onmt_entmax.data.training import TrainingData
from onmt_entmax.data.unknown import named
from onmt_entmax.data.vectors import read_vectors
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import UserError, counted
from onmt_entmax.memory import refuse_too_large
from onmt_entmax.model import SparseNMTModel, build_model, count_parameters, device_of
from onmt_entmax.parallel.processes import Processes
from onmt_entmax.sparse.backends import cpu
from onmt_entmax.strings.cells import Cells, cells_text
from onmt_entmax.strings.units import UNKNOWN
from onmt_entmax.train.evaluation import ValidationConfig, make_evaluate
from onmt_entmax.train.log import Log
from onmt_entmax.train.next_command import next_command
from onmt_entmax.train.progress import measure_text
from onmt_entmax.train.resuming import Resumed, resume
from onmt_entmax.train.run_folder import RunFolder, alone, clean_folder
from onmt_entmax.train.shared import connected, shared_updates
from onmt_entmax.train.trainer import Outcome, Trainer

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
    training = shared_updates(training, run.world_size, data, processes.count, tell)
    folder = Path(run.save_model)
    record, others = with_subword_files(record)
    with (
        connected(processes, device, folder),
        alone(folder, processes) as unchanged,
        ExitStack() as stack,
    ):
        resumed = resume(run, model, training, record, tell)
        corpora = _read_data(run, data, vocabulary, resumed, tell)
        network = _network(run, model, training, corpora, resumed, device, tell)
        if processes.rank > 0:  # each process draws its own dropout masks
            torch.manual_seed(run.seed + 1_000_003 * processes.rank)
        _describe(network, model, corpora.vocabularies, tell)
        evaluate = None if data.valid is None else make_evaluate(corpora, validation, tell)
        following = next_command(folder, corpora)
        log = None
        if processes.writes:
            clean_folder(run, corpora, resumed, tell)
            done = resumed.step if resumed else 0
            log = Log(folder, done, training, model.generator_alpha, run.tensorboard)
            stack.enter_context(closing(log))
            cells = _cells(corpora, resumed, tell)
            if cells:
                others[CELLS] = cells_text(cells).encode()
        saves = RunFolder(
            folder, model, corpora.vocabularies, record, run.keep_checkpoint, others, unchanged
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
    _tell_result(folder, outcome, validation, tell)
    tell(f"next: {following}")
    return 0


# --- data --------------------------------------------------------------------------------------


def _read_data(
    run: RunConfig,
    data: DataConfig,
    vocabulary: VocabularyConfig,
    resumed: Resumed | None,
    tell: Tell,
) -> TrainingData:
    """Return corpora and vocabularies, which are those of a resumed run; warn of unknown tokens.

    Raises:
        CheckpointError: see `_check_vocabularies`.
    """
    corpora = TrainingData(data, vocabulary, resumed.loaded.vocabularies if resumed else None)
    _, target_counts = corpora.counts
    unknown = target_counts[UNKNOWN]
    if unknown:
        tell(
            f"warning: {unknown:,} of {counted(target_counts.total(), 'target token')} of "
            "the training data are <unk>, which the model learns to write; translate "
            "-ban_unk_token excludes it"
        )
    if resumed is not None:
        _check_vocabularies(str(run.train_from), corpora, vocabulary, tell)
    return corpora


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


def _cells(data: TrainingData, resumed: Resumed | None, tell: Tell) -> Cells:
    """Return the cells of inflection that were trained, of each language; {} for other tasks.

    As with tokens seen, what an earlier training counted of other cells is kept.
    """
    cells = data.cells()
    if not cells:
        return {}
    earlier: Cells = {}
    if resumed is not None:
        try:
            earlier = read_cells(resumed.loaded.folder)
        except UserError as error:
            tell(f"warning: {error}; only the cells of this data are kept")
    both = {language: {**earlier.get(language, {}), **cells[language]} for language in cells}
    return {**earlier, **both}


# --- the network -------------------------------------------------------------------------------


def _network(
    run: RunConfig,
    model: ModelConfig,
    training: TrainingConfig,
    data: TrainingData,
    resumed: Resumed | None,
    device: torch.device,
    tell: Tell,
) -> SparseNMTModel:
    """Return the network on its device: a new one, from the seed of the run, or the resumed one.

    Raises:
        TooLargeError: it does not fit in memory.
    """
    torch.manual_seed(run.seed)
    if resumed is not None:
        network = resumed.loaded.model
    else:
        # Weights and gradients, and the two moments of Adam.
        copies = 4 if training.optimizer.optim == "adam" else 2
        refuse_too_large(model, data.vocabularies, copies, device)
        network = build_model(model, data.vocabularies)
        _load_vectors(run, network, data.vocabularies, tell)
    if run.label_smoothing_prior == "unigram":
        network.generator.prior = target_frequencies(data)
    return network.to(device)


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


def _describe(
    network: SparseNMTModel, model: ModelConfig, vocabularies: Vocabularies, tell: Tell
) -> None:
    """Say what is trained, and on which device; warn of slow ones."""
    device = device_of(network)
    tell(
        f"{count_parameters(network):,} weights, vocabularies of "
        f"{len(vocabularies.source):,} source and "
        f"{counted(len(vocabularies.target), 'target token')}, {model.attention_text}, "
        f"output alpha {model.generator_alpha:g}, on {device}"
    )
    without_on_purpose = os.environ.get("ONMT_ENTMAX_NATIVE") == "0"
    if device.type == "cpu" and cpu.module is None and not without_on_purpose:
        tell(
            "warning: the C++ kernels of onmt_entmax.sparse were not compiled, so training "
            "takes longer; install the package again where there is a C++ compiler"
        )


def _tell_result(folder: Path, outcome: Outcome, validation: ValidationConfig, tell: Tell) -> None:
    """Say how a run ended, and name its best checkpoint, or the last one without a best."""
    tell(f"finished at step {outcome.step} ({outcome.reason})")
    if best_step(folder) not in checkpoint_steps(folder):
        tell(f"last checkpoint: {folder}/step_{outcome.step}")
        return
    best: Any = read_best(folder)
    value = measure_text(best["metric"], best["value"])
    conditions = validation.conditions(best["metric"])
    how = f" ({conditions})" if conditions else ""
    tell(f"best checkpoint: {folder}/step_{best['step']}, {value} on the development set{how}")
