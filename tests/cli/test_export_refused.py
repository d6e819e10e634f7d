"""What `onmt-entmax export` refuses: in one line, and without an output."""

from pathlib import Path

import pytest
import torch

from onmt_entmax.checkpoint import find_model, save
from onmt_entmax.cli.export import main
from onmt_entmax.model import build_model
from tests.in_process import refusal
from tests.models import BRNN, VOCABULARIES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            {"src_subword_model": "gone.codes"},
            "is not a file of this folder",
            id="missing subword model",
        ),
        pytest.param(
            {"src_onmttok_kwargs": "{'bpe_model_path': '/home/somebody/bpe.codes'}"},
            "src_onmttok_kwargs: bpe_model_path: name it in src_subword_model",
            id="path in a mapping",
        ),
    ],
)
def test_subwords_outside_of_the_model_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    save(Path("model"), build_model(BRNN, VOCABULARIES), BRNN, VOCABULARIES, options)
    assert message in refusal(main, ["model", "out"])
    assert not Path("out").exists()


def test_a_weight_that_half_precision_cannot_hold_is_refused(tmp_path: Path) -> None:
    model = build_model(BRNN, VOCABULARIES)
    with torch.no_grad():
        model.generator.bias[0] = 1e6  # float16 ends at 65,504
    save(tmp_path / "model", model, BRNN, VOCABULARIES, {})
    message = refusal(main, [tmp_path / "model", tmp_path / "out", "--dtype", "float16"])
    assert "is too large for float16; export as bfloat16" in message
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "no such model folder" in refusal(main, [tmp_path / "nothing", tmp_path / "out"])
    assert not (tmp_path / "out").exists()


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    save(tmp_path / "model", build_model(BRNN, VOCABULARIES), BRNN, VOCABULARIES, {})
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").write_text("mine")
    message = refusal(main, [tmp_path / "model", tmp_path / "out"])
    assert "exists already; name a new folder" in message
    assert [path.read_text() for path in (tmp_path / "out").iterdir()] == ["mine"]


@pytest.mark.parametrize("source", ["run", "run/step_3"])
@pytest.mark.parametrize(
    ("best", "message"),
    [
        pytest.param("{", "best.json: not valid JSON", id="half"),
        pytest.param("[]", "best.json: damaged", id="list"),
        pytest.param('{"step": 3}', "best.json: damaged", id="no metric"),
        pytest.param(
            '{"step": 3, "metric": "bleu", "value": "x"}', "best.json: damaged", id="text as value"
        ),
        pytest.param(
            '{"step": 3, "metric": 1, "value": 1}', "best.json: damaged", id="number as metric"
        ),
        pytest.param(
            '{"step": 3, "metric": "bleu", "value": [1]}',
            "best.json: damaged",
            id="list as value",
        ),
    ],
)
def test_a_damaged_record_of_the_best_checkpoint_is_refused(
    tmp_path: Path, best: str, message: str, source: str
) -> None:
    """The run is exported by its folder, or by that of its checkpoint."""
    model = build_model(BRNN, VOCABULARIES)
    save(tmp_path / "run" / "step_3", model, BRNN, VOCABULARIES, {})
    (tmp_path / "run" / "best.json").write_text(best)
    assert message in refusal(main, [tmp_path / source, tmp_path / "out"])
    assert not (tmp_path / "out").exists()


def test_a_folder_in_that_of_the_model_is_refused(toy_run: Path) -> None:
    inner = find_model(toy_run) / "x"
    assert "is in the folder of the model" in refusal(main, [toy_run, inner])
    assert not inner.exists()
