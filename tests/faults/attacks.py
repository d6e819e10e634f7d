"""Attacks on the commands: each draws a case, tries it in an empty folder, and says what is wrong.

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
from typing import Any

import yaml

from onmt_entmax.checkpoint import checkpoint_steps
from onmt_entmax.files.checksums import write_list
from tests.commands import CONSOLE, ENVIRONMENT, run
from tests.toy import write_config

CALLS = {  # {w} is the folder of `build`, {o} an empty one
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
COMPARED = ("out", "out.jsonl", "model.safetensors", "vocab.json")
ABSURD: tuple[Any, ...] = (
    0, -1, 3, 10**9, 2**63, 0.5, 1e308, math.nan, -math.inf, None, True, "", "nan", "LSTM",
    "x" * 100_000, "\0", "../..", [], [[]], ["a"], {}, {"a": {"b": []}},
)  # fmt: skip
VALUES = (
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


def words(call: str, world: Path, place: Path) -> list[str]:
    return call.format(w=world, o=place).split()


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


def outputs(place: Path) -> dict[str, bytes]:
    files = (path for path in place.rglob("*") if path.is_file() and path.name in COMPARED)
    return {str(path.relative_to(place)): path.read_bytes() for path in files}


@functools.cache
def undisturbed(world: Path, call: str) -> tuple[dict[str, bytes], float]:
    """Return the outputs of a call, and the seconds that it takes in a process of its own."""
    place, started = world.parent / f"undisturbed-{call}", time.monotonic()
    place.mkdir()
    subprocess.run(
        [*CONSOLE, *words(CALLS[call], world, Path("."))],
        cwd=place, env=ENVIRONMENT, check=True, capture_output=True,
    )  # fmt: skip
    return outputs(place), time.monotonic() - started


def interrupted(faults: tuple[str, ...], world: Path, random: Random, place: Path) -> Any:
    """Let a process be ended or its disk be full, and make the same call again."""
    call = random.choice(["train", "train", "train", "translate", "combine", "export"])
    fault = random.choice(faults)
    good, seconds = undisturbed(world, call)
    (place / "out").write_text("old")
    limit = random.randrange(100, max(map(len, good.values())))
    wait = random.uniform(0.4, 1.1) * seconds
    case = (
        f"{call}: {fault}, {limit} bytes" if fault == "full" else f"{call}: {fault} at {wait:.2f}"
    )

    def restrict() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with subprocess.Popen(
        [*CONSOLE, *words(CALLS[call], world, place)], stdout=-1, stderr=-1, text=True,
        env=ENVIRONMENT, preexec_fn=restrict if fault == "full" else None,
    ) as process:  # fmt: skip
        try:
            said = process.communicate(timeout=wait if fault != "full" else 60)
        except subprocess.TimeoutExpired:
            process.send_signal(getattr(signal, fault, signal.SIGKILL))
            said = process.communicate(timeout=60)
    if fault == "full":
        if wrong := bug(subprocess.CompletedProcess([], process.returncode, *said)):
            return case, wrong
    else:
        number = getattr(signal, fault)
        if process.returncode not in (0, -number, 128 + number) or "Traceback" in said[1]:
            return case, f"status {process.returncode}: {said[1][-200:]}"
    for name, content in outputs(place).items():
        if content not in (b"old", good.get(name)) and not name.startswith("run/"):
            return case, f"left a part of {name}"
    hidden = [path.name for path in place.rglob(".*") if path.name != ".lock"]
    if hidden and fault != "SIGKILL" and process.returncode >= 0:
        return case, f"left {hidden}"
    steps = checkpoint_steps(place / "run")
    again = ["-train_from", str(place / "run")] if steps else []
    if call == "export":  # it refuses a folder that is there
        shutil.rmtree(place / "released", ignore_errors=True)
    done = run("onmt_entmax", *words(CALLS[call], world, place), *again)
    if done.returncode != 0:
        return case, f"called again: {done.stderr[-200:]}"
    left = outputs(place) if call != "train" else outputs(place) | {"out": b""}
    differ = [name for name, content in good.items() if left.get(name) != content]
    return case, f"called again: another {differ}" if differ else None


def flips(world: Path, random: Random, place: Path) -> Any:
    """Damage a file of a checkpoint; verifying, translating or resuming must notice."""
    steps = checkpoint_steps(world / "run")
    model = Path(shutil.copytree(world / "run", place / "run")) / f"step_{steps[-1]}"
    path = random.choice(sorted(path for path in model.rglob("*") if path.is_file()))
    content = bytearray(path.read_bytes())
    at, kind = random.randrange(len(content)), random.choice(["flip", "cut", "missing", "append"])
    if path.name == "SHA256SUMS" and kind == "append":
        kind = "cut"  # an empty line more is no damage
    case = f"{path.relative_to(model)}: {kind} at {at}"
    if kind == "flip":
        content[at] ^= 1 << random.randrange(8)
    elif kind == "cut":
        del content[at:]
    else:
        content += b"\n"
    path.unlink() if kind == "missing" else path.write_bytes(content)
    done = run("onmt_entmax", "verify", place / "run")
    if done.returncode != 1 or bug(done):
        return case, f"verify: {bug(done) or 'says nothing'}"
    call = CALLS["translate"].replace("{w}/run", str(model))
    done = run("onmt_entmax", *words(call, world, place))
    if done.returncode == 0 and path.name not in ("state.pt", "SHA256SUMS"):
        return case, "translate: used"
    if done.returncode == 0 and outputs(place)["out"] != (world / "out").read_bytes():
        return case, "translate: another output"
    longer = [*words(CALLS["train"], world, place), "-train_from", str(place / "run")]
    resumed = run("onmt_entmax", *longer)
    if wrong := bug(done) or bug(resumed):
        return case, wrong
    if resumed.returncode == 0 and f"step_{steps[-2]}" not in resumed.stderr and kind != "missing":
        return case, f"train: {resumed.stderr[-200:]}"
    return case, None


def folders(world: Path, random: Random, place: Path) -> Any:
    """Put nonsense into a model folder, with checksums that agree."""
    model = Path(shutil.copytree(world / "run", place / "run")) / "step_30"
    name = random.choice(["config.yaml", "config.yaml", "vocab.json", "model.safetensors"])
    path, value = model / name, random.choice(ABSURD)
    if name == "model.safetensors":
        content = path.read_bytes()
        size = 8 + int.from_bytes(content[:8], "little")
        at = random.randrange(size)
        path.write_bytes(content[:at] + random.randbytes(random.randrange(4)) + content[at + 1 :])
        what = f"header at {at}"
    else:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        part = random.choice([key for key in content if isinstance(content[key], (dict, list))])
        inner = content[part]
        at = random.choice([*inner] if isinstance(inner, dict) else range(len(inner)))
        inner[at] = value
        what = f"{part}.{at} = {value!r:.40}"
        dump = json.dumps if name == "vocab.json" else yaml.safe_dump
        path.write_text(dump(content), encoding="utf-8")
    write_list(model)
    call = random.choice(["translate", "score", "suggest", "export", "train"])
    line = words(CALLS[call].replace("{w}/run", str(model)), world, place)
    if call == "train":
        line += ["-train_from", str(model), "-save_model", str(place / "new")]
    return f"{call} of {name} with {what}", bug(run("onmt_entmax", *line))


@functools.cache
def options(command: str) -> list[str]:
    """Return the options that the help of a command names."""
    done = run("onmt_entmax", command, "--help-all" if command in ("train", "translate") else "-h")
    return sorted(
        set(re.findall(r"(?<![\w-])--?[a-z_]{3,}", done.stdout)) - {"--help", "--help-all"}
    )


def inputs(world: Path, random: Random, place: Path) -> Any:
    """Give an option a bad value, or a file that is read a bad line."""
    call = random.choice([*CALLS])
    line = words(CALLS[call], world, place)
    if options(call) and random.random() < 0.7:
        line += [random.choice(options(call)), random.choice(VALUES).format(w=world, o=place)]
        line = [word.replace("\0", "") for word in line]
        case = f"{call} {line[-2]} {line[-1]!a:.60}"
    else:
        read = [n for n, word in enumerate(line) if word.startswith(f"{world}/") and n]
        at = random.choice(read)
        content = random.choice(
            [b"", b"\n", b"\0", b"a\n\xff\n", b"x " * 3000, b"{}\n", b"[" * 9999]
        )
        (place / "bad").write_bytes(content)
        line[at] = str(place / "bad")
        case = f"{call} {line[at - 1]} {content!r:.40}"
    return case, bug(run("onmt_entmax", *line, cwd=place))


ATTACKS: Mapping[str, Callable[[Path, Random, Path], tuple[str, str | None]]] = {
    "kills": functools.partial(interrupted, ("SIGKILL",)),
    "signals": functools.partial(interrupted, ("SIGINT", "SIGTERM", "SIGHUP")),
    "disk": functools.partial(interrupted, ("full",)),
    "flips": flips,
    "folders": folders,
    "inputs": inputs,
}


def tried(name: str, world: Path, seed: int) -> tuple[str, str | None]:
    """Return a case of an attack and what went wrong; the same case for the same seed."""
    place = world.parent / f"{name}-{seed}"
    place.mkdir()
    try:
        return ATTACKS[name](world, Random(f"{name}-{seed}"), place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
