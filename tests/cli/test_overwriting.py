"""No tool writes over what it reads; each says so before it does anything."""

from collections.abc import Callable
from pathlib import Path

import pytest

from onmt_entmax.cli import bleu, combine, evaluate, inflect, prepare_files, score
from onmt_entmax.cli import report as report_page
from onmt_entmax.files import FileError, refuse_overwriting
from tests.ended import refused

EVALUATION = ["--source", "s", "--reference", "r", "--predictions", "f"]
CALLS: list[tuple[Callable[..., int], list[str]]] = [
    (bleu.main, ["f", "--reference", "r", "--output", "f"]),
    (bleu.main, ["s", "--reference", "f", "--output", "f"]),
    (combine.main, ["--reports", "f", "--output", "f"]),
    (combine.main, ["--reports", "r", "--reversed", "f", "--output", "o", "--report", "f"]),
    (combine.main, ["--reports", "o.summary.json", "--output", "f", "--report", "o"]),
    (inflect.main, ["--model", "m", "--input", "f", "--output", "f"]),
    (report_page.main, ["-model", "m", "-report", "f", "-output", "f"]),
    (score.main, ["-model", "m", "-src", "s", "-tgt", "f", "-output", "f"]),
    (evaluate.main, [*EVALUATION, "--json", "f"]),
    (prepare_files.main, ["--languages", "a", "b", "--train", "train.a", "train.b",
                       "--out", "."]),
    (prepare_files.main, ["--languages", "a", "b", "--train", "x.a", "x.b",
                       "--val", "val.a", "val.b", "--out", "."]),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda call: " ".join(call[1])[:40])
def test_a_tool_says_so(
    call: tuple[Callable[..., int], list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main, arguments = call
    monkeypatch.chdir(tmp_path)
    for name in "f", "s", "r", "p", "d.src", "o.src", "train.a", "val.a", "o.summary.json":
        (tmp_path / name).write_text("what is there\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    line = refused(main, arguments)
    assert "is read, and would be overwritten" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert all(path.read_text() == "what is there\n" for path in tmp_path.iterdir())


def test_other_names_of_a_file_are_seen_and_streams_may_be_both(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "b"
    path.write_text("")
    link.symlink_to(path)
    for one, other in ((link, path), (path, link), (path, tmp_path / "." / "a")):
        with pytest.raises(FileError, match="would be overwritten"):
            refuse_overwriting([one, None], [None, other])
    refuse_overwriting([path, Path("/dev/stdin")], [tmp_path / "c", Path("/dev/stdin"), None])
