"""Resuming: the checkpoint that a run continues from, and what it must have in common with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from onmt_entmax.checkpoint import (
    STATE,
    CheckpointError,
    LoadedModel,
    checkpoint_steps,
    find_model,
    load,
    read_training_state,
)
from onmt_entmax.data.corpus import DataConfig, extra_specials
from onmt_entmax.data.vocabulary import Vocabularies, Vocabulary, VocabularyConfig
from onmt_entmax.errors import counted
from onmt_entmax.model import freeze
from onmt_entmax.network import ModelConfig
from onmt_entmax.train.config import RunConfig, TrainingConfig
from onmt_entmax.train.saved_state import check_state

# Options that the state of an optimiser depends on, besides the trained weights.
_OPTIMIZER = ("optim", "adam_beta1", "adam_beta2")
# Options of the model that may change when a run is resumed: no weight depends on them.
_FREE = (
    "param_init",
    "param_init_glorot",
    "alpha_init_mean",
    "alpha_init_std",
    "dropout",
    "attention_dropout",
)
_NAMED = 8  # most tokens that a warning names


class OtherRunError(CheckpointError):
    """A whole checkpoint, but of another model or optimiser than the configured ones."""


@dataclass(frozen=True)
class Resumed:
    """A checkpoint to continue from."""

    loaded: LoadedModel
    state: dict[str, Any] | None  # None if only the weights are used

    @property
    def step(self) -> int:
        """Updates done."""
        return 0 if self.state is None else int(self.state["run"]["step"])


def resume(
    run: RunConfig, model: ModelConfig, training: TrainingConfig, tell: Callable[[str], None]
) -> Resumed | None:
    """Load the checkpoint to continue from, or return None for a new run.

    Args:
        run: names the checkpoint and the folder to write to.
        model: the configured network, which must be the checkpoint's.
        training: the configured optimiser and selection.
        tell: receives a warning for each damaged checkpoint that is skipped.

    Raises:
        CheckpointError: there is no checkpoint, it has another model or optimiser, all of them are
            damaged, it has reached a limit already and the run folder is another, or the run
            folder holds checkpoints that this run does not continue.
    """
    if run.train_from is None:
        _check_folder(run, None)
        return None
    given = Path(run.train_from)
    # Of a run folder, the newest checkpoint that can be read.
    steps = checkpoint_steps(given)
    candidates = [given / f"step_{step}" for step in reversed(steps)] or [find_model(given)]
    weights_only = run.reset_optim == "all"
    for number, folder in enumerate(candidates, 1):
        try:
            loaded = load(folder)
            _check_same_model(folder, model, loaded.config, weights_only)
            state = None if weights_only else _read_state(folder, loaded, training)
        except OtherRunError:
            raise
        except CheckpointError as error:
            if number == len(candidates):
                raise
            tell(f"warning: {error}; trying the checkpoint before")
            continue
        freeze(loaded.model, model)
        loaded.model.update_dropout(model.dropout, model.attention_dropout)
        other_measure = loaded.options.get("selection", training.selection) != training.selection
        if state is not None and (other_measure or not same_folder(run)):
            # The best value so far is of another measure, or its checkpoint of another folder.
            state["run"] |= {"best": None, "best_step": -1, "best_planned": None, "waited": 0}
        resumed = Resumed(loaded, state)
        _check_folder(run, resumed)
        finished = _finished(resumed, training)
        if finished is not None and not same_folder(run):
            raise CheckpointError(
                f"{folder}: nothing is left to train: {finished}; set a higher limit, or take the "
                "weights alone with -reset_optim all, which counts from 0"
            )
        tell(f"continuing from {folder}")
        if finished is not None:
            tell(f"note: nothing is left to train: {finished}")
        return resumed
    raise AssertionError("the last candidate either loads or raises")


def _finished(resumed: Resumed, training: TrainingConfig) -> str | None:
    """Return the limit that a checkpoint has reached, such as `step 9, train_steps 5`, or None."""
    if resumed.state is None:
        return None
    saved, epoch = resumed.state["run"], resumed.state["position"]["epoch"]
    limit = training.reached(saved["step"], epoch, saved["seconds"], saved["waited"])
    if limit is None:
        return None
    return f"step {saved['step']:,}, {limit} {getattr(training, limit):,}"


def _read_state(folder: Path, loaded: LoadedModel, training: TrainingConfig) -> dict[str, Any]:
    """Return the training state of a checkpoint, checked against its model and the optimiser.

    Raises:
        OtherRunError: it was trained with another optimiser.
        CheckpointError: the state is damaged.
    """
    _check_same_optimizer(folder, training, loaded.options)
    # Weights, averages and two moments in double precision, random states of many processes.
    at_most = 64 * sum(weight.numel() for weight in loaded.model.parameters()) + 2**26
    state = read_training_state(folder, at_most)
    check_state(folder / STATE, state, loaded.model, training.optimizer.optim)
    return state


def _check_same_model(
    folder: Path, model: ModelConfig, saved: ModelConfig, weights_only: bool
) -> None:
    """Refuse a checkpoint of another model.

    Raises:
        OtherRunError: names the first difference.
    """
    for field in fields(model):
        wanted, found = getattr(model, field.name), getattr(saved, field.name)
        frozen = field.name.startswith("freeze_")
        if wanted == found or field.name in _FREE or (frozen and weights_only):
            continue
        hint = "; -reset_optim all takes the weights alone" if frozen else ""
        raise OtherRunError(
            f"{folder}: cannot continue: the model was made with {field.name} {found!r}, "
            f"the configuration now says {wanted!r}{hint}"
        )


def _check_same_optimizer(
    folder: Path, training: TrainingConfig, options: Mapping[str, Any]
) -> None:
    """Refuse a checkpoint whose optimiser state does not fit the configured optimiser.

    Raises:
        OtherRunError: names the first difference.
    """
    for name in _OPTIMIZER:
        wanted, found = getattr(training.optimizer, name), options.get(name)
        if found is not None and wanted != found:
            raise OtherRunError(
                f"{folder}: cannot continue: it was trained with {name} {found!r}, the "
                f"configuration now says {wanted!r}; -reset_optim all takes the weights alone"
            )


def same_folder(run: RunConfig) -> bool:
    """Whether the run writes to the folder that it continues."""
    folder = Path(run.save_model).resolve()
    given = Path(run.train_from or "").resolve()
    return run.train_from is not None and folder in (given, given.parent)


def _check_folder(run: RunConfig, resumed: Resumed | None) -> None:
    """Refuse to mix a run with the checkpoints of another run, or with its own later ones.

    Raises:
        CheckpointError: says what the folder holds and how to go on.
    """
    folder = Path(run.save_model)
    steps = checkpoint_steps(folder)
    if (folder / "config.yaml").is_file():
        raise CheckpointError(
            f"{folder}: is a model itself, and not a run; choose another save_model"
        )
    if same_folder(run) and resumed is not None:
        if resumed.state is None:
            raise CheckpointError(
                f"{folder}: holds what -train_from names: -reset_optim all begins another run, so "
                f"choose another save_model"
            )
        if Path(str(run.train_from)).resolve() == folder.resolve():
            return  # later checkpoints are damaged, and will be overwritten
        steps = [step for step in steps if step > resumed.step]
        if steps and not run.overwrite:
            raise CheckpointError(
                f"{folder}: holds checkpoints of later steps, up to {steps[-1]}; delete them with "
                f"-overwrite, or choose another save_model"
            )
    elif steps and not run.overwrite:
        raise CheckpointError(
            f"{folder}: already holds checkpoints; continue with -train_from {folder}, "
            f"start anew with -overwrite, or choose another save_model"
        )


def check_specials(train_from: str, data: DataConfig, vocabularies: Vocabularies) -> None:
    """Refuse transforms that write special tokens which the checkpoint would read as `<unk>`.

    Raises:
        CheckpointError: names the token.
    """
    for tokens, vocabulary in zip(extra_specials(data), vocabularies, strict=True):
        for token in tokens:
            if token not in vocabulary:
                raise CheckpointError(
                    f"{train_from}: cannot continue: a transform of the data writes "
                    f"{token!r}, which the vocabularies of that model do not have"
                )


def check_languages(
    train_from: str,
    languages: Mapping[str, Iterable[str]],
    vocabulary: Vocabulary,
    config: VocabularyConfig,
    tell: Callable[[str], None],
) -> None:
    """Warn of source tokens, such as new languages, which the checkpoint would read as `<unk>`.

    Args:
        train_from: the checkpoint.
        languages: the source tokens of the training data by language.
        vocabulary: the checkpoint's, of sources.
        config: says whether a vocabulary lacks rare tokens on purpose; these are not named.
        tell: receives the warning.
    """
    found = [*languages]
    limited = config.src_words_min_frequency > 1 or len(vocabulary) >= config.src_vocab_size
    if not limited and config.src_vocab is None:
        found += sorted({token for some in languages.values() for token in some})
    lacking = [token for token in found if token not in vocabulary]
    if lacking:
        more = ", ..." if len(lacking) > _NAMED else ""
        tell(
            f"warning: {train_from} reads <unk> instead of {counted(len(lacking), 'source token')} "
            f"of the training data: {', '.join(map(repr, lacking[:_NAMED]))}{more}; only a new run "
            "learns them"
        )
