"""Where the rooms meet: a training run and a translation run, from configuration to files."""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

import torch
from tqdm import tqdm

from onmt_entmax.checkpoint import (
    CheckpointError,
    RunFolder,
    best_step,
    checkpoint_steps,
    find_model,
    load,
    read_config,
    read_training_state,
    read_vocabularies,
    write_atomically,
)
from onmt_entmax.errors import UserError
from onmt_entmax.model import (
    ModelConfig,
    SparseNMTModel,
    build_model,
    count_parameters,
    device_of,
)
from onmt_entmax.opennmt import SequenceTooLongError
from onmt_entmax.options.train import TrainingSetup, training_parser, training_setup
from onmt_entmax.options.translate import TranslationSetup, translation_parser, translation_setup
from onmt_entmax.records import Records
from onmt_entmax.reports.writers import AnswerWriter, Summary, replaced_when_done
from onmt_entmax.search import ModelStepper, SearchConfig, beam_search
from onmt_entmax.text.batch import Batch, group_by_length, make_batch
from onmt_entmax.text.corpus import (
    CorpusError,
    TrainingBatches,
    all_pairs,
    check_corpus,
    extra_specials,
    validation_batches,
    validation_examples,
)
from onmt_entmax.text.vocabulary import Vocabularies, build_vocabularies
from onmt_entmax.training import Evaluate, Trainer
from onmt_entmax.translation import Translator

_HELP = ("-h", "--help", "-help")


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _device(gpu: int | None) -> torch.device:
    if gpu is None:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        _say(f"note: no CUDA device here, so GPU {gpu} is not used; running on the CPU")
        return torch.device("cpu")
    return torch.device("cuda", gpu)


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
    run_path = Path(setup.run.save_model)
    resumed = _resumed_folder(setup)
    for corpus in [*setup.data.corpora, *([setup.data.valid] if setup.data.valid else [])]:
        check_corpus(corpus)
    vocabularies = _vocabularies(setup) if resumed is None else read_vocabularies(resumed)
    torch.manual_seed(setup.run.seed)
    model = load(resumed).model if resumed else build_model(setup.model, vocabularies)
    model.to(_device(setup.run.gpu))
    run = RunFolder(run_path, setup.model, vocabularies, setup.record, setup.run.keep_checkpoint)
    if setup.run.overwrite and setup.run.train_from is None:
        _clear(run_path)
    _announce(setup, model, vocabularies, resumed)
    state = None
    if resumed is not None and setup.record["reset_optim"] == "none":
        state = read_training_state(resumed)
    board = None if setup.run.tensorboard is None else Path(setup.run.tensorboard)
    first = 0 if state is None else int(state["run"]["step"])
    with Records(run_path, first, setup.training.train_steps, board) as records:
        batches = TrainingBatches(setup.data, vocabularies)
        evaluate = make_evaluate(setup, vocabularies) if setup.data.valid else None
        trainer = Trainer(model, batches, setup.training, evaluate, run, records)
        if state is not None:
            trainer.load_state_dict(state)
        outcome = trainer.train()
    _say(f"stopped at step {outcome.step} ({outcome.reason}); checkpoints are in {run_path}")
    if outcome.signal is not None:
        _say(f"continue with the same command and -train_from {run_path}")
        return 128 + outcome.signal
    return 0


def _resumed_folder(setup: TrainingSetup) -> Path | None:
    """The checkpoint to continue from, checked against what is asked for now."""
    run_path = Path(setup.run.save_model)
    if setup.run.train_from is None:
        if checkpoint_steps(run_path) and not setup.run.overwrite:
            raise CheckpointError(
                f"{run_path}: already holds checkpoints; continue with -train_from {run_path}, "
                f"start anew with -overwrite, or choose another save_model"
            )
        return None
    folder = find_model(Path(setup.run.train_from), newest=True)
    saved, _ = read_config(folder)
    for field in fields(ModelConfig):
        now, then = getattr(setup.model, field.name), getattr(saved, field.name)
        if now != then and not field.name.startswith(("param_init", "freeze_")):
            raise CheckpointError(
                f"{folder}: cannot continue: the model was made with {field.name} {then!r}, "
                f"the configuration now says {now!r}"
            )
    return folder


def _clear(run: Path) -> None:
    """Delete what an earlier run left, and nothing else."""
    for step in checkpoint_steps(run):
        shutil.rmtree(run / f"step_{step}")
    for name in ("best.json", "metrics.jsonl"):
        (run / name).unlink(missing_ok=True)


def _vocabularies(setup: TrainingSetup) -> Vocabularies:
    return build_vocabularies(setup.vocabulary, all_pairs(setup.data), extra_specials(setup.data))


def _announce(
    setup: TrainingSetup, model: SparseNMTModel, vocabularies: Vocabularies, resumed: Path | None
) -> None:
    source, target = vocabularies
    _say(
        f"{count_parameters(model):,} weights, vocabularies of {len(source)} source and "
        f"{len(target)} target tokens, attention alpha {setup.model.global_attention_alpha:g}, "
        f"output alpha {setup.model.generator_alpha:g}, on {device_of(model)}"
    )
    if resumed is not None:
        _say(f"continuing from {resumed}")
    if setup.run.world_size > 1:
        _say(
            f"note: world_size {setup.run.world_size}: one process accumulates the gradients of "
            f"{setup.run.world_size} batches instead, which gives the same updates"
        )


def make_evaluate(setup: TrainingSetup, vocabularies: Vocabularies) -> Evaluate:
    """What training calls to measure a model on the development set.

    It gives `loss` (a target token, without label smoothing), `token_accuracy` (percent),
    `support` (mean nonzero outputs a token), and, where it is selected by or a decoding size is
    given, `exact_match`: the percentage of sampled sentences that are decoded exactly.
    """
    batches = validation_batches(setup.data, vocabularies)
    decoded: list[Batch] = []
    if setup.training.selection == "exact_match":
        examples = validation_examples(setup.data, vocabularies)
        if 0 < setup.run.valid_decode_size < len(examples):
            examples = random.Random(0).sample(examples, setup.run.valid_decode_size)
        groups = group_by_length(examples, setup.data.valid_batch_size, "sents")
        decoded = [make_batch(group, vocabularies) for group in groups]
    search = SearchConfig(
        beam_size=setup.run.valid_beam_size, max_length=setup.run.max_length, stop="first"
    )

    def evaluate(model: SparseNMTModel) -> dict[str, float]:
        values = _teacher_forced(model, batches, vocabularies.target.pad)
        if decoded:
            values["exact_match"] = _exact_match(model, decoded, vocabularies, search)
        return values

    return evaluate


def _teacher_forced(model: SparseNMTModel, batches: Sequence[Batch], pad: int) -> dict[str, float]:
    loss = tokens = correct = support = 0.0
    for batch in batches:
        hidden, target = model.hidden_states(batch.to(device_of(model)))
        result = model.generator.loss(hidden, target, pad)
        loss += float(result.loss)
        tokens += float(result.tokens)
        correct += float(result.correct)
        support += float(result.support)
    tokens = max(tokens, 1.0)
    return {
        "loss": loss / tokens,
        "token_accuracy": 100 * correct / tokens,
        "support": support / tokens,
    }


def _exact_match(
    model: SparseNMTModel,
    batches: Sequence[Batch],
    vocabularies: Vocabularies,
    search: SearchConfig,
) -> float:
    stepper = ModelStepper(model, vocabularies.target)
    right = total = 0
    for batch in batches:
        assert batch.target is not None
        assert batch.target_lengths is not None
        rows, lengths = batch.target[:, :, 0].t().tolist(), batch.target_lengths.tolist()
        for result, row, length in zip(
            beam_search(stepper, batch, search), rows, lengths, strict=True
        ):
            reference = tuple(row[1 : length - 1])
            best = result.hypotheses[0].tokens if result.hypotheses else None
            # An unknown token stands for many strings, so it never matches.
            right += best == reference and vocabularies.target.unk not in reference
            total += 1
    return 100 * right / max(total, 1)


# --- translation -----------------------------------------------------------------------------


def translate(arguments: Sequence[str]) -> int:
    """`translate.py`: returns the exit status.

    Raises:
        UserError: anything that the user can mend; then no output file is changed.
    """
    if set(arguments) & set(_HELP):
        translation_parser().print_help()
        return 0
    summary = run_translation(translation_setup(arguments))
    print(summary.text())
    return 0


def run_translation(setup: TranslationSetup) -> Summary:
    """Translate a file as `setup` says, with its report and summary where asked for."""
    lines = _count_lines(setup.src)
    report = setup.exactness_report
    started = time.monotonic()
    paths = [setup.output] + ([report] if report is not None else [])
    with replaced_when_done(paths) as files:
        translator = Translator.from_folders(
            setup.models,
            setup.search,
            _device(setup.gpu),
            transforms=setup.transforms,
            transform_options=setup.transform_options,
            attention=report is not None,
        )
        writer = AnswerWriter(files[0], files[1] if report else None, setup.search.n_best)
        answers = translator.answers(_lines(setup.src), setup.batch_size)
        for answer in tqdm(answers, total=lines, unit="line", disable=None):
            writer.write(answer)
    summary = writer.summary
    if report is not None:
        described = summary.as_dict() | {
            "seconds": round(time.monotonic() - started, 2),
            "beam_size": setup.search.beam_size,
            "max_length": setup.search.max_length,
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


def _count_lines(path: Path) -> int:
    with open(path, "rb") as file:
        lines = sum(1 for _ in file)
    if lines == 0:
        raise UserError(f"{path}: the file is empty, there is nothing to translate")
    return lines


def _lines(path: Path) -> Iterator[str]:
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise UserError(f"{path}: line {number} is not UTF-8 ({error.reason})") from None


__all__ = ["best_step", "make_evaluate", "run_training", "run_translation", "train", "translate"]
