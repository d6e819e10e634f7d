"""Make training files for inflection from tables: SIGMORPHON's shared tasks, UniMorph, or yours.

    onmt-entmax prepare sigmorphon --train welsh.csv --dev welsh-dev.csv --out run/mine
    onmt-entmax prepare sigmorphon --data conll2018 --setting medium --languages english german \\
        --out run/pilot/data

The folder --out then has, and the next commands are printed:

    <split>.src, <split>.tgt  sources and targets as lines of tokens
    train.yaml                for `onmt-entmax train -config`: a model for one CPU core, trained for
                              longer on larger data, or the one that this machine trains best in
                              --minutes

A row has a lemma, its form and the form's tags, `lemma<TAB>form<TAB>tag;tag`, or the same in other
columns, of a CSV file too. A heading is left out. Columns are guessed and printed before anything
is written; --columns names them where the guess is wrong. Rows that cannot be read are listed, all
at once; --skip-bad FILE writes them there and goes on.

Each table has a language. --train, --dev and --test take files of any name: their language is
--language, or the name without -train, .trn, _dev, .covered.tst and the like. --data takes the
files <language>-train and <language>-dev of a folder. The tables of --test may lack the forms; a
command that predicts them is printed then.

Tokens are characters and tags (Peters, Niculae and Martins 2019, section 4.1):

    draw<TAB>drawn<TAB>V;V.PTCP;PST    ->    lang=english +V +V.PTCP +PST d r a w
                                             d r a w n

Characters stay as they are: warnings name files that are not in Unicode's normal form NFC, and
words that mix scripts, such as Cyrillic with a Latin a. Tags are divided at semicolons outside
brackets: `V;PRS;NOM(3,SG)` are three.

--right_to_left trains a model that writes the last character first; the files stay as they are.
Such models make other errors than left-to-right ones: see `onmt-entmax combine`. `prepare table`
makes the same files from tables of other strings, and its -h explains --copy and --hallucinate.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.next_commands import page_commands
from onmt_entmax.cli.preparation import prepare
from onmt_entmax.cli.preparation_options import SPLITS, check_outputs, common_options
from onmt_entmax.cli.sigmorphon_folder import ALL, SETTINGS, choose_languages
from onmt_entmax.cli.split_files import SplitFile, with_languages
from onmt_entmax.cli.table_options import checked_columns
from onmt_entmax.cli.tables import read_tables
from onmt_entmax.errors import UserError
from onmt_entmax.rules import shown
from onmt_entmax.strings.task import INFLECTION, LEFT_OUT, SOURCE, TAGS, TARGET

_TRAINING_SPLITS = ["train", "dev"]


def main(arguments: Sequence[str]) -> int:
    """Prepare the data; return the exit status."""
    options = _parsed(arguments)
    columns = _checked_columns(options.columns)
    if options.data:
        files, note = _files_of_folder(options)
    else:
        files, note = _named_files(options), ""
    check_outputs(files, options)
    tables, task = read_tables(files, columns, {SOURCE: "", TARGET: ""}, INFLECTION.columns)
    if not task.has_tags:
        raise UserError(
            f"{tables[0].path}: {tables[0].layout}; no tags, as a lemma, its form and the form's "
            "tags; prepare table takes other tables"
        )
    prepare(tables, task, options, note, page_commands(options.out))
    return 0


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options, with `language`: of all tables, if the user named it; else None.

    Raises:
        UserError: names options that exclude each other.
    """
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--data", type=Path, help="folder of <language>-train-<setting>, <language>-dev, ...")
    for split in SPLITS:
        add(f"--{split}", type=Path, nargs="+", default=[], help=f"files of the {split} set")
    add("--columns", default="", help="such as lemma,tags,form,- (default: guessed)")
    add("--setting", choices=SETTINGS, help="without it, files are named <language>-train")
    # One option, in the plural for a folder of several languages, and in the singular for tables.
    add(
        "--languages",
        "--language",
        nargs="+",
        default=[ALL],
        help="names, or all (default); without --data, the one language of the files",
    )
    add("--splits", nargs="+", choices=SPLITS, default=_TRAINING_SPLITS, help="default train dev")
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
    """Return the one language that `--language` names for all tables; None: it names none.

    Raises:
        UserError: it names several.
    """
    if list(languages) == [ALL]:
        return None
    if len(languages) > 1:
        several = " ".join(languages)
        raise UserError(f"--language {shown(several)}: must be one word without spaces")
    return languages[0]


def _checked_columns(text: str) -> tuple[str, ...]:
    """Return the columns of `--columns`; none if it is empty.

    Raises:
        UserError: they are not those of an inflection.
    """
    columns = checked_columns(text, (SOURCE, TARGET))
    if columns and sorted({*columns, LEFT_OUT}) != sorted([SOURCE, TARGET, TAGS, LEFT_OUT]):
        raise UserError("--columns: expected lemma, form and tags, each once, and -")
    return columns


def _named_files(options: argparse.Namespace) -> list[SplitFile]:
    """Return the files of `--train`, `--dev` and `--test`, each with its language.

    Raises:
        UserError: the name of a file says no language, and the user named none.
    """
    files = [SplitFile(split, path) for split in SPLITS for path in getattr(options, split)]
    return with_languages(files, options.language, needs_language=True)


def _files_of_folder(options: argparse.Namespace) -> tuple[list[SplitFile], str]:
    """Return the files of `--data`, those of training first, and a note on omitted languages.

    Raises:
        UserError: a language or file is missing.
    """
    train = f"train-{options.setting}" if options.setting else "train"
    parts = {split: train if split == "train" else split for split in SPLITS}
    needed = {split: part for split, part in parts.items() if split in options.splits}
    required = set(needed.values())
    if options.setting:
        # The setting decides the languages: `dev` of high is `dev` of those that have train-high.
        required.add(train)
    chosen = choose_languages(options.data, options.languages, sorted(required))
    files = [
        SplitFile(split, options.data / f"{language}-{part}", language)
        for split, part in needed.items()
        for language in chosen.languages
    ]
    if not chosen.left_out:
        return files, ""
    lacking = " or no ".join(sorted(required))
    return files, f"left out, no {lacking}: {', '.join(chosen.left_out)}"
