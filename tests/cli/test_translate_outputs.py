"""`translate`: files that output, report and summary may replace, and files that they may not."""

from pathlib import Path

import pytest

from onmt_entmax.cli import translate as command
from tests.cli.translating import arguments_of
from tests.commands import succeed
from tests.in_process import refusal, success


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """A link to a file with an old output."""
    (tmp_path / "linked").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "linked")
    return tmp_path / "link"


def test_an_output_is_written_through_a_link(toy_run: Path, link: Path, tmp_path: Path) -> None:
    arguments = arguments_of(toy_run, tmp_path)
    success(command.main, arguments)  # to the file `out`
    success(command.main, [*arguments, "-output", link])
    assert link.is_symlink()
    output = (tmp_path / "out").read_text()
    assert output != ""
    assert (tmp_path / "linked").read_text() == output


def test_a_report_to_a_device_has_no_summary_beside_it(toy_run: Path, tmp_path: Path) -> None:
    report = ("-exactness_report", "/dev/stdout")
    printed = succeed("translate.py", *arguments_of(toy_run, tmp_path), *report)
    assert '"certificate": ' in printed
    assert not Path("/dev/stdout.summary.json").exists()


# --- folders of outputs ---


def test_a_new_folder_of_a_report_is_noted(toy_run: Path, tmp_path: Path) -> None:
    """A mistyped name becomes a folder, too."""
    new = tmp_path / "new"
    arguments = [*arguments_of(toy_run, tmp_path), "-exactness_report", new / "report"]
    assert f"note: creates the folder {new}\n" in success(command.main, arguments)
    assert (new / "report").exists()


def test_a_folder_that_exists_is_not_noted(toy_run: Path, tmp_path: Path) -> None:
    printed = success(command.main, arguments_of(toy_run, tmp_path))
    assert "creates the folder" not in printed


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("source/out", id="below a file"),
        pytest.param("new/../source/out", id="below a file, by a new folder"),
    ],
)
@pytest.mark.usefixtures("working_folder")
def test_a_folder_that_cannot_be_made_gives_an_error_and_no_note(
    toy_run: Path, output: str
) -> None:
    Path("source").write_text("a\n")
    message = refusal(command.main, ["-model", toy_run, "-src", "source", "-output", output])
    assert f"{output}: cannot be written" in message
    assert list(Path().iterdir()) == [Path("source")]


# --- outputs that are refused ---


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param("-output source", "source: is read, and would be overwritten", id="source"),
        pytest.param(
            "-output out -exactness_report source",
            "source: is read, and would be overwritten",
            id="report to source",
        ),
        pytest.param(
            "-output codes -tgt_subword_model codes",
            "codes: is read, and would be overwritten",
            id="subword model",
        ),
        pytest.param(
            "-output x.summary.json -exactness_report x",
            "x.summary.json: is to be written twice",
            id="output to summary",
        ),
        pytest.param(
            "-output link -exactness_report linked",
            "is to be written twice",
            id="output and report to one file",
        ),
    ],
)
def test_an_output_that_would_replace_another_file_is_refused(
    toy_run: Path, options: str, message: str
) -> None:
    files = {Path(name): f"{name}\n" for name in ("source", "codes", "linked")}
    for path, content in files.items():
        path.write_text(content)
    Path("link").symlink_to("linked")
    arguments = ["-model", toy_run, "-src", "source", *options.split()]
    assert message in refusal(command.main, arguments, progress=True)
    assert {path.name for path in Path().iterdir()} == {"source", "codes", "linked", "link"}
    assert {path: path.read_text() for path in files} == files


def test_an_output_whose_summary_cannot_be_written_is_not_written(
    toy_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "x.summary.json").mkdir()
    arguments = [*arguments_of(toy_run, tmp_path), "-exactness_report", tmp_path / "x"]
    message = refusal(command.main, arguments, progress=True)
    assert message.endswith("x.summary.json: is a folder already")
    assert not (tmp_path / "out").exists()
