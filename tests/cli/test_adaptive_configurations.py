"""The YAML files of `config/adaptive`: valid, as their heads say, and the paper's settings."""

from pathlib import Path

import pytest
import torch
import yaml

from onmt_entmax.cli import bleu, experiment
from onmt_entmax.data.vocabulary import TARGET_SPECIALS, Vocabularies, Vocabulary
from onmt_entmax.experiment import table as experiment_table
from onmt_entmax.model import build_model
from onmt_entmax.options.train import training_setup
from onmt_entmax.train.optimiser import learning_rate_schedule
from tests.commands import ROOT
from tests.configurations import (
    build_without_weights,
    check_prepared,
    commands_of,
    unbroken,
    write_corpora,
)
from tests.matrices import read

FOLDER = ROOT / "config" / "adaptive"
MATRICES = sorted(FOLDER.glob("matrix-*.yaml"))
TRAININGS = sorted({*FOLDER.glob("*.yaml")} - {*MATRICES, FOLDER / "cells.yaml"})
PAIRS = ["de-en", "en-de", "ja-en", "ro-en"]
ALPHAS = {"softmax": 1.0, "entmax15": 1.5, "learned": "learned"}


def head_of(path: Path) -> dict[str, list[str]]:
    text = path.read_text(encoding="utf-8")
    return commands_of(unbroken(text[: text.index("\n\n")]))


def test_there_is_a_matrix_for_each_pair_of_the_paper() -> None:
    names = [f"matrix-{name}" for name in (*PAIRS, "multi30k", "tatoeba")]
    assert [path.stem for path in MATRICES] == sorted(names)
    stems = [path.stem for path in TRAININGS]
    assert stems == ["ja-en-gpu", "multi30k-de-en", "tatoeba-de-en", "transformer-base"]


@pytest.mark.parametrize("path", TRAININGS, ids=lambda path: path.stem)
def test_a_configuration_is_valid_and_its_head_agrees_with_it(
    path: Path, tmp_path: Path, monkeypatch
) -> None:
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    write_corpora(values["data"].values(), "a b c")
    setup = training_setup(["-config", str(path)])
    assert {*setup.model.attention_alphas.values()} == {"learned"}
    build_without_weights(setup.model)
    words = head_of(path)
    assert words["train"] == ["-config", str(path.relative_to(ROOT))]
    assert values["save_model"] in words["translate"]
    scored = bleu.parse_arguments(words["bleu"])
    assert str(scored.reference[0]) == values["data"]["valid"]["path_tgt"]
    assert scored.system[0] == Path(f"{values['save_model']}.pred")
    assert scored.tokenize == [values.get("valid_bleu_tokenize", "13a")]
    check_prepared(words["prepare"], values)


@pytest.mark.parametrize("path", MATRICES, ids=lambda path: path.stem)
def test_every_cell_of_a_matrix_is_a_model_of_its_kind(
    path: Path, tmp_path: Path, monkeypatch
) -> None:
    matrix = read(path)
    monkeypatch.chdir(tmp_path)
    assert [cell.name for cell in matrix.cells] == [*ALPHAS]
    words = head_of(path)
    call = words["experiment"]  # one that it does not understand ends the program
    assert experiment.parse_arguments(call).matrix == path.relative_to(ROOT)
    vocabulary = Vocabulary((*TARGET_SPECIALS, "a"))
    for cell in matrix.cells:
        options = matrix.training(cell, 1).options()
        write_corpora(options["data"].values(), "a b c")
        file = tmp_path / "config.yaml"
        file.write_text(yaml.safe_dump(options))
        setup = training_setup(["-config", str(file)])
        assert {*setup.model.attention_alphas.values()} == {ALPHAS[cell.name]}
        assert matrix.source == Path(options["data"]["valid"]["path_src"])
        assert matrix.reference == Path(options["data"]["valid"]["path_tgt"])
        if "prepare" in words:
            check_prepared(words["prepare"], options)
        with torch.device("meta"):
            model = build_model(setup.model, Vocabularies(vocabulary, vocabulary))
        heads = setup.model.heads * setup.model.enc_layers
        learned = sum(p.numel() for name, p in model.named_parameters() if name.endswith(".a"))
        assert learned == (3 * heads if cell.name == "learned" else 0)


@pytest.mark.parametrize("pair", PAIRS)
def test_the_papers_settings(pair: str, tmp_path: Path, monkeypatch) -> None:
    matrix = read(FOLDER / f"matrix-{pair}.yaml")
    monkeypatch.chdir(tmp_path)
    options = matrix.cells[-1].training
    steps = 10_000 if pair in ("ro-en", "en-de") else 5_000
    paper = {
        "layers": 6,
        "rnn_size": 512,
        "heads": 8,
        "transformer_ff": 2048,
        "batch_type": "tokens",
        "batch_size": 8192,
        "warmup_steps": 20_000,
        "valid_steps": steps,
        "save_checkpoint_steps": steps,
        "selection": "token_accuracy",
    }
    assert {key: options[key] for key in paper} == paper
    write_corpora(options["data"].values(), "a b c")
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(matrix.trainings()[0].options()))
    config = training_setup(["-config", "config.yaml"]).training.optimizer
    rate = learning_rate_schedule(config, None)
    rates = [config.learning_rate * rate(step) for step in (5_000, 10_000, 20_000, 80_000)]
    assert rates == pytest.approx([0.00015625, 0.0003125, 0.000625, 0.0003125])


@pytest.mark.parametrize("pair", PAIRS)
def test_the_table_is_printed_beside_the_papers(pair: str, tmp_path: Path, monkeypatch) -> None:
    matrix = read(FOLDER / f"matrix-{pair}.yaml")
    figures = {
        training.name: {
            "bleu": 20.0,
            "output_alpha": 1.0,
            "attention_alpha": ALPHAS[training.cell.name],
        }
        for training in matrix.trainings()
    }
    monkeypatch.setattr(experiment_table, "figures_of", lambda work: figures.get(work.name))
    lines = experiment_table.markdown([matrix]).splitlines()
    assert lines[0] == "| cell | output α | attention α | paper | BLEU | runs |"
    paper = experiment_table.PAPER[pair].values()
    for name, alpha, (value,), line in zip(
        ALPHAS, ("1", "1.5", "learned"), paper, lines[2:5], strict=True
    ):
        assert line == f"| {name} | 1 | {alpha} | {value:.2f} | 20.00 | 1 |"
    assert f"tokenised BLEU of the test set {pair}" in lines[-1]
