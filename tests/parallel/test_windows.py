"""Windows: the parts of a file that several processes translate."""

import math

from hypothesis import given
from hypothesis import strategies as st

from onmt_entmax.parallel.processes import Processes
from onmt_entmax.parallel.windows import Windows

FILE_LENGTHS = st.integers(1, 200_000)  # lines
PROCESS_COUNTS = st.integers(1, 70)


def first_of(count: int) -> Processes:
    """Return the first of some processes, of which none is started."""
    first = Processes()
    first.count = count
    return first


@given(lines=FILE_LENGTHS, count=PROCESS_COUNTS)
def test_windows_are_large_enough_for_batches_and_small_enough_to_stream(
    lines: int, count: int
) -> None:
    assert 1024 <= Windows.of(lines, first_of(count)).size <= 4096


@given(lines=FILE_LENGTHS, count=PROCESS_COUNTS)
def test_windows_do_not_depend_on_the_number_of_processes(lines: int, count: int) -> None:
    assert Windows.of(lines, first_of(count)).size == Windows.of(lines, first_of(1)).size


@given(lines=FILE_LENGTHS, count=PROCESS_COUNTS)
def test_every_window_has_one_process(lines: int, count: int) -> None:
    size = Windows.of(lines, first_of(count)).size
    for window in range(math.ceil(lines / size)):
        owners = [rank for rank in range(count) if Windows(size, rank, count).has(window)]
        assert len(owners) == 1


@given(lines=st.integers(16 * 1024, 200_000))
def test_a_long_file_has_work_for_fifteen_processes(lines: int) -> None:
    size = Windows.of(lines, first_of(1)).size
    assert math.ceil(lines / size) >= 15
