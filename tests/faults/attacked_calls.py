"""Calls of commands that are attacked: their outputs, and what counts as a bug in how they end."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.commands import run
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
# The folders among the outputs: the checkpoints of `train`, and what `export` writes.
RUN, RELEASED = "run", "released"
# Names of the outputs that are compared.
COMPARED = ("out", "out.jsonl", "model.safetensors", "vocab.json")


def arguments_of(name: str, world: Path, folder: Path, model: Path | None = None) -> list[str]:
    """Return the arguments of a call.

    Args:
        name: name of the call, a key of `CALLS`.
        world: the folder that `build` made.
        folder: folder of the outputs.
        model: model to read in place of the run in `world`.
    """
    call = CALLS[name]
    if model is not None:
        call = call.replace("{w}/run", str(model))
    return call.format(w=world, o=folder).split()


def build(world: Path) -> Path:
    """Make the folder that the calls read: a corpus, a run of three checkpoints, a report."""
    write_config(world, rnn_size=8, word_vec_size=8)
    for name in ("train", "translate"):
        done = run("onmt_entmax", *arguments_of(name, world, world))
        assert done.returncode == 0, done.stderr
    (world / "out.jsonl").rename(world / "r.jsonl")
    return world


class TriedCase(NamedTuple):
    """A case of an attack that was tried."""

    case: str
    """What was done, in a few words."""
    failure: str | None
    """How a command failed; None if none did."""


def bug(done: subprocess.CompletedProcess[str]) -> str | None:
    """Return what a user must never see of a call: a traceback, a crash, or an unclear error.

    An error is one short line, the last one. None: the call ended well, or with such an error.
    """
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
