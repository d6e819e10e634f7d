"""`onmt-entmax paradigm`: command lines that it refuses in one line."""

import shlex
from pathlib import Path

import pytest

from onmt_entmax.cli import inflect, paradigm
from tests.cli.paradigms import run_paradigm
from tests.in_process import exit_status, refusal
from tests.inflection_models import write_model
from tests.models import vocabularies_of

ENGLISH_CELLS = "english has N (1 cell), V (1 cell); choose one"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        pytest.param("english ab", f"--pos: {ENGLISH_CELLS}", id="no part of speech"),
        pytest.param("english ab --pos X", f"--pos: {ENGLISH_CELLS}", id="no such part of speech"),
        pytest.param(
            "dutch ab", "no cells of the language 'dutch' are known", id="no such language"
        ),
        pytest.param(
            "German ab",
            "no cells of the language 'German' are known; did you mean 'german'?",
            id="capital letter",
        ),
        pytest.param("german", "name one lemma, or a file of them with --lemmas", id="no lemma"),
        pytest.param("german ' '", "the lemma is empty", id="an empty lemma"),
        pytest.param(
            "german ab --format att", "--format att needs --output, a file", id="no output"
        ),
        pytest.param(
            "german 'a\tb' --pos V --format keyman --output o",
            "'a\\tb': a tab or line end, which a column cannot have",
            id="tab in a lemma",
        ),
        pytest.param(
            "german ab --format hunspell --output /dev/stdout",
            "--output /dev/stdout: --format hunspell writes several files, such as OUTPUT.dic and "
            "OUTPUT.aff; name a file",
            id="several files on the standard output",
        ),
    ],
)
def test_a_command_line_that_is_no_query_is_refused(
    paradigm_model: Path,
    cells_file: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    message: str,
) -> None:
    assert run_paradigm(paradigm_model, cells_file, *shlex.split(command)) == 2
    assert capsys.readouterr().err == f"paradigm.py: error: {message}\n"


class TestALanguageWithoutTags:
    """It has no paradigm; the error names a command that inflects its words."""

    @pytest.fixture
    def model(self, tmp_path: Path) -> Path:
        return write_model(tmp_path / "model", 4, vocabularies_of(("lang=ady", "a"), "a"), end=4)

    @pytest.fixture
    def error(self, model: Path) -> str:
        return refusal(paradigm.main, ["ady", "a", "--model", model])

    @pytest.fixture
    def named_command(self, error: str) -> list[str]:
        """The words of the command in the error."""
        return shlex.split(error[error.index("onmt-entmax inflect") : error.index(" prints")])

    def test_is_refused(self, error: str) -> None:
        assert "training data for ady has no tags" in error

    def test_is_in_the_command_that_the_error_names(
        self, named_command: list[str], model: Path
    ) -> None:
        arguments = ["--model", str(model), "ady", "a", ""]
        assert named_command == ["onmt-entmax", "inflect", *arguments]

    def test_is_inflected_by_that_command(self, named_command: list[str]) -> None:
        assert exit_status(inflect.main, named_command[2:]) == 0
