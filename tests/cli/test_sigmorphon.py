"""`onmt-entmax prepare sigmorphon`: the samples, tables of many layouts, and bad input."""

import hashlib
import io
import shlex
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from onmt_entmax.cli import prepare_sigmorphon
from onmt_entmax.options.train import training_setup
from onmt_entmax.strings.units import decode_word
from tests.commands import ROOT, run, succeed
from tests.in_process import exit_status, refusal

SAMPLES = ROOT / "data" / "samples"
# Beginnings of the SHA-256 checksums of the files that `--data data/samples` gives.
HASHES = {
    "dev.src": "ab6004420ac536f0",
    "dev.tgt": "368763ca2128c823",
    "train.src": "d922f8435399e24e",
    "train.tgt": "18df98536e3584a8",
}


def prepare(*arguments: object) -> None:
    """Run the command in this process."""
    assert exit_status(prepare_sigmorphon.main, [str(argument) for argument in arguments]) == 0


def read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


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
    rows = []
    lines = zip(
        read_lines(folder / f"{split}.src"), read_lines(folder / f"{split}.tgt"), strict=True
    )
    for source, target in lines:
        language, *tokens = source.split()
        tags = [token[1:] for token in tokens if len(token) > 1 and token[0] == "+"]
        lemma, form = decode_word(tokens[len(tags) :]), decode_word(target.split())
        rows.append(Row(language.removeprefix("lang="), lemma, form, ";".join(tags)))
    return rows


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
    """And of all later ones: results and models were made with them."""
    contents = {path.name: path.read_bytes() for path in samples.iterdir()}
    del contents["train.yaml"]
    hashes = {name: hashlib.sha256(data).hexdigest()[:16] for name, data in contents.items()}
    assert hashes == HASHES


@pytest.fixture(scope="module")
def right_to_left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with `--right_to_left`."""
    folder = tmp_path_factory.mktemp("right-to-left")
    prepare("--data", SAMPLES, "--right_to_left", "--out", folder)
    return folder


@pytest.mark.parametrize("name", HASHES)
def test_a_right_to_left_model_has_the_same_files(
    samples: Path, right_to_left: Path, name: str
) -> None:
    assert (right_to_left / name).read_bytes() == (samples / name).read_bytes()


def test_the_configuration_says_the_direction(samples: Path, right_to_left: Path) -> None:
    for folder, is_right_to_left in ((samples, False), (right_to_left, True)):
        setup = training_setup(["-config", str(folder / "train.yaml")])
        assert setup.data.task.right_to_left is is_right_to_left


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
            rows = (SAMPLES / f"{language}-{part}").read_text().splitlines(keepends=True)
            (tmp_path / f"{language}-{part}").write_text("".join(rows[:20]))
    prepare("--data", tmp_path, "--out", folder)
    *_, printed = capsys.readouterr().out.partition("next:\n")
    return Example(folder, [shlex.split(line)[1:] for line in printed.splitlines()])


def test_the_printed_commands_stand_in_the_configuration(example: Example) -> None:
    head, *_ = (example.folder / "train.yaml").read_text().partition("\ndata:")
    written = [shlex.split(line)[2:] for line in head.splitlines() if "  onmt" in line]
    assert written == example.commands


def test_the_printed_commands_lead_to_a_report(example: Example) -> None:
    """With fewer updates and a smaller model."""
    names = [name for name, *_ in example.commands]
    assert names == ["train", "inflect", "predict", "evaluate", "translate", "report"]
    config = example.folder / "train.yaml"
    quick = {"train_steps": 2, "valid_steps": 1, "rnn_size": 8, "word_vec_size": 8}
    quick |= {"warmup_steps": 1, "attention_warmup_steps": 1, "max_length": 4}
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | quick))
    for command in example.commands:
        succeed("onmt_entmax", *command)
    assert "</html>" in (example.folder / "dev.html").read_text()


@pytest.mark.parametrize(
    ("languages", "selection"), [(["english"], "exact_match"), (["all"], "macro_accuracy")]
)
def test_the_configuration_fits_the_data(
    tmp_path: Path, languages: list[str], selection: str
) -> None:
    prepare("--data", SAMPLES, "--languages", *languages, "--out", tmp_path)
    setup = training_setup(["-config", str(tmp_path / "train.yaml")])
    rows = len(read_lines(tmp_path / "train.src"))
    assert setup.training.train_steps >= max(4000, 40 * rows / 32)
    assert setup.training.valid_steps == setup.training.train_steps // 20
    assert setup.training.selection == selection
    assert setup.model.generator_alpha == 1.5


@pytest.mark.parametrize("languages", [["english"], ["all"]])
def test_the_printed_query_is_of_a_prepared_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], languages: list[str]
) -> None:
    prepare("--data", SAMPLES, "--languages", *languages, "--out", tmp_path)
    assert f"inflect --model {tmp_path}/model english " in capsys.readouterr().out


# --- layouts of the shared tasks, of UniMorph and of spreadsheets ---


class Layout(NamedTuple):
    """A table, and how it is read."""

    name: str
    """Of the file."""
    text: str
    language: str
    pairs: list[tuple[str, str]]
    """Source, after the language, and target."""
    columns: str
    """What is printed of the columns."""
    tags: str
    """What is printed of the tags."""


LAYOUTS = {
    "SIGMORPHON 2016": Layout(
        name="german-task1-train",
        text="Zugang\tpos=N,case=ACC,num=PL\tZugänge\nflott\tpos=ADJ\tflott\n",
        language="german",
        pairs=[
            ("+pos=N +case=ACC +num=PL Z u g a n g", "Z u g ä n g e"),
            ("+pos=ADJ f l o t t", "f l o t t"),
        ],
        columns="columns source, tags, target between tabs",
        tags="tags between ','",
    ),
    "SIGMORPHON 2017 to 2019": Layout(
        name="old-irish-train-low",
        text="as\tbe\tV;FUT\n",
        language="old-irish",
        pairs=[("+V +FUT a s", "b e")],
        columns="columns source, target, tags between tabs",
        tags="tags between ';'",
    ),
    "SIGMORPHON 2020 to 2022, most tags single": Layout(
        name="ket_small.train",
        text="тат\tтат\tADJ\nам\tамась\tN;INS\nқае\tқае\tADV\n",
        language="ket",
        pairs=[
            ("+ADJ т а т", "т а т"),
            ("+N +INS а м", "а м а с ь"),
            ("+ADV қ а е", "қ а е"),
        ],
        columns="columns source, target, tags between tabs",
        tags="tags between ';'",
    ),
    "SIGMORPHON 2023": Layout(
        name="tur.trn",
        text="göz\tN;NOM(PL;PSS(1,PL))\tgözlerimiz\n",
        language="tur",
        pairs=[("+N +NOM(PL;PSS(1,PL)) g ö z", "g ö z l e r i m i z")],
        columns="columns source, tags, target between tabs",
        tags="tags between ';', some layered",
    ),
    "UniMorph with segmentation": Layout(
        name="eng",
        text="aah\taahs\tV;PRS;NOM(3,SG)\taah|s\n\naah\taah\tV;NFIN\t-\n",
        language="eng",
        pairs=[("+V +PRS +NOM(3,SG) a a h", "a a h s"), ("+V +NFIN a a h", "a a h")],
        columns="columns source, target, tags, - between tabs",
        tags="tags between ';', some layered",
    ),
    "spreadsheet": Layout(
        name="welsh.csv",
        text='Form,Note,Lemma,Tags\r\n"cŵn, y",a,ci,N;PL\r\n,,,\r\n"""ci""",b,ci,N;SG\r\n',
        language="welsh",
        pairs=[("+N +PL c i", "c ŵ n , ▁ y"), ("+N +SG c i", '" c i "')],
        columns="columns target, -, source, tags between commas",
        tags="tags between ';'",
    ),
}


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS.keys())
def layout(request: pytest.FixtureRequest) -> Layout:
    layout: Layout = request.param
    return layout


class Read(NamedTuple):
    """What the command wrote and printed of a table, given twice."""

    folder: Path
    printed: list[str]


@pytest.fixture
def read(layout: Layout, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Read:
    path = tmp_path / layout.name
    path.write_text(layout.text, newline="")
    prepare("--dev", path, "--test", path, "--out", tmp_path / "out")
    return Read(tmp_path / "out", capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_rows_of_a_layout_are_read(layout: Layout, read: Read, split: str) -> None:
    sources = [f"lang={layout.language} {source}" for source, _ in layout.pairs]
    assert read_lines(read.folder / f"{split}.src") == sources
    assert read_lines(read.folder / f"{split}.tgt") == [target for _, target in layout.pairs]


def test_how_a_layout_is_read_is_printed(layout: Layout, read: Read) -> None:
    first, second, third, *_ = read.printed
    assert first.startswith(f"{layout.name} and 1 file more: {layout.columns}")
    assert second == f"source: characters; target: characters; {layout.tags}"
    rows = "1 row" if len(layout.pairs) == 1 else f"{len(layout.pairs)} rows"
    files = f"dev: {layout.name} ({rows}); test: {layout.name} ({rows})"
    assert third == f"language {layout.language}: {files}"


@pytest.fixture(params=[[], ["--columns", "lemma,form,tags"]], ids=["guessed", "named columns"])
def headed(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Read:
    """Tables with a heading in German."""
    for part in ("train", "dev"):
        rows = f"Wort\tForm\tMerkmale\na{part}\tab\tV;PST\nb\tbb\tN\n"
        (tmp_path / f"x-{part}").write_text(rows)
    prepare("--data", tmp_path, "--out", tmp_path / "out", *request.param)
    return Read(tmp_path / "out", capsys.readouterr().out.splitlines())


def test_a_heading_is_no_row(headed: Read) -> None:
    assert read_lines(headed.folder / "dev.src") == ["lang=x +V +PST a d e v", "lang=x +N b"]


def test_a_heading_left_out_is_printed(headed: Read) -> None:
    assert any("; heading 'Wort\\tForm\\tMerkmale' left out" in line for line in headed.printed)


def test_the_printed_query_is_the_first_row_below_the_heading(headed: Read) -> None:
    assert any(line.endswith(" x adev 'V;PST'") for line in headed.printed)


def test_named_columns_and_language(tmp_path: Path) -> None:
    (tmp_path / "a.x").write_text("past(a;b)\tdrew\t1\tdraw\n")
    options = ["--columns", "tags,form,-,lemma", "--language", "english"]
    prepare("--train", tmp_path / "a.x", *options, "--out", tmp_path)
    assert read_lines(tmp_path / "train.src") == ["lang=english +past(a;b) d r a w"]
    assert read_lines(tmp_path / "train.tgt") == ["d r e w"]


@pytest.fixture
def script_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Warnings of a Cyrillic table: six rows have Latin letters, four are repeated."""
    rows = [f"б{n}\tб{n}\tN" for n in range(20)]
    rows += [*["уранак\tура́нкa\tN;GEN"] * 5, "уранак\turanka\tN;DAT"]
    (tmp_path / "x").write_text("\n".join(rows) + "\n", encoding="utf-8")
    prepare("--train", tmp_path / "x", "--out", tmp_path)
    return capsys.readouterr().err.splitlines()


def test_words_of_mixed_scripts_are_named(script_warnings: list[str]) -> None:
    mixed, _ = script_warnings
    assert "x: rows that mix scripts: 6 of 26: line 21, 'ура́нкa' mixes scripts: " in mixed
    assert mixed.count("Cyrillic with Latin a (U+0061); ") == 5
    assert mixed.endswith("; and 1 more (onmt-entmax audit lists all)")


def test_repeated_rows_are_named(script_warnings: list[str]) -> None:
    _, repeated = script_warnings
    assert "x: rows that are there before: 4 of 26, such as 'уранак', " in repeated


# --- settings of the shared task, and bad input ---


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Data of two languages, of which one has the setting `high`."""
    folder = tmp_path / "data"
    folder.mkdir()
    for language in ("old-irish", "welsh"):
        for part in ("train-low", "dev"):
            (folder / f"{language}-{part}").write_text("a\tab\tV;PST\n")
    (folder / "welsh-train-high").write_text("a\tab\tV;PST\r\nb c\tbc\tN\r\n")
    return folder


def test_a_language_without_the_setting_is_left_out_of_all(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    prepare("--data", data, "--setting", "high", "--out", out)
    assert "left out, no dev or no train-high: old-irish" in capsys.readouterr().out
    assert read_lines(out / "train.src") == ["lang=welsh +V +PST a", "lang=welsh +N b ▁ c"]
    assert read_lines(out / "dev.src") == ["lang=welsh +V +PST a"]


def check_refusal(arguments: list[object], message: str, out: Path) -> None:
    """Fail unless the command prints one line with the message, and writes nothing."""
    assert message in refusal(prepare_sigmorphon.main, [*arguments, "--out", out])
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--setting", "hihg"], "argument --setting: invalid choice: 'hihg' (choose from"),
        (["--splits", "dve"], "argument --splits: invalid choice: 'dve'"),
        (["--languages", "old-irsh"], "no language 'old-irsh'; did you mean 'old-irish'?"),
        (
            ["--setting", "high", "--languages", "old-irish"],
            "no file old-irish-train-high; old-irish has dev, train-low",
        ),
        (
            [],
            "no language has <language>-dev and <language>-train; found only <language>-dev, "
            "<language>-train-high, <language>-train-low; --setting chooses train-low, ",
        ),
    ],
)
def test_wrong_choices_are_refused(
    data: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    check_refusal(["--data", data, *arguments], message, tmp_path / "out")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,ab\n", ": columns source, tags between commas; no targets, but "),
        (b'a,"ab,V\n', ": no tabs, and no row of a CSV file"),
        (b"a\tab\tx\ty\n", ": 4 columns, not 3 (source, target, tags), or 2 without"),
        (b"a\tab\tV\nb\t\xff\tV\n", ":2: not UTF-8 text"),
    ],
)
def test_wrong_files_are_refused(data: Path, tmp_path: Path, content: bytes, message: str) -> None:
    (data / "welsh-dev").write_bytes(content)
    arguments: list[object] = ["--data", data, "--setting", "low"]
    check_refusal(arguments, f"welsh-dev{message}", tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--train", "a.tsv", "--data", "x"], "expected either --data, or some of --train"),
        (["--train", "a.tsv", "--setting", "low"], "--setting and --splits choose among"),
        (["--train", "a.tsv", "--language", "low german"], "'low german': must be one word"),
        (["--train", "a.tsv", "--columns", "lemma,form"], "--columns: expected lemma, form"),
        (
            ["--train", "a.tsv", "--columns", "lemma,form,form,tags"],
            "--columns: target is there twice",
        ),
        (["--train", "a.tsv"], "a.tsv: cannot be read"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, arguments: list[object], message: str) -> None:
    check_refusal(arguments, message, tmp_path / "out")


# --- the data of the shared task ---


class Medium(NamedTuple):
    """All languages of the setting `medium`, and what was printed."""

    folder: Path
    printed: str


@pytest.fixture(scope="module")
def medium(conll2018: Path, tmp_path_factory: pytest.TempPathFactory) -> Medium:
    folder = tmp_path_factory.mktemp("medium")
    with redirect_stdout(io.StringIO()) as printed:
        prepare("--data", conll2018, "--setting", "medium", "--out", folder)
    return Medium(folder, printed.getvalue())


def test_a_language_without_medium_is_named(medium: Medium) -> None:
    assert "left out, no dev or no train-medium: telugu" in medium.printed


@pytest.mark.parametrize(("split", "count"), [("train", 95_323), ("dev", 65_200)])
def test_all_languages_of_medium_are_prepared(medium: Medium, split: str, count: int) -> None:
    sources = (medium.folder / f"{split}.src").read_bytes().split(b"\n")[:-1]
    targets = (medium.folder / f"{split}.tgt").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(sources) == len(targets) == count
    assert len({line.split(b" ", 1)[0] for line in sources}) == 102
    assert all(targets)
