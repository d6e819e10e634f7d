"""The options that `prepare table` and `prepare sigmorphon` share, and their checks."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from onmt_entmax.cli.pair_files import pair_paths
from onmt_entmax.cli.planning_options import check_plan, planning_options
from onmt_entmax.cli.split_files import SplitFile
from onmt_entmax.cli.table_configuration import HALLUCINATED
from onmt_entmax.cli.training_file import CONFIGURATION, refuse_replacing_edited
from onmt_entmax.errors import UserError
from onmt_entmax.files import is_same_file, refuse_overwriting
from onmt_entmax.rules import whole

SPLITS = ("train", "dev", "test")


def common_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that both commands have."""
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder for <split>.src, <split>.tgt, train.yaml")
    add("--skip-bad", type=Path, metavar="FILE", help="leave out bad rows, and write them to FILE")
    planning_options(parser)
    add(
        "--models",
        type=whole(1, 20),
        default=1,
        metavar="N",
        help="with --minutes: divide the time among N models; the next commands average their "
        "probabilities (default 1)",
    )
    add(
        "--size",
        type=whole(2, 10_000),
        metavar="N",
        help="size of the network's states, an even number (default: --minutes chooses it, else "
        "300)",
    )
    add(
        "--layers",
        type=whole(1, 20),
        metavar="N",
        help="layers of encoder and decoder (default: --minutes chooses them, else 2)",
    )
    add(
        "--batch",
        type=whole(1, 10_000),
        metavar="N",
        help="pairs in a batch (default: --minutes chooses it by the number of rows, else 32)",
    )
    add("--right_to_left", action="store_true", help="train a model that writes right to left")
    add(
        "--copy",
        type=whole(0, 10**9),
        metavar="N",
        help="copy symbols that fewer than N training sources have; 0: none (default: chosen from "
        "the data)",
    )
    add(
        "--hallucinate",
        type=whole(0, 100),
        metavar="N",
        help="add N pairs with a random stem for each training pair (default: --minutes chooses, "
        "else 0)",
    )
    add(
        "--seed",
        type=int,
        default=1,
        help="seed of the order of training pairs, and of hallucinated pairs (default 1)",
    )


def check_options(options: argparse.Namespace, trains: bool) -> None:
    """Check the options of a training, before anything is written.

    Args:
        options: options that `common_options` declares.
        trains: whether there are both a train set and a dev set.

    Raises:
        UserError: an option is impossible, or `train.yaml` would replace a file that the user
            edited.
    """
    check_plan(options)
    if options.models > 1 and not options.minutes:
        raise UserError("--models divides the time of --minutes, which is missing")
    if options.minutes and not trains:
        raise UserError("--minutes plans a training, which needs train and dev")
    if options.hallucinate and not trains:
        raise UserError("--hallucinate adds to the data of a training, which needs train and dev")
    if options.size and options.size % 2:
        raise UserError(f"--size {options.size}: must be even, for the encoder's two directions")
    if trains:
        refuse_replacing_edited(options.out, options.minutes)


def check_outputs(files: Sequence[SplitFile], options: argparse.Namespace) -> None:
    """Refuse to write a file that is read, or to write a file twice.

    Args:
        files: files that are read.
        options: `out`, the folder to write, and `skip_bad`, the file for bad rows.

    Raises:
        UserError: names the file.
    """
    names = dict.fromkeys([*(file.split for file in files), HALLUCINATED])
    outputs = [path for name in names for path in pair_paths(options.out / name)]
    outputs.append(options.out / CONFIGURATION)
    refuse_overwriting([file.path for file in files], [*outputs, options.skip_bad])
    bad_rows = options.skip_bad
    if bad_rows is not None and any(is_same_file(bad_rows, output) for output in outputs):
        raise UserError(
            f"--skip-bad {bad_rows}: prepare writes other lines there; name another file"
        )
