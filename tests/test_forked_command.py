"""A script that the server of commands runs ends as it would in a new interpreter."""

import sys
from pathlib import Path

import pytest

from tests.commands import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux")


@pytest.mark.parametrize(
    ("code", "status", "errors"),
    [
        pytest.param("None", 0, "", id="None"),
        pytest.param("3", 3, "", id="a number"),
        pytest.param("'text'", 1, "text\n", id="a text"),
        pytest.param("['a', 'list']", 1, "['a', 'list']\n", id="a list"),
        pytest.param("[]", 1, "[]\n", id="an empty list"),
    ],
)
def test_an_exit_code_other_than_a_number_is_printed(
    tmp_path: Path, code: str, status: int, errors: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import sys; sys.exit({code})")
    done = run(str(script))
    assert (done.returncode, done.stderr) == (status, errors)
