"""A matrix of several pairs of languages: its file, its order, and its tables."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from onmt_entmax.cli import bleu, experiment
from onmt_entmax.experiment import table
from onmt_entmax.experiment.matrix import Training
from onmt_entmax.experiment.measures import compared_bleu
from onmt_entmax.report.bleu import compare, make_metrics
from tests.ended import ended, refused
from tests.matrices import read_all, write_matrix

CELLS = {
    "softmax": {"generator_function": "softmax"},
    "entmax15": {"generator_function": "entmax15"},
}
ALPHAS = {"softmax": 1.0, "entmax15": 1.5}


def write_pairs(folder: Path, **changes: object) -> Path:
    """Write a matrix of two pairs over the toy corpus, without a run."""
    path = write_matrix(folder)
    content = yaml.safe_load(path.read_text())
    own = {key: content.pop(key) for key in ("base", "source", "reference")}
    turned = {**own, "source": own["reference"], "reference": own["source"]}
    content |= {"pairs": {"de-en": own, "xx-yy": turned}, "cells": CELLS}
    content |= {"evaluate": "bleu", "paper": "table2", "ensemble": False, **changes}
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def test_each_pair_is_a_matrix_of_the_same_cells(tmp_path: Path) -> None:
    first, second = read_all(write_pairs(tmp_path))
    assert (first.pair, second.pair) == ("de-en", "xx-yy")
    assert (first.source, first.reference) == (second.reference, second.source)
    assert [training.name for training in second.trainings()] == [
        *("xx-yy softmax seed 1", "xx-yy entmax15 seed 1"),
        *("xx-yy softmax seed 2", "xx-yy entmax15 seed 2"),
    ]
    assert second.trainings()[0].folder == tmp_path / "runs" / "xx-yy" / "softmax" / "seed-1"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": {}}, "pairs: there are none"),
        ({"pairs": ["de-en"]}, "pairs: expected options with their values"),
        ({"pairs": {"../x": {}}}, "a pair is a folder, so its name is a word, not '../x'"),
        ({"pairs": {"a": {"seeds": [1]}}}, "pairs: a: seeds: is given for all pairs too"),
        ({"pairs": {"a": {"sauce": "x"}}}, "pairs: a: sauce: no such key of a pair"),
        ({"pairs": {"a": {"base": "toy.yaml"}}}, "source: this key is required"),
        ({"paper": "medium"}, "paper: 'medium' is not one of ['table2']"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, changes: dict, message: str) -> None:
    line = refused(experiment.main, ["status", write_pairs(tmp_path, **changes)])
    assert message in line


def test_the_paper_of_pairs_is_not_that_of_one(tmp_path: Path) -> None:
    assert "paper: 'table2' is not one of" in refused(
        experiment.main, ["status", write_matrix(tmp_path, paper="table2")]
    )


def test_pairs_run_in_turn_until_a_signal(tmp_path: Path, capsys, monkeypatch) -> None:
    path, order = write_pairs(tmp_path), []
    statuses = {"de-en": 1, "xx-yy": 0}

    class Runner:
        def __init__(self, matrix, trainings, jobs, cores):
            self.matrix = matrix

        def run(self):
            order.append(f"run {self.matrix.pair}")
            return statuses[self.matrix.pair]

    monkeypatch.setattr(experiment, "Runner", Runner)
    monkeypatch.setattr(experiment, "check", lambda matrix, _: order.append(f"check {matrix.pair}"))
    assert ended(experiment.main, ["run", str(path)]) == 1
    assert order == ["check de-en", "check xx-yy", "run de-en", "run xx-yy"]
    statuses["de-en"] = 130
    order.clear()
    assert ended(experiment.main, ["run", str(path)]) == 130
    assert order[2:] == ["run de-en"]
    order.clear()
    assert ended(experiment.main, ["run", str(path), "--pairs", "xx-yy"]) == 0
    assert order == ["check xx-yy", "run xx-yy"]
    assert "no pair 'xx-y'; did you mean 'xx-yy'?" in refused(
        experiment.main, ["run", path, "--pairs", "xx-y"]
    )
    assert ended(experiment.main, ["status", str(path), "--pairs", "de-en"]) == 0
    assert "xx-yy" not in capsys.readouterr().out


@pytest.fixture
def measured(tmp_path: Path, monkeypatch) -> list:
    """Both pairs, of which the first has translations with both seeds."""
    matrices = read_all(write_pairs(tmp_path))
    lines = matrices[0].reference.read_text().splitlines()
    for training in matrices[0].trainings():
        training.folder.mkdir(parents=True)
        wrong = {"softmax": 12, "entmax15": 12 - 6 * training.seed}[training.cell.name]
        texts = ["x y" if number < wrong else line for number, line in enumerate(lines)]
        (training.folder / "dev.pred").write_text("".join(f"{text}\n" for text in texts))

    def figures_of(training):
        if training.matrix.pair != "de-en":
            return None
        alpha = ALPHAS[training.cell.name]
        shown = {"output_alpha": alpha, "attention_alpha": alpha, "attention_support": 3.0}
        return {"bleu": 20 + alpha + training.seed, "output_support": 7.5, **shown}

    monkeypatch.setattr(table, "figures_of", figures_of)
    return matrices


def test_differences_are_tested_as_bleu_does(measured: list) -> None:
    trainings = [measured[0].training(cell, 1) for cell in measured[0].cells]
    ((difference, p),) = compared_bleu(trainings)
    texts = bleu.read_texts([training.folder / "dev.pred" for training in trainings])
    systems = list(zip(("softmax", "entmax15"), texts, strict=True))
    references = bleu.read_texts([measured[0].reference])
    metrics = make_metrics(["bleu"], ["13a"], lowercase=False)
    (expected,) = compare(systems, references, metrics, 1000)
    first, second = expected.scores
    assert difference == pytest.approx(second.value - first.value) != 0
    assert p == second.p_value
    for training, word in zip(trainings, "xy", strict=True):  # nothing right, in other words
        (training.folder / "dev.pred").write_text(f"{word}\n" * len(references[0]))
    assert compared_bleu(trainings) == [(0.0, 1.0)]


def test_a_table_without_a_run_names_the_measure(tmp_path: Path) -> None:
    matrices = read_all(write_pairs(tmp_path))
    assert table.markdown(matrices).startswith("| BLEU | de-en, runs 0 |")


def test_the_tables(measured: list) -> None:
    recorded = {"date": "", "measured": {}}
    entries = [{"name": f"de-en entmax15 seed {n}", "bleu": 20.0 + n, **recorded} for n in (1, 2)]
    record = json.dumps({"measurements": [{**entries[0], "bleu": 9.0}, *entries]})
    (measured[0].run / "test.json").write_text(record)
    lines = table.markdown(measured).splitlines()
    assert lines[0] == "| BLEU | de-en, runs 2 | xx-yy, runs 0 |"
    assert lines[2:7] == [
        "| softmax | 22.50 ± 0.71 | - |",
        "| softmax, paper | 25.70 ± 0.15 | - |",
        "| entmax15 | 23.00 ± 0.71 | - |",
        "| entmax15, test | 21.50 ± 0.71 | - |",
        "| entmax15, paper | 26.17 ± 0.13 | - |",
    ]
    assert lines[8] == "| against softmax | seed | entmax15 |"
    assert lines[10].startswith("| de-en | 1 | +")
    assert lines[11].endswith(" (p 0.001) |")
    assert "| nonzeros | de-en, attention | de-en, output | xx-yy, attention |" in lines[13]
    assert lines[15] == "| softmax | 3.00 ± 0.00 | 7.50 ± 0.00 | - | - |"
    assert "| entmax15, paper | 5.55 | 16.13 | - | - |" in lines
    assert "tokenised BLEU of test sets" in lines[-1]
    tex = table.latex(measured)
    assert tex.count(r"\begin{tabular}") == 3
    assert r"entmax15, paper & 26.17 $\pm$ 0.13 & - \\" in tex


def test_ensembles_are_in_the_tables(measured: list, monkeypatch) -> None:
    singles = table.figures_of

    def figures_of(work):
        both = work.name == "de-en entmax15 ensemble"
        return {"bleu": 25.5} if both else singles(work) if isinstance(work, Training) else None

    monkeypatch.setattr(table, "figures_of", figures_of)
    matrices = [replace(matrix, ensemble=True) for matrix in measured]
    entry = {"name": "de-en entmax15 ensemble", "date": "", "bleu": 24.25, "measured": {}}
    (matrices[0].run / "test.json").write_text(json.dumps({"measurements": [entry]}))
    lines = table.markdown(matrices).splitlines()
    assert lines[4:8] == [
        "| entmax15 | 23.00 ± 0.71 | - |",
        "| entmax15, ensemble | 25.50 | - |",
        "| entmax15, ensemble, test | 24.25 | - |",
        "| entmax15, paper | 26.17 ± 0.13 | - |",
    ]
