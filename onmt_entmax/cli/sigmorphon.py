"""Files of the CoNLL-SIGMORPHON 2018 shared task to training files, and its official measures.

The task's files hold one inflected form a line, `lemma<TAB>form<TAB>tag;tag`. A model reads and
writes lines of tokens. The source is the language, the tags and the characters of the lemma, as
in Peters, Niculae and Martins (2019), section 4.1; the target is the characters of the form:

    draw<TAB>drawn<TAB>V;V.PTCP;PST    ->    lang=english +V +V.PTCP +PST d r a w
                                             d r a w n

`onmt_entmax/text/morphology.py` says how exactly.

Commands:

    python tools/sigmorphon.py prepare --data conll2018 --setting medium \\
        --languages english german --out run/pilot/data
    python tools/sigmorphon.py prepare ... --reverse
    python tools/sigmorphon.py evaluate --source run/pilot/data/dev.src \\
        --reference run/pilot/data/dev.tgt --predictions run/pilot/dev.pred

`--reverse` writes the forms, and nothing else, from their last character to their first: for a
model that writes them from right to left, which errs elsewhere than one from left to right
(tools/combine.py).
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.ending import command
from onmt_entmax.data.inflection import (
    SETTINGS,
    as_pair,
    decode_word,
    language_of,
    read_rows,
    turned,
    write_pairs,
)
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.files import read_lines, refuse_overwriting, write_files
from onmt_entmax.report.measures import LanguageScores, Score, score_by_language

SPLITS = ("train", "dev", "test")


def available(folder: Path) -> dict[str, set[str]]:
    """The languages of a folder, each with its files: `dev`, `train-medium`, ...

    Raises:
        UserError: the folder cannot be listed or holds no task file.
    """
    pattern = re.compile(r"(.+?)-(train(?:-\w+)?|dev|covered-test|test)")
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise UserError(f"{folder}: cannot read: {error.strerror}") from None
    found: dict[str, set[str]] = {}
    for match in filter(None, map(pattern.fullmatch, names)):
        if re.search(r"\s", match.group(1)):
            raise UserError(
                f"{folder / match.group()}: a language is a word without spaces; rename the file"
            )
        found.setdefault(match.group(1), set()).add(match.group(2))
    if not found:
        raise UserError(f"{folder}: no files named <language>-train-<setting> or <language>-dev")
    return found


def choose_languages(
    folder: Path, asked: Sequence[str], needed: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The languages to use, and those that `all` leaves out because a file is missing.

    Args:
        folder: where the task's files are.
        asked: names, or `all`.
        needed: the files that each language must have, such as `train-medium` and `dev`.

    Raises:
        UserError: a language is unknown, lacks a needed file, or none has them all.
    """
    found = available(folder)
    if list(asked) != ["all"]:
        for language in asked:
            if language not in found:
                raise UserError(f"{folder}: no language {language!r}{nearest(language, found)}")
            for part in needed:
                if part not in found[language]:
                    raise UserError(
                        f"{folder}: no file {language}-{part}; {language} has "
                        f"{', '.join(sorted(found[language]))}"
                    )
        return list(dict.fromkeys(asked)), []
    chosen = [language for language in found if found[language].issuperset(needed)]
    if not chosen:
        parts = sorted(set().union(*found.values()))
        raise UserError(
            f"{folder}: no language has {' and '.join(needed)}; there are {', '.join(parts)} "
            "(--setting chooses among train-low, train-medium and train-high)"
        )
    return chosen, [language for language in found if language not in chosen]


def prepare(options: argparse.Namespace) -> int:
    """Writes `<split>.src` and `<split>.tgt` for each split."""
    train = f"train-{options.setting}" if options.setting else "train"
    needed = {split: train if split == "train" else split for split in options.splits}
    # A setting is its languages: `dev` of high is `dev` of the languages that have train-high.
    required = sorted({*needed.values(), train} if options.setting else set(needed.values()))
    languages, left_out = choose_languages(options.data, options.languages, required)

    pairs: dict[str, list[tuple[str, str]]] = {}
    for split, part in needed.items():
        for language in languages:
            path = options.data / f"{language}-{part}"
            rows = read_rows(path)
            spaced = sum(tag != tag.strip() for row in rows for tag in row.tags)
            if spaced:
                print(f"{path}: {spaced} tags with spaces around them, which makes other tags")
            for source, target in (as_pair(language, row) for row in rows):
                pairs.setdefault(split, []).append((source, turned(target, options.reverse)))
    if "train" in pairs:
        # Training shuffles what it holds at a time: of many rows only a part, and that must not be
        # a few of the languages.
        random.Random(f"{options.seed}/train").shuffle(pairs["train"])
    write_pairs({options.out / name: some for name, some in pairs.items()})
    for name, some in pairs.items():
        print(f"{options.out / name}.{{src,tgt}}: {len(some)} rows, {len(languages)} languages")
    if left_out:
        print(f"left out, no {' or no '.join(required)}: {', '.join(left_out)}")
    return 0


def table(scores: LanguageScores) -> str:
    """The scores as an aligned table, accuracy in per cent."""
    rows: list[tuple[str, Score]] = [*scores.languages.items(), ("average", scores.average)]
    width = max(len("language"), *(len(name) for name, _ in rows))
    lines = [f"{'language':<{width}}  {'words':>6}  {'accuracy':>8}  {'edit distance':>13}"]
    for name, each in rows:
        lines.append(
            f"{name:<{width}}  {each.words:>6}  {100 * each.accuracy:>8.2f}"
            f"  {each.edit_distance:>13.3f}"
        )
    lines.insert(-1, "-" * len(lines[0]))
    return "\n".join(lines)


def evaluate(options: argparse.Namespace) -> int:
    """Prints the official measures of a file of predictions."""
    refuse_overwriting([options.source, options.reference, options.predictions], [options.json])
    sources = list(read_lines(options.source))
    references = list(read_lines(options.reference))
    predictions = list(read_lines(options.predictions))
    for path, lines in ((options.reference, references), (options.predictions, predictions)):
        if len(lines) != len(sources):
            raise UserError(
                f"{path}: {len(lines)} lines, but {options.source} has {len(sources)}; "
                "there must be one line for each source line (and one prediction: -n_best 1)"
            )
    if not sources:
        raise UserError(f"{options.source}: no lines")
    scores = score_by_language(
        [language_of(options.source, n, line) for n, line in enumerate(sources, start=1)],
        [decode_word(line.split()) for line in references],
        [decode_word(line.split()) for line in predictions],
    )
    if options.json:
        content = {
            "average": vars(scores.average),
            "languages": {name: vars(each) for name, each in scores.languages.items()},
        }
        write_files({options.json: json.dumps(content, indent=2, ensure_ascii=False) + "\n"})
    print(table(scores))
    return 0


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line; ends the program with status 2 where it is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("prepare", help="task files to source and target files")
    command.set_defaults(run=prepare)
    add = command.add_argument
    add("--data", type=Path, required=True, help="folder of <language>-train-<setting>, ...-dev")
    add("--setting", help="low, medium or high; without it, files are named <language>-train")
    add("--languages", nargs="+", default=["all"], help="names, or all (the default)")
    add("--splits", nargs="+", default=["train", "dev"], help="among train, dev, test")
    add("--out", type=Path, required=True, help="folder for <split>.src and <split>.tgt")
    add("--reverse", action="store_true", help="write the forms from right to left")
    add("--seed", type=int, default=1, help="of the order of training pairs (default 1)")
    command = commands.add_parser("evaluate", help="accuracy and edit distance per language")
    command.set_defaults(run=evaluate)
    add = command.add_argument
    add("--source", type=Path, required=True, help="source file, as prepare wrote it")
    add("--reference", type=Path, required=True, help="target file, as prepare wrote it")
    add("--predictions", type=Path, required=True, help="one predicted target a line")
    add("--json", type=Path, help="write the scores here too (accuracy between 0 and 1)")
    options = parser.parse_args(arguments)
    if options.run is prepare:
        for name, value, known in (
            *(("split", split, SPLITS) for split in options.splits),
            *(("setting", setting, SETTINGS) for setting in filter(None, [options.setting])),
        ):
            if value not in known:
                raise UserError(
                    f"no {name} {value!r} among {', '.join(known)}{nearest(value, known)}"
                )
    return options


@command
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; an error of the user's is one line on the standard error and status 2."""
    options = parse_arguments(arguments)
    status: int = options.run(options)
    return status
