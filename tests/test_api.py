"""The names that the package offers."""

import subprocess
import sys

import pytest
import torch

import onmt_entmax


@pytest.mark.parametrize("name", onmt_entmax.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(onmt_entmax, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = onmt_entmax.nothing


def test_the_functions_do_not_import_opennmt() -> None:
    """Whoever wants `entmax` alone does not wait for OpenNMT-py, and sees no warning of it."""
    code = "import sys, onmt_entmax; onmt_entmax.entmax; print('onmt' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("False", "")


def test_the_modules_are_the_functions() -> None:
    scores, target = torch.randn(3, 5), torch.tensor([0, 4, 2])
    layer = onmt_entmax.Entmax(1.5, dim=0)
    assert layer(scores).equal(onmt_entmax.entmax(scores, 1.5, dim=0))
    loss = onmt_entmax.EntmaxLoss(alpha=1.5, reduction="sum")
    expected = onmt_entmax.entmax_loss(scores, target, 1.5, reduction="sum")
    assert loss(scores, target).equal(expected)
