"""The YAML files for a GPU: their models train in CUDA graphs, and a run can be cut in parts."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.model import build_model
from onmt_entmax.options.train import training_setup
from onmt_entmax.train.graphs import reason_against
from tests.commands import ROOT
from tests.configurations import write_corpora

FILES = sorted(ROOT.glob("config/*/*-gpu.yaml"))


def test_there_is_one_for_each_task() -> None:
    assert {path.parent.name for path in FILES} == {"adaptive", "morphology", "mt"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_model_trains_in_graphs(path: Path, tmp_path: Path, monkeypatch) -> None:
    text = path.read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    monkeypatch.chdir(tmp_path)
    write_corpora(values["data"].values(), "a b c")
    setup = training_setup(["-config", str(path)])
    words = Vocabulary(tuple(str(token) for token in TARGET_SPECIALS))
    sizes = ("rnn_size", "src_word_vec_size", "tgt_word_vec_size", "transformer_ff")
    small = replace(setup.model, **dict.fromkeys(sizes, 16))
    model = build_model(small, Vocabularies(words, words))
    assert reason_against(model) is None
    assert setup.training.cuda_graphs == "on"
    assert values["gpu_ranks"] == [0]
    assert setup.training.matmul_dtype == "tf32"
    assert f"give -max_seconds, and -train_from {values['save_model']} to continue" in text
    assert setup.training.save_checkpoint_steps <= setup.training.train_steps / 10
