"""The names that the package offers."""

from pathlib import Path
from types import ModuleType

import pytest
import torch

import onmt_entmax
import onmt_entmax.sparse
from onmt_entmax.errors import UserError


def test_the_modules_are_the_functions() -> None:
    scores, target = torch.randn(3, 5), torch.tensor([0, 4, 2])
    layer = onmt_entmax.Entmax(1.5, dim=0)
    assert layer(scores).equal(onmt_entmax.entmax(scores, 1.5, dim=0))
    loss = onmt_entmax.EntmaxLoss(alpha=1.5, reduction="sum")
    expected = onmt_entmax.entmax_loss(scores, target, 1.5, reduction="sum")
    assert loss(scores, target).equal(expected)


@pytest.mark.parametrize("module", [onmt_entmax, onmt_entmax.sparse])
def test_public_names_alone_are_completed(module: ModuleType) -> None:
    assert dir(module) == sorted(module.__all__)
    assert all(getattr(module, name).__doc__ for name in module.__all__)


class Above1(torch.nn.Module):
    def forward(self, a: torch.Tensor) -> torch.Tensor:
        return 1 + a.sigmoid()


def test_an_alpha_may_be_a_parameter_of_a_module() -> None:
    alpha = torch.nn.Parameter(torch.full((2, 1), 1.5))
    layer = onmt_entmax.Entmax(alpha)
    assert list(layer.parameters()) == [alpha]
    assert repr(layer) == "Entmax(alpha=tensor(2, 1), dim=-1)"
    layer(torch.randn(2, 5)).square().sum().backward()
    assert alpha.grad is not None
    assert "alpha=tensor(2, 1)" in repr(onmt_entmax.EntmaxLoss(alpha))
    torch.nn.utils.parametrize.register_parametrization(layer, "alpha", Above1())
    with torch.no_grad():
        layer.parametrizations["alpha"].original.fill_(-99)
    torch.testing.assert_close(layer(torch.eye(2)), torch.eye(2).softmax(-1))


def test_one_folder_or_several_as_text_or_as_a_path() -> None:
    folder = Path(__file__).parent / "data" / "model_1.0"
    line = (folder.parent / "source.txt").read_text(encoding="utf-8").splitlines()[0]
    texts = set()
    for given in (folder, str(folder), [str(folder)]):
        translator = onmt_entmax.Translator.from_folders(given)
        texts |= {hypothesis.text for hypothesis in next(translator.answers([line])).hypotheses}
    assert len(texts) == 1
    assert onmt_entmax.load(str(folder)).vocabularies == translator.vocabularies
    with pytest.raises(TypeError, match="give a list"):
        next(translator.answers(line))
    with pytest.raises(TypeError, match="line 2 is bytes; decode it"):
        next(translator.answers([line, line.encode()]))
    with pytest.raises(ValueError, match="batch_size must be at least 1, not -1"):
        next(translator.answers([line], batch_size=-1))
    with pytest.raises(UserError, match="no model is named"):
        onmt_entmax.Translator.from_folders([])


def test_autocast_of_the_caller_changes_no_translation() -> None:
    folder = Path(__file__).parent / "data" / "model_1.0"
    line = (folder.parent / "source.txt").read_text(encoding="utf-8").splitlines()[0]
    translator = onmt_entmax.Translator.from_folders(folder)
    (plain,), loaded = translator.answers([line]), onmt_entmax.load(folder)
    suggested = onmt_entmax.suggest(loaded, line)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (other,) = translator.answers([line])
        assert onmt_entmax.suggest(loaded, line) == suggested
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    assert other == plain
