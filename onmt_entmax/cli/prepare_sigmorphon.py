"""Make training files from the files of the CoNLL-SIGMORPHON 2018 shared task.

    onmt-entmax prepare sigmorphon --data conll2018 --setting medium --languages english german \\
        --out run/pilot/data

The task's files hold one form a line, `lemma<TAB>form<TAB>tag;tag`. This writes `<split>.src` and
`<split>.tgt`, whose lines are tokens (Peters, Niculae and Martins 2019, section 4.1):

    draw<TAB>drawn<TAB>V;V.PTCP;PST    ->    lang=english +V +V.PTCP +PST d r a w
                                             d r a w n

Then it prints the lines of a configuration that depend on the data, such as the number of updates.

--reverse writes the target forms from the last character to the first, to train a right-to-left
model. Such models make other errors than left-to-right ones: see `onmt-entmax combine`.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from onmt_entmax.cli.ending import argument_parser
from onmt_entmax.data.inflection import SETTINGS, as_pair, order_tokens, read_rows, write_pairs
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.files import naming

SPLITS = ("train", "dev", "test")

_BATCH = 32  # rows
_PASSES = 40  # over large data; see `updates`
_FEWEST = 4000  # updates


def available(folder: Path) -> dict[str, set[str]]:
    """Return the languages of a folder, each with its files: `dev`, `train-medium`, ...

    Raises:
        UserError: the folder cannot be listed or holds no task file.
    """
    pattern = re.compile(r"(.+?)-(train(?:-\w+)?|dev|covered-test|test)")
    with naming(folder, "read"):
        names = sorted(path.name for path in folder.iterdir())
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
    folder: Path, names: Sequence[str], needed: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the languages to use, and those that `all` leaves out because a file is missing.

    Args:
        folder: the folder of the task's files.
        names: names of languages, or `all`.
        needed: the files that each language must have, such as `train-medium` and `dev`.

    Raises:
        UserError: a language is unknown or lacks a needed file, or no language has them all.
    """
    found = available(folder)
    if list(names) != ["all"]:
        for language in names:
            if language not in found:
                raise UserError(f"{folder}: no language {language!r}{nearest(language, found)}")
            for part in needed:
                if part not in found[language]:
                    raise UserError(
                        f"{folder}: no file {language}-{part}; {language} has "
                        f"{', '.join(sorted(found[language]))}"
                    )
        return list(dict.fromkeys(names)), []
    chosen = [language for language in found if found[language].issuperset(needed)]
    if not chosen:
        parts = sorted(set().union(*found.values()))
        raise UserError(
            f"{folder}: no language has {' and '.join(needed)}; there are {', '.join(parts)} "
            "(--setting chooses among train-low, train-medium and train-high)"
        )
    return chosen, [language for language in found if language not in chosen]


def prepare(options: argparse.Namespace) -> None:
    """Write `<split>.src` and `<split>.tgt` for each split."""
    train = f"train-{options.setting}" if options.setting else "train"
    needed = {split: train if split == "train" else split for split in options.splits}
    # The setting decides the languages: `dev` of high is `dev` of those that have train-high.
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
                pairs.setdefault(split, []).append((source, order_tokens(target, options.reverse)))
    if "train" in pairs:
        # Training shuffles only a part of a large file at a time; without this, that part would be
        # a few languages.
        random.Random(f"{options.seed}/train").shuffle(pairs["train"])
    write_pairs({options.out / name: some for name, some in pairs.items()})
    for name, some in pairs.items():
        print(f"{options.out / name}.{{src,tgt}}: {len(some)} rows, {len(languages)} languages")
    if left_out:
        print(f"left out, no {' or no '.join(required)}: {', '.join(left_out)}")
    if {"train", "dev"} <= pairs.keys():
        print(f"\n{configuration(options.out, len(pairs['train']), len(languages))}")


def updates(rows: int) -> int:
    """Return the number of updates for some training rows: more passes if they are few."""
    return max(_FEWEST, -(-_PASSES * rows // (_BATCH * 500)) * 500)


def configuration(folder: Path, rows: int, languages: int) -> str:
    """Return the lines of a YAML file that depend on the data.

    Args:
        folder: of the files.
        rows: of the training data.
        languages: how many there are.
    """
    steps = updates(rows)
    data = {
        name: {"path_src": f"{folder / split}.src", "path_tgt": f"{folder / split}.tgt"}
        for name, split in (("words", "train"), ("valid", "dev"))
    }
    return "\n".join(
        [
            "# For a configuration as in the README:",
            yaml.safe_dump({"data": data}, sort_keys=False, allow_unicode=True).rstrip(),
            f"batch_size: {_BATCH}",
            f"train_steps: {steps}  # {steps * _BATCH / max(rows, 1):.0f} passes over the data",
            f"attention_warmup_steps: {steps // 4}",
            f"valid_steps: {steps // 20}",
            f"selection: {'exact_match' if languages == 1 else 'macro_accuracy'}",
            "keep_checkpoint: 1  # besides the best",
        ]
    )


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder of <language>-train-<setting>, ...-dev")
    add("--setting", help="low, medium or high; without it, files are named <language>-train")
    add("--languages", nargs="+", default=["all"], help="names, or all (default)")
    add("--splits", nargs="+", default=["train", "dev"], help="among train, dev, test")
    add("--out", type=Path, required=True, help="folder for <split>.src and <split>.tgt")
    add("--reverse", action="store_true", help="write the target forms right to left")
    add("--seed", type=int, default=1, help="seed for the order of training pairs (default 1)")
    options = parser.parse_args(arguments)
    for name, value, known in (
        *(("split", split, SPLITS) for split in options.splits),
        *(("setting", setting, SETTINGS) for setting in filter(None, [options.setting])),
    ):
        if value not in known:
            raise UserError(f"no {name} {value!r} among {', '.join(known)}{nearest(value, known)}")
    return options


def main(arguments: Sequence[str]) -> int:
    """Prepare the data; return the exit status."""
    prepare(parse_arguments(arguments))
    return 0
