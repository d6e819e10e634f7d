"""Make training files for inflection from tables: SIGMORPHON's shared tasks, UniMorph, or yours.

    onmt-entmax prepare sigmorphon --train welsh.csv --dev welsh-dev.csv --out run/mine
    onmt-entmax prepare sigmorphon --data conll2018 --setting medium --languages english german \\
        --out run/pilot/data

A row has a lemma, its form and the form's tags, `lemma<TAB>form<TAB>tag;tag`, or the same in other
columns, of a CSV file too. What was seen is printed before anything is written; --columns says it
where the guess is wrong. A first line that is a heading is left out, which is printed too. --data
takes the files of a folder, <language>-train and <language>-dev. --train, --dev and --test take
files of any name: their language is --language, or the name up to the first dot or underscore,
-train, -dev, -test or -task.

This writes `<split>.src` and `<split>.tgt`, whose lines are tokens (Peters, Niculae and Martins
2019, section 4.1):

    draw<TAB>drawn<TAB>V;V.PTCP;PST    ->    lang=english +V +V.PTCP +PST d r a w
                                             d r a w n

Characters stay as they are: warnings name files that are not in Unicode's normal form NFC, and
words that mix scripts, such as Cyrillic with a Latin a. Tags are divided at semicolons outside
brackets: `V;PRS;NOM(3,SG)` are three.

Of training and development data it also writes `train.yaml`, for `onmt-entmax train -config`: a
model for one CPU core, trained for --minutes, or for longer on larger data. The next commands
are printed.

--reverse writes the target forms from the last character to the first, to train a right-to-left
model. Such models make other errors than left-to-right ones: see `onmt-entmax combine`.
"""

import argparse
import random
import re
import shlex
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from unicodedata import is_normalized

from onmt_entmax.cli.ending import argument_parser, warn
from onmt_entmax.cli.prepared import (
    CONFIGURATION,
    MINUTES,
    keep_configuration,
    next_lines,
    plan_for,
    training_file,
)
from onmt_entmax.data.inflection import (
    COLUMNS,
    SETTINGS,
    Row,
    as_pair,
    decode_source,
    order_tokens,
    pair_texts,
    table_of,
)
from onmt_entmax.data.scripts import mixtures
from onmt_entmax.errors import UserError, counted, nearest
from onmt_entmax.files import naming, read_lines, refuse_overwriting, write_files

SPLITS = ("train", "dev", "test")


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


def choose_files(
    options: argparse.Namespace,
) -> tuple[dict[str, list[tuple[str, Path]]], str]:
    """Return languages and files by split, and a note on the languages that are left out.

    Raises:
        UserError: a language or file is missing, or a file's name says no language.
    """
    files: dict[str, list[tuple[str, Path]]] = {}
    if not options.data:
        for split in SPLITS:
            for path in getattr(options, split):
                name = re.split(r"[._]|-(?:train|dev|test|task)", path.name)[0]
                language = name if options.languages == ["all"] else " ".join(options.languages)
                if not re.fullmatch(r"\S+", language):
                    raise UserError(
                        f"{path}: --language names its language, one word without spaces"
                    )
                files.setdefault(split, []).append((language, path))
        return files, ""
    train = f"train-{options.setting}" if options.setting else "train"
    needed = {split: train if split == "train" else split for split in options.splits}
    # The setting decides the languages: `dev` of high is `dev` of those that have train-high.
    required = sorted({*needed.values(), train} if options.setting else set(needed.values()))
    languages, left_out = choose_languages(options.data, options.languages, required)
    for split, part in needed.items():
        files[split] = [(each, options.data / f"{each}-{part}") for each in languages]
    note = f"left out, no {' or no '.join(required)}: {', '.join(left_out)}" if left_out else ""
    return files, note


def prepare(options: argparse.Namespace) -> None:
    """Write `<split>.src` and `<split>.tgt` for each split, and a configuration to train with."""
    files, note = choose_files(options)
    outputs = [options.out / f"{split}.{side}" for split in files for side in ("src", "tgt")]
    inputs = [path for some in files.values() for _, path in some]
    refuse_overwriting(inputs, [*outputs, options.out / CONFIGURATION])
    languages = {language for tables in files.values() for language, _ in tables}
    pairs: dict[str, list[tuple[str, str]]] = {}
    layouts: dict[str, list[str]] = {}
    for split, tables in files.items():
        for language, path in tables:
            rows, layout = table_of(read_lines(path), str(path), options.columns)
            layouts.setdefault(layout, []).append(f"{path.name}, {counted(len(rows), 'row')}")
            _warn_of_oddities(path, rows)
            for source, target in (as_pair(language, row) for row in rows):
                pairs.setdefault(split, []).append((source, order_tokens(target, options.reverse)))
    if "train" in pairs:
        # Training shuffles only a part of a large file at a time; without this, that part would be
        # a few languages.
        random.Random(f"{options.seed}/train").shuffle(pairs["train"])
    contents = pair_texts({options.out / name: some for name, some in pairs.items()})
    commands: list[str] = []
    if {"train", "dev"} <= pairs.keys():
        keep_configuration(options.out, options.minutes)
        commands = next_commands(options.out, pairs["dev"][0][0], options.reverse)
        of_training = options.out, len(pairs["train"]), len(languages), commands
        contents[options.out / CONFIGURATION] = configuration(*of_training)
    elif options.minutes:
        raise UserError("--minutes plans a training, which needs train and dev")
    for layout, names in layouts.items():
        more = f" and {counted(len(names) - 1, 'file')} more" if names[1:] else ""
        print(f"{names[0]}{more}: {layout}")
    write_files(contents)
    for name, some in pairs.items():
        size = f"{counted(len(some), 'row')}, {counted(len(languages), 'language')}"
        print(f"{options.out / name}.{{src,tgt}}: {size}")
    trained = set(pairs.pop("train", ()))
    for name, some in pairs.items():
        known = sum(pair in trained for pair in some)
        if known:
            warn(
                f"{options.out / name}: rows that are in the training data too: {known:,} of "
                f"{len(some):,}, which makes the accuracy too high"
            )
    if note:
        print(note)
    if options.minutes:
        planned = configuration(*of_training, *plan_for(options.minutes, options.out))
        write_files({options.out / CONFIGURATION: planned})
    if commands:
        print("\n  ".join(["next:", *commands]))


def _warn_of_oddities(path: Path, rows: Sequence[Row]) -> None:
    texts = [text for row in rows for text in (row.lemma, row.form, *row.tags)]
    spaced = sum(text != text.strip() for text in texts)
    if spaced:
        warn(f"{path}: spaces around lemmas, forms or tags, which a model learns: {spaced:,}")
    joined = [row.tags[0] for row in rows if re.match(r"[^(]*[^(\s][|, ]", row.tags[0])]
    if 2 * len(joined) > len(rows) and all(len(row.tags) == 1 for row in rows):
        warn(f"{path}: no semicolon divides tags: {joined[0]!r} is one tag; put ; between tags")
    other = sum(not is_normalized("NFC", row.lemma + "\t" + row.form) for row in rows)
    if other:
        warn(
            f"{path}: rows that are not in Unicode's normal form NFC: {other:,} of {len(rows):,}; "
            "letters and their marks are separate tokens there; normalise the file, or write "
            "queries so too"
        )
    mixed = mixtures([(row.lemma, row.form) for row in rows])
    if mixed:
        named = [f"line {rows[number].line}, {text}" for number, text in islice(mixed.items(), 5)]
        more = (
            f"; and {len(mixed) - 5:,} more (onmt-entmax audit lists all)" if len(mixed) > 5 else ""
        )
        warn(
            f"{path}: rows that mix scripts: {len(mixed):,} of {len(rows):,}: {'; '.join(named)}"
            f"{more}"
        )


def next_commands(out: Path, source: str, reverse: bool) -> list[str]:
    """Return the commands that train, inflect a word, and decode, measure and show the dev set.

    Args:
        out: the folder that is filled.
        source: of the word.
        reverse: whether forms are written right to left.
    """
    language, tags, lemma = decode_source(source.split())
    query, kind = shlex.join([language, lemma, ";".join(tags)]), "reversed" if reverse else "model"
    names = f"model {CONFIGURATION} dev.src dev.tgt dev.out dev.report.jsonl dev.html".split()
    model, config, dev, reference, output, report, page = (
        shlex.quote(str(out / name)) for name in names
    )
    return next_lines(
        f"train -config {config}",
        f"inflect --{kind} {model} {query}",
        f"translate -model {model} -src {dev} -output {output} -n_best 5 "
        f"-exactness_report {report}",
        f"evaluate --source {dev} --reference {reference} --predictions {output} --nbest 5",
        f"report -model {model} -report {report} -output {page}",
    )


def configuration(
    out: Path,
    rows: int,
    languages: int,
    commands: Sequence[str],
    steps: int | None = None,
    time: str = "",
) -> str:
    """Return the text of a configuration that trains a model on one CPU core.

    Args:
        out: the folder that is filled.
        rows: of the training data, which decide how long to train.
        languages: how many there are.
        commands: for the comment at its head.
        steps: number of updates; None: by the number of rows.
        time: a line on how long they take, if that was measured.
    """
    batch = 32
    # More passes over few rows.
    steps = steps or max(4000, -(-40 * rows // (batch * 500)) * 500)
    epochs = counted(round(steps * batch / rows), "epoch")
    selection = "exact_match" if languages == 1 else "macro_accuracy"
    data = {
        name: (out / f"{split}.src", out / f"{split}.tgt")
        for name, split in (("words", "train"), ("valid", "dev"))
    }
    settings = f"""\
encoder_type: brnn
layers: 2
rnn_size: 300
word_vec_size: 300
global_attention_function: entmax15
generator_function: entmax15

optim: adam
learning_rate: 0.0014
decay_method: cosine              # to 0 at train_steps: lower these rather than set early_stopping
warmup_steps: {min(300, steps // 5)}
attention_warmup_steps: {steps // 4}      # attention starts as softmax
batch_size: {batch}
train_steps: {steps}                 # about {epochs} of {counted(rows, "row")}
valid_steps: {max(steps // 20, 1)}
save_checkpoint_steps: {max(steps // 20, 1)}
keep_checkpoint: 1                # beside the best
selection: {selection}            # measure of the best checkpoint
seed: 1
"""
    return training_file(data, out / "model", ["", settings], commands, time)


def main(arguments: Sequence[str]) -> int:
    """Prepare the data; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("--data", type=Path, help="folder of <language>-train-<setting>, <language>-dev, ...")
    for split in SPLITS:
        add(f"--{split}", type=Path, nargs="+", default=[], help=f"files of the {split} set")
    add(
        "--columns",
        type=lambda text: text.split(","),
        default=[],
        help="such as lemma,tags,form,-; - leaves a column out (default: guessed)",
    )
    add("--setting", choices=SETTINGS, help="without it, files are named <language>-train")
    add(
        "--languages",
        "--language",
        nargs="+",
        default=["all"],
        help="names, or all (default); without --data, the one language of the files",
    )
    add("--splits", nargs="+", choices=SPLITS, default=["train", "dev"], help="default train dev")
    add("--out", type=Path, required=True, help="folder for <split>.src and <split>.tgt")
    add("--minutes", **MINUTES)
    add("--reverse", action="store_true", help="write the target forms right to left")
    add("--seed", type=int, default=1, help="seed for the order of training pairs (default 1)")
    options = parser.parse_args(arguments)
    if bool(options.data) == any(getattr(options, split) for split in SPLITS):
        raise UserError("expected either --data, or some of --train, --dev and --test")
    if not options.data and (options.setting or options.splits != parser.get_default("splits")):
        raise UserError("--setting and --splits choose among the files of --data")
    if options.columns and sorted(c for c in options.columns if c != "-") != sorted(COLUMNS):
        raise UserError("--columns: expected lemma, form and tags, each once, and -")
    prepare(options)
    return 0
