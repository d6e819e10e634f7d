"""`onmt-entmax prepare sigmorphon`: the samples, and all languages of the shared task."""

import hashlib
import io
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from onmt_entmax.config import TrainingSetup
from onmt_entmax.options.train import training_setup
from onmt_entmax.strings.units import decode_word
from tests.cli.preparing import shorten_training
from tests.cli.sigmorphon import SAMPLES, prepare, read_lines
from tests.commands import run, succeed

# Beginnings of the SHA-256 checksums of the files that `--data data/samples` gives.
HASHES = {
    "dev.src": "ab6004420ac536f0",
    "dev.tgt": "368763ca2128c823",
    "train.src": "d922f8435399e24e",
    "train.tgt": "18df98536e3584a8",
}


# --- the samples ---


class Row(NamedTuple):
    """A row of a table."""

    language: str
    lemma: str
    form: str
    tags: str


def sample_rows(split: str) -> list[Row]:
    """Return the rows of the samples, in order."""
    return [
        Row(language, *line.split("\t"))
        for language in ("english", "german", "spanish", "turkish")
        for line in read_lines(SAMPLES / f"{language}-{split}")
    ]


def decoded_rows(folder: Path, split: str) -> list[Row]:
    """Return the rows that the written tokens stand for, in order."""
    sources, targets = (read_lines(folder / f"{split}.{side}") for side in ("src", "tgt"))
    return [decoded_row(*pair) for pair in zip(sources, targets, strict=True)]


def decoded_row(source: str, target: str) -> Row:
    """Return the row of a line of tokens: language, tags with a plus, and letters."""
    language, *tokens = source.split()
    tags = [token[1:] for token in tokens if len(token) > 1 and token[0] == "+"]
    return Row(
        language=language.removeprefix("lang="),
        lemma=decode_word(tokens[len(tags) :]),
        form=decode_word(target.split()),
        tags=";".join(tags),
    )


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the real command makes of the samples."""
    folder = tmp_path_factory.mktemp("samples")
    done = run("onmt_entmax", "prepare", "sigmorphon", "--data", SAMPLES, "--out", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "460 rows, 4 languages" in done.stdout
    return folder


def test_every_development_row_can_be_read_back_in_order(samples: Path) -> None:
    assert decoded_rows(samples, "dev") == sample_rows("dev")


def test_every_training_row_can_be_read_back(samples: Path) -> None:
    assert sorted(decoded_rows(samples, "train")) == sorted(sample_rows("train"))


def test_training_rows_of_all_languages_are_mixed(samples: Path) -> None:
    """Training may hold a part of the rows at a time."""
    languages = {row.language for row in sample_rows("train")}
    assert {row.language for row in decoded_rows(samples, "train")[:40]} == languages


def test_the_files_are_those_of_the_first_release(samples: Path) -> None:
    """Later releases must write the same ones: results and models were made with them."""
    contents = {path.name: path.read_bytes() for path in samples.iterdir()}
    del contents["train.yaml"]
    hashes = {name: hashlib.sha256(data).hexdigest()[:16] for name, data in contents.items()}
    assert hashes == HASHES


@pytest.fixture(scope="module")
def right_to_left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The samples, prepared with `--right_to_left`."""
    folder = tmp_path_factory.mktemp("right-to-left")
    prepare("--data", SAMPLES, "--right_to_left", "--out", folder)
    return folder


@pytest.mark.parametrize("name", HASHES)
def test_a_right_to_left_model_has_the_same_files(
    samples: Path, right_to_left: Path, name: str
) -> None:
    assert (right_to_left / name).read_bytes() == (samples / name).read_bytes()


@pytest.mark.parametrize(
    ("fixture", "is_right_to_left"), [("samples", False), ("right_to_left", True)]
)
def test_the_configuration_says_the_direction(
    fixture: str, is_right_to_left: bool, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(fixture)
    setup = training_setup(["-config", str(folder / "train.yaml")])
    assert setup.data.task.right_to_left == is_right_to_left


def test_the_direction_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", SAMPLES, "--languages", "turkish"]
    prepare(*data, "--right_to_left", "--out", tmp_path)
    note = "target_order: right_to_left; the files stay in natural order"
    assert note in capsys.readouterr().out


# --- the configuration, and the commands that are printed ---


class Example(NamedTuple):
    """A folder made of twenty rows of two languages, and the commands that were printed."""

    folder: Path
    commands: list[list[str]]


@pytest.fixture
def example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Example:
    folder = tmp_path / "a: b"
    for language in ("english", "german"):
        for part in ("train", "dev"):
            name = f"{language}-{part}"
            rows = (SAMPLES / name).read_text(encoding="utf-8").splitlines(keepends=True)
            (tmp_path / name).write_text("".join(rows[:20]), encoding="utf-8")
    prepare("--data", tmp_path, "--out", folder)
    *_, printed = capsys.readouterr().out.partition("next:\n")
    return Example(folder, [shlex.split(line)[1:] for line in printed.splitlines()])


def test_the_printed_commands_stand_in_the_configuration(example: Example) -> None:
    head, *_ = (example.folder / "train.yaml").read_text().partition("\ndata:")
    written = [shlex.split(line)[2:] for line in head.splitlines() if "  onmt" in line]
    assert written == example.commands


def test_the_printed_commands_lead_to_a_report(example: Example) -> None:
    """They run here with fewer updates and a smaller model."""
    names = [name for name, *_ in example.commands]
    assert names == ["train", "inflect", "predict", "evaluate", "translate", "report"]
    config = example.folder / "train.yaml"
    shorten_training(config)
    for command in example.commands:
        succeed("onmt_entmax", *command)
    assert "</html>" in (example.folder / "dev.html").read_text()


class Prepared(NamedTuple):
    """A folder with prepared data, and what was printed."""

    folder: Path
    printed: str

    def setup(self) -> TrainingSetup:
        """Return what the written configuration sets."""
        return training_setup(["-config", str(self.folder / "train.yaml")])


def prepare_into(folder: Path, *arguments: object) -> Prepared:
    """Prepare data with these arguments."""
    with redirect_stdout(io.StringIO()) as printed:
        prepare(*arguments, "--out", folder)
    return Prepared(folder, printed.getvalue())


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """One language."""
    folder = tmp_path_factory.mktemp("english")
    return prepare_into(folder, "--data", SAMPLES, "--languages", "english")


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """All languages of the samples."""
    folder = tmp_path_factory.mktemp("several")
    return prepare_into(folder, "--data", SAMPLES, "--languages", "all")


@pytest.fixture(params=["english", "several"])
def prepared(request: pytest.FixtureRequest) -> Prepared:
    prepared: Prepared = request.getfixturevalue(request.param)
    return prepared


def test_training_is_as_long_as_its_data_needs(prepared: Prepared) -> None:
    training = prepared.setup().training
    rows = len(read_lines(prepared.folder / "train.src"))
    passes = 40  # at least, of batches of 32
    assert training.train_steps >= max(4000, passes * rows / 32)
    assert training.valid_steps == training.train_steps // 20


def test_a_model_of_one_language_is_selected_by_its_accuracy(english: Prepared) -> None:
    assert english.setup().training.selection == "exact_match"


def test_a_model_of_several_languages_is_selected_by_the_mean_of_theirs(several: Prepared) -> None:
    assert several.setup().training.selection == "macro_accuracy"


def test_the_configured_model_has_entmax(prepared: Prepared) -> None:
    assert prepared.setup().model.generator_alpha == 1.5


def test_the_printed_query_is_of_a_prepared_language(prepared: Prepared) -> None:
    assert f"inflect --model {prepared.folder}/model english " in prepared.printed


# --- the data of the shared task ---


@pytest.fixture(scope="module")
def medium(conll2018: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """All languages of the setting `medium`."""
    folder = tmp_path_factory.mktemp("medium")
    return prepare_into(folder, "--data", conll2018, "--setting", "medium")


@pytest.mark.slow
def test_a_language_without_medium_is_named(medium: Prepared) -> None:
    assert "left out, no dev or no train-medium: telugu" in medium.printed


@pytest.mark.slow
@pytest.mark.parametrize(("split", "count"), [("train", 95_323), ("dev", 65_200)])
def test_all_languages_of_medium_are_prepared(medium: Prepared, split: str, count: int) -> None:
    sources = (medium.folder / f"{split}.src").read_bytes().split(b"\n")[:-1]
    targets = (medium.folder / f"{split}.tgt").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(sources) == len(targets) == count
    assert len({line.split(b" ", 1)[0] for line in sources}) == 102
    assert all(targets)
