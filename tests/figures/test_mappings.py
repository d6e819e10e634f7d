"""The figure of the mappings: curves, dots of saturation, areas."""

import torch

from onmt_entmax.figures.mappings import draw_mappings
from onmt_entmax.figures.style import prepare
from onmt_entmax.sparse import entmax


def test_curves_and_where_they_saturate():
    prepare()
    figure = draw_mappings([1, 1.5, 2])
    curves, _, sparsemax, _ = figure.axes
    lines = {
        str(line.get_label()): line for line in curves.get_lines() if len(line.get_xdata()) > 2
    }
    assert list(lines) == ["softmax", "alpha 1.5", "sparsemax"]
    t, p = (torch.as_tensor(values) for values in lines["sparsemax"].get_data())
    torch.testing.assert_close(p, ((t + 1) / 2).clamp(0, 1))
    dots = [line.get_xdata().tolist() for line in curves.get_lines() if len(line.get_xdata()) == 2]
    assert dots == [[-2, 2], [-1, 1]]
    for text in sparsemax.texts:
        x, y = text.get_position()
        scores = torch.tensor([x, y, 0.0])
        assert str(int((entmax(scores, 2) > 0).sum())) == text.get_text()
