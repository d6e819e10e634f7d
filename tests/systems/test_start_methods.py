"""Data workers are forks on Linux, and start anew on other systems."""

import multiprocessing
import runpy
import sys
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.context import ForkProcess

import pytest

from onmt_entmax import systems
from onmt_entmax.cli import main
from onmt_entmax.data.prefetch import PrefetchProcess
from tests.commands import ROOT


def no_numbers() -> Iterator[int]:
    return iter(())


@pytest.fixture
def forkserver_by_default() -> Iterator[None]:
    """Python's default on Linux since 3.14: processes that are not children of this one."""
    multiprocessing.set_start_method("forkserver", force=True)
    yield
    multiprocessing.set_start_method(None, force=True)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, workers start anew")
@pytest.mark.usefixtures("forkserver_by_default")
def test_on_linux_workers_are_forks_whatever_the_default_of_python() -> None:
    with closing(PrefetchProcess(no_numbers, depth=2)):
        (child,) = multiprocessing.active_children()
        assert isinstance(child, ForkProcess)


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_on_other_systems_workers_start_anew(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert systems.start_method() == "spawn"


@pytest.mark.parametrize("script", ["train.py", "translate.py"])
def test_workers_that_start_anew_run_no_command(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a worker runs the main script again, under the name `__mp_main__`."""
    commands: list[str] = []
    monkeypatch.setattr(main, "run_as_script", commands.append)
    runpy.run_path(str(ROOT / script), run_name="__mp_main__")
    assert commands == []
    runpy.run_path(str(ROOT / script), run_name="__main__")
    assert commands == [script.removesuffix(".py")]
