"""The names that the package offers."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

import onmt_entmax
import onmt_entmax.sparse
from onmt_entmax.errors import UserError

FOLDER = Path(__file__).parent / "data" / "model_1.0"


@pytest.fixture(scope="module")
def line() -> str:
    """A source of the model's task."""
    return (FOLDER.parent / "source.txt").read_text(encoding="utf-8").splitlines()[0]


def test_the_module_of_the_mapping_is_the_function() -> None:
    scores = torch.randn(3, 5)
    layer = onmt_entmax.Entmax(1.5, dim=0)
    assert layer(scores).equal(onmt_entmax.entmax(scores, 1.5, dim=0))


def test_the_module_of_the_loss_is_the_function() -> None:
    scores, target = torch.randn(3, 5), torch.tensor([0, 4, 2])
    loss = onmt_entmax.EntmaxLoss(alpha=1.5, reduction="sum")
    expected = onmt_entmax.entmax_loss(scores, target, 1.5, reduction="sum")
    assert loss(scores, target).equal(expected)


@pytest.mark.parametrize("module", [onmt_entmax, onmt_entmax.sparse])
def test_public_names_alone_are_completed(module: ModuleType) -> None:
    assert dir(module) == sorted(module.__all__)


@pytest.mark.parametrize("module", [onmt_entmax, onmt_entmax.sparse])
def test_public_names_are_documented(module: ModuleType) -> None:
    assert all(getattr(module, name).__doc__ for name in module.__all__)


class Above1(torch.nn.Module):
    def forward(self, a: torch.Tensor) -> torch.Tensor:
        return 1 + a.sigmoid()


class TestAnAlphaThatIsAParameter:
    @pytest.fixture
    def alpha(self) -> torch.nn.Parameter:
        return torch.nn.Parameter(torch.full((2, 1), 1.5))

    def test_is_one_of_the_module(self, alpha: torch.nn.Parameter) -> None:
        assert list(onmt_entmax.Entmax(alpha).parameters()) == [alpha]

    def test_has_a_gradient(self, alpha: torch.nn.Parameter) -> None:
        onmt_entmax.Entmax(alpha)(torch.randn(2, 5)).square().sum().backward()
        assert alpha.grad is not None

    def test_is_shown_by_its_shape(self, alpha: torch.nn.Parameter) -> None:
        assert repr(onmt_entmax.Entmax(alpha)) == "Entmax(alpha=tensor(2, 1), dim=-1)"
        assert "alpha=tensor(2, 1)" in repr(onmt_entmax.EntmaxLoss(alpha))

    def test_may_be_parametrized(self, alpha: torch.nn.Parameter) -> None:
        """At -99, the parametrization gives alpha 1: softmax."""
        layer = onmt_entmax.Entmax(alpha)
        torch.nn.utils.parametrize.register_parametrization(layer, "alpha", Above1())
        with torch.no_grad():
            layer.parametrizations["alpha"].original.fill_(-99)
        torch.testing.assert_close(layer(torch.eye(2)), torch.eye(2).softmax(-1))


@pytest.mark.parametrize("folders", [FOLDER, str(FOLDER), [str(FOLDER)]], ids=repr)
def test_one_folder_or_several_as_text_or_as_a_path(folders: object, line: str) -> None:
    translator = onmt_entmax.Translator.from_folders(folders)
    (answer,) = translator.answers([line])
    (expected,) = onmt_entmax.Translator.from_folders([FOLDER]).answers([line])
    assert [each.text for each in answer.hypotheses] == [each.text for each in expected.hypotheses]


def test_a_folder_to_load_may_be_text() -> None:
    assert onmt_entmax.load(str(FOLDER)).vocabularies == onmt_entmax.load(FOLDER).vocabularies


def test_no_folder_is_an_error() -> None:
    with pytest.raises(UserError, match="no model is named"):
        onmt_entmax.Translator.from_folders([])


class TestWrongArguments:
    @pytest.fixture(scope="class")
    def translator(self) -> onmt_entmax.Translator:
        return onmt_entmax.Translator.from_folders(FOLDER)

    def test_one_line_in_place_of_a_list(self, translator, line: str) -> None:
        with pytest.raises(TypeError, match="give a list"):
            next(translator.answers(line))

    def test_a_line_of_bytes(self, translator, line: str) -> None:
        with pytest.raises(TypeError, match="line 2 is bytes; decode it"):
            next(translator.answers([line, line.encode()]))

    def test_a_negative_size_of_batches(self, translator, line: str) -> None:
        with pytest.raises(ValueError, match="batch_size must be at least 1, not -1"):
            next(translator.answers([line], batch_size=-1))


class TestAutocastOfTheCaller:
    @pytest.fixture
    def autocast(self) -> Iterator[None]:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
            yield

    def test_changes_no_translation(self, autocast: None, line: str) -> None:
        translator = onmt_entmax.Translator.from_folders(FOLDER)
        (answer,) = translator.answers([line])
        with torch.autocast("cpu", enabled=False):
            (expected,) = translator.answers([line])
        assert answer == expected

    def test_changes_no_suggestion(self, autocast: None, line: str) -> None:
        model = onmt_entmax.load(FOLDER)
        suggestion = onmt_entmax.suggest(model, line)
        with torch.autocast("cpu", enabled=False):
            assert onmt_entmax.suggest(model, line) == suggestion
