"""Attacks on the commands: each draws a case, tries it in an empty folder, and says what fails.

Nothing may be lost or let in: after a kill, a signal or a full disk, outputs are the old or the
whole new ones, and the same call gives the same; damage and nonsense end in one line.
"""

import functools
import json
import math
import re
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

import yaml

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.files.checksums import write_list
from tests.commands import CONSOLE, ENVIRONMENT, run
from tests.toy import write_config

CALLS = {  # {w} is the folder of `build`, {o} that of the outputs
    "train": "train -config {w}/toy.yaml -save_model {o}/run",
    "translate": "translate -model {w}/run -src {w}/valid.src -output {o}/out"
    " -exactness_report {o}/out.jsonl -max_length 8",
    "score": "score -model {w}/run -src {w}/valid.src -tgt {w}/valid.tgt -output {o}/out",
    "combine": "combine --reports {w}/r.jsonl {w}/r.jsonl --output {o}/out --report {o}/out.jsonl",
    "report": "report -model {w}/run -report {w}/r.jsonl -output {o}/out",
    "export": "export {w}/run {o}/released",
    "suggest": "suggest {w}/run --source a --prefix b --max_length 8",
    "bleu": "bleu {w}/valid.tgt --reference {w}/valid.tgt --output {o}/out",
    "verify": "verify {w}/run",
}
COMPARED = ("out", "out.jsonl", "model.safetensors", "vocab.json")  # names of outputs
NONSENSE: tuple[Any, ...] = (  # values of a configuration or a vocabulary
    0, -1, 3, 10**9, 2**63, 0.5, 1e308, math.nan, -math.inf, None, True, "", "nan", "LSTM",
    "x" * 100_000, "\0", "../..", [], [[]], ["a"], {}, {"a": {"b": []}},
)  # fmt: skip
OPTION_VALUES = (
    "", " ", "-1", "0", "1", "1.5", "nan", "-inf", "1e400", "9" * 5000, "1_000", "１", "true",
    "-", "--", "*", "%s", "[1, 2", "{{'a': 1}}", "x" * 100_000, "\udcff", "a\nb", "\x1b[2J", "ä",
    "/dev/full", "/dev/zero", "/", ".", "{o}/missing/file", "{w}/valid.src", "{w}/run",
)  # fmt: skip


def build(world: Path) -> Path:
    """Make the folder that the calls read: a corpus, a run of three checkpoints, a report."""
    write_config(world, save_model=str(world / "run"), rnn_size=8, word_vec_size=8)
    for call in ("train -config {w}/toy.yaml", CALLS["translate"]):
        done = run("onmt_entmax", *words(call, world, world))
        assert done.returncode == 0, done.stderr
    (world / "out.jsonl").rename(world / "r.jsonl")
    return world


class Outcome(NamedTuple):
    """A case that was tried, and how a command failed in it."""

    case: str
    failure: str | None


def words(call: str, world: Path, folder: Path) -> list[str]:
    """Return the arguments of a call, whose outputs go to a folder."""
    return call.format(w=world, o=folder).split()


def bug(done: subprocess.CompletedProcess[str]) -> str | None:
    """Say what a user must never see: a traceback, a crash, or not one clear line."""
    last = done.stderr.strip().rsplit("\n", 1)[-1]
    errors = re.findall(r"^\S.*: error: ", done.stderr, re.MULTILINE)
    if "Traceback (most recent call last)" in done.stderr:
        return f"traceback: {last:.200}"
    if done.returncode not in (0, 1, 2):
        return f"status {done.returncode}: {last:.200}"
    if done.returncode == 2 and (len(errors) != 1 or ": error: " not in last or len(last) > 1000):
        return f"not one short line: {last:.200}"
    return None


def outputs(folder: Path) -> dict[str, bytes]:
    """Return the contents of all outputs, by their paths in the folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name in COMPARED)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


# --- interruptions ---

Fault = Literal["SIGKILL", "SIGINT", "SIGTERM", "SIGHUP", "full disk"]


class Undisturbed(NamedTuple):
    """What a call gives if nothing happens."""

    outputs: dict[str, bytes]
    seconds: float


@functools.cache
def undisturbed(world: Path, call: str) -> Undisturbed:
    """Run a call in a process of its own, and time it."""
    folder, started = world.parent / f"undisturbed-{call}", time.monotonic()
    folder.mkdir()
    subprocess.run(
        [*CONSOLE, *words(CALLS[call], world, Path("."))],
        cwd=folder, env=ENVIRONMENT, check=True, capture_output=True,
    )  # fmt: skip
    return Undisturbed(outputs(folder), time.monotonic() - started)


class Interruption(NamedTuple):
    """How a call is interrupted."""

    call: str
    fault: Fault
    limit: int
    """Bytes of a file, after which a disk is full."""
    wait: float
    """Seconds, after which a signal comes."""

    def __str__(self) -> str:
        if self.fault == "full disk":
            return f"{self.call}: full disk after {self.limit} bytes"
        return f"{self.call}: {self.fault} at {self.wait:.2f}"


def run_interrupted(
    interruption: Interruption, world: Path, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run a call that a signal ends, or that finds its disk full."""
    disk_is_full = interruption.fault == "full disk"

    def restrict() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (interruption.limit, interruption.limit))

    with subprocess.Popen(
        [*CONSOLE, *words(CALLS[interruption.call], world, folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
        preexec_fn=restrict if disk_is_full else None,
    ) as process:  # fmt: skip
        try:
            printed = process.communicate(timeout=60 if disk_is_full else interruption.wait)
        except subprocess.TimeoutExpired:
            process.send_signal(getattr(signal, interruption.fault, signal.SIGKILL))
            printed = process.communicate(timeout=60)
    return subprocess.CompletedProcess([], process.returncode, *printed)


def failure_at_end(fault: Fault, done: subprocess.CompletedProcess[str]) -> str | None:
    """Say how an interrupted call ended that should not end so."""
    if fault == "full disk":
        return bug(done)
    number = getattr(signal, fault)
    if done.returncode not in (0, -number, 128 + number) or "Traceback" in done.stderr:
        return f"status {done.returncode}: {done.stderr[-200:]}"
    return None


def failure_in_files(
    fault: Fault, status: int, folder: Path, expected: Mapping[str, bytes]
) -> str | None:
    """Say what an interrupted call has left that is neither old nor whole."""
    for name, content in outputs(folder).items():
        # Checkpoints are compared after the call was repeated.
        if content not in (b"old", expected.get(name)) and not name.startswith("run/"):
            return f"left a part of {name}"
    hidden = [path.name for path in folder.rglob(".*") if path.name != ".lock"]
    was_killed = fault == "SIGKILL" or status < 0
    return f"left {hidden}" if hidden and not was_killed else None


def failure_if_repeated(
    call: str, world: Path, folder: Path, expected: Mapping[str, bytes]
) -> str | None:
    """Make an interrupted call again; say what is not as if it had never been interrupted."""
    resumed = folder / "run"
    more = ["-train_from", str(resumed)] if checkpoint_steps(resumed) else []
    if call == "export":  # it refuses a folder that is there
        shutil.rmtree(folder / "released", ignore_errors=True)
    done = run("onmt_entmax", *words(CALLS[call], world, folder), *more)
    if done.returncode != 0:
        return f"called again: {done.stderr[-200:]}"
    contents = outputs(folder)
    if call == "train":  # it does not write the old file `out`
        contents["out"] = b""
    different = [name for name, content in expected.items() if contents.get(name) != content]
    return f"called again: another {different}" if different else None


def interrupt(faults: tuple[Fault, ...], world: Path, random: Random, folder: Path) -> Outcome:
    """Let a process be ended or its disk be full, and make the same call again."""
    call = random.choice(["train", "train", "train", "translate", "combine", "export"])
    fault = random.choice(faults)
    expected, seconds = undisturbed(world, call)
    (folder / "out").write_text("old")
    limit = random.randrange(100, max(map(len, expected.values())))
    interruption = Interruption(call, fault, limit, random.uniform(0.4, 1.1) * seconds)
    done = run_interrupted(interruption, world, folder)
    failure = (
        failure_at_end(fault, done)
        or failure_in_files(fault, done.returncode, folder, expected)
        or failure_if_repeated(call, world, folder, expected)
    )
    return Outcome(str(interruption), failure)


# --- damage ---

Damage = Literal["flip", "cut", "missing", "append"]


def damage(path: Path, kind: Damage, position: int, random: Random) -> None:
    """Change a file at a position."""
    content = bytearray(path.read_bytes())
    if kind == "missing":
        path.unlink()
        return
    if kind == "flip":
        content[position] ^= 1 << random.randrange(8)
    elif kind == "cut":
        del content[position:]
    else:
        content += b"\n"
    path.write_bytes(content)


def failure_of_use(world: Path, folder: Path, model: Path, damaged: Path) -> str | None:
    """Say how a damaged model was used, in translating or to resume its training."""
    is_missing = not damaged.exists()
    call = CALLS["translate"].replace("{w}/run", str(model))
    done = run("onmt_entmax", *words(call, world, folder))
    if done.returncode == 0 and damaged.name not in ("state.pt", "SHA256SUMS"):
        return "translate: used"
    if done.returncode == 0 and outputs(folder)["out"] != (world / "out").read_bytes():
        return "translate: another output"
    resume = [*words(CALLS["train"], world, folder), "-train_from", str(folder / "run")]
    resumed = run("onmt_entmax", *resume)
    failure = bug(done) or bug(resumed)
    if failure is not None or resumed.returncode != 0:
        return failure
    *_, previous, _ = checkpoint_steps(world / "run")
    if f"step_{previous}" not in resumed.stderr and not is_missing:
        return f"train: {resumed.stderr[-200:]}"
    return None


def flips(world: Path, random: Random, folder: Path) -> Outcome:
    """Damage a file of a checkpoint; verifying, translating or resuming must notice."""
    last = checkpoint_steps(world / "run")[-1]
    model = Path(shutil.copytree(world / "run", folder / "run")) / f"step_{last}"
    path = random.choice(sorted(path for path in model.rglob("*") if path.is_file()))
    position = random.randrange(path.stat().st_size)
    kind: Damage = random.choice(["flip", "cut", "missing", "append"])
    if path.name == "SHA256SUMS" and kind == "append":
        kind = "cut"  # an empty line more is no damage
    case = f"{path.relative_to(model)}: {kind} at {position}"
    damage(path, kind, position, random)
    done = run("onmt_entmax", "verify", folder / "run")
    if done.returncode != 1 or bug(done):
        return Outcome(case, f"verify: {bug(done) or 'says nothing'}")
    return Outcome(case, failure_of_use(world, folder, model, path))


# --- nonsense ---


def damage_header(path: Path, random: Random) -> str:
    """Replace a byte in the header of a safetensors file; return what was done."""
    content = path.read_bytes()
    size = 8 + int.from_bytes(content[:8], "little")
    position = random.randrange(size)
    inserted = random.randbytes(random.randrange(4))
    path.write_bytes(content[:position] + inserted + content[position + 1 :])
    return f"header at {position}"


def replace_value(path: Path, value: Any, random: Random) -> str:
    """Put a value into a YAML or JSON file; return what was done."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    part = random.choice([key for key in content if isinstance(content[key], (dict, list))])
    inner = content[part]
    key = random.choice([*inner] if isinstance(inner, dict) else range(len(inner)))
    inner[key] = value
    dump = json.dumps if path.suffix == ".json" else yaml.safe_dump
    path.write_text(dump(content), encoding="utf-8")
    return f"{part}.{key} = {value!r:.40}"


def folders(world: Path, random: Random, folder: Path) -> Outcome:
    """Put nonsense into a model folder, with checksums that agree."""
    model = Path(shutil.copytree(world / "run", folder / "run")) / "step_30"
    name = random.choice(["config.yaml", "config.yaml", "vocab.json", "model.safetensors"])
    value = random.choice(NONSENSE)
    if name == "model.safetensors":
        change = damage_header(model / name, random)
    else:
        change = replace_value(model / name, value, random)
    write_list(model)
    call = random.choice(["translate", "score", "suggest", "export", "train"])
    arguments = words(CALLS[call].replace("{w}/run", str(model)), world, folder)
    if call == "train":
        arguments += ["-train_from", str(model), "-save_model", str(folder / "new")]
    return Outcome(f"{call} of {name} with {change}", bug(run("onmt_entmax", *arguments)))


@functools.cache
def options(command: str) -> list[str]:
    """Return the options that the help of a command names."""
    done = run("onmt_entmax", command, "--help-all" if command in ("train", "translate") else "-h")
    return sorted(
        set(re.findall(r"(?<![\w-])--?[a-z_]{3,}", done.stdout)) - {"--help", "--help-all"}
    )


BAD_CONTENTS = (b"", b"\n", b"\0", b"a\n\xff\n", b"x " * 3000, b"{}\n", b"[" * 9999)


def inputs(world: Path, random: Random, folder: Path) -> Outcome:
    """Give an option a bad value, or a command a bad file in place of one that it reads."""
    call = random.choice([*CALLS])
    arguments = words(CALLS[call], world, folder)
    if options(call) and random.random() < 0.7:
        option = random.choice(options(call))
        value = random.choice(OPTION_VALUES).format(w=world, o=folder)
        arguments += [option, value]
        case = f"{call} {option} {value!a:.60}"
    else:
        files = [n for n, word in enumerate(arguments) if word.startswith(f"{world}/") and n]
        place = random.choice(files)
        content = random.choice(BAD_CONTENTS)
        (folder / "bad").write_bytes(content)
        arguments[place] = str(folder / "bad")
        case = f"{call} {arguments[place - 1]} {content!r:.40}"
    return Outcome(case, bug(run("onmt_entmax", *arguments, cwd=folder)))


ATTACKS: Mapping[str, Callable[[Path, Random, Path], Outcome]] = {
    "kills": functools.partial(interrupt, ("SIGKILL",)),
    "signals": functools.partial(interrupt, ("SIGINT", "SIGTERM", "SIGHUP")),
    "disk": functools.partial(interrupt, ("full disk",)),
    "flips": flips,
    "folders": folders,
    "inputs": inputs,
}


def try_case(name: str, world: Path, seed: int) -> Outcome:
    """Try a case of an attack: the same for the same seed."""
    folder = world.parent / f"{name}-{seed}"
    folder.mkdir()
    try:
        return ATTACKS[name](world, Random(f"{name}-{seed}"), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
