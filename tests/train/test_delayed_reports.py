"""Reports of updates, which are read some updates later, so that nothing waits for a GPU."""

import pytest
import torch

from onmt_entmax.train.reports import Report, Reports

STEPS = 7


def test_reports_of_a_cpu_have_no_delay() -> None:
    assert Reports(torch.device("cpu")).delay == 0


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_reports_arrive_in_order_and_in_time(delay: int) -> None:
    """All are sent from the same memory, which the next one overwrites."""
    reports = Reports(torch.device("cpu"))
    reports.delay = delay
    fields = len(Report._fields)
    memory = torch.zeros(fields)
    expected = [(step, Report(*[step] * fields)) for step in range(STEPS)]
    received = []
    for step in range(STEPS):
        reports.send(step, memory.fill_(step))
        received += reports.read()
        assert received == expected[: max(0, step + 1 - delay)]
    received += reports.read(everything=True)
    assert received == expected
    assert not list(reports.read(everything=True))
