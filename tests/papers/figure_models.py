"""Small random models and pairs, and a run, for tests of figures."""

import json
from pathlib import Path

import torch

from onmt_entmax.checkpoint import save
from onmt_entmax.model import build_model
from tests.models import small, vocabularies_of

VOCABULARIES = vocabularies_of("abcd", "uvw")
SOURCES, TARGETS = ["a b c", "b", "c d a b"], ["u v", "w", "v v u"]


def write_model(folder: Path, alpha: float) -> Path:
    """Write a model whose attention and output have this alpha; return its folder."""
    torch.manual_seed(0)
    config = small(generator_alpha=alpha, global_attention_alpha=alpha, param_init=1.0)
    save(folder, build_model(config, VOCABULARIES).eval(), config, VOCABULARIES, {})
    return folder


def write_run(folder: Path) -> None:
    """Write a run of three steps that was killed while it wrote its log."""
    write_model(folder / "step_3", 1.5)
    rows = []
    for step in (1, 2, 3):
        row = {"step": step, "seconds": 60.0 * step, "loss": 2 / step}
        rows.append({"kind": "train", **row})
        rows.append({"kind": "valid", **row, "token_accuracy": 30.0 * step})
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "metrics.jsonl").write_text(lines + '{"kind": "val')
