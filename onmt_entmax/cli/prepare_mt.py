"""Make training files for translation from a parallel corpus: text, and subword models.

    onmt-entmax prepare mt multi30k --out run/mt/multi30k
    onmt-entmax prepare mt tatoeba --out run/mt/tatoeba --from my-copy
    onmt-entmax prepare mt files --out run/mt/roen --languages ro en --subwords separate \\
        --symbols 25000 --train corpus.ro corpus.en --val newsdev.ro newsdev.en

A known corpus is downloaded, or read from a local folder (--from), and its size is checked. Lines
are normalised (Unicode NFC, single spaces; Romanian loses its diacritics), subwords are learned
from the training part, and training pairs that are empty, too long or too different in length are
dropped. The folder then has

    {train,val}.{de,en}   text
    bpe.model, sp.model   subword models (--subwords separate: one for each language)
    prepare.json          how the files were made

and the YAML lines are printed with which OpenNMT-py's transform `onmt_tokenize` segments the text
in training and translation, and puts translations together again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from onmt_entmax.cli.ending import argument_parser, following
from onmt_entmax.data.parallel import (
    CORPORA,
    PARTS,
    SECONDS,
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
from onmt_entmax.errors import UserError
from onmt_entmax.files import FileError, followed, read_bytes, refuse_overwriting, write_files
from onmt_entmax.rules import number, positive, whole

RECORD = "prepare.json"
_OWN = Corpus(("", ""), {}, {}, "", {})  # defaults for the user's own files


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
        parts = {"train": train}
        if options.val is not None:
            parts["val"] = read_pairs(*options.val)
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
        known = json.loads(read_bytes(record, 1 << 20))["downloaded"]
        return {str(name): str(checksum) for name, checksum in known.items()}
    except (FileError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def prepare(options: argparse.Namespace) -> str:
    """Fill the folder; return the lines of YAML that use it."""
    pyonmttok()
    corpus = known(options)
    languages: tuple[str, str] = tuple(options.languages or corpus.languages)
    plan = plan_of(options, corpus)
    _keep_what_is_read(options, [options.out / f"{p}.{name}" for p in PARTS for name in languages])
    raw, downloaded = read_corpus(options, corpus)
    pairs = {part: normalise_pairs(raw[part], languages, plan.tokens) for part in raw}
    if "val" not in pairs:
        pairs = hold_out(pairs["train"], options.val_size, options.seed)
    place = " and ".join(map(str, options.val)) if options.val else "the development set"
    blank = [number for number, pair in enumerate(pairs["val"], 1) if not all(pair)]
    if blank or not pairs["val"]:
        what = f"line {blank[0]} is empty on one side" if blank else "no lines"
        raise UserError(f"{place}: {what}")
    read = len(pairs["train"])
    models = model_paths(options.out, plan, languages)
    with TemporaryDirectory(prefix="learning") as folder:
        learned = model_paths(Path(folder), plan, languages)
        pairs["train"] = _with_subwords(options, corpus, plan, learned, pairs["train"])
        contents = _texts(options.out, languages, pairs)
        contents |= {path: new.read_bytes() for path, new in zip(models, learned, strict=True)}
    record: dict[str, Any] = {
        "corpus": options.corpus,
        "languages": languages,
        "pairs": {"read": read, **{part: len(pairs[part]) for part in PARTS}},
        "subwords": {"type": plan.kind, "symbols": plan.symbols, "joint": plan.joint},
        "pyonmttok": pyonmttok().__version__,
        "downloaded": downloaded,
        "sha256": {path.name: hashlib.sha256(contents[path]).hexdigest() for path in contents},
    }
    # Old files are replaced only when all new ones are there: trained models may use them.
    text = json.dumps(record, indent=2) + "\n"
    write_files({**contents, options.out / RECORD: text})
    left_out = read - len(pairs["train"])
    note(
        f"{options.out}: {len(pairs['train'])} pairs to train on ({left_out} left out), "
        f"{len(pairs['val'])} to validate on"
    )
    return yaml_lines(plan, models)


def _keep_what_is_read(options: argparse.Namespace, written: Sequence[Path]) -> None:
    """Refuse to write into the folder of the corpus.

    Raises:
        UserError: a file would be overwritten, or the folders are the same.
    """
    refuse_overwriting([*(options.train or []), *(options.val or [])], written)
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
    note(f"learning {plan.symbols} {plan.kind} subwords from {len(filled)} pairs")
    if plan.joint:
        tokenisers = [learn(plan, sides, models[0])] * 2
    else:
        tokenisers = [learn(plan, [sides[side]], models[side]) for side in range(2)]
    counted = [
        [len(tokenise(line)) for line in lines]
        for tokenise, lines in zip(tokenisers, sides, strict=True)
    ]
    limit = options.max_tokens or corpus.max_tokens
    left = filter_pairs(filled, zip(*counted, strict=True), limit, options.max_ratio)
    if not left:
        raise UserError(
            f"no training pair is left: of {len(pairs)}, {len(pairs) - len(filled)} have an empty "
            f"side, and the others are longer than {limit} subwords or too different in length"
        )
    return left


def _texts(out: Path, languages: tuple[str, str], pairs: dict[str, Pairs]) -> dict[Path, bytes]:
    """Return the content of the text files, by path."""
    return {
        out / f"{part}.{language}": "".join(pair[side] + "\n" for pair in pairs[part]).encode()
        for part in PARTS
        for side, language in enumerate(languages)
    }


def yaml_lines(plan: SubwordPlan, models: Sequence[Path]) -> str:
    """Return the YAML lines for these subwords, from the first language to the second."""
    lines = ["transforms: [onmt_tokenize]"]
    for side, model in zip(("src", "tgt"), models, strict=True):
        lines.append(f"{side}_subword_type: {plan.kind}")
        quoted = json.dumps(str(model), ensure_ascii=False)  # a path may contain `: ` or ` #`
        lines.append(f"{side}_subword_model: {quoted}")
        lines.append(f'{side}_onmttok_kwargs: "{plan.settings}"')
    return "\n".join(lines)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add, count = parser.add_argument, following(whole(1, 10**9))
    add("corpus", choices=[*CORPORA, "files"], help="a known corpus, or files of your own")
    add("--out", type=Path, required=True, metavar="FOLDER", help="folder to fill")
    add("--from", dest="source", type=Path, metavar="FOLDER", help="a local copy of the corpus")
    add("--url", help="address of the corpus (default: its publisher's)")
    add(
        "--timeout",
        type=following(positive(SECONDS)),
        default=60.0,
        metavar="SECONDS",
        help="to wait for a response",
    )
    add("--languages", nargs=2, metavar=("SRC", "TGT"), help="names of the languages, for `files`")
    add("--train", nargs=2, type=Path, metavar="FILE", help="for `files`; may end in .xz or .gz")
    add(
        "--val",
        nargs=2,
        type=Path,
        metavar="FILE",
        help="for `files` (default: sampled pairs)",
    )
    add("--val_size", type=count, default=1000, metavar="N", help="default 1000")
    add("--seed", type=int, default=1, help="seed for sampling validation pairs (default 1)")
    add("--tokens", action="store_true", help="the lines are tokens separated by spaces")
    add("--subword_type", choices=["bpe", "sentencepiece"])
    add("--subwords", choices=["joint", "separate"], default="joint", help="default joint")
    add("--symbols", type=count, metavar="N", help="merges (BPE) or pieces, of each model")
    add("--max_tokens", type=count, metavar="N", help="drop longer training pairs (in subwords)")
    add(
        "--max_ratio",
        type=following(number(1, 10**6)),
        default=9.0,
        metavar="R",
        help="drop pairs whose lengths differ by a larger factor (default 9)",
    )
    options = parser.parse_args(arguments)
    own = options.corpus == "files"
    if own != (options.train is not None) or own != (options.languages is not None):
        parser.error("files needs --train and --languages; a known corpus takes neither")
    if (options.val or options.tokens) and not own:
        parser.error("--val and --tokens are of files")
    if own and (options.source or options.url):
        parser.error("--from and --url are of a known corpus")
    if options.languages and len(set(options.languages)) == 1:
        parser.error("--languages must be two")
    if any("/" in name for name in options.languages or ()):
        parser.error("--languages are endings of file names, without /")
    return options


def main(arguments: Sequence[str]) -> int:
    """Prepare the corpus; return the exit status."""
    options = parse_arguments(arguments)
    print(prepare(options))
    return 0
