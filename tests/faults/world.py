"""A small world for attacks: corpora, a trained run, reports, and a good call of every command.

Its sources are those of an inflection task, so that one trained model serves all commands.
"""

from __future__ import annotations

import argparse
import random
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml

from onmt_entmax import checkpoint
from onmt_entmax.cli.main import COMMANDS
from tests.faults.running import Ended, attempt
from tests.inflection_models import write_model

STEPS = 30  # of the trained run; it has checkpoints every SAVED steps
SAVED = 10
TAGS = ("PST", "PRS")
QUERY = "english abc V;PST\n"


@dataclass(frozen=True)
class World:
    """The folder of a world; see `CALLS` for its files."""

    folder: Path

    def call(self, name: str, out: Path) -> list[str]:
        """Return the arguments of a good call that writes to the folder `out`."""
        command, _, rest = CALLS[name]
        if "{o}/matrix.yaml" in rest:  # an experiment writes beside its matrix
            shutil.copy(self.folder / "matrix.yaml", out)
        return [*command.split(), *(a.format(w=self.folder, o=out) for a in rest.split())]

    def stdin(self, name: str) -> str:
        """Return what such a call reads from its standard input."""
        return CALLS[name][1]

    @property
    def run(self) -> Path:
        """The folder of the trained run."""
        return self.folder / "run"


# Name to command, standard input, and arguments; each ends with status 0 in a good world.
CALLS = {
    "train": ("train", "", "-config {w}/toy.yaml -save_model {o}/run -train_steps 30"),
    "translate": (
        "translate",
        "",
        "-model {w}/run -src {w}/valid.src -output {o}/out.txt -exactness_report {o}/out.jsonl "
        "-beam_size 2 -max_length 8",
    ),
    "inflect": ("inflect", QUERY, "--model {w}/run --input {w}/queries --output {o}/out.txt"),
    "score": ("score", "", "-model {w}/run -src {w}/valid.src -tgt {w}/valid.tgt -output {o}/out"),
    "suggest": ("suggest", "a\nb\n", "{w}/run --source lang=english --prefix a --max_length 8"),
    "combine": (
        "combine",
        "",
        "--reports {w}/report.jsonl {w}/report.jsonl --output {o}/out.txt --report {o}/out.jsonl",
    ),
    "distill": (
        "distill",
        "",
        "--train {w}/pairs.src --models {w}/peaked --each 1 --beam 3 --prob 0.01 --out {o}/more",
    ),
    "import-onmt": ("import-onmt", "", "{w}/stock.pt {o}/model --yes"),
    "evaluate": (
        "evaluate",
        "",
        "--source {w}/valid.src --reference {w}/valid.tgt --predictions {w}/out.txt "
        "--json {o}/scores.json",
    ),
    "bleu": (
        "bleu",
        "",
        "{w}/out.txt {w}/valid.tgt --reference {w}/valid.tgt --resamples 20 "
        "--output {o}/scores.json",
    ),
    "report": (
        "report",
        "",
        "-model {w}/run -report {w}/report.jsonl -output {o}/out.html -details 2",
    ),
    "sigmorphon": ("prepare sigmorphon", "", "--data {w}/rows --out {o}/data"),
    "mt": (
        "prepare files",
        "",
        "--out {o}/mt --languages ab ba --train {w}/train.src {w}/train.tgt --val_size 10 "
        "--symbols 20",
    ),
    "verify": ("verify", "", "{w}/run"),
    "export": ("export", "", "{w}/run {o}/released"),
}


def _write_rows(folder: Path) -> None:
    generator = random.Random(1)
    (folder / "rows").mkdir()
    for name, size in (("train", 240), ("valid", 40)):
        sources = [generator.choices("abcdef", k=generator.randint(2, 6)) for _ in range(size)]
        texts = {
            "src": [f"lang=english +V +{TAGS[i % 2]} {' '.join(s)}" for i, s in enumerate(sources)],
            "tgt": [" ".join(reversed(s)) for s in sources],
        }
        for side, lines in texts.items():
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8")
    # As many rows as the files of the shared task have.
    for name, size in (("english-train-low", 100), ("english-train", 100), ("english-dev", 1000)):
        rows = [f"a{i}\tb{i}\tV;{TAGS[i % 2]}\n" for i in range(size)]
        (folder / "rows" / name).write_text("".join(rows), encoding="utf-8")
    sources = ["lang=english +V +PST a b", "lang=english +V b", "lang=german +V a"]
    (folder / "pairs.src").write_text("".join(f"{s}\n" for s in sources), encoding="utf-8")
    (folder / "queries").write_text(QUERY * 3, encoding="utf-8")


def configuration(folder: Path) -> dict[str, object]:
    """Return the configuration of the training."""
    data = {
        key: {"path_src": f"{folder}/{name}.src", "path_tgt": f"{folder}/{name}.tgt"}
        for key, name in (("corpus", "train"), ("valid", "valid"))
    }
    sizes = {"encoder_type": "brnn", "layers": 1, "rnn_size": 16, "word_vec_size": 8}
    alphas = dict.fromkeys(("global_attention_function", "generator_function"), "entmax15")
    return {
        "data": data,
        "save_model": f"{folder}/run",
        **sizes,
        **alphas,
        "optim": "adam",
        "learning_rate": 0.005,
        "batch_size": 16,
        "train_steps": STEPS,
        "valid_steps": SAVED,
        "save_checkpoint_steps": SAVED,
        "keep_checkpoint": 2,
        "report_every": 5,
        "dropout": 0.3,
        "seed": 3,
    }


def _write_configurations(folder: Path) -> None:
    content = configuration(folder)
    (folder / "toy.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


def _write_stock(run: Path, path: Path) -> None:
    """Write a checkpoint as OpenNMT-py 2.3.0 does, with the weights of a model of ours."""
    from onmt.inputters.inputter import get_fields
    from torchtext.vocab import Vocab

    loaded = checkpoint.load(run)
    weights = loaded.model.state_dict()
    fields = get_fields("text", 0, 0)
    for side, vocabulary in zip(("src", "tgt"), loaded.vocabularies, strict=True):
        built = Vocab(Counter(), specials=[])
        built.itos = list(vocabulary.tokens)
        fields[side].base_field.vocab = built
    known = {key: value for key, value in loaded.options.items() if key != "data"}
    known |= dict.fromkeys(("global_attention_function", "generator_function"), "sparsemax")
    content = {
        "model": {k: v for k, v in weights.items() if not k.startswith("generator.")},
        "generator": {f"0.{k[10:]}": v for k, v in weights.items() if k.startswith("generator.")},
        "vocab": fields,
        "opt": argparse.Namespace(**known),
        "optim": {},
    }
    torch.save(content, path)


def must(ended: Ended) -> Ended:
    """Check that a good call has succeeded.

    Raises:
        AssertionError: it has not; then attacks would prove nothing.
    """
    if ended.status != 0:
        raise AssertionError(f"{' '.join(ended.arguments)}: {ended.status}: {ended.stderr[-2000:]}")
    return ended


def build(folder: Path) -> World:
    """Fill an empty folder."""
    world = World(folder)
    _write_rows(folder)
    _write_configurations(folder)
    must(attempt(["train", "-config", f"{folder}/toy.yaml"], folder))
    names = f"-output {folder}/out.txt -exactness_report {folder}/report.jsonl".split()
    known = ["translate", "-model", folder / "run", "-src", folder / "valid.src"]
    must(attempt([*known, *names, "-max_length", 8], folder))
    write_model(folder / "peaked", 1)
    _write_stock(world.run, folder / "stock.pt")
    return world


def existing() -> list[str]:
    """Return the names of the calls whose commands the program has."""
    words = {tuple(command.split()) for command in COMMANDS}
    given = {name: tuple(call[0].split()) for name, call in CALLS.items()}
    return [name for name, has in given.items() if any(has[: len(w)] == w for w in words)]
