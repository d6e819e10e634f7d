"""Make training files for translation from parallel text.

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
from onmt_entmax.cli.parallel_corpus import HELD_OUT, Corpus, read_corpus
from onmt_entmax.cli.parallel_folder import PARTS, ParallelFolder
from onmt_entmax.cli.parallel_subwords import (
    LengthLimits,
    available_subword_type,
    learn_subwords,
)
from onmt_entmax.cli.planned_networks import candidates
from onmt_entmax.cli.planning import (
    check_plan,
    choice_for,
    measured,
    plan_for,
    planning_options,
)
from onmt_entmax.cli.training_file import refuse_replacing_edited
from onmt_entmax.data.subword_learning import Subwords
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import json_text, refuse_overwriting, write_files
from onmt_entmax.rules import number, whole


def prepare(options: argparse.Namespace) -> list[str]:
    """Fill the folder; return the commands to go on with.

    Raises:
        UserError: a file cannot be read or written, is not what it should be, or would be replaced.
    """
    subwords = Subwords(
        options.subword_type,
        options.symbols,
        joint=options.subwords == "joint",
        tokens=options.tokens,
    )
    folder = ParallelFolder(options.out, options.languages, subwords)
    inputs = {part: getattr(options, part) for part in PARTS if getattr(options, part)}
    refuse_overwriting([path for sides in inputs.values() for path in sides], folder.files())
    check_plan(options)
    refuse_replacing_edited(options.out, options.minutes)
    corpus = read_corpus(inputs, folder, options)
    _refuse_old_test(folder, corpus)
    limits = LengthLimits(most=options.max_tokens, ratio=options.max_ratio)
    learned = learn_subwords(folder, corpus.parts["train"], limits)
    corpus = corpus.with_fitting(learned.fitting)
    commands = _next_commands(folder)
    contents = {
        **learned.models,
        **folder.contents_of_texts(corpus.parts),
        folder.configuration: configuration(folder, len(corpus.parts["train"]), commands),
    }
    # Old files are replaced only when all new ones are there: trained models may use them.
    write_files({**contents, folder.record: _record(folder, corpus, contents)})
    if options.minutes:
        _plan_and_rewrite(folder, corpus, contents, commands, options)
    _tell(options.out, corpus)
    return commands


def _plan_and_rewrite(
    folder: ParallelFolder,
    corpus: Corpus,
    contents: Mapping[Path, bytes],
    commands: Sequence[str],
    options: argparse.Namespace,
) -> None:
    """Plan a training for `--minutes` on the files that were written; write its configuration.

    It replaces the one without a plan, which an interruption of the measurement leaves: the folder
    can be trained on at any time.

    Args:
        folder: where to write.
        corpus: the texts.
        contents: of the files that were written, for the record.
        commands: for the head of the configuration.
        options: those of a plan.

    Raises:
        UserError: a file cannot be written, or the training cannot be measured.
    """
    pairs = len(corpus.parts["train"])
    networks = candidates(
        pairs,
        gpu=options.gpu,
        layers=NETWORK.encoder_layers,
        size=NETWORK.size,
        batch=NETWORK.batch,
    )
    speeds = measured(options, networks)
    plan = plan_for(options, speeds, choice_for(options.minutes, speeds))
    planned = configuration(folder, pairs, commands, plan)
    record = _record(folder, corpus, {**contents, folder.configuration: planned})
    write_files({folder.configuration: planned, folder.record: record})


def _tell(out: Path, corpus: Corpus) -> None:
    """Print how many pairs there are, and how many were left out."""
    counts = corpus.counts()
    print(
        f"{out}: {counted(counts['train'], 'pair')} to train on, {counts['val']} to "
        f"validate on, {counts.get('test', 0)} to test on; left out: {corpus.shared_with_val} "
        f"with a sentence of the development set, {corpus.unfit} empty, too long or too "
        "different in length",
        file=sys.stderr,
    )


def _refuse_old_test(folder: ParallelFolder, corpus: Corpus) -> None:
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


def _record(folder: ParallelFolder, corpus: Corpus, contents: Mapping[Path, bytes]) -> str:
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
    add("--val_size", type=count, metavar="N", help=f"pairs to sample (default {HELD_OUT})")
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
        MissingLibraryError: the user chose `bpe`, and its library is not installed.
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
