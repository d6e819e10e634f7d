"""The YAML files of `config/demo` and `config/morphology`: valid, and the paper's settings."""

import re
from pathlib import Path

import pytest
import yaml

from onmt_entmax.options.train import training_setup
from tests.classify import test_nli
from tests.cli import test_adaptive_configurations as adaptive
from tests.cli import test_experiment_matrix as matrices
from tests.cli import test_mt_configurations as translation
from tests.cli import test_multilabel_command as multilabel
from tests.commands import ROOT
from tests.configurations import build_without_weights, commands_of, unbroken, write_corpora

# Matrices are in test_experiment.py.
FILES = [
    path
    for path in sorted([*ROOT.glob("config/demo/*.yaml"), *ROOT.glob("config/morphology/*.yaml")])
    if "\ndata:" in path.read_text(encoding="utf-8")
]


def test_no_configuration_is_left_out_of_the_tests_that_build_them() -> None:
    of_matrices = [*matrices.MATRICES, *adaptive.MATRICES]
    cells = [yaml.safe_load(path.read_text(encoding="utf-8"))["cells"] for path in of_matrices]
    files = [
        (path.parent / name).resolve()
        for path, name in zip(of_matrices, cells, strict=True)
        if isinstance(name, str)
    ]
    built = [*FILES, *translation.FILES, *adaptive.TRAININGS, *multilabel.FILES, *test_nli.FILES]
    assert {*ROOT.glob("config/**/*.yaml")} == {*built, *of_matrices, *files}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_configuration_is_valid_and_its_head_agrees_with_it(
    path: Path, tmp_path: Path, monkeypatch
) -> None:
    text = path.read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    monkeypatch.chdir(tmp_path)
    write_corpora(values["data"].values(), "lang=english +V d r a w")
    setup = training_setup(["-config", str(path)])
    assert setup.model.global_attention_alpha == setup.model.generator_alpha == 1.5
    assert setup.training.selection in ("exact_match", "macro_accuracy")
    build_without_weights(setup.model)

    head = text[: text.index("\ndata:")]
    assert "Peters, Niculae and Martins (2019)" in head
    commands = unbroken(head)
    words = commands_of(commands)
    assert str(path.relative_to(ROOT)) in words["train"]
    assert values["save_model"] in words["translate"]
    files = {name for corpus in values["data"].values() for name in corpus.values()}
    prepared = re.search(r"prepare sigmorphon .*--out (\S+)", commands).group(1)
    assert {str(Path(name).parent) for name in files} == {prepared}


@pytest.mark.parametrize(("name", "epochs"), [("medium", 10), ("high", 1)])
def test_the_papers_settings(name: str, epochs: int) -> None:
    values = yaml.safe_load((ROOT / "config" / "morphology" / f"{name}.yaml").read_text())
    paper = {
        "encoder_type": "brnn",
        "rnn_type": "LSTM",
        "layers": 2,
        "rnn_size": 300,
        "word_vec_size": 300,
        "dropout": [0.3],
        "optim": "adam",
        "learning_rate": 0.001,
        "decay_method": "plateau",
        "learning_rate_decay": 0.5,
        "batch_size": 64,
        "valid_epochs": epochs,
    }
    assert {key: values[key] for key in paper} == paper
