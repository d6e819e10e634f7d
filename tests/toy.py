"""Toy tasks for tests of whole runs: reverse a sequence of letters, or write it in capitals.

They are small enough to be learned in some hundred updates, which take a few seconds.
"""

import random
from pathlib import Path

import yaml

LETTERS = "abcdef"
TRAINING_PAIRS, DEVELOPMENT_PAIRS = 240, 40


def write_corpus(folder: Path, name: str, size: int, seed: int) -> dict[str, str]:
    """Write `name.src` and `name.tgt`; return the entry for them under `data:`.

    Sources have two to six letters, and targets have the same letters in reverse.
    """
    generator = random.Random(seed)
    sources = [
        [generator.choice(LETTERS) for _ in range(generator.randint(2, 6))] for _ in range(size)
    ]
    paths = {"path_src": folder / f"{name}.src", "path_tgt": folder / f"{name}.tgt"}
    paths["path_src"].write_text("".join(" ".join(source) + "\n" for source in sources))
    paths["path_tgt"].write_text("".join(" ".join(reversed(source)) + "\n" for source in sources))
    return {key: str(path) for key, path in paths.items()}


def write_config(folder: Path, **changes: object) -> Path:
    """Write the toy corpora and the YAML file of a tiny model; return its path.

    Args:
        folder: folder for the corpora, `toy.yaml` and the run `run`.
        changes: options; None leaves one out.
    """
    config: dict[str, object] = {
        "data": {
            "corpus_1": write_corpus(folder, "train", TRAINING_PAIRS, seed=1),
            "valid": write_corpus(folder, "valid", DEVELOPMENT_PAIRS, seed=2),
        },
        "save_model": str(folder / "run"),
        "encoder_type": "brnn",
        "layers": 1,
        "rnn_size": 32,
        "word_vec_size": 16,
        "global_attention_function": "entmax15",
        "generator_function": "entmax15",
        "optim": "adam",
        "learning_rate": 0.005,
        "batch_size": 16,
        "train_steps": 30,
        "valid_steps": 10,
        "save_checkpoint_steps": 10,
        "report_every": 10,
        "dropout": 0.3,
        "seed": 3,
    }
    config |= changes
    path = folder / "toy.yaml"
    settings = {name: value for name, value in config.items() if value is not None}
    path.write_text(yaml.safe_dump(settings))
    return path


def toy_ende(folder: Path) -> None:
    """Write small files under the names of OpenNMT-py's quick start, in the folder `toy-ende`.

    Targets are the capital letters of their sources. There are 300 training pairs and 20 of the
    development set.
    """
    (folder / "toy-ende").mkdir()
    for side, letters in (("src", "abcdefgh"), ("tgt", "ABCDEFGH")):
        generator = random.Random(5)  # both sides draw the same numbers
        for name, size in (("train", 300), ("val", 20)):
            lines = [
                " ".join(generator.choices(letters, k=generator.randint(3, 9))) for _ in range(size)
            ]
            (folder / "toy-ende" / f"{side}-{name}.txt").write_text("\n".join(lines) + "\n")
