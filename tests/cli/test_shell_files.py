"""Files as arguments of a shell command: their paths, or a pattern that matches them alone."""

from pathlib import Path

import pytest

from onmt_entmax.cli.shell_files import files_for_shell


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize(
    ("names", "others", "expected"),
    [
        pytest.param(["a.dev"], [], "t/a.dev", id="one file"),
        pytest.param(["a.dev", "b.dev"], [], "t/a.dev t/b.dev", id="two files"),
        pytest.param(["a-dev", "b b-dev", "c-dev"], ["a-train"], "t/*-dev", id="same ending"),
        pytest.param(
            ["a_x_dev.tsv", "b_dev.tsv", "c_dev.tsv"],
            ["c.tsv"],
            "t/*_dev.tsv",
            id="longest common ending",
        ),
        pytest.param(
            ["a.dev", "b.dev", "c.dev"],
            ["d.dev"],
            "t/a.dev t/b.dev t/c.dev",
            id="another file with the ending",
        ),
        pytest.param(
            ["a.dev", "b.val", "c.dev"], [], "t/a.dev t/b.val t/c.dev", id="different endings"
        ),
    ],
)
def test_three_files_or_more_are_a_pattern_if_it_matches_no_others(
    names: list[str], others: list[str], expected: str
) -> None:
    folder = Path("t")
    folder.mkdir()
    for name in names + others:
        (folder / name).touch()
    assert files_for_shell([folder / name for name in names]) == expected


@pytest.mark.usefixtures("working_folder")
def test_files_that_are_still_to_be_written_have_the_pattern_of_their_inputs() -> None:
    inputs = [Path(name) for name in ("a_dev.tsv", "b_dev.tsv", "c_dev.tsv")]
    for path in inputs:
        path.touch()
    outputs = ["out" / path for path in inputs]
    assert files_for_shell(outputs, inputs=inputs) == "out/*_dev.tsv"
