"""The PyTorch solvers above alpha 2, recorded in a graph that is run with other scores."""

import pytest
import torch
from torch import Tensor

from onmt_entmax.sparse import reference


# The warnings say that sizes become constants of the graph, which this test shows not to matter.
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize(
    "alpha",
    [
        pytest.param(3.0, id="an alpha"),
        pytest.param(torch.tensor([[1.5], [3.0], [1.0], [2.25]]), id="an alpha for each row"),
    ],
)
@pytest.mark.parametrize("length", [1, 9, 300], ids=lambda length: f"{length} scores")
def test_a_recorded_graph_solves_rows_of_any_length(alpha: float | Tensor, length: int) -> None:
    """The graph is recorded with rows of 9 scores."""
    graph = torch.jit.trace(
        lambda scores: reference.mapping(scores, alpha, logs=False),
        torch.randn(4, 9),
        check_trace=False,
    )
    scores = torch.randn(4, length)
    with torch.jit.optimized_execution(False):  # optimising the graph takes seconds
        p = graph(scores)
    torch.testing.assert_close(p, reference.mapping(scores, alpha, logs=False))
