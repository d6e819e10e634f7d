"""The YAML files of `config/mt`: valid, agreeing with their own heads, and the paper's settings."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from onmt_entmax.cli import bleu, prepare_mt
from onmt_entmax.options.train import training_setup
from tests.commands import ROOT
from tests.configurations import (
    build_without_weights,
    check_prepared,
    commands_of,
    unbroken,
    write_corpora,
)

FOLDER = ROOT / "config" / "mt"
# Matrices are in test_experiment_matrix.py.
FILES = [path for path in sorted(FOLDER.glob("*.yaml")) if "\ndata:" in path.read_text()]
PAPERS = {"de-en", "en-de", "ja-en", "en-ja", "ro-en", "en-ro"}


def test_there_are_both_directions_of_each_pair_of_the_paper() -> None:
    names = {path.stem for path in FILES}
    assert names >= PAPERS
    assert names >= {"multi30k-de-en", "multi30k-en-de", "tanaka-en-ja", "tanaka-ja-en"}
    assert "tatoeba-de-en" in names


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_configuration_is_valid_and_its_head_agrees_with_it(
    path: Path, tmp_path: Path, monkeypatch
) -> None:
    text = path.read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    monkeypatch.chdir(tmp_path)
    write_corpora(values["data"].values(), "a b c")
    setup = training_setup(["-config", str(path)])
    assert setup.model.global_attention_alpha == setup.model.generator_alpha == 1.5
    build_without_weights(setup.model)
    of_the_paper = path.stem in PAPERS
    assert setup.training.selection == ("token_accuracy" if of_the_paper else "bleu")

    head = text[: text.index("\ndata:")]
    assert "Peters, Niculae and Martins (2019)" in " ".join(head.replace("#", "").split())
    words = commands_of(unbroken(head))
    source, target = path.stem.removesuffix("-gpu").split("-")[-2:]
    run = values["save_model"]
    assert Path(run).name == f"{source}-{target}"
    assert words["train"] == ["-config", str(path.relative_to(ROOT))]
    assert run in words["translate"]
    assert "-transforms" not in words["translate"]  # the model knows its own
    scored = bleu.parse_arguments(words["bleu"])
    assert str(scored.reference[0]) == values["data"]["valid"]["path_tgt"]
    assert scored.system[0] == Path(f"{run}.pred")
    if values.get("valid_bleu_tokenize", "13a") != "char":
        assert scored.tokenize == [values.get("valid_bleu_tokenize", "13a")]
    assert [*values["data"]][1:] == ["valid"]
    check_prepared(words["prepare"], values)


@pytest.mark.parametrize(
    ("name", "steps", "valid", "symbols", "joint"),
    [
        ("de-en", 100_000, 5_000, 32_000, True),
        ("ja-en", 100_000, 10_000, 32_000, True),
        ("ro-en", 120_000, 10_000, 25_000, False),
    ],
)
def test_the_papers_settings(name: str, steps: int, valid: int, symbols: int, joint: bool) -> None:
    first, second = name.split("-")
    for stem in (f"{first}-{second}", f"{second}-{first}"):
        text = (FOLDER / f"{stem}.yaml").read_text(encoding="utf-8")
        values = yaml.safe_load(text)
        paper = {
            "encoder_type": "brnn",
            "rnn_type": "LSTM",
            "layers": 2,
            "rnn_size": 500,
            "word_vec_size": 500,
            "dropout": [0.3],
            "optim": "adam",
            "learning_rate": 0.001,
            "decay_method": "plateau",
            "learning_rate_decay": 0.5,
            "batch_size": 64,
            "train_steps": steps,
            "valid_steps": valid,
        }
        assert {key: values[key] for key in paper} == paper
        command = re.search(r"prepare (.*?)\n#   onmt-entmax train", text, re.DOTALL).group(1)
        options = prepare_mt.parse_arguments(shlex.split(command.replace("\\\n#", "")))
        plan = prepare_mt.plan_of(options, prepare_mt.known(options))
        assert (plan.symbols, plan.joint) == (symbols, joint)
