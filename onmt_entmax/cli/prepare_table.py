"""Make training files from tables of strings: inflections, pronunciations, transliterations, ...

    onmt-entmax prepare table --train ro.train.tsv --dev ro.dev.tsv --out run/ro
    onmt-entmax prepare table --train *.trn --dev *.dev --columns source,tags,target --out run/all

A row has at least a source and a target; tags and a language may be there too, in any order:

    ploaie<TAB>p lʷ a j e                    --columns source,target --separator "target= "
    draw<TAB>V;V.PTCP;PST<TAB>drawn          --columns source,tags,target

--columns names the columns, and - leaves one out; a heading with names serves too, and is left out.
Sources and targets are divided into characters, unless --separator names what stands between
symbols such as phones; tags stand between semicolons. All this is guessed otherwise, and what was
guessed is printed before anything is written.

The language of a row is a column, or --language, or the name of its file without _train, -dev,
.trn, .tsv and the like if the files of --train have several such names. Tables of one language need
none.

Rows that cannot be read are listed, all at once; --skip-bad FILE writes them there and goes on.
Warnings name what is likely a mistake.

This writes `train` and `dev` as files of tokens, and `train.yaml` for `onmt-entmax train -config`:
a model for one CPU core, trained for longer on larger data, or the one that this machine trains
best in --minutes. The model remembers columns, separators
and direction, so the next commands, which are printed, do not ask for them.

--right_to_left trains a model that writes the last symbol first. Such models make other errors.
--copy N copies symbols that fewer than N training sources have, and unknown ones, from source to
target; 0 copies none. It is chosen from the data otherwise, and printed.

--hallucinate N adds N pairs for each training pair, with random letters in place of the stem that
source and target share: a model of few words else learns them by heart. The files `hallucinated`
have them. --minutes adds one where there is time for many passes over the rows, for languages that
have many rows of a word and change words at their ends, and says so; --hallucinate 0 leaves them
out.
"""

import argparse
import glob
import json
import random
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from onmt_entmax.cli.ending import argument_parser, warn
from onmt_entmax.cli.plans import (
    HALLUCINATED_ROWS,
    HALLUCINATED_STEM,
    LEARNING_RATE,
    Network,
    Plan,
    candidates,
    explained,
)
from onmt_entmax.cli.prepared import (
    CONFIGURATION,
    check_plan,
    keep_configuration,
    next_lines,
    pair_texts,
    plan_for,
    planning_options,
    training_file,
)
from onmt_entmax.cli.tables import (
    Table,
    name_languages,
    read_tables,
    refuse_bad_rows,
    separators_of,
    tell,
)
from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import followed, refuse_overwriting, write_files
from onmt_entmax.rules import whole
from onmt_entmax.strings.checks import oddities, several_targets, unseen_languages
from onmt_entmax.strings.copying import useful_frequency
from onmt_entmax.strings.hallucination import SHORTEST, Pair, hallucinated, stem_share
from onmt_entmax.strings.tables import Row, checked_columns
from onmt_entmax.strings.task import (
    LANGUAGE_COLUMN,
    RIGHT_TO_LEFT,
    SOURCE,
    TARGET,
    Query,
    StringTask,
    is_language,
)
from onmt_entmax.strings.units import CHARACTERS

SPLITS = ("train", "dev", "test")
HALLUCINATED = "hallucinated"  # corpus of invented pairs, and its files
DEFAULT = Network(layers=2, size=300, batch=32)  # without --minutes


def prepare(
    tables: Sequence[Table],
    task: StringTask,
    options: argparse.Namespace,
    note: str = "",
    commands: Sequence[str] = (),
) -> None:
    """Write the pairs of each split, and a configuration to train with.

    Args:
        tables: with their rows; those of training first.
        task: of the rows.
        options: those of `common_options`.
        note: a line to print.
        commands: to propose after those of a training.

    Raises:
        UserError: there are bad rows, or a file cannot be written.
    """
    out, configured = options.out, options.out / CONFIGURATION
    bad = refuse_bad_rows(
        tables, options.skip_bad, ", or go on without them: --skip-bad FILE writes them there"
    )
    targets = [table for table in tables if not table.covered]
    rows = {
        split: [row for table in targets if table.split == split for row in table.rows]
        for split in dict.fromkeys(table.split for table in targets)
    }
    trains = {"train", "dev"} <= rows.keys()
    check_options(options, trains)
    pairs = pairs_of(rows, task, options.seed)
    invented = invented_pairs(pairs["train"], task, options) if options.hallucinate else []
    tell(tables, task)
    for table in tables:
        warn(*(f"{table.path}: {text}" for text in oddities(table.rows, task)))
    warn(*unseen_languages(rows))
    # First, so that a path that cannot be written leaves no folder behind.
    contents = {} if options.skip_bad is None else {options.skip_bad: bad}
    corpora = pairs | ({HALLUCINATED: invented} if invented else {})
    contents |= pair_texts({out / name: some for name, some in corpora.items()})
    proposed = predictions(tables, out, options)
    if trains:
        train = f"train -config {shlex.quote(str(configured))}"
        first = rows["dev"][0].query
        proposed = [train, *inflection(first, task, out), *proposed, *commands]
        text_of = partial(
            configuration,
            out,
            len(pairs["train"]),
            languages=len({row.query.language for some in rows.values() for row in some}),
            commands=next_lines(*proposed),
            task=task_settings(pairs["train"], task, options),
        )
        contents[configured] = text_of(len(invented), network=network_of(options))
    write_files(contents)
    tell_pairs(rows, invented, task, out)
    warn_of_repeated(targets, pairs, out)
    if note:
        print(note)
    if trains and options.minutes:
        plan = planned(pairs["train"], len(invented), task, options)
        content = text_of(len(invented) + plan.hallucinated, plan=plan)
        write_files({configured: content})
    if proposed:
        print("\n  ".join(["next:", *next_lines(*proposed)]))


def check_options(options: argparse.Namespace, trains: bool) -> None:
    """Check the options of a training, before anything is written.

    Args:
        options: those of `common_options`.
        trains: whether there are tables to train on, and to validate.

    Raises:
        UserError: names the option, or a configuration that is not `prepare`'s own.
    """
    check_plan(options)
    if options.minutes and not trains:
        raise UserError("--minutes plans a training, which needs train and dev")
    if options.hallucinate and not trains:
        raise UserError("--hallucinate adds to the data of a training, which needs train and dev")
    if options.size and options.size % 2:
        raise UserError(f"--size {options.size}: must be even, for the encoder's two directions")
    if trains:
        keep_configuration(options.out, options.minutes)


def network_of(options: argparse.Namespace) -> Network:
    """Return the network without a plan: the default one, with the sizes that the user names."""
    return Network(
        options.layers or DEFAULT.layers,
        options.size or DEFAULT.size,
        options.batch or DEFAULT.batch,
    )


def planned(
    pairs: Sequence[tuple[str, str]], invented: int, task: StringTask, options: argparse.Namespace
) -> Plan:
    """Return a plan for `--minutes`; write hallucinated pairs, if it has some.

    Args:
        pairs: lines of the training data.
        invented: hallucinated pairs that the user wants.
        task: of the pairs.
        options: those of `common_options`.
    """

    def hallucinate() -> int:
        more = invented_pairs(pairs, task, options) if options.hallucinate is None else []
        if more:
            write_files(pair_texts({options.out / HALLUCINATED: more}))
        return len(more)

    sizes = options.layers, options.size, options.batch
    networks = candidates(len(pairs) + invented, options.gpu, *sizes)
    softmax = ["-global_attention_function", "softmax", "-attention_warmup_steps", "0"]
    return plan_for(options, networks, softmax, hallucinate)


def tell_pairs(
    rows: Mapping[str, Sequence[Row]], invented: Sequence[object], task: StringTask, out: Path
) -> None:
    """Print what was written for each split."""
    for split, of_split in rows.items():
        size = counted(len(of_split), "row")
        if task.languages:
            size += f", {counted(len({row.query.language for row in of_split}), 'language')}"
        print(f"{out / split}.{{src,tgt}}: {size}")
        if text := several_targets(of_split):
            print(f"{split}: {text}")
    if invented:
        print(f"{out / HALLUCINATED}.{{src,tgt}}: {counted(len(invented), 'pair')}, to train on")


def warn_of_repeated(
    tables: Sequence[Table], pairs: Mapping[str, Sequence[tuple[str, str]]], out: Path
) -> None:
    """Warn of training rows that several tables have, or that another split has too."""
    training = pairs.get("train", ())
    trained = set(training)
    # What one table has twice was told of that table.
    within = sum(
        len(table.rows) - len({row[1:3] for row in table.rows})
        for table in tables
        if table.split == "train"
    )
    between = len(training) - len(trained) - within
    if between > 0:
        warn(
            f"{out / 'train'}: rows that several training tables have: {between:,} of "
            f"{len(training):,}"
        )
    for split, of_split in pairs.items():
        known = sum(pair in trained for pair in of_split)
        if known and split != "train":
            warn(
                f"{out / split}: rows that are in the training data too: {known:,} of "
                f"{len(of_split):,}, which makes the accuracy too high"
            )


def check_outputs(tables: Sequence[Table], options: argparse.Namespace) -> None:
    """Refuse to write a file that is read, or one file twice.

    Raises:
        UserError: names the file.
    """
    names = dict.fromkeys([*(table.split for table in tables), HALLUCINATED])
    outputs = [options.out / f"{name}.{side}" for name in names for side in ("src", "tgt")]
    outputs.append(options.out / CONFIGURATION)
    refuse_overwriting([table.path for table in tables], [*outputs, options.skip_bad])
    if options.skip_bad is not None and followed(options.skip_bad) in map(followed, outputs):
        raise UserError(f"--skip-bad {options.skip_bad}: has another content; name another file")


def pairs_of(
    rows: Mapping[str, Sequence[Row]], task: StringTask, seed: int
) -> dict[str, list[tuple[str, str]]]:
    """Return the lines of source and target of each split; those of training are shuffled.

    Training shuffles only a part of a large file at a time; without this, that part would be a few
    languages.
    """
    pairs = {split: [as_pair(row, task) for row in some] for split, some in rows.items()}
    random.Random(f"{seed}/train").shuffle(pairs.get("train", []))
    return pairs


def as_pair(row: Row, task: StringTask) -> tuple[str, str]:
    """Return the lines of a row in the source and the target file."""
    return " ".join(task.encode_source(row.query)), " ".join(task.target.encode(row.target))


def invented_pairs(
    pairs: Iterable[tuple[str, str]], task: StringTask, options: argparse.Namespace
) -> list[tuple[str, str]]:
    """Return hallucinated lines of source and target.

    Args:
        pairs: lines of the training data.
        task: of the rows.
        options: `hallucinate`, copies of a pair, and `seed`. None: one copy, of the languages with
            many rows of a word whose words change at their ends, which may be none.

    Raises:
        UserError: no pair has a stem, but the user wants copies.
    """
    by_language: dict[str, list[Pair]] = {}
    for source, target in pairs:
        marks, units = task.divided(source.split())
        language = next(filter(is_language, marks), "")
        pair = Pair(tuple(marks), tuple(units), tuple(target.split()))
        by_language.setdefault(language, []).append(pair)
    if options.hallucinate is None:
        by_language = {
            language: of_language
            for language, of_language in by_language.items()
            if len(of_language) >= HALLUCINATED_ROWS * len({pair.source for pair in of_language})
            and stem_share(of_language) >= HALLUCINATED_STEM
        }
    invented = hallucinated(by_language, options.hallucinate or 1, options.seed)
    if options.hallucinate and not invented:
        raise UserError(
            f"--hallucinate: no source has {SHORTEST} symbols in a row that its target has too; "
            "leave it out"
        )
    return [(" ".join([*pair.marks, *pair.source]), " ".join(pair.target)) for pair in invented]


def task_settings(
    pairs: Sequence[tuple[str, str]], task: StringTask, options: argparse.Namespace
) -> list[str]:
    """Return the lines of a configuration that say what the model reads and writes; print one.

    Args:
        pairs: of the training data.
        task: of the rows.
        options: `right_to_left` and `copy`.
    """
    frequency, reason = options.copy, ""
    if frequency is None:
        frequency = useful_frequency(
            [(task.divided(source.split())[1], target.split()) for source, target in pairs]
        )
        reason = f", since most targets {'have' if frequency else 'lack'} the rare symbols"
    what = f"copy unknown symbols, and those of fewer than {frequency} training sources"
    what = f"{what if frequency else 'copy no symbol'}{reason}; --copy sets it"
    print(f"copy_frequency: {frequency}: {what}")
    lines = [f"task: {json.dumps(task.record(), ensure_ascii=False)}"]
    if options.right_to_left:
        print(f"target_order: {RIGHT_TO_LEFT}; the files stay in natural order")
        lines.append(f"target_order: {RIGHT_TO_LEFT}")
    return [*lines, f"copy_frequency: {frequency}  # {what}"]


# --- the next commands ---------------------------------------------------------------------------


def inflection(query: Query, task: StringTask, out: Path) -> list[str]:
    """Return the command that answers a query, if the task is inflection."""
    if not (query.language and query.tags and task.source == task.target == CHARACTERS):
        return []
    words = [query.language, query.source, ";".join(query.tags)]
    return [shlex.join(["inflect", "--model", str(out / "model"), *words])]


def predictions(tables: Sequence[Table], out: Path, options: argparse.Namespace) -> list[str]:
    """Return the commands that predict and evaluate dev tables, and predict covered ones.

    Several tables go into one folder, under their own names; each has commands of its own if two
    have one name.
    """
    model, commands = shlex.quote(str(out / "model")), []
    language = f" --language {shlex.quote(options.language)}" if options.language else ""
    for split, covered in (("dev", False), ("test", True)):
        chosen = [t for t in tables if t.split == split and t.covered == covered]
        if not chosen:
            continue
        paths = [table.path for table in chosen]
        ending = ".csv" if chosen[0].layout.delimiter == "," else ".tsv"
        output = out / f"{split}.predicted"
        if len({path.name for path in paths}) < len(paths):
            groups = [
                ([path], output.with_name(f"{output.name}.{number}{ending}"))
                for number, path in enumerate(paths, 1)
            ]
        else:
            groups = [(paths, output if paths[1:] else output.with_name(output.name + ending))]
        for inputs, predicted in groups:
            files, written = files_for_shell(inputs), shlex.quote(str(predicted))
            commands.append(f"predict {model} {files} --output {written}{language}")
            if covered:
                continue
            if inputs[1:]:
                outputs = [predicted / path.name for path in inputs]
                written = files_for_shell(outputs, beside=inputs)
            commands.append(f"evaluate {written} --reference {files} --model {model}")
    return commands


def files_for_shell(paths: Sequence[Path], beside: Sequence[Path] = ()) -> str:
    """Return files as a shell takes them; a pattern if it names no others.

    Args:
        paths: of the files.
        beside: files of the same names that are there already, if these are not.
    """
    there = list(beside or paths)
    folder, ending = there[0].parent, re.sub(r"^[^._-]*", "", there[0].name)
    while ending and not all(path.name.endswith(ending) for path in there):
        ending = re.sub(r"^[._-][^._-]*", "", ending)
    same = sorted(folder.glob(f"*{glob.escape(ending)}")) == sorted(there)
    if len(paths) > 2 and ending and same:
        return f"{shlex.quote(str(paths[0].parent))}/*{shlex.quote(ending)}"
    return shlex.join(map(str, paths))


def configuration(
    out: Path,
    rows: int,
    invented: int = 0,
    *,
    languages: int,
    commands: Sequence[str],
    task: Sequence[str] = (),
    steps: int | None = None,
    network: Network = DEFAULT,
    plan: Plan | None = None,
) -> str:
    """Return the text of a configuration that trains a model.

    Args:
        out: the folder that is filled.
        rows: of the training data.
        invented: hallucinated pairs to train on, too.
        languages: how many there are.
        commands: for the comment at its head.
        task: lines that say what the model reads and writes.
        steps: number of updates without a plan; None: by the number of rows.
        network: without a plan.
        plan: for a time.
    """
    network = plan.choice.network if plan else network
    rows += invented
    if plan:
        steps, limits = plan.updates, plan.settings
        attention, dropout, warmup = "softmax", [plan.dropout_line], []
        end = "max_seconds, by the time that has passed"
    else:
        # More passes over few rows.
        steps = steps or max(4000, -(-40 * rows // (network.batch * 500)) * 500)
        epochs = counted(round(steps * network.batch / rows), "epoch")
        attention, dropout = "entmax15", []
        warmup = [explained(f"attention_warmup_steps: {steps // 4}", "attention starts as softmax")]
        end = "train_steps: lower these rather than set early_stopping"
        every = max(steps // 20, 1)
        limits = [
            explained(f"train_steps: {steps}", f"about {epochs} of {counted(rows, 'row')}"),
            f"valid_steps: {every}",
            f"save_checkpoint_steps: {every}",
        ]
    selection = "exact_match" if languages == 1 else "macro_accuracy"
    corpora = {"words": "train", **({HALLUCINATED: HALLUCINATED} if invented else {})}
    data = {
        name: (out / f"{split}.src", out / f"{split}.tgt")
        for name, split in {**corpora, "valid": "dev"}.items()
    }
    settings = [
        "encoder_type: brnn",
        f"layers: {network.layers}",
        f"rnn_size: {network.size}",
        f"word_vec_size: {network.size}",
        f"global_attention_function: {attention}",
        "generator_function: entmax15",
        *dropout,
        "",
        "optim: adam",
        f"learning_rate: {LEARNING_RATE if plan else 0.0014}",
        explained("decay_method: cosine", f"to 0 at {end}"),
        f"warmup_steps: {min(300, max(steps // 5, 1))}",
        *warmup,
        f"batch_size: {network.batch}",
        *limits,
        explained("keep_checkpoint: 1", "beside the best"),
        explained(f"selection: {selection}", "measure of the best checkpoint"),
        "seed: 1",
        "",
    ]
    # Else the smaller corpus would be read several times while the larger one is read once.
    weights = mixture(rows - invented, invented) if invented else {}
    return training_file(data, out / "model", [*task, "", *settings], commands, plan, weights)


def mixture(rows: int, invented: int) -> dict[str, int]:
    """Return the weights with which both corpora end together, nearly; none if they are equal.

    Args:
        rows: of the training data.
        invented: hallucinated pairs.
    """
    ratio = Fraction(invented, rows).limit_denominator(20) or Fraction(1, 20)
    words, pairs = ratio.denominator, ratio.numerator
    return {} if words == pairs else {"words": words, HALLUCINATED: pairs}


# --- the command line ----------------------------------------------------------------------------


def common_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `prepare table` that `prepare sigmorphon` has too."""
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder for <split>.src, <split>.tgt, train.yaml")
    add("--skip-bad", type=Path, metavar="FILE", help="write rows that cannot be read there")
    planning_options(parser)
    size = whole(2, 10_000)
    add("--size", type=size, metavar="N", help="states, even (default: by --minutes, or 300)")
    add("--layers", type=whole(1, 20), metavar="N", help="(default: 1 with --minutes, or 2)")
    add("--batch", type=whole(1, 10_000), metavar="N", help="pairs (default: by the rows, or 32)")
    add("--right_to_left", action="store_true", help="train a model that writes right to left")
    add(
        "--copy",
        type=whole(0, 10**9),
        metavar="N",
        help="copy symbols of fewer than N training sources; 0: none (default: by the data)",
    )
    add(
        "--hallucinate",
        type=whole(0, 100),
        metavar="N",
        help="add N pairs with a random stem for each training pair (default: 0, or by --minutes)",
    )
    add("--seed", type=int, default=1, help="seed for the order of training pairs (default 1)")


def main(arguments: Sequence[str]) -> int:
    """Prepare the data; return the exit status."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    for split, needed in (("train", True), ("dev", True), ("test", False)):
        more: dict[str, Any] = {"required": True} if needed else {"default": []}
        add(f"--{split}", type=Path, nargs="+", help=f"tables of the {split} set", **more)
    add("--columns", default="", help="such as source,target,tags,- (default: guessed)")
    add(
        "--separator",
        action="append",
        default=[],
        metavar="COLUMN=TEXT",
        help='such as "target= ", between symbols; "target=": characters (default: guessed)',
    )
    add("--language", help="of all rows")
    common_options(parser)
    options = parser.parse_args(arguments)
    columns = checked_columns(options.columns, (SOURCE, TARGET))
    if options.language and LANGUAGE_COLUMN in columns:
        raise UserError("--language names the language of all rows; a column has it too")
    tables = [Table(split, path) for split in SPLITS for path in getattr(options, split)]
    if LANGUAGE_COLUMN not in columns:
        name_languages(tables, options.language)
    check_outputs(tables, options)
    task = read_tables(tables, columns, separators_of(options.separator))
    prepare(tables, task, options)
    return 0
