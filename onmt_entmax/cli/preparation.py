"""What `prepare table` and `prepare sigmorphon` share: from tables that were read to a training.

`table_pairs` makes the pairs, `table_configuration` the configuration, `planning` a plan for a
time, and `next_commands` the commands that are printed at the end.
"""

import argparse
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.next_commands import next_lines, prediction_commands, training_commands
from onmt_entmax.cli.pair_messages import tell_pairs, warn_of_repeated
from onmt_entmax.cli.planning import check_plan, plan_for, planning_options
from onmt_entmax.cli.plans import Plan, candidates
from onmt_entmax.cli.table_configuration import HALLUCINATED, configuration, network_of
from onmt_entmax.cli.table_messages import tell_tables
from onmt_entmax.cli.table_pairs import invented_pairs, pairs_of, rows_of
from onmt_entmax.cli.tables import Table, refuse_bad_rows
from onmt_entmax.cli.training_file import CONFIGURATION, keep_configuration, pair_texts
from onmt_entmax.errors import UserError
from onmt_entmax.files import followed, refuse_overwriting, write_files
from onmt_entmax.rules import whole
from onmt_entmax.strings.checks import oddities, unseen_languages
from onmt_entmax.strings.copying import useful_frequency
from onmt_entmax.strings.task import RIGHT_TO_LEFT, StringTask
from onmt_entmax.strings.task_record import task_record

SPLITS = ("train", "dev", "test")


def prepare(
    tables: Sequence[Table],
    task: StringTask,
    options: argparse.Namespace,
    note: str = "",
    commands: Sequence[str] = (),
) -> None:
    """Write the pairs of each split, and a configuration to train with; print the next commands.

    Args:
        tables: with their rows; those of training first.
        task: of the rows.
        options: those of `common_options`.
        note: a line to print.
        commands: to propose after those of a training.

    Raises:
        UserError: there are bad rows, or a file cannot be written.
    """
    bad = refuse_bad_rows(
        tables, options.skip_bad, ", or go on without them: --skip-bad FILE writes them there"
    )
    with_targets = [table for table in tables if not table.covered]
    rows = rows_of(with_targets)
    trains = {"train", "dev"} <= rows.keys()
    check_options(options, trains)
    pairs = pairs_of(rows, task, options.seed)
    invented = invented_pairs(pairs["train"], task, options) if options.hallucinate else []
    tell_tables(tables, task)
    for table in tables:
        warn(*(f"{table.path}: {text}" for text in oddities(table.rows, task)))
    warn(*unseen_languages(rows))
    # First, so that a path that cannot be written leaves no folder behind.
    contents = {} if options.skip_bad is None else {options.skip_bad: bad}
    corpora = pairs | ({HALLUCINATED: invented} if invented else {})
    contents |= pair_texts({options.out / name: lines for name, lines in corpora.items()})
    proposed = prediction_commands(tables, options.out, options)
    if trains:
        proposed = [*training_commands(rows["dev"][0], task, options.out), *proposed, *commands]
        text_of = partial(
            configuration,
            options.out,
            len(pairs["train"]),
            languages=len({row.query.language for split in rows.values() for row in split}),
            commands=next_lines(*proposed),
            task=task_settings(pairs["train"], task, options),
        )
        contents[options.out / CONFIGURATION] = text_of(len(invented), network=network_of(options))
    write_files(contents)
    tell_pairs(rows, invented, task, options.out)
    warn_of_repeated(with_targets, pairs, options.out)
    if note:
        print(note)
    if trains and options.minutes:
        # After the files, since networks are measured on them.
        plan = planned(pairs["train"], len(invented), task, options)
        content = text_of(len(invented) + plan.hallucinated, plan=plan)
        write_files({options.out / CONFIGURATION: content})
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
            [(task.divided(source.split())[1], target.split()) for source, target in pairs],
            alike=task.source == task.target,
        )
        reason = f", since {'most' if frequency else 'too few'} targets have the rare symbols"
    what = f"copy unknown symbols, and those of fewer than {frequency} training sources"
    what = f"{what if frequency else 'copy no symbol'}{reason}; --copy sets it"
    print(f"copy_frequency: {frequency}: {what}")
    lines = [f"task: {json.dumps(task_record(task), ensure_ascii=False)}"]
    if options.right_to_left:
        print(f"target_order: {RIGHT_TO_LEFT}; the files stay in natural order")
        lines.append(f"target_order: {RIGHT_TO_LEFT}")
    return [*lines, f"copy_frequency: {frequency}  # {what}"]


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
