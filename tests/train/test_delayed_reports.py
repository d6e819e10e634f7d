"""Reports of updates, which are read some updates later, so that nothing waits for a GPU."""

import pytest
import torch

from onmt_entmax.train.reports import Report, Reports

STEPS = 7
FIELDS = len(Report._fields)


def report_of(step: int) -> Report:
    """Return a report all of whose fields are the number of its step."""
    return Report(*[step] * FIELDS)


def test_reports_of_a_cpu_have_no_delay() -> None:
    assert Reports(torch.device("cpu")).delay == 0


@pytest.fixture(params=[0, 1, 3])
def reports(request: pytest.FixtureRequest) -> Reports:
    """Reports that are read so many updates later, as on a GPU."""
    reports = Reports(torch.device("cpu"))
    reports.delay = request.param
    return reports


def test_a_report_is_read_once_so_many_later_ones_are_sent(reports: Reports) -> None:
    """All are sent from the same memory, which the next one overwrites."""
    memory = torch.zeros(FIELDS)
    for step in range(STEPS):
        reports.send(step, memory.fill_(step))
        due = step - reports.delay
        assert list(reports.read()) == ([(due, report_of(due))] if due >= 0 else [])


def test_all_reports_can_be_read_at_once_in_their_order(reports: Reports) -> None:
    for step in range(STEPS):
        reports.send(step, torch.full((FIELDS,), float(step)))
    expected = [(step, report_of(step)) for step in range(STEPS)]
    assert list(reports.read(everything=True)) == expected


def test_a_report_is_read_only_once(reports: Reports) -> None:
    reports.send(0, torch.zeros(FIELDS))
    assert len(list(reports.read(everything=True))) == 1
    assert list(reports.read(everything=True)) == []
