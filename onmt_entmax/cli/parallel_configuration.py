"""The configuration that `prepare files` writes for parallel text.

README has an example of this network, with 29,000 pairs. The number of pairs decides how long to
train, or a plan with --minutes.
"""

from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.parallel_folder import ParallelFolder
from onmt_entmax.cli.plan_lines import training_options
from onmt_entmax.cli.planned_networks import Network
from onmt_entmax.cli.plans import Plan
from onmt_entmax.cli.schedules import Schedule, decay_line, warmup_line
from onmt_entmax.cli.training_file import CorpusFiles, training_file
from onmt_entmax.cli.yaml_lines import double_quoted, with_comment
from onmt_entmax.data.subword_learning import Subwords

NETWORK = Network(encoder_layers=1, decoder_layers=1, size=384, batch=64)
DEFAULT_TOKENIZER = "13a"
"""The tokeniser of BLEU that `bleu` and `train` use if no option names one"""
_WITHOUT_SPACES = ("ja", "zh", "th", "lo", "km", "my")  # languages without spaces between words
# The schedule without --minutes; README says how long it takes for 29,000 pairs.
_SCHEDULE = Schedule(passes=6, fewest=2_000, most=100_000, multiple=400, validations=8)
_WARMUP = 400  # updates, at most


def configuration(
    folder: ParallelFolder, pairs: int, commands: Sequence[str], plan: Plan | None = None
) -> bytes:
    """Return the content of `train.yaml`.

    Args:
        folder: the files to train on.
        pairs: number of training pairs.
        commands: next commands, for the comment at its head.
        plan: plan for `--minutes`, if the user gives a time.
    """
    tokenizer = bleu_tokenizer(folder)
    bleu = [] if tokenizer == DEFAULT_TOKENIZER else [f"valid_bleu_tokenize: {tokenizer}"]
    settings = [
        "",
        *_subword_options(folder.subwords, folder.subword_models),
        *bleu,
        "",
        *_model_options(),
        "",
        *(_planned_training(plan) if plan else _training_by_pairs(pairs)),
        with_comment("keep_checkpoint: 1", "beside the best"),
        with_comment("selection: bleu", "measure of the best checkpoint"),
        "seed: 1",
        "",
    ]
    corpora: dict[str, CorpusFiles] = {}
    for name, part in (("train", "train"), ("valid", "val")):
        source, target = folder.texts(part)
        corpora[name] = CorpusFiles(source, target)
    return training_file(corpora, folder.run, settings, commands, plan).encode()


def bleu_tokenizer(folder: ParallelFolder) -> str:
    """Return the tokeniser of BLEU that fits the target language, and whether texts are tokens."""
    if folder.subwords.is_tokenised:
        return "none"
    target = folder.languages[1]
    return "char" if target in _WITHOUT_SPACES else DEFAULT_TOKENIZER


def _subword_options(subwords: Subwords, models: Sequence[Path]) -> list[str]:
    """Return the options of transforms with these subwords, as lines of YAML.

    Args:
        subwords: kind and options of the subwords.
        models: the subword models of both sides.
    """
    is_bpe = subwords.kind == "bpe"
    lines = [f"transforms: [{'onmt_tokenize' if is_bpe else 'sentencepiece'}]"]
    for side, model in zip(("src", "tgt"), models, strict=True):
        if is_bpe:
            lines.append(f"{side}_subword_type: bpe")
        lines.append(f"{side}_subword_model: {double_quoted(model)}")
        if is_bpe:
            lines.append(f'{side}_onmttok_kwargs: "{subwords.onmttok_kwargs}"')
    return lines


def _model_options() -> list[str]:
    """Return the options of the network and its regularisation, as lines of YAML."""
    return [
        "encoder_type: brnn",
        *(f"{name}: {number}" for name, number in NETWORK.sizes.items()),
        "share_decoder_embeddings: true",
        "global_attention_function: entmax15",
        "generator_function: entmax15",
        "dropout: [0.3]",
    ]


def _planned_training(plan: Plan) -> list[str]:
    """Return the options of the optimiser and of a plan, as lines of YAML."""
    return [*_optimiser_options(plan.updates, planned=True), *training_options(plan)]


def _training_by_pairs(pairs: int) -> list[str]:
    """Return the options of the optimiser, and of a schedule for these pairs, as lines of YAML."""
    updates = _SCHEDULE.updates(pairs, NETWORK.batch)
    return [
        *_optimiser_options(updates, planned=False),
        *_SCHEDULE.limits(updates, NETWORK.batch, pairs, "pair"),
        "valid_decode_size: 500",
    ]


def _optimiser_options(updates: int, *, planned: bool) -> list[str]:
    """Return the options of an optimiser, as lines of YAML.

    Args:
        updates: number of updates.
        planned: whether a plan for a time, rather than this number, ends the training.
    """
    return [
        "optim: adam",
        "learning_rate: 0.0015",
        decay_line(planned=planned),
        warmup_line(updates, _WARMUP),
        "max_grad_norm: 5",
        f"batch_size: {NETWORK.batch}",
    ]
