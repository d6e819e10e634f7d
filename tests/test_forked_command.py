"""A script that the server of commands runs exits as it would in a new interpreter."""

import sys
from pathlib import Path

import pytest

from tests.commands import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux")


@pytest.mark.parametrize(
    ("code", "status", "printed"),
    [
        pytest.param("None", 0, "", id="None"),
        pytest.param("3", 3, "", id="a number"),
        pytest.param("'text'", 1, "text\n", id="a text"),
        pytest.param("['a', 'list']", 1, "['a', 'list']\n", id="a list"),
        pytest.param("[]", 1, "[]\n", id="an empty list"),
    ],
)
def test_the_exit_code_becomes_the_status_or_is_printed_with_status_1(
    tmp_path: Path, code: str, status: int, printed: str
) -> None:
    """None and numbers are statuses. Python prints any other object, even one that is false."""
    script = tmp_path / "script.py"
    script.write_text(f"import sys; sys.exit({code})")
    done = run(str(script))
    assert (done.returncode, done.stderr) == (status, printed)
