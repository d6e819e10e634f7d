"""What a matrix file may say, and those of the repository."""

import re

import pytest
import yaml

from onmt_entmax.cli import experiment
from onmt_entmax.experiment.matrix import data_digests
from onmt_entmax.options.train import training_setup
from tests.commands import ROOT
from tests.configurations import build_without_weights, unbroken, write_corpora
from tests.ended import refused
from tests.matrices import read, read_all, write_matrix

CONFIGURATIONS = ROOT / "config" / "morphology"
MATRICES = sorted(
    path
    for folder in ("morphology", "mt", "mt/sweep")
    for path in (ROOT / "config" / folder).glob("*.yaml")
    if "\ncells:" in path.read_text()
)


class TestMatrixFile:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"sedes": [1]}, "sedes: no such key; did you mean 'seeds'?"),
            ({"layers": 1}, "layers: no such key; options of training stand in the file of base"),
            ({"run": None}, "run: this key is required"),
            ({"evaluate": "sigmorfon"}, "evaluate: 'sigmorfon' is not one of"),
            ({"paper": "low"}, "paper: 'low' is not one of"),
            ({"ensemble": 3}, "ensemble: expected true or false"),
            ({"seeds": [1, 1]}, "seeds: expected different whole numbers"),
            ({"seeds": 3}, "seeds: expected different whole numbers"),
            ({"cells": {"a/b": {}}}, "a cell is a folder"),
            ({"cells": {"..": {}}}, "a cell is a folder"),
            ({"cells": {}}, "cells: there are none"),
            ({"cells": {"a": ["b"]}}, "cells: a: expected options with their values"),
            ({"cells": "missing.yaml"}, "cells: no such file: missing.yaml"),
            ({"cells": {"a": {"seed": 3}}}, "cells: a: seed is chosen by the runner"),
            ({"cells": {"a": {"translate": {"n_best": 2}}}}, "n_best is chosen by the runner"),
            ({"cells": {"a": {"reset_optim": "all"}}}, "cells: a: reset_optim is chosen by"),
            (
                {"cells": {"one": {}, "two": {"begin_with": "won"}}},
                "two: begin_with: 'won' is not a cell before this one; did you mean 'one'?",
            ),
            ({"cells": {"one": {"begin_with": "one"}}}, "'one' is not a cell before this one"),
            ({"options": {"save_model": "x"}}, "options: save_model is chosen by the runner"),
            ({"base": "missing.yaml"}, "base: no such file: missing.yaml"),
        ],
    )
    def test_what_is_wrong_is_one_line(self, tmp_path, changes, message):
        line = refused(experiment.main, ["status", write_matrix(tmp_path, **changes)])
        assert message in line

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--only", "won"], "no cell 'won'; did you mean 'one'?"),
            (["--seeds", "7"], "seed 7 is not among [1, 2]"),
            (["--jobs", "0"], "--jobs: must be a whole number from 1"),
            (["--jobs", "2", "--cores", "0"], "must name 2 of the processors"),
            (["--cores", "a"], "--cores: expected numbers"),
        ],
    )
    def test_a_wrong_request_is_one_line(self, tmp_path, arguments, message):
        assert message in refused(experiment.main, ["run", write_matrix(tmp_path), *arguments])
        assert not (tmp_path / "runs").exists()

    def test_a_wrong_option_of_a_cell_is_told_before_anything_starts(self, tmp_path):
        path = write_matrix(tmp_path, cells={"one": {}, "two": {"learning_rat": 1}})
        line = refused(experiment.main, ["run", path])
        assert f"{path}: two: learning_rat: no such option" in line
        assert not (tmp_path / "runs" / "two").exists()
        assert not list((tmp_path / "runs").rglob("log.txt"))
        (tmp_path / "valid.src").unlink()
        assert "no such file" in refused(experiment.main, ["run", path])

    def test_a_wrong_option_of_the_decoding_too(self, tmp_path):
        path = write_matrix(tmp_path, translate={"beam_sise": 3})
        line = refused(experiment.main, ["run", path])
        assert "matrix.yaml: translate of one: beam_sise: no such option" in line
        assert not list((tmp_path / "runs").rglob("log.txt"))

    def test_tensorboard_of_a_run_is_in_its_folder(self, tmp_path):
        path = write_matrix(tmp_path, options={"tensorboard": True})
        for training in read(path).trainings():
            assert training.options()["tensorboard_log_dir"] == str(training.folder / "tensorboard")

    def test_what_a_cell_says_wins(self, tmp_path):
        cells = {"one": {}, "two": {"learning_rate": 0.5, "translate": {"beam_size": 7}}}
        path = write_matrix(tmp_path, cells=cells)
        with open(tmp_path / "toy.yaml", "a") as base:  # what the runner decides is not read
            base.write("overwrite: true\ntrain_from: elsewhere\n")
        matrix = read(path)
        one, two, *others = matrix.trainings()
        assert [each.name for each in others] == ["one seed 2", "two seed 2"]  # seed by seed
        assert [each.options()["learning_rate"] for each in (one, two)] == [0.01, 0.5]
        assert [each.cell.translation["beam_size"] for each in (one, two)] == [3, 7]
        assert not {"overwrite", "train_from"} & set(one.options())
        assert experiment.chosen(matrix, ["two"], []) == [two, others[1]]
        assert experiment.chosen(matrix, ["two"], [2]) == [others[1]]
        assert read(write_matrix(tmp_path, seeds=[1])).ensembles() == []

    def test_what_a_training_is_made_from(self, tmp_path):
        names = ["src_vocab", "tgt_embeddings", "both_embeddings", "tgt_subword_model"]
        files = {name: str(tmp_path / name) for name in names}
        training = read(write_matrix(tmp_path, options=files)).trainings()[0]
        texts = {str(tmp_path / f"train.{side}") for side in ("src", "tgt")}
        assert set(data_digests(training)) == texts | set(files.values())

    @pytest.mark.parametrize("path", MATRICES, ids=lambda path: path.stem)
    def test_the_matrices_of_the_repository(self, path, tmp_path, monkeypatch):
        matrices = read_all(path)
        monkeypatch.chdir(tmp_path)
        head = re.split(r"\n(?:base|pairs):", path.read_text())[0]
        calls = re.findall(r"onmt-entmax experiment (.*)", unbroken(head))
        assert f"run {path.relative_to(ROOT)}" in " ".join(calls)
        for call in calls:  # one that it does not understand ends the program
            experiment.parse_arguments(call.split())
        for matrix in matrices:
            for cell in matrix.cells:
                write_corpora(cell.training["data"].values(), "lang=english +V a")
                file = tmp_path / "config.yaml"
                file.write_text(yaml.safe_dump(matrix.training(cell, 1).options()))
                model = training_setup(["-config", str(file)]).model
                build_without_weights(model)
                alphas = {
                    "output": model.generator_alpha,
                    "attention": model.global_attention_alpha,
                }
                for layer, alpha in re.findall(r"(output|attention)-([\d.]+)", cell.name):
                    assert float(alpha) == alphas[layer]
            assert matrix.source.is_file()
            assert matrix.reference.is_file()

    @pytest.mark.parametrize("name", ["pilot", "medium", "high"])
    def test_the_papers_nine_cells_with_three_seeds(self, name):
        matrix = read(CONFIGURATIONS / f"matrix-{name}.yaml")
        assert len({cell.name for cell in matrix.cells}) == 9
        assert len(matrix.trainings()) == 27
        assert len(matrix.ensembles()) == 9
