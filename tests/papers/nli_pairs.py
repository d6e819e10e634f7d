"""Settings of a small classifier of sentence pairs, and pairs to train it on."""

from pathlib import Path

from tools.papers.nli_data import LABELS
from tools.papers.nli_settings import Settings

SMALL = Settings(
    train="pairs.tsv",
    held_out=0.2,
    lowercase=True,
    min_frequency=1,
    attention="sparsemax",
    output="softmax",
    word_vec_size=12,
    rnn_size=16,
    dropout=0.0,
    learning_rate=0.02,
    l2=0.0,
    batch_size=8,
    epochs=3,
)


def write_pairs(path: Path) -> Path:
    """Write 24 sentence pairs: the animal of the premise decides the label; return the path."""
    rows = ["sentence_A\tsentence_B\tentailment_judgment"]
    for number in range(24):
        animal = ("dog", "cat", "bird")[number % 3]
        verb = ("runs", "sleeps")[number // 3 % 2]
        premise = f"A {animal} {verb}{' today' * (number % 4)}"
        rows.append(f"{premise}\tit {verb}\t{LABELS[number % 3]}")
    path.write_text("\n".join(rows) + "\n")
    return path
