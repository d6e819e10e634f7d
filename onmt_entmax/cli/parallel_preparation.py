"""Fill a folder for `prepare files`: texts, subwords and the configuration of a training.

`parallel_corpus` reads the pairs, `parallel_subwords` learns subwords, and `parallel_configuration`
makes `train.yaml`. All files are written together, after everything was read and checked. With
`--minutes`, networks are then measured on these files, and `train.yaml` is written again, with a
plan.
"""

import argparse
import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onmt_entmax.cli.next_commands import next_lines
from onmt_entmax.cli.parallel_commands import translation_commands
from onmt_entmax.cli.parallel_configuration import NETWORK, configuration
from onmt_entmax.cli.parallel_corpus import Corpus, read_corpus
from onmt_entmax.cli.parallel_folder import PARTS, ParallelFolder
from onmt_entmax.cli.parallel_subwords import LengthLimits, learn_subwords
from onmt_entmax.cli.planned_networks import candidates
from onmt_entmax.cli.planning import choice_for, measure, plan_for
from onmt_entmax.cli.planning_options import check_plan
from onmt_entmax.cli.training_file import refuse_replacing_edited
from onmt_entmax.data.subword_learning import Subwords
from onmt_entmax.errors import UserError
from onmt_entmax.files import json_text, refuse_overwriting, write_files


def prepare(options: argparse.Namespace) -> list[str]:
    """Fill the folder; return the next commands, as lines for a shell.

    Args:
        options: options of `prepare files`.

    Raises:
        UserError: a file cannot be read or written, has a wrong content, or would be replaced
            although a user edited it.
    """
    subwords = Subwords(
        options.subword_type,
        options.symbols,
        joint=options.subwords == "joint",
        is_tokenised=options.tokens,
    )
    folder = ParallelFolder(options.out, options.languages, subwords)
    inputs = {part: getattr(options, part) for part in PARTS if getattr(options, part)}
    refuse_overwriting([path for sides in inputs.values() for path in sides], folder.files())
    check_plan(options)
    refuse_replacing_edited(options.out, options.minutes)
    corpus = read_corpus(inputs, folder, val_size=options.val_size, seed=options.seed)
    _refuse_old_test(folder, corpus)
    limits = LengthLimits(most=options.max_tokens, ratio=options.max_ratio)
    learned = learn_subwords(folder, corpus.parts["train"], limits)
    corpus = corpus.with_fitting(learned.fitting)
    commands = next_lines(translation_commands(folder))
    contents = {
        **learned.models,
        **folder.contents_of_texts(corpus.parts),
        folder.configuration: configuration(folder, len(corpus.parts["train"]), commands),
    }
    # Trained models may use the old files, which `write_files` replaces only if it can write all.
    write_files({**contents, folder.record: _record(folder, corpus, contents)})
    if options.minutes:
        _write_planned(folder, corpus, contents, commands, options)
    print(f"{options.out}: {corpus.counts_text()}", file=sys.stderr)
    return commands


def _write_planned(
    folder: ParallelFolder,
    corpus: Corpus,
    contents: Mapping[Path, bytes],
    commands: Sequence[str],
    options: argparse.Namespace,
) -> None:
    """Measure networks on the written files; replace the configuration by one for `--minutes`.

    If the measurement is interrupted, the configuration without a plan stays: the folder can be
    trained on at any time.

    Args:
        folder: the folder, which has all files.
        corpus: the pairs.
        contents: contents of the written files, for `prepare.json`.
        commands: next commands, for the comment at the head of the configuration.
        options: `minutes` and `gpu`.

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
    measured = measure(folder.out, networks, gpu=options.gpu)
    choice = choice_for(options.minutes, measured)
    plan = plan_for(options.minutes, measured, choice, gpu=options.gpu)
    planned = configuration(folder, pairs, commands, plan)
    record = _record(folder, corpus, {**contents, folder.configuration: planned})
    write_files({folder.configuration: planned, folder.record: record})


def _refuse_old_test(folder: ParallelFolder, corpus: Corpus) -> None:
    """Refuse a folder that has a test set of other data, which evaluations would then use.

    Raises:
        UserError: the folder has a test set, and the new data have none.
    """
    if "test" in corpus.parts:
        return
    for path in folder.texts("test"):
        if path.exists():
            raise UserError(
                f"{path}: is of other data, since the new data has no test set; rename it, remove "
                "it, or name another --out"
            )


def _record(folder: ParallelFolder, corpus: Corpus, contents: Mapping[Path, bytes]) -> str:
    """Return the text of `prepare.json`: how the files were made, and their checksums.

    Args:
        folder: the folder, with its languages and subwords.
        corpus: the pairs.
        contents: contents of all other files of the folder, by path.
    """
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
