"""Make training files for inflection from tables: SIGMORPHON's shared tasks, UniMorph, or yours.

    onmt-entmax prepare sigmorphon --train welsh.csv --dev welsh-dev.csv --out run/mine
    onmt-entmax prepare sigmorphon --data conll2018 --setting medium --languages english german \\
        --out run/pilot/data

Writes these files into the folder --out, and prints the next commands:

    <split>.src, <split>.tgt  sources and targets as lines of tokens
    train.yaml                configuration for `onmt-entmax train -config`

A row has a lemma, its form and the form's tags, in any order of columns; CSV files are read, too.
Its characters and tags become tokens (Peters, Niculae and Martins 2019, section 4.1):

    draw<TAB>drawn<TAB>V;V.PTCP;PST    ->    lang=english +V +V.PTCP +PST d r a w
                                             d r a w n

Columns are guessed, and printed before anything is written; --columns names them if the guess is
wrong. Rows that cannot be read are listed, all at once; --skip-bad FILE writes them to FILE and
goes on. Warnings name words that mix scripts, and files that are not in Unicode's normal form NFC.

--train, --dev and --test take tables of any name. --language names their language; otherwise it is
the name of the file without -train, .trn, _dev, .covered.tst and the like. --data takes the files
<language>-train and <language>-dev of a folder. Tables of the test set may lack the forms.

`prepare table` makes the same files from tables of other strings. Its -h explains --minutes,
--right_to_left, --copy and --hallucinate.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.preparation import prepare
from onmt_entmax.cli.preparation_options import SPLITS, check_outputs, common_options
from onmt_entmax.cli.sigmorphon_folder import ALL, SETTINGS, choose_languages
from onmt_entmax.cli.split_files import SplitFile, with_languages
from onmt_entmax.cli.table_commands import page_commands
from onmt_entmax.cli.table_options import checked_columns
from onmt_entmax.cli.tables import read_tables
from onmt_entmax.errors import UserError
from onmt_entmax.rules import shown
from onmt_entmax.strings.task import INFLECTION, LEFT_OUT, SOURCE, TAGS, TARGET

_TRAINING_SPLITS = ["train", "dev"]


class _Input(NamedTuple):
    """The tables to read.

    Attributes:
        files: files of the tables; the training tables come first.
        left_out: line to print about languages that are left out; empty if there are none.
    """

    files: list[SplitFile]
    left_out: str = ""


def main(arguments: Sequence[str]) -> int:
    """Prepare the data; return the exit status."""
    options = _parsed(arguments)
    columns = _checked_columns(options.columns)
    files, left_out = _files_of_folder(options) if options.data else _named_files(options)
    check_outputs(files, options)
    characters = {SOURCE: "", TARGET: ""}  # no separators
    tables, task = read_tables(files, columns, separators=characters, fallback=INFLECTION.columns)
    if not task.has_tags:
        raise UserError(
            f"{tables[0].path}: {tables[0].layout}; no tags, which a table of inflections has; "
            "prepare table takes other tables"
        )
    prepare(
        tables,
        task,
        options,
        left_out=left_out,
        commands=page_commands(options.out, options.models),
    )
    return 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line.

    Returns:
        The options. `languages` has the names as the user typed them, and `language` is the one
        language of all tables, or None if the names of the files say their languages.

    Raises:
        UserError: options exclude each other, or `--language` names several languages of tables.
    """
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--data", type=Path, help="folder of <language>-train-<setting>, <language>-dev, ...")
    for split in SPLITS:
        add(f"--{split}", type=Path, nargs="+", default=[], help=f"files of the {split} set")
    add("--columns", default="", help="columns, such as lemma,tags,form,- (default: guessed)")
    add(
        "--setting",
        choices=SETTINGS,
        help="with --data: read <language>-train-<setting> (default: <language>-train)",
    )
    # One option with two names: --data has several languages, and the tables of --train have one.
    add(
        "--languages",
        "--language",
        nargs="+",
        default=[ALL],
        help="with --data: languages to read (default all); otherwise: the one language of the "
        "files",
    )
    add(
        "--splits",
        nargs="+",
        choices=SPLITS,
        default=_TRAINING_SPLITS,
        help="with --data: splits to read (default train dev)",
    )
    common_options(parser)
    options = parser.parse_args(arguments)
    names_tables = any(getattr(options, split) for split in SPLITS)
    if bool(options.data) == names_tables:
        raise UserError("expected either --data, or some of --train, --dev and --test")
    if names_tables and (options.setting or options.splits != _TRAINING_SPLITS):
        raise UserError("--setting and --splits choose among the files of --data")
    options.language = _language_of_tables(options.languages) if names_tables else None
    return options


def _language_of_tables(languages: Sequence[str]) -> str | None:
    """Return the language of all tables, or None if `--language` was not used.

    Args:
        languages: the words after `--language`; `all` alone is the default.

    Raises:
        UserError: there are several words.
    """
    if list(languages) == [ALL]:
        return None
    if len(languages) > 1:
        several = " ".join(languages)
        raise UserError(f"--language {shown(several)}: must be one word without spaces")
    return languages[0]


def _checked_columns(text: str) -> tuple[str, ...]:
    """Return the columns of `--columns`, or none if the user named none.

    Raises:
        UserError: they are other columns than lemma, form and tags.
    """
    columns = checked_columns(text, (SOURCE, TARGET))
    if columns and sorted({*columns, LEFT_OUT}) != sorted([SOURCE, TARGET, TAGS, LEFT_OUT]):
        raise UserError("--columns: expected lemma, form and tags, each once, and -")
    return columns


def _named_files(options: argparse.Namespace) -> _Input:
    """Return the files of `--train`, `--dev` and `--test`, each with its language.

    Raises:
        UserError: the user names no language, and the name of a file says none.
    """
    files = [SplitFile(split, path) for split in SPLITS for path in getattr(options, split)]
    return _Input(with_languages(files, options.language, needs_language=True))


def _files_of_folder(options: argparse.Namespace) -> _Input:
    """Return the files of the chosen languages and splits in the folder `--data`.

    Raises:
        UserError: a language or file is missing.
    """
    train_part = f"train-{options.setting}" if options.setting else "train"
    parts = {  # by split: the ending of the files' names
        split: train_part if split == "train" else split
        for split in SPLITS
        if split in options.splits
    }
    required = set(parts.values())
    if options.setting:
        # `--setting high --splits dev` reads the dev sets of the languages that have a train-high.
        required.add(train_part)
    chosen = choose_languages(options.data, options.languages, sorted(required))
    files = [
        SplitFile(split, options.data / f"{language}-{part}", language)
        for split, part in parts.items()
        for language in chosen.languages
    ]
    if not chosen.left_out:
        return _Input(files)
    lacking = " or no ".join(sorted(required))
    return _Input(files, f"left out, no {lacking}: {', '.join(chosen.left_out)}")
