"""`translate.py` on bad input, and the files that it may write."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from onmt_entmax.cli import train
from onmt_entmax.cli import translate as command
from onmt_entmax.files.checksums import write_list
from tests.cli.translating import arguments_of
from tests.commands import ROOT, fail, succeed
from tests.in_process import refusal, success
from tests.toy import toy_ende

# --- bad input ---


def error_of(arguments: Sequence[object]) -> str:
    """Return the one-line error of a call, before which notes may come."""
    return refusal(command.main, arguments, progress=True)


def test_an_ensemble_of_different_vocabularies_is_refused(toy_run: Path, tmp_path: Path) -> None:
    changed = Path(shutil.copytree(toy_run / "step_400", tmp_path / "model"))
    tokens = json.loads((changed / "vocab.json").read_text())
    tokens["target"][-1] = "Q"
    (changed / "vocab.json").write_text(json.dumps(tokens))
    write_list(changed)
    option, first, *others = arguments_of(toy_run, tmp_path)
    message = error_of([option, first, changed, *others])
    assert "the target vocabulary of model 2 has 'Q', that of model 1 has not" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "the file is empty"), (b"a b\n\xff\xfe\n", ":2: not UTF-8 text")],
    ids=["empty", "no text"],
)
def test_a_source_that_is_not_text_is_refused(
    toy_run: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    arguments = arguments_of(toy_run, tmp_path)
    (tmp_path / "in").write_bytes(content)
    assert message in error_of(arguments)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a tiny Transformer."""
    folder = tmp_path_factory.mktemp("transformer")
    toy_ende(folder)
    small = ["-enc_layers", 1, "-dec_layers", 1, "-transformer_ff", 8, "-heads", 2]
    sizes = ["-rnn_size", 8, "-word_vec_size", 8, "-batch_size", 64, "-train_steps", 1]
    config = ROOT / "tests" / "stock" / "transformer.yaml"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # paths of the file are relative to it
        success(train.main, ["-config", config, "-gpu_ranks", *small, *sizes])
    return folder / "toy-ende" / "run" / "transformer"


@pytest.mark.parametrize("search", ["beam", "enumerate"])
def test_a_line_too_long_for_a_transformer_is_named(
    transformer: Path, tmp_path: Path, search: str
) -> None:
    arguments = arguments_of(transformer, tmp_path, "a b\n" + "a " * 10_000 + "\n")
    message = fail("translate.py", *arguments, "-search", search)
    assert "line 2 (10,000 tokens): is longer than a Transformer" in message


# --- files of outputs ---


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """A link to a file with an old output."""
    (tmp_path / "linked").write_text("before")
    (tmp_path / "link").symlink_to(tmp_path / "linked")
    return tmp_path / "link"


def test_an_output_may_be_a_link_and_a_report_a_device(
    toy_run: Path, link: Path, tmp_path: Path
) -> None:
    arguments = [*arguments_of(toy_run, tmp_path), "-output", link]
    succeed("translate.py", *arguments, "-exactness_report", "/dev/stdout")
    assert link.is_symlink()
    assert (tmp_path / "linked").read_text() not in ("", "before")
    assert not Path("/dev/stdout.summary.json").exists()


def test_two_outputs_are_not_one_file(toy_run: Path, link: Path, tmp_path: Path) -> None:
    """One of them through a link."""
    arguments = [*arguments_of(toy_run, tmp_path), "-output", link]
    message = refusal(
        command.main, [*arguments, "-exactness_report", tmp_path / "linked"], progress=True
    )
    assert "is to be written twice" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param("-output {src}", "src: is read, and would be overwritten", id="source"),
        pytest.param("-output {o} -exactness_report {src}", "src: is read", id="report to source"),
        pytest.param(
            "-output {src} -tgt_subword_model {src} -src {valid}", "is read", id="subword model"
        ),
        pytest.param(
            "-output {x}.summary.json -exactness_report {x}", "is to be written twice", id="summary"
        ),
        pytest.param(
            "-output {o} -min_length 5 -max_length 3",
            "min_length: is above max_length, 3",
            id="lengths",
        ),
    ],
)
def test_what_is_refused_changes_no_file(
    trained: Path, toy_run: Path, tmp_path: Path, options: str, message: str
) -> None:
    src = tmp_path / "src"
    src.write_text("a b\n")
    paths = {"src": src, "valid": trained / "valid.src", "o": tmp_path / "o", "x": tmp_path / "x"}
    arguments = options.format(**paths).split()
    assert message in refusal(
        command.main, ["-model", toy_run, "-src", src, *arguments], progress=True
    )
    assert [path.name for path in tmp_path.iterdir()] == ["src"]
    assert src.read_text() == "a b\n"


def test_an_output_whose_summary_cannot_be_written_is_not_written(
    toy_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "x.summary.json").mkdir()
    arguments = arguments_of(toy_run, tmp_path)
    message = error_of([*arguments, "-exactness_report", tmp_path / "x"])
    assert message.endswith("x.summary.json: is a folder already")
    assert not (tmp_path / "out").exists()
