"""`prepare table`: tables of strings become files of tokens, and a configuration to train with."""

from pathlib import Path

import pytest
import yaml

from onmt_entmax.cli import prepare_sigmorphon, prepare_table
from onmt_entmax.cli.next_commands import files_for_shell
from onmt_entmax.cli.table_configuration import mixture
from onmt_entmax.options.train import training_setup
from onmt_entmax.train import timing
from tests.commands import succeed
from tests.in_process import exit_status, refusal

PHONES = ["ploaie\tp lʷ a j e", "abil\ta b i l", "ochi\to kʲ"]
FORMS = ["draw\tV;PST\tdrew", "go\tV;PST\twent", "walk\tV;PRS\twalks"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, in which tables stand."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(**tables: list[str]) -> None:
    """Write tables; in their names, _ stands for a dot."""
    for name, lines in tables.items():
        Path(name.replace("_", ".")).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def prepare(*arguments: object, main=prepare_table.main) -> None:
    assert exit_status(main, [*map(str, arguments), "--out", "out"]) == 0


def options() -> dict[str, object]:
    """Return those of the configuration that was written."""
    return yaml.safe_load(Path("out/train.yaml").read_text("utf-8"))


def test_a_table_of_pronunciations_is_read_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    write(ro_train_tsv=PHONES, ro_dev_tsv=PHONES[:1])
    prepare("--train", "ro.train.tsv", "--dev", "ro.dev.tsv")
    said = capsys.readouterr().out
    assert "columns source, target between tabs (guessed; --columns names them)\n" in said
    assert "source: characters; target: symbols between ' '\n" in said
    assert "train: ro.train.tsv (3 rows); dev: ro.dev.tsv (1 row)\n" in said
    assert Path("out/dev.src").read_text("utf-8") == "p l o a i e\n"
    assert Path("out/dev.tgt").read_text("utf-8") == "p lʷ a j e\n"
    assert options()["task"] == {"columns": ["source", "target"], "separators": {"target": " "}}


def test_the_configuration_trains_a_model_that_knows_its_task() -> None:
    write(train_tsv=PHONES, dev_tsv=PHONES)
    prepare("--train", "train.tsv", "--dev", "dev.tsv", "--right_to_left", "--copy", 2)
    quick = {"train_steps": 2, "valid_steps": 1, "rnn_size": 8, "word_vec_size": 8}
    quick |= {"warmup_steps": 1, "attention_warmup_steps": 1, "max_length": 4}
    Path("out/train.yaml").write_text(yaml.safe_dump(options() | quick))
    succeed("onmt_entmax", "train", "-config", Path("out/train.yaml").absolute(), cwd=Path.cwd())
    setup = training_setup(["-config", "out/train.yaml"])
    assert setup.data.task.right_to_left
    assert setup.data.task.copies
    assert setup.data.task.target.separator == " "


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        ([], "target_order", None),
        (["--right_to_left"], "target_order", "right_to_left"),
        (["--copy", 7], "copy_frequency", 7),
        (["--copy", 0], "copy_frequency", 0),
        ([], "copy_frequency", 2),
    ],
)
def test_direction_and_copying_are_options_of_the_training(
    arguments: list[object], key: str, value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["aab\taab", "aac\taac", "aa\ta"]
    write(train_tsv=rows, dev_tsv=rows[:1])
    prepare("--train", "train.tsv", "--dev", "dev.tsv", *arguments)
    assert options().get(key) == value
    assert value is None or f"{key}: {value}" in capsys.readouterr().out
    assert Path("out/dev.tgt").read_text() == "a a b\n"  # in natural order


def test_columns_and_separators_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["k\tx-y\tA.B\tdeu", "l\tz\tA\tdeu"]
    write(train_tsv=rows, dev_tsv=rows[1:])
    words = "--columns target,source,tags,language --separator source=- --separator tags=."
    prepare("--train", "train.tsv", "--dev", "dev.tsv", *words.split())
    assert Path("out/dev.src").read_text() == "lang=deu +A z\n"
    assert sorted(Path("out/train.src").read_text().splitlines()) == [
        "lang=deu +A +B x y",
        "lang=deu +A z",
    ]
    assert "\nlanguage deu: train: 2 rows; dev: 1 row\n" in capsys.readouterr().out
    separators = {"source": "-", "tags": "."}
    columns = ["target", "source", "tags", "language"]
    assert options()["task"] == {"columns": columns, "separators": separators}


def test_languages_are_the_names_of_several_files(capsys: pytest.CaptureFixture[str]) -> None:
    tables = {f"{name}_{split}": FORMS for name in ("heb", "heb-unvoc") for split in ("trn", "dev")}
    write(**tables)
    prepare("--train", *Path().glob("*.trn"), "--dev", *Path().glob("*.dev"))
    sources = Path("out/train.src").read_text().splitlines()
    assert {line.split()[0] for line in sources} == {"lang=heb", "lang=heb-unvoc"}
    said = capsys.readouterr()
    assert "language heb: train: heb.trn (3 rows); dev: heb.dev (3 rows)\n" in said.out
    assert "train.{src,tgt}: 6 rows, 2 languages\n" in said.out


def test_two_files_of_one_language_are_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    write(heb_trn=FORMS[:1], heb_train=FORMS[1:], arb_trn=FORMS, heb_dev=FORMS)
    train = ["heb.trn", "heb.train", "arb.trn"]
    prepare("--train", *train, "--dev", "heb.dev")
    assert "warning: train: heb.trn, heb.train are one language here, heb; " in (
        capsys.readouterr().err
    )
    prepare("--train", *train, "--dev", "heb.dev", "--language", "x")
    said = capsys.readouterr()
    assert "one language here" not in said.err
    assert "heb.dev --output out/dev.predicted.tsv --language x\n" in said.out


@pytest.mark.parametrize(
    ("main", "other"), [(prepare_table.main, True), (prepare_sigmorphon.main, False)]
)
def test_a_file_whose_name_says_no_language_is_refused_with_what_helps(main, other: bool) -> None:
    """A column of languages is for `prepare table` alone."""
    write(deu_trn=FORMS, tur_trn=FORMS, dev_tsv=FORMS, test_tsv=FORMS)
    files = ["--train", "deu.trn", "tur.trn", "--dev", "dev.tsv", "--test", "test.tsv"]
    said = refusal(main, [*files, "--out", "out"])
    assert "dev.tsv and 1 file more: the name of the file says no language" in said
    assert ("or name a column of languages with --columns" in said) is other


def test_a_training_language_that_dev_lacks_is_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(a_trn=FORMS, b_trn=FORMS, a_dev=["walk\tV;PST\twalked"])
    prepare("--train", "a.trn", "b.trn", "--dev", "a.dev")
    said = capsys.readouterr().err
    assert (
        "warning: dev: languages of the training rows that it lacks: b; they have no part" in said
    )


def test_the_prediction_of_a_csv_table_is_one_too(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row.replace("\t", ",") for row in FORMS]
    write(train_csv=rows, dev_csv=rows)
    prepare("--train", "train.csv", "--dev", "dev.csv")
    assert "predict out/model dev.csv --output out/dev.predicted.csv\n" in capsys.readouterr().out


def test_a_dev_language_that_training_lacks_is_warned_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(a_trn=FORMS, b_trn=FORMS, c_dev=["walk\tV;PST\twalked"])
    prepare("--train", "a.trn", "b.trn", "--dev", "c.dev")
    assert "warning: dev: languages that the training rows lack: c; these have a, b\n" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "lines",
    [
        ["lemma,inflected,features", "draw,drew,V;PST"],
        ["draw\tdrew\tV;PST"],  # as the tags tell
    ],
)
def test_tables_may_have_their_columns_in_another_order(lines: list[str]) -> None:
    write(a_trn=FORMS, a_dev=lines)
    prepare("--train", "a.trn", "--dev", "a.dev")
    assert Path("out/dev.src").read_text() == "+V +PST d r a w\n"
    assert Path("out/dev.tgt").read_text() == "d r e w\n"


BAD = ["draw\tV;PST\tdrew", "go\twent", *["\tV\twent"] * 11, "walk\tV;PRS\twalks"]


def test_all_bad_rows_are_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    write(a_trn=BAD, a_dev=FORMS)
    arguments = ["--train", "a.trn", "--dev", "a.dev", "--out", "out"]
    assert exit_status(prepare_table.main, arguments) == 2
    *rows, last = capsys.readouterr().err.splitlines()
    assert rows[0] == "warning: a.trn:2: expected 3 columns, source, tags, target; found 2"
    assert rows[1:] == [f"warning: a.trn:{number}: source is empty" for number in range(3, 12)]
    assert last == (
        "prepare_table.py: error: 12 of 17 rows cannot be read, the first 10 above; mend them, or "
        "go on without them: --skip-bad FILE writes them there"
    )
    assert not Path("out").exists()


def test_bad_rows_are_skipped_and_kept(capsys: pytest.CaptureFixture[str]) -> None:
    write(a_trn=BAD, a_dev=FORMS)
    prepare("--train", "a.trn", "--dev", "a.dev", "--skip-bad", "bad.txt")
    assert "12 of 17 rows cannot be read, the first 10 above; bad.txt has them, with their" in (
        capsys.readouterr().err
    )
    lines = Path("bad.txt").read_text().splitlines()
    assert len(lines) == 12
    assert lines[1] == "a.trn:3\tsource is empty\t\tV\twent"
    assert Path("out/train.src").read_text().count("\n") == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--skip-bad", "a.trn"], "a.trn: is read, and would be overwritten"),
        (["--skip-bad", "out/train.src"], "--skip-bad out/train.src: has another content; name"),
        (["--dev", "out/train.yaml"], "out/train.yaml: is read, and would be overwritten"),
        (["--separator", "x=;"], "--separator 'x=;': expected source=, target= or tags= and"),
        (["--columns", "source,tag,target"], "--columns: 'tag' is none of source, target, tags"),
        (["--columns=-,source,tags"], "--columns: target is missing"),
        (["--columns", "source,target,language", "--language", "x"], "a column has it too"),
        (["--language", "a b"], "--language 'a b': must be one word without spaces"),
        (["--dev", "short"], "short: columns source, tags between tabs; no targets, but a.trn has"),
        (["--dev", "long"], "long: 5 columns, not 3 (source, tags, target), or 2 without the"),
        (["--dev", "empty"], "empty: no rows"),
        (
            ["--columns", "source,target"],
            "a.trn: 3 columns, such as 'draw | V;PST | drew'; --columns names 2: source, target",
        ),
        (["--out", "short"], "cannot be written, since short is a file, not a folder; name"),
    ],
)
def test_what_cannot_be_is_refused(more: list[str], said: str) -> None:
    write(a_trn=FORMS, a_dev=FORMS, short=["draw\tV;PST"], long=["a\tb\tc\td\te"], empty=[])
    Path("out").mkdir()
    Path("out/train.yaml").write_text("a\tV;PST\tb\n")
    needed = {"--train": "a.trn", "--dev": "a.dev", "--out": "out"}
    others = [word for name in needed if name not in more for word in (name, needed[name])]
    assert said in refusal(prepare_table.main, [*others, *more])
    assert [path.name for path in Path("out").iterdir()] == ["train.yaml"]


@pytest.mark.parametrize("main", [prepare_table.main, prepare_sigmorphon.main])
@pytest.mark.parametrize("covered", [["draw\tV;PST"], ["draw\tV;PST\t"]])
def test_a_covered_table_is_named_in_a_command(
    main, covered: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write(jap_trn=FORMS, jap_dev=FORMS, jap_covered_tst=covered)
    prepare("--train", "jap.trn", "--dev", "jap.dev", "--test", "jap.covered.tst", main=main)
    assert (
        "  onmt-entmax predict out/model jap.covered.tst --output out/test.predicted.tsv\n"
    ) in capsys.readouterr().out
    assert not Path("out/test.src").exists()


@pytest.mark.parametrize(
    ("lines", "commands"),
    [
        (PHONES, ["train", "predict", "evaluate"]),
        ([f"{row}\tx" for row in FORMS], ["train", "inflect", "predict", "evaluate"]),
    ],
)
def test_the_next_commands_suit_the_table(
    lines: list[str], commands: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write(train_tsv=lines, dev_tsv=lines)
    columns = ["--columns", "source,tags,target,language"] * (len(commands) > 3)
    prepare("--train", "train.tsv", "--dev", "dev.tsv", *columns)
    *_, printed = capsys.readouterr().out.partition("next:\n")
    assert [line.split()[1] for line in printed.splitlines()] == commands
    assert "predict out/model dev.tsv --output out/dev.predicted.tsv\n" in printed
    assert "evaluate out/dev.predicted.tsv --reference dev.tsv --model out/model\n" in printed


def test_hallucinated_pairs_are_a_corpus_of_the_training(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write(a_trn=FORMS, a_dev=FORMS)
    prepare("--train", "a.trn", "--dev", "a.dev", "--hallucinate", 2)
    names = ("path_src", "path_tgt")
    files = [f"out/hallucinated.{side}" for side in ("src", "tgt")]
    corpus = {**dict(zip(names, files, strict=True)), "weight": 2}
    assert options()["data"]["hallucinated"] == corpus
    source, target = (Path(file).read_text("utf-8").splitlines() for file in files)
    assert len(source) == 2  # two of walk; draw and go have no stem in drew and went
    assert [line.split()[0] for line in source] == ["+V", "+V"]
    assert [[*line.split()[2:], "s"] for line in source] == [line.split() for line in target]
    assert "out/hallucinated.{src,tgt}: 2 pairs, to train on\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rows", "invented", "weights"),
    [(10_000, 9_926, (1, 1)), (100, 300, (1, 3)), (4_000, 3_000, (4, 3)), (10_000, 5, (20, 1))],
)
def test_hallucinated_pairs_are_read_as_often_as_rows(
    rows: int, invented: int, weights: tuple[int, int]
) -> None:
    """The smaller corpus is not repeated while the larger one is read."""
    assert tuple(mixture(rows, invented).values() or (1, 1)) == weights


def test_nothing_is_hallucinated_unless_asked() -> None:
    write(a_trn=FORMS, a_dev=FORMS)
    prepare("--train", "a.trn", "--dev", "a.dev")
    assert "hallucinated" not in options()["data"]
    assert not Path("out/hallucinated.src").exists()


def test_nothing_can_be_hallucinated_without_a_training() -> None:
    write(a_dev=FORMS)
    arguments = ["--dev", "a.dev", "--language", "eng", "--out", "out", "--hallucinate", "1"]
    assert "which needs train and dev" in refusal(prepare_sigmorphon.main, arguments)


def test_nothing_can_be_hallucinated_without_a_stem() -> None:
    write(a_trn=["ab\tx y"], a_dev=["ab\tx y"])
    arguments = ["--train", "a.trn", "--dev", "a.dev", "--out", "out", "--hallucinate", "1"]
    assert "--hallucinate: no source has 3 symbols in a row" in refusal(
        prepare_table.main, arguments
    )
    assert not Path("out").exists()


@pytest.fixture
def hundred_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that trains every network on a hundred pairs of 1,000 in a second."""

    class Stopwatch:
        examples, development_pairs = 1000, 100

        def __init__(self, *arguments: object) -> None:
            pass

        def training_speeds(self, networks: list[object], seconds: float) -> list[float]:
            return [100.0] * len(networks)

        def validation_speeds(self, *arguments: object) -> tuple[float, float]:
            return 3000.0, 400.0

    monkeypatch.setattr(timing, "Stopwatch", Stopwatch)


ENDINGS = [f"{stem}en\tV;{n}\t{stem}te" for stem in ("schnarch", "versuch") for n in range(4)]
VOWELS = [f"{a}en\tV;{n}\t{b}" for a, b in (("trink", "trank"), ("lüg", "log")) for n in range(4)]
MANY_WORDS = [f"schnarch{letter}en\tV;PST\tschnarch{letter}te" for letter in "abcdefgh"]


@pytest.mark.usefixtures("hundred_a_second")
@pytest.mark.parametrize(
    ("rows", "minutes", "more", "pairs"),
    [
        pytest.param(ENDINGS, 4, [], 8, id="many passes"),
        pytest.param(ENDINGS, 3, [], 0, id="few passes"),
        pytest.param(VOWELS, 4, [], 0, id="words that change inside"),
        pytest.param(MANY_WORDS, 4, [], 0, id="a row of a word"),
        pytest.param(ENDINGS, 4, ["--hallucinate", 0], 0, id="unwanted"),
        pytest.param(MANY_WORDS, 3, ["--hallucinate", 2], 16, id="wanted"),
    ],
)
def test_a_plan_of_many_passes_hallucinates(
    rows: list[str], minutes: float, more: list[object], pairs: int
) -> None:
    write(a_trn=rows, a_dev=rows)
    prepare("--train", "a.trn", "--dev", "a.dev", "--minutes", minutes, *more)
    assert ("hallucinated" in options()["data"]) is (pairs > 0)
    path = Path("out/hallucinated.src")
    assert (len(path.read_text("utf-8").splitlines()) if pairs else 0) == pairs
    assert path.exists() is (pairs > 0)


@pytest.mark.usefixtures("hundred_a_second")
def test_a_plan_says_why_it_hallucinates(capsys: pytest.CaptureFixture[str]) -> None:
    write(a_trn=ENDINGS, a_dev=ENDINGS)
    prepare("--train", "a.trn", "--dev", "a.dev", "--minutes", 4)
    said = "Of these rows, 8 are hallucinated, since there are at least 20 passes without"
    assert said in capsys.readouterr().err
    assert f"# {said}" in Path("out/train.yaml").read_text("utf-8")


def test_dev_tables_of_one_name_have_commands_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One folder cannot hold both predictions."""
    paths = [Path(folder, "dev.tsv") for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("".join(f"{row}\n" for row in FORMS), "utf-8")
    write(train_tsv=FORMS)
    prepare("--train", "train.tsv", "--dev", *paths, "--language", "eng")
    printed = capsys.readouterr().out
    for number, path in enumerate(paths, 1):
        written = f"out/dev.predicted.{number}.tsv"
        assert f"predict out/model {path} --output {written} --language eng\n" in printed
        assert f"evaluate {written} --reference {path} --model out/model\n" in printed


@pytest.mark.parametrize(
    ("names", "others", "expected"),
    [
        (["a.dev"], [], "t/a.dev"),
        (["a-dev", "b b-dev", "c-dev"], ["a-train"], "t/*-dev"),
        (["a_x_dev.tsv", "b_dev.tsv", "c_dev.tsv"], ["c.tsv"], "t/*_dev.tsv"),
        (["a.dev", "b.dev", "c.dev"], ["d.dev"], "t/a.dev t/b.dev t/c.dev"),
        (["a.dev", "b.val", "c.dev"], [], "t/a.dev t/b.val t/c.dev"),
    ],
)
def test_many_files_are_a_pattern_that_names_no_others(
    names: list[str], others: list[str], expected: str
) -> None:
    Path("t").mkdir()
    for name in (*names, *others):
        Path("t", name).touch()
    assert files_for_shell([Path("t", name) for name in names]) == expected


def test_a_table_without_heading_follows_that_of_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two columns, nothing else tells which is the source."""
    (tmp_path / "train").write_text("pronunciation\tword\na b\tab\nb a\tba\n", encoding="utf-8")
    (tmp_path / "dev").write_text("a a\taa\n", encoding="utf-8")
    words = ["--train", tmp_path / "train", "--dev", tmp_path / "dev", "--out", tmp_path / "out"]
    assert exit_status(prepare_table.main, [*map(str, words)]) == 0
    assert (tmp_path / "out/dev.src").read_text(encoding="utf-8") == "a a\n"
    assert (tmp_path / "out/dev.tgt").read_text(encoding="utf-8") == "a a\n"
    assert (tmp_path / "out/train.src").read_text(encoding="utf-8").split("\n")[0] in ("a b", "b a")


def test_rows_of_several_training_tables_are_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two", "dev"):
        (tmp_path / name).write_text("ab\ta b\n", encoding="utf-8")
    tables = ["--train", tmp_path / "one", tmp_path / "two", "--dev", tmp_path / "dev"]
    words = [*tables, "--language", "x", "--out", tmp_path / "out"]
    assert exit_status(prepare_table.main, [*map(str, words)]) == 0
    assert "rows that several training tables have: 1 of 2" in capsys.readouterr().err
