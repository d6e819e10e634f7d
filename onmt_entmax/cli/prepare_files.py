"""Make everything that a translation model needs from parallel text, but the model.

    onmt-entmax prepare files --out run/mt/mine --languages de en --train corpus.de corpus.en
    onmt-entmax prepare files --out run/mt/mine --languages de en --train corpus.de corpus.en \\
        --val dev.de dev.en --test test.de test.en --subwords separate --symbols 25000

Lines are normalised (Unicode NFC, single spaces; Romanian loses its diacritics), subwords are
learned from the training part, and training pairs that are empty, too long or too different in
length are dropped. The folder then has

    {train,val}.{de,en}   text
    test/test.{de,en}     text of the test set, which neither training nor selection reads
    bpe.model, sp.model   subword models (--subwords separate: one for each language)
    train.yaml            for `onmt-entmax train -config`: a model for one CPU core
    prepare.json          how the files were made

and the next commands are printed. Lines remain text: OpenNMT-py's transform `onmt_tokenize` (with
--subword_type sentencepiece: `sentencepiece`) segments them in training and translation, and puts
translations together again.
"""

import argparse
import hashlib
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.cli.next_commands import next_lines
from onmt_entmax.cli.planning import check_plan, plan_for, planning_options
from onmt_entmax.cli.plans import Network, Plan, candidates
from onmt_entmax.cli.training_file import (
    CONFIGURATION,
    keep_configuration,
    quoted,
    training_file,
)
from onmt_entmax.data.parallel import (
    Pairs,
    Subwords,
    bpe_library,
    hold_out,
    normalise,
    read_pairs,
)
from onmt_entmax.data.vocabulary import refuse_symbols
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import json_text, refuse_overwriting, temporary_folder, write_files
from onmt_entmax.libraries import MissingLibraryError
from onmt_entmax.rules import number, whole

PARTS = ("train", "val", "test")
_RECORD = "prepare.json"
_NETWORK = Network(layers=1, size=384, batch=64)
_WITHOUT_SPACES = ("ja", "zh", "th", "lo", "km", "my")  # languages that write none between words
_HELD_OUT = 1000  # validation pairs, if the user gives none


def text_path(out: Path, part: str, language: str) -> Path:
    """Return the path of one side of a part; the test set lies in a folder of its own."""
    return (out / part if part == "test" else out) / f"{part}.{language}"


def model_paths(out: Path, subwords: Subwords, languages: Sequence[str]) -> list[Path]:
    """Return the paths of the subword models of both languages."""
    kind = "bpe" if subwords.kind == "bpe" else "sp"
    if subwords.joint:
        return [out / f"{kind}.model"] * 2
    return [out / f"{kind}.{name}.model" for name in languages]


@dataclass(frozen=True)
class _Paths:
    """The files of the folder.

    Attributes:
        out: the folder.
        texts: both sides of each part.
        models: the subword models of both languages.
    """

    out: Path
    texts: Mapping[str, Sequence[Path]]
    models: Sequence[Path]

    @classmethod
    def of(cls, options: argparse.Namespace, subwords: Subwords) -> "_Paths":
        """Return the files that a command line fills."""
        out, languages = options.out, options.languages
        texts = {part: [text_path(out, part, language) for language in languages] for part in PARTS}
        return cls(out, texts, model_paths(out, subwords, languages))

    @property
    def configuration(self) -> Path:
        """Of the training."""
        return self.out / CONFIGURATION

    @property
    def record(self) -> Path:
        """How the files were made."""
        return self.out / _RECORD

    def all(self) -> list[Path]:
        """Return every file."""
        texts = [path for sides in self.texts.values() for path in sides]
        return [*texts, *self.models, self.configuration, self.record]


def prepare(options: argparse.Namespace) -> list[str]:
    """Fill the folder; return the commands to go on with.

    Raises:
        UserError: a file cannot be read or written, is not what it should be, or would be replaced.
    """
    out, languages = options.out, options.languages
    joint = options.subwords == "joint"
    subwords = Subwords(options.subword_type, options.symbols, joint, options.tokens)
    inputs = {part: getattr(options, part) for part in PARTS if getattr(options, part)}
    paths = _Paths.of(options, subwords)
    refuse_overwriting([path for sides in inputs.values() for path in sides], paths.all())
    check_plan(options)
    keep_configuration(out, options.minutes)
    pairs = {part: _read(part, sides, languages, subwords) for part, sides in inputs.items()}
    counts = {"read": len(pairs["train"])}
    if "val" not in pairs:
        size = options.val_size or _HELD_OUT
        pairs["train"], pairs["val"] = hold_out(pairs["train"], size, options.seed)
    _refuse_old_test(paths, pairs)
    held_out = 0 if options.val else len(pairs["val"])
    counts["shared_with_val"] = counts["read"] - len(pairs["train"]) - held_out
    contents: dict[Path, str | bytes] = {}
    with temporary_folder() as folder:
        models = model_paths(folder, subwords, languages)
        fitting = _with_subwords(options, subwords, models, pairs["train"])
        for path, model in zip(paths.models, models, strict=True):
            contents[path] = model.read_bytes()
    counts["unfit"] = len(pairs["train"]) - len(fitting)
    pairs["train"] = fitting
    for part, part_pairs in pairs.items():
        for side, path in enumerate(paths.texts[part]):
            contents[path] = "".join(pair[side] + "\n" for pair in part_pairs).encode()
    commands = _next_commands(out, languages, subwords)
    data = {"train": paths.texts["train"], "valid": paths.texts["val"]}

    def configuration(plan: Plan | None = None) -> bytes:
        settings = _settings(subwords, paths.models, languages[1], len(fitting), plan)
        return training_file(data, out / "-".join(languages), settings, commands, plan).encode()

    contents[paths.configuration] = configuration()
    if options.minutes:
        write_files(contents)  # measuring reads them
        sizes = _NETWORK.layers, _NETWORK.size, _NETWORK.batch
        networks = candidates(len(fitting), options.gpu, *sizes)
        contents[paths.configuration] = configuration(plan_for(options, networks))
    counts |= {part: len(part_pairs) for part, part_pairs in pairs.items()}
    record = _record(languages, counts, subwords, contents)
    # Old files are replaced only when all new ones are there: trained models may use them.
    write_files({**contents, paths.record: json_text(record)})
    print(
        f"{out}: {counted(counts['train'], 'pair')} to train on, {counts['val']} to validate on, "
        f"{counts.get('test', 0)} to test on; left out: {counts['shared_with_val']} with a "
        f"sentence of the development set, {counts['unfit']} empty, too long or too different in "
        "length",
        file=sys.stderr,
    )
    return commands


def _read(part: str, paths: Sequence[Path], languages: Sequence[str], subwords: Subwords) -> Pairs:
    """Return the normalised pairs of a part.

    Raises:
        UserError: a file cannot be read, or a line has a symbol of the model itself; in dev and
            test sets, one side of a pair is empty.
    """
    sides = zip(*read_pairs(*paths), strict=True)
    lines = [
        [normalise(line, language, subwords.tokens) for line in side]
        for side, language in zip(sides, languages, strict=False)  # an empty file has no sides
    ]
    if not lines:
        raise UserError(f"{paths[0]} and {paths[1]}: no lines")
    pairs = list(zip(*lines, strict=True))
    blank = next((line for line, pair in enumerate(pairs, 1) if not all(pair)), None)
    if blank and part != "train":
        raise UserError(f"{paths[0]} and {paths[1]}: line {blank} is empty on one side")
    if subwords.tokens:
        for line, pair in enumerate(pairs, 1):
            for path, text in zip(paths, pair, strict=True):
                refuse_symbols(text.split(), f"{path}: line {line}")
    return pairs


def _refuse_old_test(paths: _Paths, pairs: Mapping[str, Pairs]) -> None:
    """Refuse to leave the test set of other data, which evaluations would take for this data's.

    Raises:
        UserError: there is one, and these data have no test set.
    """
    for path in paths.texts["test"]:
        if "test" not in pairs and path.exists():
            raise UserError(
                f"{path}: is of other data, as these have no test set; rename it, remove it, or "
                "name another --out"
            )


def _record(
    languages: Sequence[str],
    counts: Mapping[str, int],
    subwords: Subwords,
    contents: Mapping[Path, str | bytes],
) -> dict[str, Any]:
    """Return how the files were made, for `prepare.json`."""
    digests = {}
    for path, content in contents.items():
        data = content.encode() if isinstance(content, str) else content
        digests[path.name] = hashlib.sha256(data).hexdigest()
    return {
        "languages": languages,
        "pairs": counts,
        "subwords": {"type": subwords.kind, "symbols": subwords.symbols, "joint": subwords.joint},
        **subwords.version,
        "sha256": digests,
    }


def _subword_type(chosen: str | None) -> str:
    """Return the type of subwords to learn: `bpe`, if its library is installed.

    Raises:
        MissingLibraryError: the user chose `bpe`, and it is not.
    """
    if chosen == "sentencepiece":
        return chosen
    try:
        bpe_library()
    except MissingLibraryError:
        if chosen:
            raise
        print("note: pyonmttok is not installed: --subword_type sentencepiece", file=sys.stderr)
        return "sentencepiece"
    return "bpe"


def _with_subwords(
    options: argparse.Namespace, subwords: Subwords, models: Sequence[Path], pairs: Pairs
) -> Pairs:
    """Learn the subwords; return the pairs that are neither too long nor too different in length.

    Raises:
        UserError: no pair is left, or there is too little text.
    """
    filled = [pair for pair in pairs if all(pair)]
    sides = [[pair[side] for pair in filled] for side in range(2)]
    what = counted(subwords.symbols, f"{subwords.kind} subword")
    print(f"learning {what} from {counted(len(filled), 'pair')}", file=sys.stderr, flush=True)
    if subwords.joint:
        tokenisers = [subwords.learn(sides, models[0])] * 2
    else:
        tokenisers = [
            subwords.learn([side], model) for side, model in zip(sides, models, strict=True)
        ]
    kept = []
    for pair in filled:
        lengths = [
            len(tokeniser.divide(line)) for tokeniser, line in zip(tokenisers, pair, strict=True)
        ]
        short, long = min(lengths), max(lengths)
        if 0 < long <= options.max_tokens and long <= options.max_ratio * short:
            kept.append(pair)
    if not kept:
        limit = counted(options.max_tokens, "subword")
        raise UserError(
            f"no training pair is left: of {len(pairs)}, {len(pairs) - len(filled)} have an empty "
            f"side, and the others are longer than {limit} or too different in length"
        )
    return kept


def subword_options(subwords: Subwords, models: Sequence[Path]) -> list[str]:
    """Return the options of training for these subwords, as lines of YAML."""
    bpe = subwords.kind == "bpe"
    lines = [f"transforms: [{'onmt_tokenize' if bpe else 'sentencepiece'}]"]
    for side, model in zip(("src", "tgt"), models, strict=True):
        if bpe:
            lines.append(f"{side}_subword_type: bpe")
        lines.append(f"{side}_subword_model: {quoted(model)}")
        if bpe:
            lines.append(f'{side}_onmttok_kwargs: "{subwords.settings}"')
    return lines


def _bleu_tokenizer(subwords: Subwords, target: str) -> str:
    """Return the tokeniser of BLEU that fits the output."""
    if subwords.tokens:
        return "none"
    return "char" if target in _WITHOUT_SPACES else "13a"


def _next_commands(out: Path, languages: Sequence[str], subwords: Subwords) -> list[str]:
    """Return the commands that train, translate the development set, and measure BLEU."""
    source, target = languages
    configuration = shlex.quote(str(out / CONFIGURATION))
    model = shlex.quote(str(out / f"{source}-{target}"))
    sources = shlex.quote(str(text_path(out, "val", source)))
    references = shlex.quote(str(text_path(out, "val", target)))
    output = shlex.quote(str(out / "val.out"))
    tokenizer = _bleu_tokenizer(subwords, target)
    tokenize = f" --tokenize {tokenizer}" if tokenizer != "13a" else ""
    return next_lines(
        f"train -config {configuration}",
        f"translate -model {model} -src {sources} -output {output}",
        f"bleu {output} --reference {references}{tokenize}",
    )


def _settings(
    subwords: Subwords, models: Sequence[Path], target: str, pairs: int, plan: Plan | None
) -> list[str]:
    """Return the options of a model, as YAML; `pairs` decide how long to train without a plan.

    It is the model of README's example: in ten minutes of one core for 29,000 pairs.
    """
    batch, tokenizer = _NETWORK.batch, _bleu_tokenizer(subwords, target)
    if plan:
        steps, limits = plan.updates, "\n".join(plan.settings)
        end = "max_seconds, by the time that has passed"
    else:
        steps = min(max(math.ceil(6 * pairs / batch / 400) * 400, 2_000), 100_000)
        epochs = counted(round(steps * batch / pairs), "epoch")
        end = "train_steps: lower these rather than set early_stopping"
        limits = f"""\
train_steps: {steps}                 # about {epochs} of {counted(pairs, "pair")}
valid_steps: {steps // 8}
save_checkpoint_steps: {steps // 8}
valid_decode_size: 500"""
    model = f"""\
encoder_type: brnn
layers: {_NETWORK.layers}
rnn_size: {_NETWORK.size}
word_vec_size: {_NETWORK.size}
share_decoder_embeddings: true
global_attention_function: entmax15
generator_function: entmax15
dropout: [0.3]

optim: adam
learning_rate: 0.0015
decay_method: cosine              # to 0 at {end}
warmup_steps: {min(400, max(steps // 5, 1))}
max_grad_norm: 5
batch_size: {batch}
{limits}
keep_checkpoint: 1                # beside the best
selection: bleu                   # measure of the best checkpoint
seed: 1
"""
    bleu = [f"valid_bleu_tokenize: {tokenizer}"] if tokenizer != "13a" else []
    return ["", *subword_options(subwords, models), *bleu, "", model]


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add, count = parser.add_argument, whole(1, 10**9)
    files: dict[str, Any] = {"nargs": 2, "type": Path, "metavar": "FILE"}
    add("--out", type=Path, required=True, metavar="FOLDER", help="folder to fill")
    add("--languages", nargs=2, required=True, metavar=("SRC", "TGT"), help="names of both sides")
    add("--train", required=True, **files, help="may end in .xz or .gz, as all files")
    add("--val", **files, help="(default: sampled pairs)")
    add("--test", **files)
    add("--val_size", type=count, metavar="N", help=f"pairs to sample (default {_HELD_OUT})")
    add("--seed", type=int, metavar="N", help="seed for sampling them (default 1)")
    planning_options(parser)
    add("--tokens", action="store_true", help="the lines are tokens separated by spaces")
    add(
        "--subword_type",
        choices=["bpe", "sentencepiece"],
        help="default bpe; without pyonmttok, sentencepiece",
    )
    add("--subwords", choices=["joint", "separate"], default="joint", help="default joint")
    add(
        "--symbols",
        type=count,
        default=10_000,
        metavar="N",
        help="merges (BPE) or pieces, at most, of each model (default 10,000)",
    )
    add(
        "--max_tokens",
        type=count,
        default=100,
        metavar="N",
        help="drop training pairs with more subwords on a side (default 100)",
    )
    add(
        "--max_ratio",
        type=number(1, 10**6),
        default=9,
        metavar="R",
        help="drop pairs whose lengths differ by a larger factor (default 9)",
    )
    options = parser.parse_args(arguments)
    if options.val and (options.val_size or options.seed is not None):
        parser.error("--val_size and --seed sample pairs, which --val gives")
    if len(set(options.languages)) == 1:
        parser.error("--languages: two different names, such as `src tgt` for one language")
    if any("/" in name for name in options.languages):
        parser.error("--languages are endings of file names, without /")
    options.seed = 1 if options.seed is None else options.seed
    options.subword_type = _subword_type(options.subword_type)
    return options


def main(arguments: Sequence[str]) -> int:
    """Prepare the files; return the exit status."""
    options = parse_arguments(arguments)
    print("\n".join(["next:", *(f"  {line}" for line in prepare(options))]))
    return 0
