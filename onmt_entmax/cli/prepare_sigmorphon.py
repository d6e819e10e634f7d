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
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.preparation import SPLITS, check_outputs, common_options, prepare
from onmt_entmax.cli.tables import Table, name_languages, read_tables
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.files import naming
from onmt_entmax.strings.tables import checked_columns
from onmt_entmax.strings.task import INFLECTION, LEFT_OUT, SOURCE, TAGS, TARGET

SETTINGS = ("low", "medium", "high")


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
        raise UserError(
            f"{folder}: no files <language>-train (or <language>-train-<setting>) and "
            "<language>-dev, such as english-train and english-dev"
        )
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
        parts = set().union(*found.values())
        lacking, there = (
            [f"<language>-{part}" for part in sorted(some)] for some in (needed, parts)
        )
        choose = "train" in needed and parts & {f"train-{setting}" for setting in SETTINGS}
        raise UserError(
            f"{folder}: no language has {' and '.join(lacking)}; found only {', '.join(there)}"
            + ("; --setting chooses train-low, train-medium or train-high" if choose else "")
        )
    return chosen, [language for language in found if language not in chosen]


def choose_tables(options: argparse.Namespace) -> tuple[list[Table], str]:
    """Return the tables, those of training first, and a note on languages that are left out.

    Raises:
        UserError: a language or file is missing, or a file's name says no language.
    """
    if not options.data:
        tables = [Table(split, path) for split in SPLITS for path in getattr(options, split)]
        name_languages(tables, options.language, by_name=True)
        return tables, ""
    train = f"train-{options.setting}" if options.setting else "train"
    needed = {split: train if split == "train" else split for split in SPLITS}
    needed = {split: part for split, part in needed.items() if split in options.splits}
    # The setting decides the languages: `dev` of high is `dev` of those that have train-high.
    required = sorted({*needed.values(), train} if options.setting else set(needed.values()))
    languages, left_out = choose_languages(options.data, options.languages, required)
    tables = [
        Table(split, options.data / f"{language}-{part}", language)
        for split, part in needed.items()
        for language in languages
    ]
    note = f"left out, no {' or no '.join(required)}: {', '.join(left_out)}" if left_out else ""
    return tables, note


def page_commands(out: Path) -> list[str]:
    """Return the commands that write a page of the dev set's outputs, with certificates."""
    names = "model dev.src dev.out dev.report.jsonl dev.html".split()
    model, source, output, report, page = (shlex.quote(str(out / name)) for name in names)
    return [
        f"translate -model {model} -src {source} -output {output} -n_best 5 "
        f"-exactness_report {report}",
        f"report -model {model} -report {report} -output {page}",
    ]


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
        default=["all"],
        help="names, or all (default); without --data, the one language of the files",
    )
    add("--splits", nargs="+", choices=SPLITS, default=["train", "dev"], help="default train dev")
    common_options(parser)
    options = parser.parse_args(arguments)
    if bool(options.data) == any(getattr(options, split) for split in SPLITS):
        raise UserError("expected either --data, or some of --train, --dev and --test")
    if not options.data and (options.setting or options.splits != parser.get_default("splits")):
        raise UserError("--setting and --splits choose among the files of --data")
    columns = checked_columns(options.columns, (SOURCE, TARGET))
    if columns and sorted({*columns, LEFT_OUT}) != sorted([SOURCE, TARGET, TAGS, LEFT_OUT]):
        raise UserError("--columns: expected lemma, form and tags, each once, and -")
    named = not options.data and options.languages != ["all"]
    options.language = " ".join(options.languages) if named else None
    tables, note = choose_tables(options)
    check_outputs(tables, options)
    task = read_tables(tables, columns, {SOURCE: "", TARGET: ""}, INFLECTION.columns)
    if not task.has_tags:
        raise UserError(
            f"{tables[0].path}: {tables[0].layout}; no tags, as a lemma, its form and the form's "
            "tags; prepare table takes other tables"
        )
    prepare(tables, task, options, note, page_commands(options.out))
    return 0
