"""What `prepare` leaves besides data: a configuration to train with, and the next commands."""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from onmt_entmax.cli.ending import warn
from onmt_entmax.cli.plans import (
    HALLUCINATED_PASSES,
    Network,
    Plan,
    choose_network,
    choose_validations,
)
from onmt_entmax.errors import UserError, counted, printable
from onmt_entmax.files import read_bytes
from onmt_entmax.rules import positive

CONFIGURATION = "train.yaml"  # its name in the folder of the data
_MARK = "# Checksum, which tells `prepare` that nobody changed this file: "
_PLANNED = "# Planned for "
_SECONDS = 20.0  # in which networks are measured


def next_lines(*commands: str) -> list[str]:
    """Return each command of `onmt-entmax` as a line for a shell."""
    return [printable(f"onmt-entmax {command}") for command in commands]


def keep_configuration(out: Path, minutes: float | None) -> None:
    """Refuse to replace a configuration that `prepare` did not write; warn if its plan is lost.

    Args:
        out: the folder of the data.
        minutes: the time that the new plan is for, if one is given.

    Raises:
        UserError: names the file.
    """
    path = out / CONFIGURATION
    if path.exists() or path.is_symlink():
        text, _, checksum = read_bytes(path, 1 << 20).rpartition(_MARK.encode())
        if _checksum(text) != checksum.strip().decode("ascii", "replace"):
            raise UserError(
                f"{path}: was changed, or made otherwise; rename it, remove it, or name another "
                "--out"
            )
        if minutes is None and f"\n{_PLANNED}".encode() in text:
            warn(f"{path}: was planned for a time; without --minutes, the default plan replaces it")


def planning_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a plan for a time."""
    add = parser.add_argument
    add(
        "--minutes",
        type=positive(10**5),
        metavar="N",
        help="plan a training of this time on this machine, which is measured for half a minute",
    )
    add("--gpu", action="store_true", help="with --minutes: on this machine's GPU")


def check_plan(options: argparse.Namespace) -> None:
    """Refuse a plan that cannot be made, before anything is written.

    Raises:
        UserError: `--gpu` has no GPU here, or no plan.
    """
    if not options.gpu:
        return
    if not options.minutes:
        raise UserError("--gpu measures a GPU to plan for --minutes, which are missing")
    import torch  # slow to import

    if not torch.cuda.is_available():
        raise UserError("--gpu: there is no GPU here to measure; leave it out to plan for the CPU")


def plan_for(
    options: argparse.Namespace,
    networks: Sequence[Network],
    more: Sequence[str] = (),
    hallucinate: Callable[[], int] = lambda: 0,
) -> Plan:
    """Measure networks, choose one, and say so.

    Args:
        options: `minutes`, `gpu` and `out`, a folder with data and a configuration.
        networks: to choose from, smaller ones first.
        more: options of `train` that the configuration does not have yet.
        hallucinate: adds pairs to the training data and returns how many, which may be 0; it is
            called only if they are worth the passes that they cost.
    """
    import torch  # slow to import, as the next lines are

    from onmt_entmax.options.train import training_setup
    from onmt_entmax.train.timing import Stopwatch, Timed

    path = str(options.out / CONFIGURATION)
    more = [*more, "-gpu_ranks", "0"] if options.gpu else more
    setups = [training_setup(["-config", path, *more, *each.options]) for each in networks]
    timed = [Timed(setup.data, setup.model, setup.training) for setup in setups]
    device = "GPU" if options.gpu else "CPU"
    what = f"{counted(len(networks), 'network')} on this machine's {device}"
    print(f"measuring {what} for about {_SECONDS:g} s", file=sys.stderr, flush=True)
    watch = Stopwatch(
        setups[0].data, setups[0].vocabulary, torch.device("cuda" if options.gpu else "cpu")
    )
    measured = watch.training_speeds(timed, _SECONDS)
    speeds = dict(zip(networks, measured, strict=False))
    seconds = 60 * options.minutes
    # The network first, since only its decoding is measured.
    choice = choose_network(watch.rows, seconds, speeds)
    hallucinated = hallucinate() if choice.passes >= HALLUCINATED_PASSES else 0
    if hallucinated:
        choice = choose_network(watch.rows + hallucinated, seconds, speeds)
    chosen = networks.index(choice.network)
    rates = watch.validation_speeds(timed[chosen], setups[chosen].validation)
    lines = [f"{speed:,.0f} examples/s: {network}" for network, speed in speeds.items()]
    lines += [f"not measured in the time: {network}" for network in networks[len(speeds) :]]
    lines.append(f"and, with the chosen network, decoded {rates[1]:,.0f} pairs/s")
    validations = choose_validations(watch.dev, seconds, *rates)
    plan = Plan(options.minutes, choice, validations, options.gpu, lines, hallucinated)
    print(*plan.lines, sep="\n", file=sys.stderr)
    return plan


def training_file(
    data: Mapping[str, Sequence[Path]],
    model: Path,
    settings: Sequence[str],
    commands: Sequence[str],
    plan: Plan | None,
    weights: Mapping[str, int] | None = None,
) -> str:
    """Return the text of a configuration.

    Args:
        data: source and target file of each corpus, and of `valid`.
        model: the run folder.
        settings: the other options, as YAML.
        commands: for the comment at its head.
        plan: for a time, if one is given.
        weights: lines of each corpus in turn; of others, 1.
    """
    weights = weights or {}
    gpu = (
        "-gpu 0 to translate"
        if plan and plan.gpu
        else "-gpu_ranks 0 to train and -gpu 0 to translate"
    )
    reason = (
        plan.lines
        if plan
        else ["--minutes of `prepare` measures this machine, and plans for that time."]
    )
    lines = [
        "# Written by `onmt-entmax prepare`. Paths are relative to the folder in which it ran.",
        f"# On a GPU, add {gpu}.",
        *(f"# {line}" for line in reason),
        "#",
        *(f"#   {command}" for command in commands),
        "",
        "data:",
        *(
            f"  {name}: {{path_src: {quoted(source)}, path_tgt: {quoted(target)}"
            + (f", weight: {weights[name]}" if name in weights else "")
            + "}"
            for name, (source, target) in data.items()
        ),
        f"save_model: {quoted(model)}",
        *settings,
    ]
    text = "\n".join(lines)
    return f"{text}{_MARK}{_checksum(text.encode())}\n"


def pair_texts(pairs: Mapping[Path, Sequence[tuple[str, str]]]) -> dict[Path, str]:
    """Return the contents of `PATH.src` and `PATH.tgt` for the pairs of each path."""
    texts = {}
    for path, some in pairs.items():
        for side, suffix in enumerate(("src", "tgt")):
            lines = (pair[side] + "\n" for pair in some)
            texts[path.with_name(f"{path.name}.{suffix}")] = "".join(lines)
    return texts


def quoted(path: Path) -> str:
    """Return a path as YAML reads it, which may contain `: ` or ` #`."""
    return json.dumps(str(path), ensure_ascii=False)


def _checksum(text: bytes) -> str:
    """Return the checksum that a configuration ends with, of the lines before."""
    return hashlib.sha256(text).hexdigest()[:16]
