"""What does not fit in the free memory is refused: that of the machine, and that of a container."""

from pathlib import Path

import pytest
import torch

from onmt_entmax import free_memory
from onmt_entmax.free_memory import check_free

CPU = torch.device("cpu")
BEYOND_ANY_MACHINE = 10**18  # bytes
GB = 10**9
FITS_MACHINE = "MemAvailable: 9000000 kB\nSwapFree: 0 kB\n"  # nine gigabytes and some more


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of Linux that say how much memory is free.

    `meminfo` stands in for /proc/meminfo, `own` for /proc/self/cgroup, and the folder `groups` for
    /sys/fs/cgroup. None of them is there until a test writes it.
    """
    monkeypatch.setattr(free_memory, "_MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(free_memory, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(free_memory, "_GROUPS", tmp_path / "groups")
    return tmp_path


# --- the machine -----------------------------------------------------------------------------


def test_more_memory_than_is_free_is_refused(system: Path) -> None:
    (system / "meminfo").write_text("MemAvailable: 1000000 kB\nSwapFree: 900000 kB\n")
    with pytest.raises(MemoryError, match=r"needs 2\.0 GB, 1\.9 GB are free"):
        check_free(2 * GB, CPU)


def test_free_swap_counts_as_free_memory(system: Path) -> None:
    (system / "meminfo").write_text("MemAvailable: 1000000 kB\nSwapFree: 1100000 kB\n")
    check_free(2 * GB, CPU)


def test_no_memory_is_refused_if_linux_is_too_old_to_tell(system: Path) -> None:
    (system / "meminfo").write_text("MemFree: 1000000 kB\nSwapFree: 0 kB\n")
    check_free(BEYOND_ANY_MACHINE, CPU)


@pytest.mark.usefixtures("system")
def test_no_memory_is_refused_on_a_system_that_does_not_tell() -> None:
    check_free(BEYOND_ANY_MACHINE, CPU)


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="only Linux tells its free memory")
def test_more_memory_than_this_machine_has_is_refused() -> None:
    with pytest.raises(MemoryError, match=r"needs 1,000,000,000\.0 GB, .* GB are free"):
        check_free(BEYOND_ANY_MACHINE, CPU)


# --- containers ------------------------------------------------------------------------------

OWN_GROUPS = {
    1: "5:devices:/a\n4:cpuset,memory:/docker/abc\n0::/\n",  # some hierarchies are not of memory
    2: "0::/docker/abc\n",
}
ROOTS = {1: "groups/memory", 2: "groups"}


def write_group(group: Path, version: int, limit: int | str, used: int, cached: int = 0) -> None:
    """Write the files of a control group.

    Args:
        group: its folder.
        version: version of control groups, 1 or 2.
        limit: bytes that the group may use, or `max`.
        used: bytes that it uses.
        cached: how many of these are copies of files. A tenth of them is in frequent use.
    """
    group.mkdir(parents=True)
    if version == 1:
        names, prefix = ("memory.limit_in_bytes", "memory.usage_in_bytes"), "total_"
        more = "active_file 1\ninactive_file 1\n"  # of the group without those inside it
    else:
        names, prefix, more = ("memory.max", "memory.current"), "", "anon 1\n"
    for name, value in zip(names, (limit, used), strict=True):
        (group / name).write_text(f"{value}\n")
    active = cached // 10
    (group / "memory.stat").write_text(
        f"{more}{prefix}active_file {active}\n{prefix}inactive_file {cached - active}\n"
    )


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest, system: Path) -> int:
    """A version of control groups, for a process in a container on a machine with nine gigabytes.

    No group has a limit until a test writes one.
    """
    version: int = request.param
    (system / "meminfo").write_text(FITS_MACHINE)
    (system / "own").write_text(OWN_GROUPS[version])
    return version


def test_a_process_in_no_container_has_the_memory_of_the_machine(
    system: Path, version: int
) -> None:
    """The group has no limit, which version 1 writes as a number beyond any machine."""
    unlimited = 2**63 - 4096 if version == 1 else "max"
    write_group(system / ROOTS[version] / "docker/abc", version, unlimited, used=2 * GB)
    check_free(9 * GB, CPU)


def test_the_limit_of_a_container_is_obeyed(system: Path, version: int) -> None:
    write_group(system / ROOTS[version] / "docker/abc", version, limit=4 * GB, used=1 * GB)
    check_free(3 * GB, CPU)
    with pytest.raises(MemoryError, match=r"needs 3\.1 GB, 3\.0 GB are free"):
        check_free(3_100_000_000, CPU)


def test_copies_of_files_in_a_container_count_as_free(system: Path, version: int) -> None:
    """A training that has read its data would otherwise find its container full."""
    group = system / ROOTS[version] / "docker/abc"
    write_group(group, version, limit=4 * GB, used=4 * GB, cached=2 * GB)
    check_free(2 * GB, CPU)


def test_the_limit_of_an_outer_group_is_obeyed(system: Path, version: int) -> None:
    outer = system / ROOTS[version] / "docker"
    write_group(outer, version, limit=4 * GB, used=3 * GB)
    write_group(outer / "abc", version, limit=4 * GB, used=1 * GB)
    with pytest.raises(MemoryError, match=r"1\.0 GB are free"):
        check_free(2 * GB, CPU)


def test_a_container_that_sees_only_its_own_group_obeys_its_limit(
    system: Path, version: int
) -> None:
    """The path of its group is that of the host, and does not exist inside."""
    write_group(system / ROOTS[version], version, limit=4 * GB, used=3 * GB)
    with pytest.raises(MemoryError, match=r"1\.0 GB are free"):
        check_free(2 * GB, CPU)


def test_a_container_over_its_limit_has_no_free_memory(system: Path, version: int) -> None:
    """A lowered limit may be below what is used."""
    write_group(system / ROOTS[version], version, limit=1 * GB, used=3 * GB)
    with pytest.raises(MemoryError, match=r" 0\.0 GB are free"):
        check_free(1 * GB, CPU)


def test_swap_of_the_machine_counts_in_a_container(system: Path, version: int) -> None:
    (system / "meminfo").write_text("MemAvailable: 9000000 kB\nSwapFree: 1000000 kB\n")
    write_group(system / ROOTS[version], version, limit=4 * GB, used=3 * GB)
    check_free(2 * GB, CPU)
