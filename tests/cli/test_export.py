"""`onmt-entmax export`: a clean folder that translates alike, and names nothing of this machine."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from onmt_entmax.checkpoint import find_model, load, save
from onmt_entmax.cli import translate
from onmt_entmax.files.checksums import differences
from onmt_entmax.model import build_model
from tests.cli.exporting import export, mentions
from tests.in_process import success
from tests.inflection_models import write_model
from tests.models import BRNN, VOCABULARIES, vocabularies_of


class Exported(NamedTuple):
    """The exported folder of a run."""

    run: Path
    folder: Path
    dtype: str


@pytest.fixture(scope="module", params=["float32", "float16", "bfloat16"])
def exported(
    request: pytest.FixtureRequest, toy_run: Path, tmp_path_factory: pytest.TempPathFactory
) -> Exported:
    folder = tmp_path_factory.mktemp("export") / "exported"
    export(toy_run, folder, "--dtype", request.param)
    return Exported(toy_run, folder, request.param)


def translated(model: Path, source: Path, output: Path) -> str:
    """Return the translations of a text by a model, which are written to the output."""
    files = ["-model", model, "-src", source, "-output", output]
    success(translate.main, [*files, "-beam_size", 5])
    return output.read_text()


@pytest.fixture(scope="module")
def expected(toy_run: Path, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The translations of the development text by the run."""
    output = tmp_path_factory.mktemp("expected") / "out"
    expected = translated(toy_run, trained / "valid.src", output)
    assert expected
    return expected


def test_an_exported_model_translates_as_the_run_does(
    exported: Exported, expected: str, trained: Path, tmp_path: Path
) -> None:
    assert translated(exported.folder, trained / "valid.src", tmp_path / "out") == expected


def test_exported_weights_are_those_of_the_run_rounded(exported: Exported) -> None:
    weights = load(exported.folder).model.state_dict()
    for name, weight in load(exported.run).model.state_dict().items():
        assert weights[name].equal(weight.to(getattr(torch, exported.dtype)).float())


BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}  # of a number


def test_weights_take_the_space_of_their_type(exported: Exported) -> None:
    """The run has float32. The names of the weights take the same space in every file."""
    size = (exported.folder / "model.safetensors").stat().st_size
    size_of_run = (find_model(exported.run) / "model.safetensors").stat().st_size
    share = BYTES[exported.dtype] / BYTES["float32"]
    assert share <= size / size_of_run < share + 0.1


def test_an_exported_folder_has_what_others_need_and_nothing_else(exported: Exported) -> None:
    names = sorted(path.name for path in exported.folder.iterdir())
    assert names == ["README.md", "SHA256SUMS", "config.yaml", "model.safetensors", "vocab.json"]


def test_an_exported_folder_has_its_checksums(exported: Exported) -> None:
    assert differences(exported.folder) == []


def test_an_exported_folder_names_no_path_of_this_machine(
    exported: Exported, trained: Path
) -> None:
    """The run itself names the paths of its training."""
    assert mentions(find_model(exported.run), str(trained))
    assert not mentions(exported.folder, str(trained))


def test_the_card_has_the_updates_of_the_best_checkpoint(exported: Exported) -> None:
    best = find_model(exported.run).name.removeprefix("step_")
    assert f"| updates | {best} |" in (exported.folder / "README.md").read_text()


# --- models of tables ---

TABLE = {
    "task": {"columns": ["source", "target"], "separators": {"target": " "}},
    "target_order": "right_to_left",
    "copy_frequency": 2,
}


@pytest.fixture
def exported_table(tmp_path: Path) -> Path:
    """The exported folder of a model of tables."""
    save(tmp_path / "model", build_model(BRNN, VOCABULARIES), BRNN, VOCABULARIES, TABLE)
    export(tmp_path / "model", tmp_path / "exported")
    return tmp_path / "exported"


def test_an_exported_model_of_tables_has_the_task_of_its_options(exported_table: Path) -> None:
    task = load(exported_table).task
    assert task.copies
    assert task.target.separator == " "
    assert task.right_to_left


PREDICT = "onmt-entmax predict exported TABLE --output PREDICTED"
INFLECT = "onmt-entmax inflect --model exported LANGUAGE LEMMA TAGS"
COLUMNS = {"columns": ["source", "target"]}
TAGGED = {"columns": ["source", "target", "tags"]}
SPACED = {"target": " "}


@pytest.mark.parametrize(
    ("first_token", "task", "command"),
    [
        pytest.param("a", COLUMNS, PREDICT, id="no languages"),
        pytest.param("lang=deu", COLUMNS | {"separators": SPACED}, PREDICT, id="pronunciations"),
        pytest.param("lang=deu", COLUMNS, PREDICT, id="spellings"),
        pytest.param("lang=deu", TAGGED, INFLECT, id="inflections"),
        pytest.param("lang=deu", None, INFLECT, id="inflections of release 1.0"),
    ],
)
def test_the_card_of_a_model_of_tables_names_its_command(
    tmp_path: Path, first_token: str, task: dict[str, object] | None, command: str
) -> None:
    vocabularies = vocabularies_of((first_token, *"bc"), "bc")
    options = {} if task is None else {"task": task}
    model = write_model(tmp_path / "model", 1, vocabularies, options=options)
    export(model, tmp_path / "exported")
    assert command in (tmp_path / "exported/README.md").read_text()


def test_the_commands_of_a_card_quote_the_name_of_the_folder(tmp_path: Path) -> None:
    save(tmp_path / "model", build_model(BRNN, VOCABULARIES), BRNN, VOCABULARIES, {})
    export(tmp_path / "model", tmp_path / "my model")
    card = (tmp_path / "my model" / "README.md").read_text()
    assert "\nonmt-entmax verify 'my model'\n" in card
    assert "\nonmt-entmax translate -model 'my model' -src FILE -output FILE\n" in card
