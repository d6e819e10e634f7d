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
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.next_commands import next_lines
from onmt_entmax.cli.parallel_configuration import (
    DEFAULT_TOKENIZER,
    NETWORK,
    bleu_tokenizer,
    configuration,
)
from onmt_entmax.cli.parallel_folder import PARTS, ParallelFolder
from onmt_entmax.cli.parallel_subwords import (
    LengthLimits,
    available_subword_type,
    learn_subwords,
)
from onmt_entmax.cli.planning import check_plan, plan_for, planning_options
from onmt_entmax.cli.plans import candidates
from onmt_entmax.cli.training_file import keep_configuration
from onmt_entmax.data.parallel import Pairs, Subwords, hold_out, normalise, read_pairs
from onmt_entmax.data.vocabulary import refuse_symbols
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import json_text, refuse_overwriting, write_files
from onmt_entmax.rules import number, whole

_HELD_OUT = 1000  # validation pairs, if the user gives none


@dataclass(frozen=True)
class _Corpus:
    """The pairs of all parts, and how many training pairs were left out.

    Attributes:
        parts: the pairs of each part, normalised.
        read: training pairs in the files.
        shared_with_val: of these, left out because a held-out pair has one of their sentences.
        unfit: left out because they are empty, too long or too different in length.
    """

    parts: Mapping[str, Pairs]
    read: int
    shared_with_val: int
    unfit: int = 0

    def with_fitting(self, fitting: Pairs) -> "_Corpus":
        """Return the corpus with only these training pairs."""
        unfit = len(self.parts["train"]) - len(fitting)
        return replace(self, parts={**self.parts, "train": fitting}, unfit=unfit)

    def counts(self) -> dict[str, int]:
        """Return all numbers of pairs, for `prepare.json`."""
        return {
            "read": self.read,
            "shared_with_val": self.shared_with_val,
            "unfit": self.unfit,
            **{part: len(pairs) for part, pairs in self.parts.items()},
        }


def prepare(options: argparse.Namespace) -> list[str]:
    """Fill the folder; return the commands to go on with.

    Raises:
        UserError: a file cannot be read or written, is not what it should be, or would be replaced.
    """
    joint = options.subwords == "joint"
    subwords = Subwords(options.subword_type, options.symbols, joint, options.tokens)
    folder = ParallelFolder(options.out, options.languages, subwords)
    inputs = {part: getattr(options, part) for part in PARTS if getattr(options, part)}
    refuse_overwriting([path for sides in inputs.values() for path in sides], folder.files())
    check_plan(options)
    keep_configuration(options.out, options.minutes)
    corpus = _read_corpus(inputs, folder, options)
    _refuse_old_test(folder, corpus)
    limits = LengthLimits(options.max_tokens, options.max_ratio)
    learned = learn_subwords(folder, corpus.parts["train"], limits)
    corpus = corpus.with_fitting(learned.fitting)
    commands = _next_commands(folder)
    _write_and_plan(folder, corpus, learned.models, commands, options)
    _tell(options.out, corpus)
    return commands


def _write_and_plan(
    folder: ParallelFolder,
    corpus: _Corpus,
    models: Mapping[Path, bytes],
    commands: Sequence[str],
    options: argparse.Namespace,
) -> None:
    """Write all files; then, with --minutes, the configuration and the record of a plan.

    Old files are replaced only when all new ones are there: trained models may use them. Speeds are
    measured on the new files, so these are complete before: an interruption of the measurement
    leaves a folder that can be trained on, without a plan.

    Args:
        folder: where to write.
        corpus: the texts.
        models: contents of the subword models, by path.
        commands: for the head of the configuration.
        options: those of a plan.

    Raises:
        UserError: a file cannot be written, or the training cannot be measured.
    """
    pairs = len(corpus.parts["train"])
    contents = {
        **models,
        **folder.contents_of_texts(corpus.parts),
        folder.configuration: configuration(folder, pairs, commands),
    }
    write_files({**contents, folder.record: _record(folder, corpus, contents)})
    if not options.minutes:
        return
    networks = candidates(pairs, options.gpu, NETWORK.layers, NETWORK.size, NETWORK.batch)
    plan = plan_for(options, networks)
    contents[folder.configuration] = configuration(folder, pairs, commands, plan)
    write_files(
        {
            folder.configuration: contents[folder.configuration],
            folder.record: _record(folder, corpus, contents),
        }
    )


def _tell(out: Path, corpus: _Corpus) -> None:
    """Print how many pairs there are, and how many were left out."""
    counts = corpus.counts()
    print(
        f"{out}: {counted(counts['train'], 'pair')} to train on, {counts['val']} to "
        f"validate on, {counts.get('test', 0)} to test on; left out: {corpus.shared_with_val} "
        f"with a sentence of the development set, {corpus.unfit} empty, too long or too "
        "different in length",
        file=sys.stderr,
    )


def _read_corpus(
    inputs: Mapping[str, Sequence[Path]], folder: ParallelFolder, options: argparse.Namespace
) -> _Corpus:
    """Return the pairs of all parts; without a validation part, some training pairs become one.

    Args:
        inputs: the two files of each part.
        folder: its languages and subwords say how texts are normalised.
        options: `val_size` and `seed`.

    Raises:
        UserError: see `_read`.
    """
    parts = {part: _read(part, sides, folder) for part, sides in inputs.items()}
    read = len(parts["train"])
    held_out = 0
    if "val" not in parts:
        size = options.val_size or _HELD_OUT
        parts["train"], parts["val"] = hold_out(parts["train"], size, options.seed)
        held_out = len(parts["val"])
    return _Corpus(parts, read, shared_with_val=read - len(parts["train"]) - held_out)


def _read(part: str, paths: Sequence[Path], folder: ParallelFolder) -> Pairs:
    """Return the normalised pairs of a part.

    Raises:
        UserError: a file cannot be read, or a line has a symbol of the model itself; in dev and
            test sets, one side of a pair is empty.
    """
    are_tokens = folder.subwords.tokens
    sides = zip(*read_pairs(*paths), strict=True)
    lines = [
        [normalise(line, language, are_tokens) for line in side]
        for side, language in zip(sides, folder.languages, strict=False)  # no lines: no sides
    ]
    if not lines:
        raise UserError(f"{paths[0]} and {paths[1]}: no lines")
    pairs = list(zip(*lines, strict=True))
    blank = next((line for line, pair in enumerate(pairs, 1) if not all(pair)), None)
    if blank and part != "train":
        raise UserError(f"{paths[0]} and {paths[1]}: line {blank} is empty on one side")
    if are_tokens:
        for line, pair in enumerate(pairs, 1):
            for path, text in zip(paths, pair, strict=True):
                refuse_symbols(text.split(), f"{path}: line {line}")
    return pairs


def _refuse_old_test(folder: ParallelFolder, corpus: _Corpus) -> None:
    """Refuse to leave the test set of other data, which evaluations would take for this data's.

    Raises:
        UserError: there is one, and these data have no test set.
    """
    if "test" in corpus.parts:
        return
    for path in folder.texts("test"):
        if path.exists():
            raise UserError(
                f"{path}: is of other data, as these have no test set; rename it, remove it, or "
                "name another --out"
            )


def _record(folder: ParallelFolder, corpus: _Corpus, contents: Mapping[Path, bytes]) -> str:
    """Return the text of `prepare.json`: how the files were made, and their checksums."""
    subwords = folder.subwords
    record: dict[str, Any] = {
        "languages": folder.languages,
        "pairs": corpus.counts(),
        "subwords": {"type": subwords.kind, "symbols": subwords.symbols, "joint": subwords.joint},
        **subwords.version,
        "sha256": {
            path.name: hashlib.sha256(content).hexdigest() for path, content in contents.items()
        },
    }
    return json_text(record)


def _next_commands(folder: ParallelFolder) -> list[str]:
    """Return the commands that train, translate the development set, and measure BLEU."""
    source, target = folder.languages
    model = shlex.quote(str(folder.run))
    sources = shlex.quote(str(folder.text("val", source)))
    references = shlex.quote(str(folder.text("val", target)))
    output = shlex.quote(str(folder.out / "val.out"))
    tokenizer = bleu_tokenizer(folder)
    tokenize = "" if tokenizer == DEFAULT_TOKENIZER else f" --tokenize {tokenizer}"
    return next_lines(
        f"train -config {shlex.quote(str(folder.configuration))}",
        f"translate -model {model} -src {sources} -output {output}",
        f"bleu {output} --reference {references}{tokenize}",
    )


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
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
    return parser


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line.

    Raises:
        UserError: options exclude each other, or `--languages` cannot end names of files.
        MissingLibraryError: see `available_subword_type`.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.val and (options.val_size or options.seed is not None):
        parser.error("--val_size and --seed sample pairs, which --val gives")
    if len(set(options.languages)) == 1:
        parser.error("--languages: two different names, such as `src tgt` for one language")
    if any("/" in name for name in options.languages):
        parser.error("--languages are endings of file names, without /")
    options.seed = 1 if options.seed is None else options.seed
    options.subword_type = available_subword_type(options.subword_type)
    return options


def main(arguments: Sequence[str]) -> int:
    """Prepare the files; return the exit status."""
    options = parse_arguments(arguments)
    print("\n".join(["next:", *(f"  {line}" for line in prepare(options))]))
    return 0
