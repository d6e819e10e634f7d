"""Fixtures of several commands: small models, cells of paradigms, and an empty current folder."""

import os
from pathlib import Path

import pytest
from filelock import FileLock

from onmt_entmax import Inflector, SearchConfig, SearchTask, Transducer, Translator
from onmt_entmax.cli import predict_tables
from onmt_entmax.strings.cells import cells_text
from tests.cli.automata import Key
from tests.cli.directions import RIGHT_TO_LEFT
from tests.cli.paradigms import CELLS, LEMMAS, Writer
from tests.cli.predicting import SOURCES
from tests.cli.stock_models import MODELS, StockModel, train_stock
from tests.cli.tables import write_table
from tests.cli.translating import UnsureLine
from tests.commands import succeed
from tests.inflection_models import write_model
from tests.string_models import write_phones


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def windows_of_two_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `predict` write its output after every two rows, rather than after many."""
    monkeypatch.setattr(predict_tables, "WINDOW", 2)


@pytest.fixture(scope="session")
def toy_run(trained: Path) -> Path:
    """The run folder of a model that reverses letters; tests only read it."""
    return trained / "run"


@pytest.fixture(scope="session")
def toy_source(trained: Path) -> str:
    """The development text of that model."""
    return (trained / "valid.src").read_text()


@pytest.fixture(scope="session")
def unsure_lines(toy_run: Path, toy_source: str) -> list[UnsureLine]:
    """Lines of that text with four possible outputs or more, the least sure first.

    Most lines have a single one. Which have more depends a little on the machine that trained the
    model.
    """
    task = SearchTask(SearchConfig(n_best=0), method="enumerate")
    unsure = []
    for answer in Translator.from_folders(toy_run, task).answers(toy_source.splitlines()):
        outputs = {output.text: output.hypothesis.prob for output in answer.hypotheses}
        if len(outputs) >= 4:
            unsure.append(UnsureLine(answer.source, outputs))
    assert len(unsure) >= 2
    return sorted(unsure, key=lambda line: line.best_probability)


@pytest.fixture(scope="session")
def inflection_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random model of inflection; tests only read it."""
    return write_model(tmp_path_factory.mktemp("inflection") / "model", 22)


@pytest.fixture(scope="session")
def phones_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a random model of pronunciations; tests only read it."""
    return write_phones(tmp_path_factory.mktemp("phones") / "model", 12, end=0)


@pytest.fixture(scope="session")
def listable_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of pronunciations with so few outputs that a search lists all; tests only read it."""
    return write_phones(tmp_path_factory.mktemp("listable") / "model", 12, end=3)


@pytest.fixture(scope="session")
def best_targets(phones_model: Path) -> dict[str, str]:
    """The best output of `phones_model` for each of `SOURCES`, some of several symbols."""
    transducer = Transducer(phones_model)
    targets = {source: transducer.predict(source).text for source in SOURCES}
    assert any(" " in target for target in targets.values())
    return targets


@pytest.fixture(scope="session")
def paradigm_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model with a handful of forms for a cell; tests only read it."""
    return write_model(tmp_path_factory.mktemp("paradigm") / "model", 4, end=4)


@pytest.fixture(scope="session")
def cells_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of `CELLS`; tests only read it."""
    path = tmp_path_factory.mktemp("cells") / "cells.tsv"
    path.write_text(cells_text(CELLS), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def lemmas_writer(
    paradigm_model: Path, cells_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Writer:
    """Writes the paradigms of `LEMMAS`, from a table of which only the first column is read."""
    folder = tmp_path_factory.mktemp("paradigms")
    first, second = LEMMAS
    lemmas = write_table(folder / "lemmas.tsv", first, f"{second}\tV")
    return Writer(paradigm_model, cells_file, folder, "--lemmas", lemmas)


@pytest.fixture(scope="session")
def cell_probs(paradigm_model: Path) -> dict[Key, float]:
    """The probability of every form of these lemmas in its cell, by `paradigm_model`."""
    inflector = Inflector(paradigm_model, n_best=0)
    return {
        (lemma, ";".join(tags), form.text): form.prob
        for lemma in LEMMAS
        for tags in CELLS["german"]
        for form in inflector.inflect("german", lemma, tags).forms
    }


@pytest.fixture(scope="session")
def left_to_right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose forms are not palindromes; tests only read it."""
    return write_model(tmp_path_factory.mktemp("left-to-right") / "model", 5, end=1)


@pytest.fixture(scope="session")
def right_to_left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with the weights of `left_to_right`, writing right to left; tests only read it."""
    folder = tmp_path_factory.mktemp("right-to-left") / "model"
    return write_model(folder, 5, end=1, options=RIGHT_TO_LEFT)


@pytest.fixture(scope="session", params=MODELS)
def stock_model(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> StockModel:
    """A model that stock OpenNMT-py has trained, and that is imported; tests only read it.

    The processes of pytest-xdist share it, since a training takes seconds.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # of all workers
    folder = shared / f"stock-{request.param}"
    model = StockModel.in_folder(folder, request.param)
    with FileLock(shared / f"{request.param}.lock"):
        if not model.imported.exists():  # which is written whole or not at all
            folder.mkdir(exist_ok=True)
            train_stock(folder, MODELS[request.param])
            printed = succeed(
                "onmt_entmax", "import-onmt", model.checkpoint, model.imported, "--yes"
            )
            assert "weights" in printed
    return model
