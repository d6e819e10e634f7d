"""Make training files for inflection from tables: SIGMORPHON's shared tasks, UniMorph, or yours.

    onmt-entmax prepare sigmorphon --train welsh.csv --dev welsh-dev.csv --out run/mine
    onmt-entmax prepare sigmorphon --data conll2018 --setting medium --languages english german \\
        --out run/pilot/data

A row has a lemma, its form and the form's tags, `lemma<TAB>form<TAB>tag;tag`, or the same in other
columns, of a CSV file too. This is `prepare table` for such rows, which always have a language:
lemma and form are source and target, divided into characters, and --data takes the files of a
folder, <language>-train and <language>-dev. --train, --dev and --test take files of any name: their
language is --language, or the name without -train, .trn, _dev, .covered.tst and the like. The
tables of --test may lack the forms; a command that predicts them is printed then.

What was seen is printed before anything is written; --columns says it where the guess is wrong. A
first line that is a heading is left out, which is printed too. Rows that cannot be read are listed,
all at once; --skip-bad FILE writes them there and goes on.

This writes `<split>.src` and `<split>.tgt`, whose lines are tokens (Peters, Niculae and Martins
2019, section 4.1):

    draw<TAB>drawn<TAB>V;V.PTCP;PST    ->    lang=english +V +V.PTCP +PST d r a w
                                             d r a w n

Characters stay as they are: warnings name files that are not in Unicode's normal form NFC, and
words that mix scripts, such as Cyrillic with a Latin a. Tags are divided at semicolons outside
brackets: `V;PRS;NOM(3,SG)` are three.

Of training and development data it also writes `train.yaml`, for `onmt-entmax train -config`: a
model for one CPU core, trained for longer on larger data, or the one that this machine trains best
in --minutes. The next commands are printed.

--right_to_left trains a model that writes the last character first; the files stay as they are.
Such models make other errors than left-to-right ones: see `onmt-entmax combine`.
"""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.preparation import prepare
from onmt_entmax.cli.preparation_options import SPLITS, check_outputs, common_options
from onmt_entmax.cli.sigmorphon_folder import ALL, SETTINGS, choose_languages
from onmt_entmax.cli.tables import SplitFile, read_tables, with_languages
from onmt_entmax.errors import UserError
from onmt_entmax.strings.tables import checked_columns
from onmt_entmax.strings.task import INFLECTION, LEFT_OUT, SOURCE, TAGS, TARGET


def choose_files(options: argparse.Namespace) -> tuple[list[SplitFile], str]:
    """Return the files, those of training first, and a note on languages that are left out.

    Raises:
        UserError: a language or file is missing, or a file's name says no language.
    """
    if options.data:
        return _files_of_folder(options)
    files = [SplitFile(split, path) for split in SPLITS for path in getattr(options, split)]
    return with_languages(files, options.language, needs_language=True), ""


def _files_of_folder(options: argparse.Namespace) -> tuple[list[SplitFile], str]:
    """Return the files of `--data`, and a note on languages that are left out.

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


def page_commands(out: Path) -> list[str]:
    """Return the commands that write a page of the dev set's outputs, with certificates."""
    names = "model dev.src dev.out dev.report.jsonl dev.html".split()
    model, source, output, report, page = (shlex.quote(str(out / name)) for name in names)
    return [
        f"translate -model {model} -src {source} -output {output} -n_best 5 "
        f"-exactness_report {report}",
        f"report -model {model} -report {report} -output {page}",
    ]


def _check(options: argparse.Namespace, columns: Sequence[str], all_splits: Sequence[str]) -> None:
    """Refuse options that exclude each other.

    Args:
        options: of the command line.
        columns: that the user named.
        all_splits: the default of `--splits`.

    Raises:
        UserError: names the options.
    """
    if bool(options.data) == any(getattr(options, split) for split in SPLITS):
        raise UserError("expected either --data, or some of --train, --dev and --test")
    if not options.data and (options.setting or options.splits != all_splits):
        raise UserError("--setting and --splits choose among the files of --data")
    if columns and sorted({*columns, LEFT_OUT}) != sorted([SOURCE, TARGET, TAGS, LEFT_OUT]):
        raise UserError("--columns: expected lemma, form and tags, each once, and -")


def main(arguments: Sequence[str]) -> int:
    """Prepare the data; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--data", type=Path, help="folder of <language>-train-<setting>, <language>-dev, ...")
    for split in SPLITS:
        add(f"--{split}", type=Path, nargs="+", default=[], help=f"files of the {split} set")
    add("--columns", default="", help="such as lemma,tags,form,- (default: guessed)")
    add("--setting", choices=SETTINGS, help="without it, files are named <language>-train")
    add(
        "--languages",
        "--language",
        nargs="+",
        default=[ALL],
        help="names, or all (default); without --data, the one language of the files",
    )
    add("--splits", nargs="+", choices=SPLITS, default=["train", "dev"], help="default train dev")
    common_options(parser)
    options = parser.parse_args(arguments)
    columns = checked_columns(options.columns, (SOURCE, TARGET))
    _check(options, columns, parser.get_default("splits"))
    named = not options.data and options.languages != [ALL]
    options.language = " ".join(options.languages) if named else None
    files, note = choose_files(options)
    check_outputs(files, options)
    tables, task = read_tables(files, columns, {SOURCE: "", TARGET: ""}, INFLECTION.columns)
    if not task.has_tags:
        raise UserError(
            f"{tables[0].path}: {tables[0].layout}; no tags, as a lemma, its form and the form's "
            "tags; prepare table takes other tables"
        )
    prepare(tables, task, options, note, page_commands(options.out))
    return 0
