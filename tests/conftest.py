"""Settings that hold for every test, and fixtures for all of them."""

import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from hypothesis import settings

from onmt_entmax.checkpoint import LoadedModel
from onmt_entmax.systems import ending_signals
from tests.commands import succeed
from tests.report.browser import Browser
from tests.report.devtools import CHROMIUM
from tests.reversing_model import load_without_warning
from tests.shared_server import offer_server
from tests.toy import write_config

# Every run tries the same examples. There is no time limit, so that no correct test fails on a slow
# machine. `make test-slow` tries more examples, by `--hypothesis-profile=thorough`.
settings.register_profile("core", derandomize=True, deadline=None, max_examples=30)
settings.register_profile("thorough", derandomize=True, deadline=None, max_examples=200)
settings.load_profile("core")

# Files that take ten seconds or more run first, in this order: at the end, the other worker would
# have nothing left to do beside them. The first worker of two begins with the kernels, which keep a
# processor busy for a minute. Meanwhile the second one runs the files of `parallel`, which start
# several processes and wait for them.
LONG_FILES = (
    "sparse/test_kernels.py",
    "parallel/test_lost_process.py",
    "nn/test_static_kernels.py",
    "parallel/test_processes.py",
    "parallel/test_sharding.py",
    "cli/test_import_onmt.py",
    "train/test_interruptions.py",
    "cli/test_moving_from_onmt.py",
    "faults/test_attacks.py",
    "train/test_killed_trainings.py",
)

_LONGEST_ID = 60  # characters of a value in the name of a case

# The suite runs on few cores, often beside other work; one thread is the fastest there.
torch.set_num_threads(1)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Return a name for a type of tensors, for sizes or options, which pytest would only number."""
    if isinstance(val, (torch.dtype, dict, list, tuple)):
        text = str(val).removeprefix("torch.")
        return text if len(text) <= _LONGEST_ID else None
    return None


def pytest_configure() -> None:
    """Prepare signals and a server of commands, before pytest-xdist starts its workers."""
    gc.disable()  # until the tests are collected
    _stop_ignoring_signals()
    offer_server()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of long files first, in the order of `LONG_FILES`."""
    position = {Path(__file__).parent / name: number for number, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: position.get(item.path, len(LONG_FILES)))


def pytest_collection_finish() -> None:
    """Exclude the objects of libraries from garbage collection, which halves the time to train."""
    gc.freeze()
    gc.enable()


def pytest_runtest_setup() -> None:
    """Seed PyTorch, so that the numbers a test draws do not depend on the tests before it."""
    torch.manual_seed(0)


def _stop_ignoring_signals() -> None:
    """Restore the default action of signals that this process ignores.

    `nohup`, and scripts that start processes in the background, let them ignore some signals. The
    commands that tests start would inherit that.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    defaults = dict.fromkeys(ending_signals(), signal.SIG_DFL)
    defaults[signal.SIGINT] = signal.default_int_handler
    for number, default in defaults.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


@pytest.fixture(scope="session")
def pyonmttok() -> Any:
    """The tokeniser of `onmt_tokenize`; Python 3.13 has none."""
    return pytest.importorskip("pyonmttok")


@pytest.fixture(scope="session")
def reversing_model() -> LoadedModel:
    """The committed model that reverses letters; tests only read it."""
    return load_without_warning()


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the toy corpora and a run trained on them; tests only read it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "trained"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock"):  # one worker trains, the others wait for it
        if not (folder / "done").exists():
            _train(folder)
            (folder / "done").touch()
    return folder


def _train(folder: Path) -> None:
    """Train `run` until most outputs are right, with a checkpoint every hundred updates."""
    config = write_config(
        folder,
        train_steps=400,
        valid_steps=100,
        save_checkpoint_steps=100,
        selection="exact_match",
        rnn_size=48,
        dropout=0.0,
        tensorboard=True,
        tensorboard_log_dir=str(folder / "board"),
    )
    printed = succeed("train.py", "-config", config)
    assert "validation  step 400/400" in printed


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless browser that all tests of pages share, one after the other."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()
