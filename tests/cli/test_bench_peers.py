"""The comparison with peers: what is printed and written of those that work, fail or are missing.

The peers are the small programs of `fake_peers.py`.
"""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

import pytest

from tests.cli.fake_peers import Failing, Missing, Working, arguments_in, write_tables
from tests.in_process import exit_status
from tools.bench import peers

if sys.platform != "linux":
    pytest.skip("processor times are read from /proc", allow_module_level=True)


class Comparison(NamedTuple):
    """The comparison of a working, a failing and a missing peer.

    Attributes:
        printed: the standard output.
        errors: the standard error.
        figures: the content of the file of `--json`.
    """

    printed: str
    errors: str
    figures: dict[str, Any]

    @property
    def result(self) -> dict[str, Any]:
        """The figures of the working peer, which alone has some."""
        (result,) = self.figures["results"]
        return dict(result)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("peers")
    write_tables(folder)
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(io.StringIO()) as printed,
        redirect_stderr(io.StringIO()) as errors,
    ):
        patch.setattr(peers, "SYSTEMS", (Working, Failing, Missing))
        assert exit_status(peers.main, arguments_in(folder)) == 0
    figures = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    return Comparison(printed.getvalue(), errors.getvalue(), figures)


# --- a peer that works ---


def test_a_peer_has_a_line_with_its_parameters_and_updates(comparison: Comparison) -> None:
    lines = comparison.printed.splitlines()
    (line,) = (line for line in lines if line.startswith(f"{Working.name} "))
    _name, _version, parameters, updates, *_ = line.split()
    assert (parameters, updates) == ("70", "1,200")


def test_the_settings_of_a_peer_are_printed(comparison: Comparison) -> None:
    assert f"{Working.name}: {Working.settings}; " in comparison.printed


def test_the_accuracy_is_that_of_the_predictions(comparison: Comparison) -> None:
    """One of two sources is right; see `fake_peers.py`."""
    assert comparison.result["exact_match"] == 50


def test_the_updates_are_the_last_that_the_log_names(comparison: Comparison) -> None:
    assert comparison.result["updates"] == 1200


def test_the_speed_is_in_examples_a_second_of_processor_time(comparison: Comparison) -> None:
    examples = 1200 * Working.batch
    expected = examples / comparison.result["training"]["processor"]
    assert comparison.result["examples_per_second"] == pytest.approx(expected)


# --- peers without figures ---


def test_a_peer_that_fails_has_a_reason_of_one_line(comparison: Comparison) -> None:
    reason = comparison.figures["skipped"]["failing"]
    assert "ValueError: no such option: epochs" in reason
    assert "\n" not in reason


def test_a_missing_peer_has_a_command_that_installs_it(comparison: Comparison) -> None:
    assert comparison.figures["skipped"]["missing"] == (
        "not installed: python3 -m venv PEERS/nowhere && "
        "PEERS/nowhere/bin/pip install missing==1.0 helper && "
        "PEERS/nowhere/bin/pip uninstall -y extra"
    )


def test_a_missing_peer_is_named_at_once(comparison: Comparison) -> None:
    assert "missing: not installed" in comparison.errors


def test_a_missing_peer_is_named_below_the_table(comparison: Comparison) -> None:
    assert "missing: not installed" in comparison.printed
