"""The figure of sparsity by the frequency of tokens, `tools.papers.figure_sparsity`."""

from tools.papers.figure_sparsity import MIN_STEPS, draw_ranks
from tools.papers.plotting import pyplot
from tools.papers.sparsity import GroupMean

ENOUGH, FEW = MIN_STEPS, MIN_STEPS - 1


def test_means_of_few_steps_are_not_drawn() -> None:
    """Only the other model has enough steps in the class 11-100."""
    models: list[dict[str, GroupMean]] = [
        {"1-10": {"steps": ENOUGH, "mean": 1.0}, "11-100": {"steps": FEW, "mean": 2.0}},
        {"1-10": {"steps": FEW, "mean": 3.0}, "11-100": {"steps": ENOUGH, "mean": 4.0}},
    ]
    _, axis = pyplot.subplots()
    draw_ranks(axis, models)
    points = [list(zip(*line.get_data(), strict=True)) for line in axis.lines]
    assert points == [[(0, 1.0)], [(1, 4.0)]]
