"""Make everything that a translation model needs from parallel text, but the model.

    onmt-entmax prepare files --out run/mt/mine --languages de en --train corpus.de corpus.en
    onmt-entmax prepare multi30k --out run/mt/multi30k
    onmt-entmax prepare wmt16 --out run/mt/roen --from my-copy --subwords separate --symbols 25000

A known corpus is downloaded, or read from a local folder (--from), and its size is checked. Lines
are normalised (Unicode NFC, single spaces; Romanian loses its diacritics), subwords are learned
from the training part, and training pairs that are empty, too long or too different in length are
dropped. The folder then has

    {train,val}.{de,en}   text
    test/test.{de,en}     text of the test set, which neither training nor selection reads
    bpe.model, sp.model   subword models (--subwords separate: one for each language)
    train.yaml            for `onmt-entmax train -config`: a model for one CPU core
    prepare.json          how the files were made

and the next commands are printed. Lines remain text: OpenNMT-py's transform `onmt_tokenize`
segments them in training and translation, and puts translations together again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from onmt_entmax.cli.ending import argument_parser, following
from onmt_entmax.cli.prepared import (
    CONFIGURATION,
    keep_configuration,
    next_lines,
    quoted,
    training_file,
)
from onmt_entmax.data.parallel import (
    CORPORA,
    PARTS,
    SECONDS,
    TEST,
    Corpus,
    Pairs,
    SubwordPlan,
    check_counts,
    fetch,
    filter_pairs,
    hold_out,
    learn,
    local,
    normalise_pairs,
    note,
    pyonmttok,
    read_pairs,
)
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import FileError, followed, read_bytes, refuse_overwriting, write_files
from onmt_entmax.rules import number, positive, whole

RECORD = "prepare.json"
_OWN = Corpus(("", ""), {}, {})  # defaults for the user's own files
_ALL = (*PARTS, TEST)
_HELD_OUT = 1000  # validation pairs, if the user gives none
_LARGEST = 1 << 20  # bytes of the record
_WITHOUT_SPACES = ("ja", "zh", "th", "lo", "km", "my")  # languages

# The model of README's example, in ten minutes of one core for 29,000 pairs.
_MODEL = """\
encoder_type: brnn
layers: 1
rnn_size: 384
word_vec_size: 384
share_decoder_embeddings: true
global_attention_function: entmax15
generator_function: entmax15
dropout: [0.3]

optim: adam
learning_rate: 0.0015
decay_method: cosine
warmup_steps: 400
max_grad_norm: 5
batch_size: {batch}
train_steps: {steps}                 # about {epochs} of {pairs}
valid_steps: {often}
save_checkpoint_steps: {often}
keep_checkpoint: 1                # beside the best
selection: bleu                   # measure of the best checkpoint
valid_decode_size: 500
seed: 1
"""
_BATCH, _PASSES, _FEWEST, _MOST = 64, 6, 2_000, 100_000


def known(options: argparse.Namespace) -> Corpus:
    """Return the description of the corpus."""
    return CORPORA.get(options.corpus, _OWN)


def plan_of(options: argparse.Namespace, corpus: Corpus) -> SubwordPlan:
    """Return the subword settings, by default those of the corpus."""
    return SubwordPlan(
        options.subword_type or corpus.subwords,
        options.symbols or corpus.symbols,
        options.subwords == "joint",
        options.tokens or corpus.tokens,
    )


def read_corpus(
    options: argparse.Namespace, corpus: Corpus
) -> tuple[dict[str, Pairs], dict[str, str]]:
    """Return the lines of the corpus, and the checksum of each downloaded file.

    Raises:
        UserError: they cannot be read or downloaded, or are not those expected.
    """
    if options.corpus == "files":
        train = read_pairs(*options.train)
        if not train:
            raise UserError(f"{options.train[0]}: the file is empty")
        parts = {"train": train}
        for part, paths in (("val", options.val), (TEST, options.test)):
            if paths is not None:
                parts[part] = read_pairs(*paths)
        return parts, {}
    downloaded: dict[str, str] = {}
    if options.source is not None:
        pairs = local(corpus, options.source)
    else:
        known = _downloaded_before(options.out / RECORD)
        pairs, downloaded = fetch(corpus, options.url or corpus.url, options.timeout, known)
    # Without files of its own, a corpus is split here, and has no published sizes.
    if options.source is not None or corpus.files:
        check_counts(options.corpus, pairs, corpus.counts)
    return pairs, downloaded


def _downloaded_before(record: Path) -> dict[str, str]:
    """Return the checksums of files that an earlier call downloaded; {} if there was none."""
    try:
        known = json.loads(read_bytes(record, _LARGEST))["downloaded"]
        return {str(name): str(checksum) for name, checksum in known.items()}
    except (FileError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def prepare(options: argparse.Namespace) -> str:
    """Fill the folder; return the commands to go on with."""
    pyonmttok()
    corpus = known(options)
    languages: tuple[str, str] = tuple(options.languages or corpus.languages)
    plan = plan_of(options, corpus)
    _keep_what_is_read(options, [text_path(options.out, p, n) for p in _ALL for n in languages])
    keep_configuration(options.out)
    raw, downloaded = read_corpus(options, corpus)
    pairs = {part: normalise_pairs(raw[part], languages, plan.tokens) for part in raw}
    read, held = len(pairs["train"]), 0
    if "val" not in pairs:
        seed = 1 if options.seed is None else options.seed
        pairs |= hold_out(pairs["train"], options.val_size or _HELD_OUT, seed)
        held = len(pairs["val"])
    _refuse_blanks(pairs["val"], options.val, "the development set")
    if TEST in pairs:
        _refuse_blanks(pairs[TEST], options.test, "the test set")
    else:
        _refuse_other_tests([text_path(options.out, TEST, name) for name in languages])
    shared = read - held - len(pairs["train"])
    models = model_paths(options.out, plan, languages)
    with TemporaryDirectory(prefix="learning") as folder:
        learned = model_paths(Path(folder), plan, languages)
        kept = _with_subwords(options, corpus, plan, learned, pairs["train"])
        unfit = len(pairs["train"]) - len(kept)
        pairs["train"] = kept
        contents = _texts(options.out, languages, pairs)
        contents |= {path: new.read_bytes() for path, new in zip(models, learned, strict=True)}
    following = next_commands(options.out, languages, plan)
    text = configuration(options.out, languages, plan, models, len(pairs["train"]), following)
    contents[options.out / CONFIGURATION] = text.encode()
    record: dict[str, Any] = {
        "corpus": options.corpus,
        "languages": languages,
        "pairs": {
            **{"read": read, "shared_with_val": shared, "unfit": unfit},
            **{part: len(pairs[part]) for part in _ALL if part in pairs},
        },
        "subwords": {"type": plan.kind, "symbols": plan.symbols, "joint": plan.joint},
        "pyonmttok": pyonmttok().__version__,
        "downloaded": downloaded,
        "sha256": {path.name: hashlib.sha256(contents[path]).hexdigest() for path in contents},
    }
    # Old files are replaced only when all new ones are there: trained models may use them.
    write_files({**contents, options.out / RECORD: json.dumps(record, indent=2) + "\n"})
    note(
        f"{options.out}: {counted(len(pairs['train']), 'pair')} to train on, "
        f"{len(pairs['val'])} to validate on, {len(pairs.get(TEST, ()))} to test on; left out: "
        f"{shared} with a sentence of the development set, {unfit} empty, too long or too "
        "different in length"
    )
    return "\n".join(["next:", *(f"  {command}" for command in following)])


def text_path(out: Path, part: str, language: str) -> Path:
    """Return the path of one side of a part; the test set lies in a folder of its own."""
    return (out / TEST if part == TEST else out) / f"{part}.{language}"


def _refuse_blanks(pairs: Pairs, paths: Sequence[Path] | None, name: str) -> None:
    """Refuse a set to measure on that has no lines, or a line that is empty on one side.

    Raises:
        UserError: names the line.
    """
    place = " and ".join(map(str, paths)) if paths else name
    blank = [number for number, pair in enumerate(pairs, 1) if not all(pair)]
    if blank or not pairs:
        what = f"line {blank[0]} is empty on one side" if blank else "no lines"
        raise UserError(f"{place}: {what}")


def _refuse_other_tests(paths: Sequence[Path]) -> None:
    """Refuse a test set of an earlier call, which `experiment test` would take for this one's.

    Raises:
        UserError: names it.
    """
    for path in paths:
        if path.exists():
            raise UserError(
                f"{path}: is of other data, as these have no test set; rename it, remove it, or "
                "name another --out"
            )


def _keep_what_is_read(options: argparse.Namespace, written: Sequence[Path]) -> None:
    """Refuse to write into the folder of the corpus.

    Raises:
        UserError: a file would be overwritten, or the folders are the same.
    """
    own = [path for paths in (options.train, options.val, options.test) for path in paths or ()]
    refuse_overwriting(own, written)
    if options.source is not None and followed(options.source) == followed(options.out):
        raise UserError(f"--out {options.out}: is the folder that is read; name another")


def model_paths(out: Path, plan: SubwordPlan, languages: tuple[str, str]) -> list[Path]:
    """Return the paths of the subword models of both languages."""
    kind = "bpe" if plan.kind == "bpe" else "sp"
    names = [f"{kind}.model"] * 2 if plan.joint else [f"{kind}.{name}.model" for name in languages]
    return [out / name for name in names]


def _with_subwords(
    options: argparse.Namespace,
    corpus: Corpus,
    plan: SubwordPlan,
    models: Sequence[Path],
    pairs: Pairs,
) -> Pairs:
    """Learn the subwords; return the pairs that are neither too long nor too different in length.

    Raises:
        UserError: no pair is left, or there is too little text.
    """
    filled = [pair for pair in pairs if all(pair)]
    sides = [[pair[side] for pair in filled] for side in range(2)]
    subwords = counted(plan.symbols, f"{plan.kind} subword")
    note(f"learning {subwords} from {counted(len(filled), 'pair')}")
    if plan.joint:
        tokenisers = [learn(plan, sides, models[0])] * 2
    else:
        tokenisers = [learn(plan, [sides[side]], models[side]) for side in range(2)]
    lengths = [
        [len(tokenise(line)) for line in lines]
        for tokenise, lines in zip(tokenisers, sides, strict=True)
    ]
    limit = options.max_tokens or corpus.max_tokens
    ratio = options.max_ratio or corpus.max_ratio
    left = filter_pairs(filled, zip(*lengths, strict=True), limit, ratio)
    if not left:
        raise UserError(
            f"no training pair is left: of {len(pairs)}, {len(pairs) - len(filled)} have an empty "
            f"side, and the others are longer than {counted(limit, 'subword')} or too different in "
            "length"
        )
    return left


def _texts(out: Path, languages: tuple[str, str], pairs: dict[str, Pairs]) -> dict[Path, bytes]:
    """Return the content of the text files, by path."""
    return {
        text_path(out, part, language): "".join(pair[side] + "\n" for pair in pairs[part]).encode()
        for part in _ALL
        if part in pairs
        for side, language in enumerate(languages)
    }


def yaml_lines(plan: SubwordPlan, models: Sequence[Path]) -> str:
    """Return the YAML lines for these subwords, from the first language to the second."""
    lines = ["transforms: [onmt_tokenize]"]
    for side, model in zip(("src", "tgt"), models, strict=True):
        lines.append(f"{side}_subword_type: {plan.kind}")
        lines.append(f"{side}_subword_model: {quoted(model)}")
        lines.append(f'{side}_onmttok_kwargs: "{plan.settings}"')
    return "\n".join(lines)


def bleu_tokenizer(plan: SubwordPlan, target: str) -> str:
    """Return the tokeniser of BLEU that fits the output."""
    return "none" if plan.tokens else "char" if target in _WITHOUT_SPACES else "13a"


def next_commands(out: Path, languages: tuple[str, str], plan: SubwordPlan) -> list[str]:
    """Return the commands that train, translate the development set, and measure BLEU."""
    source, target = languages
    tokenizer = bleu_tokenizer(plan, target)
    reference, output = str(text_path(out, "val", target)), str(out / "val.out")
    model = ["-model", str(out / f"{source}-{target}")]
    commands = [
        ["train", "-config", str(out / CONFIGURATION)],
        ["translate", *model, "-src", str(text_path(out, "val", source)), "-output", output],
        ["bleu", output, "--reference", reference],
    ]
    if tokenizer != "13a":
        commands[-1] += ["--tokenize", tokenizer]
    return next_lines(commands)


def configuration(
    out: Path,
    languages: tuple[str, str],
    plan: SubwordPlan,
    models: Sequence[Path],
    pairs: int,
    commands: Sequence[str],
) -> str:
    """Return the text of a configuration that trains a model on one CPU core.

    Args:
        out: the folder that was filled.
        languages: source and target.
        plan: of the subwords.
        models: of the subwords of both languages.
        pairs: number of training pairs, which decides how long to train.
        commands: for the comment at its head.
    """
    steps = min(max(math.ceil(_PASSES * pairs / _BATCH / 400) * 400, _FEWEST), _MOST)
    tokenizer = bleu_tokenizer(plan, languages[1])
    files = [(text_path(out, p, languages[0]), text_path(out, p, languages[1])) for p in PARTS]
    settings = [
        "",
        yaml_lines(plan, models),
        *([f"valid_bleu_tokenize: {tokenizer}"] if tokenizer != "13a" else []),
        "",
        _MODEL.format(
            batch=_BATCH,
            steps=steps,
            often=steps // 8,
            pairs=counted(pairs, "pair"),
            epochs=counted(round(steps * _BATCH / pairs), "epoch"),
        ),
    ]
    data = dict(zip(("train", "valid"), files, strict=True))
    return training_file(data, out / "-".join(languages), settings, commands)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add, count = parser.add_argument, following(whole(1, 10**9))
    add(
        "corpus",
        choices=[*CORPORA, "files"],
        metavar="CORPUS",
        help=f"files (of your own), or a known corpus: {', '.join(CORPORA)}",
    )
    add("--out", type=Path, required=True, metavar="FOLDER", help="folder to fill")
    add("--from", dest="source", type=Path, metavar="FOLDER", help="a local copy of the corpus")
    add("--url", help="address of the corpus (default: its publisher's)")
    seconds = following(positive(SECONDS))
    add("--timeout", type=seconds, default=60.0, metavar="SECONDS", help="to wait for a response")
    add("--languages", nargs=2, metavar=("SRC", "TGT"), help="names of the languages, for `files`")
    add("--train", nargs=2, type=Path, metavar="FILE", help="for `files`; may end in .xz or .gz")
    add("--val", nargs=2, type=Path, metavar="FILE", help="for `files` (default: sampled pairs)")
    add("--test", nargs=2, type=Path, metavar="FILE", help="for `files`")
    add("--val_size", type=count, metavar="N", help=f"pairs to sample (default {_HELD_OUT})")
    add("--seed", type=int, metavar="N", help="seed for sampling them (default 1)")
    add("--tokens", action="store_true", help="the lines are tokens separated by spaces")
    add("--subword_type", choices=["bpe", "sentencepiece"])
    add("--subwords", choices=["joint", "separate"], default="joint", help="default joint")
    add("--symbols", type=count, metavar="N", help="merges (BPE) or pieces, of each model")
    add("--max_tokens", type=count, metavar="N", help="drop longer training pairs (in subwords)")
    add(
        "--max_ratio",
        type=following(number(1, 10**6)),
        metavar="R",
        help="drop pairs whose lengths differ by a larger factor (default 9; kftt: none)",
    )
    options = parser.parse_args(arguments)
    if wrong := _misfit(options):
        parser.error(wrong)
    return options


def _misfit(options: argparse.Namespace) -> str | None:
    """Say which options mean nothing together, if any do."""
    own = options.corpus == "files"
    if own != (options.train is not None) or own != (options.languages is not None):
        return "files needs --train and --languages; a known corpus takes neither"
    if (options.val or options.test or options.tokens) and not own:
        return "--val, --test and --tokens are of files"
    if (options.val_size or options.seed is not None) and (options.val or not own):
        return "--val_size and --seed are of files without --val: other corpora have their own"
    if own and (options.source or options.url):
        return "--from and --url are of a known corpus"
    if options.source and options.url:
        return "--from and --url: name one of them"
    if not own and not options.source and not CORPORA[options.corpus].url:
        return f"{options.corpus} is not downloaded: name your copy with --from FOLDER"
    if options.languages and len(set(options.languages)) == 1:
        return "--languages: two different names, such as `src tgt` where both are one language"
    if any("/" in name for name in options.languages or ()):
        return "--languages are endings of file names, without /"
    return None


def main(arguments: Sequence[str]) -> int:
    """Prepare the corpus; return the exit status."""
    options = parse_arguments(arguments)
    print(prepare(options))
    return 0
