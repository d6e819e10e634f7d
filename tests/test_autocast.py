"""Autocast of the caller changes neither a translation nor a suggestion."""

from collections.abc import Iterator

import pytest
import torch

from onmt_entmax import Translator, load, suggest
from tests.reversing_model import FOLDER


@pytest.fixture
def line() -> str:
    """A source of the model's task."""
    return (FOLDER.parent / "source.txt").read_text(encoding="utf-8").splitlines()[0]


@pytest.fixture
def autocast() -> Iterator[None]:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
        yield


@pytest.mark.usefixtures("autocast")
def test_a_translation_is_as_without_autocast(line: str) -> None:
    translator = Translator.from_folders(FOLDER)
    (answer,) = translator.answers([line])
    with torch.autocast("cpu", enabled=False):
        (expected,) = translator.answers([line])
    assert answer == expected


@pytest.mark.usefixtures("autocast")
def test_a_suggestion_is_as_without_autocast(line: str) -> None:
    model = load(FOLDER)
    suggestion = suggest(model, line)
    with torch.autocast("cpu", enabled=False):
        assert suggest(model, line) == suggestion
