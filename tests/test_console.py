"""Where a run computes."""

import pytest
import torch

from onmt_entmax.processes import device_for


@pytest.mark.parametrize(("gpu", "local_rank", "expected"), [(1, None, 1), (0, 2, 2), (3, 0, 0)])
def test_the_gpu_that_is_taken_is_the_current_one(
    gpu: int, local_rank: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else events, and what processes exchange, are on the first."""
    current = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    assert device_for(gpu, local_rank) == torch.device("cuda", expected)
    assert current == [torch.device("cuda", expected)]
    assert device_for(None) == torch.device("cpu")
