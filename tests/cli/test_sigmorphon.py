"""`prepare sigmorphon`: real commands, and every kind of bad input."""

import hashlib
import json
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from onmt_entmax.cli import prepared
from onmt_entmax.cli.main import COMMANDS
from onmt_entmax.cli.main import run as run_command
from onmt_entmax.options.train import TrainingSetup, training_setup
from onmt_entmax.strings.units import decode_word
from onmt_entmax.train import timing
from onmt_entmax.train.timing import Timed
from tests.commands import ROOT, json_lines, succeed
from tests.commands import run as execute
from tests.reports import record

SAMPLES = ROOT / "data" / "samples"
# Beginnings of the SHA-256 checksums of the files that `--data data/samples` gives.
HASHES = {
    "dev.src": "ab6004420ac536f0",
    "dev.tgt": "368763ca2128c823",
    "train.src": "d922f8435399e24e",
    "train.tgt": "18df98536e3584a8",
}
NAMES = {"prepare": "prepare sigmorphon", "evaluate": "evaluate"}


def run(command: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The real command."""
    return execute("onmt_entmax", *NAMES[command].split(), *arguments)


def call(command: str, *arguments: object) -> int:
    """The exit status of the command, in this process."""
    return run_command(NAMES[command], list(map(str, arguments)), f"onmt-entmax {NAMES[command]}")


def refused(capsys, *arguments: object) -> str:
    """The one line that a wrong call prints; checks that it ends with status 2."""
    assert call(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"onmt-entmax {NAMES[arguments[0]]}: error: ")
    assert captured.err.count("\n") == 1
    return captured.err


class TestSamplesEndToEnd:
    @pytest.fixture(scope="class")
    def prepared(self, tmp_path_factory) -> Path:
        folder = tmp_path_factory.mktemp("prepared")
        done = run("prepare", "--data", SAMPLES, "--out", folder)
        assert (done.returncode, done.stderr) == (0, "")
        assert "460 rows, 4 languages" in done.stdout
        return folder

    def test_every_row_can_be_read_back(self, prepared):
        for split in ("train", "dev"):
            rows = []
            for language in ("english", "german", "spanish", "turkish"):
                text = (SAMPLES / f"{language}-{split}").read_text(encoding="utf-8")
                rows += [[language, *line.split("\t")] for line in text.splitlines()]
            sources = (prepared / f"{split}.src").read_text(encoding="utf-8").splitlines()
            targets = (prepared / f"{split}.tgt").read_text(encoding="utf-8").splitlines()
            back = []
            for source, target in zip(sources, targets, strict=True):
                language, *tokens = source.split()
                tags = [token[1:] for token in tokens if len(token) > 1 and token[0] == "+"]
                lemma = decode_word(tokens[len(tags) :])
                form = decode_word(target.split())
                back.append([language.removeprefix("lang="), lemma, form, ";".join(tags)])
            if split == "train":
                # Training may hold a part of the rows at a time, which must have all languages.
                assert {language for language, *_ in back[:40]} == {row[0] for row in rows}
                back, rows = sorted(back), sorted(rows)
            assert back == rows
        assert sorted(path.name for path in prepared.iterdir()) == [
            "dev.src",
            "dev.tgt",
            "train.src",
            "train.tgt",
            "train.yaml",
        ]

    def test_the_files_are_those_of_the_first_release(self, prepared):
        """And of all later ones: results and models were made with them."""
        hashes = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            for path in sorted(prepared.iterdir())
            if path.suffix != ".yaml"
        }
        assert hashes == HASHES

    def test_a_right_to_left_model_has_the_same_files(self, prepared, tmp_path, capsys):
        assert call("prepare", "--data", SAMPLES, "--right_to_left", "--out", tmp_path) == 0
        for name in ("train.src", "train.tgt", "dev.src", "dev.tgt"):
            assert (tmp_path / name).read_bytes() == (prepared / name).read_bytes()
        assert "target_order: right_to_left; the files stay in natural order" in (
            capsys.readouterr().out
        )
        for folder, backwards in ((tmp_path, True), (prepared, False)):
            setup = training_setup(["-config", str(folder / "train.yaml")])
            assert setup.data.task.right_to_left is backwards

    def test_evaluate_prints_the_official_measures(self, prepared, tmp_path):
        lines = (prepared / "dev.tgt").read_text(encoding="utf-8").splitlines()
        assert len(lines) == 460
        lines[0] += " x"  # an English word, one character too many
        lines[119] = ""  # an English word not answered
        wrong = decode_word((prepared / "dev.tgt").read_text().splitlines()[119].split())
        (tmp_path / "predictions").write_text("\n".join(lines) + "\n", encoding="utf-8")
        report = tmp_path / "scores" / "dev.json"
        done = run(
            *("evaluate", "--source", prepared / "dev.src", "--reference", prepared / "dev.tgt"),
            *("--predictions", tmp_path / "predictions", "--json", report),
        )
        assert (done.returncode, done.stderr) == (0, "")
        scores = json.loads(report.read_text())
        english = scores["languages"]["english"]
        assert english["words"] == 120
        assert english["accuracy"] == pytest.approx(118 / 120)
        assert english["edit_distance"] == pytest.approx((1 + len(wrong)) / 120)
        assert scores["average"]["accuracy"] == pytest.approx((118 / 120 + 3) / 4)
        *_, last = done.stdout.splitlines()
        assert last.split()[:3] == ["average", "460", "99.58"]

    def test_evaluate_compares_tokens(self, tmp_path, capsys):
        """`ts a` is another output than `t s a`, though it spells the same word."""
        for name, text in (("src", "lang=x t s a\n" * 2), ("ref", "t s a\n" * 2)):
            (tmp_path / name).write_text(text)
        (tmp_path / "one").write_text("ts a\nt s a\n")
        (tmp_path / "two").write_text("t s a\nts a\n")
        files = f"--source {tmp_path}/src --reference {tmp_path}/ref --predictions {tmp_path}/one"
        assert call("evaluate", *files.split(), "--against", tmp_path / "two") == 0
        out = capsys.readouterr().out.splitlines()
        assert out[1].split() == ["x", "2", "50.00", "1.000"]
        assert out[-1].split() == ["all", "1", "1", "1.0000"]

    def test_evaluate_reads_lists_of_predictions(self, tmp_path, capsys):
        """The first, and the nearest of each list; blank lines fill up a list."""
        (tmp_path / "src").write_text("lang=x +V a\nlang=x +V b\nlang=y +V c\n")
        (tmp_path / "ref").write_text("a a\nb\nc\n")
        (tmp_path / "out").write_text("a\na a\n\n" + "x y z\n\n\n" + "c\nd\n\n")
        files = [f"--source {tmp_path}/src --reference {tmp_path}/ref --predictions {tmp_path}/out"]
        command = [*files[0].split(), "--nbest", "3", "--json", str(tmp_path / "json")]
        assert call("evaluate", *command) == 0
        _, *rows = capsys.readouterr().out.splitlines()
        assert rows[0].split() == ["x", "2", "0.00", "2.000", "50.00", "1.500"]
        assert rows[-1].split() == ["average", "3", "50.00", "1.000", "75.00", "0.750"]
        best = json.loads((tmp_path / "json").read_text())["best of 3"]
        assert best["languages"]["x"]["accuracy"] == 0.5
        command[command.index("3")] = "2"
        assert call("evaluate", *command) == 2
        assert "out: 9 lines, but" in capsys.readouterr().err

    def test_every_correct_form_of_a_source_is_right(self, tmp_path, capsys):
        (tmp_path / "src").write_text("lang=x +V a\n" * 2 + "lang=x +V b\n")
        (tmp_path / "ref").write_text("a d\na t\nb d\n")
        (tmp_path / "out").write_text("a t\nx y\na t\na t\nb t\nb d\n")
        (tmp_path / "other").write_text("a t\n\na x\n\nb d\n\n")
        names = ("source", "src"), ("reference", "ref"), ("predictions", "out")
        files = [word for name, file in names for word in (f"--{name}", tmp_path / file)]
        words = [*files, "--nbest", 2, "--against", tmp_path / "other", "--json", tmp_path / "json"]
        assert call("evaluate", *words) == 0
        said = capsys.readouterr().out
        assert "\nwords with several correct forms: 2 of 3\n" in said
        content = json.loads((tmp_path / "json").read_text())
        assert content["average"] == {"words": 3, "accuracy": 2 / 3, "edit_distance": 1 / 3}
        assert content["best of 2"]["average"]["accuracy"] == 1
        assert content["against"]["all"] == {"won": 1, "lost": 1, "p": 1.0}

    @pytest.mark.parametrize("name", ["all", "average", "languages"])
    def test_a_language_has_the_name_of_a_total(self, tmp_path, capsys, name):
        """Both lines are right, in the table and in the file."""
        (tmp_path / "src").write_text(f"lang={name} a\nlang=x a\nlang=x b\n")
        (tmp_path / "ref").write_text("a\na\nb\n")
        (tmp_path / "out").write_text("a\nb\nb\nb\na\nb\n")
        (tmp_path / "none").write_text("\n" * 6)
        names = ("source", "src"), ("reference", "ref"), ("predictions", "out"), ("against", "none")
        files = [word for option, file in names for word in (f"--{option}", tmp_path / file)]
        assert call("evaluate", *files, "--nbest", 2, "--json", tmp_path / "json") == 0
        scores, against = capsys.readouterr().out.split("\n\n")
        rows = [line.split()[1:] for line in scores.splitlines() if name in line or "avera" in line]
        assert rows[0] == ["1", "100.00", "0.000", "100.00", "0.000"]
        assert rows[-1] == ["3", "50.00", "0.500", "75.00", "0.250"]
        language = "all (language)" if name == "all" else name
        compared = [line for line in against.splitlines()[1:] if line.startswith(f"{language} ")]
        assert compared[0].removeprefix(language).split()[:2] == ["1", "0"]
        assert against.splitlines()[-1].split()[:3] == ["all", "1", "0"]
        content = json.loads((tmp_path / "json").read_text())["against"]
        assert content[language]["won"] == content["all"]["won"] == 1


class TestExample:
    """The configuration that `prepare` writes, and the commands that it prints."""

    def test_the_printed_commands_lead_to_a_report(self, tmp_path, capsys):
        """With fewer updates and a smaller model; the same commands are in the configuration."""
        folder = tmp_path / "a: b"
        for language in ("english", "german"):
            for part in ("train", "dev"):
                rows = (SAMPLES / f"{language}-{part}").read_text().splitlines(keepends=True)
                (tmp_path / f"{language}-{part}").write_text("".join(rows[:20]))
        assert call("prepare", "--data", tmp_path, "--out", folder) == 0
        *_, printed = capsys.readouterr().out.partition("next:\n")
        commands = [shlex.split(line)[1:] for line in printed.splitlines()]
        written = (folder / "train.yaml").read_text()
        head = written[: written.index("\ndata:")]
        assert [shlex.split(line)[2:] for line in head.splitlines() if "  onmt" in line] == commands
        quick = {"train_steps": 2, "valid_steps": 1, "rnn_size": 8, "word_vec_size": 8}
        quick |= {"warmup_steps": 1, "attention_warmup_steps": 1, "max_length": 4}
        (folder / "train.yaml").write_text(yaml.safe_dump(yaml.safe_load(written) | quick))
        assert [name for name, *_ in commands] == [
            "train", "inflect", "predict", "evaluate", "translate", "report",
        ]  # fmt: skip
        tables = ["predict", "evaluate"] if "predict" not in COMMANDS else []
        for command in commands:
            if command[0] not in tables:
                succeed("onmt_entmax", *command)
        assert "</html>" in (folder / "dev.html").read_text()

    @pytest.mark.parametrize(
        ("languages", "selection"), [(["english"], "exact_match"), (["all"], "macro_accuracy")]
    )
    def test_the_configuration_fits_the_data(self, tmp_path, capsys, languages, selection):
        folder = tmp_path / "data"
        arguments = ["--data", SAMPLES, "--languages", *languages, "--out", folder]
        assert call("prepare", *arguments) == 0
        assert f"inflect --model {folder}/model english " in capsys.readouterr().out
        setup = training_setup(["-config", str(folder / "train.yaml")])
        rows = len((folder / "train.src").read_text().splitlines())
        training = setup.training
        assert training.train_steps >= max(4000, 40 * rows / 32)
        assert training.valid_steps == training.train_steps // 20
        assert (training.selection, setup.model.generator_alpha) == (selection, 1.5)


class Measured:
    """Speeds in the place of those of a machine: the smaller the network, the faster.

    Each network is measured with what `prepare` wrote, and rounded products are twice as fast.
    """

    rows, source, target, dev = 4080, 12.0, 9.0, 100

    def __init__(self, data: object, vocabulary: object, device: object) -> None:
        self.device = device

    def training_speeds(self, networks: list[Timed], seconds: float) -> list[float]:
        assert seconds <= 30
        twice = {"float32": 1, "bfloat16": 2}
        return [
            twice[n.training.matmul_dtype] * 100_000 / n.model.rnn_size / n.model.enc_layers
            for n in networks
        ]

    def validation_speeds(self, network: Timed, validation: object) -> tuple[float, float]:
        return 3000.0, 400.0


@pytest.fixture
def speeds(monkeypatch) -> None:
    """Measure nothing."""
    monkeypatch.setattr(timing, "Stopwatch", Measured)


SIGMORPHON = ["--data", SAMPLES, "--languages", "turkish"]


def planned(arguments: list[object], out: Path, kind: str = "sigmorphon") -> TrainingSetup:
    """Return the training that `prepare` planned."""
    name = f"prepare {kind}"
    words = [*map(str, [*arguments, "--out", out])]
    assert run_command(name, words, f"onmt-entmax {name}") == 0
    return training_setup(["-config", str(out / "train.yaml")])


@pytest.mark.parametrize(("minutes", "size", "dropout"), [(15, 300, 0.5), (0.01, 200, 0.1)])
@pytest.mark.parametrize("kind", ["sigmorphon", "files"])
def test_a_plan_for_a_time(kind, minutes, size, dropout, tmp_path, capsys, speeds):
    """The time is a limit, to which the learning rate falls; the file says what was measured."""
    arguments = SIGMORPHON
    if kind == "files":
        for side in ("src", "tgt"):
            lines = [f"{word} {word[::-1]}{n}" for n, word in enumerate(["tree", "house"] * 20)]
            (tmp_path / f"a.{side}").write_text("\n".join(lines) + "\n")
        files = [tmp_path / "a.src", tmp_path / "a.tgt"]
        arguments = ["--languages", "xx", "yy", "--train", *files, "--val", *files]
        arguments += ["--symbols", 30, "--max_ratio", 20]
    out = tmp_path / "out"
    setup = planned([*arguments, "--minutes", minutes], out, kind)
    said = capsys.readouterr().err
    written = (out / "train.yaml").read_text()
    head = written[: written.index("\ndata:")]
    size, dropout = (size, dropout) if kind == "sigmorphon" else (384, 0.3)
    chosen = f"Chosen: 1 layer of {size}, batches of {setup.data.batch_size}, bfloat16: the "
    for line in (f"Planned for {minutes} minutes of this machine's CPU", chosen):
        assert line in said
        assert f"# {line}" in head
    training = setup.training
    assert (training.max_seconds, training.train_steps) == (60 * minutes, None)
    assert (training.optimizer.decay_method, training.matmul_dtype) == ("cosine", "bfloat16")
    assert (setup.model.rnn_size, training.dropout) == (size, (dropout,))
    updates = 0.96 * 60 * minutes * 200_000 / size / setup.data.batch_size
    assert training.valid_steps * 1.5 <= max(updates + 1, 1.5)
    assert 1 <= training.optimizer.warmup_steps <= max(updates / 5, 1)
    lost = "train.yaml: was planned for a time; without --minutes"
    for more, warned in (([minutes], False), ([], True), ([], False)):
        again = [*arguments, "--minutes", *more] if more else arguments
        planned(again, out, kind)  # it is prepare's own file
        assert (lost in capsys.readouterr().err) is warned
    assert "--minutes of `prepare`" in (out / "train.yaml").read_text()


@pytest.mark.parametrize("minutes", [[], ["--minutes", 15]])
def test_a_plan_has_the_sizes_that_the_user_names(minutes, tmp_path, speeds):
    setup = planned([*SIGMORPHON, *minutes, "--size", 64, "--layers", 2, "--batch", 8], tmp_path)
    assert (setup.model.rnn_size, setup.model.enc_layers, setup.data.batch_size) == (64, 2, 8)
    assert setup.model.tgt_word_vec_size == 64


def test_a_plan_that_cannot_be_made_leaves_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    out = tmp_path / "out"
    words = ["prepare", *SIGMORPHON, "--out", out]
    for more, why in (
        (["--gpu"], "--gpu measures a GPU to plan for --minutes, which are missing"),
        (["--gpu", "--minutes", 5], "--gpu: there is no GPU here to measure"),
        (["--size", 65], "--size 65: must be even"),
    ):
        assert why in refused(capsys, *words, *more)
    assert not out.exists()


def test_a_plan_is_measured(tmp_path, monkeypatch):
    """With the networks of the plan, in a moment instead of twenty seconds."""
    monkeypatch.setattr(prepared, "_SECONDS", 0.01)
    setup = planned([*SIGMORPHON, "--minutes", 3, "--size", 16], tmp_path)
    assert (setup.training.max_seconds, setup.model.rnn_size) == (180, 16)


class TestTables:
    """Layouts of the shared tasks, of UniMorph and of spreadsheets."""

    @pytest.mark.parametrize(
        ("name", "text", "language", "pairs", "layout", "tags"),
        [
            (  # SIGMORPHON 2016
                "german-task1-train",
                "Zugang\tpos=N,case=ACC,num=PL\tZugänge\nflott\tpos=ADJ\tflott\n",
                "german",
                [
                    "+pos=N +case=ACC +num=PL Z u g a n g|Z u g ä n g e",
                    "+pos=ADJ f l o t t|f l o t t",
                ],
                "columns source, tags, target between tabs",
                "tags between ','",
            ),
            (  # SIGMORPHON 2019, as 2017 and 2018
                "old-irish-train-low",
                "as\tbe\tV;FUT\n",
                "old-irish",
                ["+V +FUT a s|b e"],
                "columns source, target, tags between tabs",
                "tags between ';'",
            ),
            (  # SIGMORPHON 2022, as 2020 and 2021; most tags of Ket are single
                "ket_small.train",
                "тат\tтат\tADJ\nам\tамась\tN;INS\nқае\tқае\tADV\n",
                "ket",
                ["+ADJ т а т|т а т", "+N +INS а м|а м а с ь", "+ADV қ а е|қ а е"],
                "columns source, target, tags between tabs",
                "tags between ';'",
            ),
            (  # SIGMORPHON 2023
                "tur.trn",
                "göz\tN;NOM(PL;PSS(1,PL))\tgözlerimiz\n",
                "tur",
                ["+N +NOM(PL;PSS(1,PL)) g ö z|g ö z l e r i m i z"],
                "columns source, tags, target between tabs",
                "tags between ';', some layered",
            ),
            (  # UniMorph, with segmentation
                "eng",
                "aah\taahs\tV;PRS;NOM(3,SG)\taah|s\n\naah\taah\tV;NFIN\t-\n",
                "eng",
                ["+V +PRS +NOM(3,SG) a a h|a a h s", "+V +NFIN a a h|a a h"],
                "columns source, target, tags, - between tabs",
                "tags between ';', some layered",
            ),
            (  # a spreadsheet
                "welsh.csv",
                'Form,Note,Lemma,Tags\r\n"cŵn, y",a,ci,N;PL\r\n,,,\r\n"""ci""",b,ci,N;SG\r\n',
                "welsh",
                ["+N +PL c i|c ŵ n , ▁ y", '+N +SG c i|" c i "'],
                "columns target, -, source, tags between commas",
                "tags between ';'",
            ),
        ],
    )
    def test_is_read(self, tmp_path, capsys, name, text, language, pairs, layout, tags):
        (tmp_path / name).write_text(text, newline="")
        out = tmp_path / "out"
        assert (
            call("prepare", "--dev", tmp_path / name, "--test", tmp_path / name, "--out", out) == 0
        )
        first, second, third, *_ = capsys.readouterr().out.splitlines()
        assert first.startswith(f"{name} and 1 file more: {layout}")
        assert second == f"source: characters; target: characters; {tags}"
        rows = "1 row" if len(pairs) == 1 else f"{len(pairs)} rows"
        assert third == f"language {language}: dev: {name} ({rows}); test: {name} ({rows})"
        for split in ("dev", "test"):
            sources = (out / f"{split}.src").read_text(encoding="utf-8").splitlines()
            targets = (out / f"{split}.tgt").read_text(encoding="utf-8").splitlines()
            read = [f"{a}|{b}" for a, b in zip(sources, targets, strict=True)]
            assert read == [f"lang={language} {pair}" for pair in pairs]

    @pytest.mark.parametrize("columns", [[], ["--columns", "lemma,form,tags"]])
    def test_a_heading_is_no_row_and_is_said(self, tmp_path, capsys, columns):
        for part in ("train", "dev"):
            rows = f"Wort\tForm\tMerkmale\na{part}\tab\tV;PST\nb\tbb\tN\n"
            (tmp_path / f"x-{part}").write_text(rows)
        assert call("prepare", "--data", tmp_path, "--out", tmp_path / "out", *columns) == 0
        assert (tmp_path / "out/dev.src").read_text() == "lang=x +V +PST a d e v\nlang=x +N b\n"
        said = capsys.readouterr().out
        assert "; heading 'Wort\\tForm\\tMerkmale' left out\n" in said
        assert " x adev 'V;PST'\n" in said  # the query of the next command

    def test_words_of_mixed_scripts_are_named(self, tmp_path, capsys):
        rows = [f"б{n}\tб{n}\tN" for n in range(20)]
        rows += [*["уранак\tура́нкa\tN;GEN"] * 5, "уранак\turanka\tN;DAT"]
        (tmp_path / "x").write_text("\n".join(rows) + "\n", encoding="utf-8")
        assert call("prepare", "--train", tmp_path / "x", "--out", tmp_path) == 0
        said, repeated = capsys.readouterr().err.splitlines()
        assert "x: rows that are there before: 4 of 26, such as 'уранак', " in repeated
        assert "x: rows that mix scripts: 6 of 26: line 21, 'ура́нкa' mixes scripts: " in said
        assert said.count("Cyrillic with Latin a (U+0061); ") == 5
        assert said.endswith("; and 1 more (onmt-entmax audit lists all)")

    def test_named_columns_and_language(self, tmp_path):
        (tmp_path / "a.x").write_text("past(a;b)\tdrew\t1\tdraw\n")
        arguments = ["--columns", "tags,form,-,lemma", "--language", "english", "--out", tmp_path]
        assert call("prepare", "--train", tmp_path / "a.x", *arguments) == 0
        assert (tmp_path / "train.src").read_text() == "lang=english +past(a;b) d r a w\n"
        assert (tmp_path / "train.tgt").read_text() == "d r e w\n"


class TestBadInput:
    @pytest.fixture
    def data(self, tmp_path) -> Path:
        folder = tmp_path / "data"
        folder.mkdir()
        for language in ("old-irish", "welsh"):
            for part in ("train-low", "dev"):
                (folder / f"{language}-{part}").write_text("a\tab\tV;PST\n")
        (folder / "welsh-train-high").write_text("a\tab\tV;PST\r\nb c\tbc\tN\r\n")
        return folder

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["--setting", "hihg"],
                "argument --setting: invalid choice: 'hihg' (choose from",
            ),
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
    def test_wrong_choices(self, data, tmp_path, capsys, arguments, message):
        out = tmp_path / "out"
        assert message in refused(capsys, "prepare", "--data", data, "--out", out, *arguments)
        assert not out.exists()

    def test_a_language_without_the_setting_is_left_out_of_all(self, data, tmp_path, capsys):
        out = tmp_path / "out"
        arguments = ["prepare", "--data", str(data), "--setting", "high", "--out", str(out)]
        assert call(*arguments) == 0
        assert "left out, no dev or no train-high: old-irish" in capsys.readouterr().out
        assert (out / "train.src").read_text() == "lang=welsh +V +PST a\nlang=welsh +N b ▁ c\n"
        assert (out / "dev.src").read_text() == "lang=welsh +V +PST a\n"

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"a,ab\n", ": columns source, tags between commas; no targets, but "),
            (b'a,"ab,V\n', ": no tabs, and no row of a CSV file"),
            (b"a\tab\tx\ty\n", ": 4 columns, not 3 (source, target, tags), or 2 without"),
            (b"a\tab\tV\nb\t\xff\tV\n", ":2: not UTF-8 text"),
        ],
    )
    def test_wrong_files(self, data, tmp_path, capsys, content, message):
        (data / "welsh-dev").write_bytes(content)
        out = tmp_path / "out"
        arguments = ("--data", data, "--setting", "low", "--out", out)
        assert f"welsh-dev{message}" in refused(capsys, "prepare", *arguments)
        assert not out.exists()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--train", "a.tsv", "--data", "x"], "expected either --data, or some of --train"),
            (["--train", "a.tsv", "--setting", "low"], "--setting and --splits choose among"),
            (
                ["--train", "a.tsv", "--language", "low german"],
                "'low german': must be one word",
            ),
            (["--train", "a.tsv", "--columns", "lemma,form"], "--columns: expected lemma, form"),
            (
                ["--train", "a.tsv", "--columns", "lemma,form,form,tags"],
                "--columns: target is there twice",
            ),
            (["--train", "a.tsv"], "a.tsv: cannot be read"),
        ],
    )
    def test_wrong_options(self, tmp_path, capsys, arguments, message):
        out = tmp_path / "out"
        assert message in refused(capsys, "prepare", "--out", out, *arguments)
        assert not out.exists()

    @pytest.mark.parametrize(
        ("source", "predictions", "message"),
        [
            ("lang=x +V a\n", "a\nb\n", "2 lines, but"),
            ("lang=x +V a\nd r a w\n", "a\nb\n", "source:2: expected a language first"),
            ("lang=x +V a\n", "x\ta\tV\t1\ta\t1\tonly\t\n", "predictions:1: expected tokens"),
            ("lang=x +V a\n", '{"id": 0}\n', "predictions:1: expected tokens"),
        ],
    )
    def test_evaluate_refuses(self, tmp_path, capsys, source, predictions, message):
        (tmp_path / "source").write_text(source)
        (tmp_path / "reference").write_text("a\n" * source.count("\n"))
        (tmp_path / "predictions").write_text(predictions)
        names = ("source", "reference", "predictions")
        files = [word for name in names for word in (f"--{name}", tmp_path / name)]
        report = tmp_path / "report.json"
        assert message in refused(capsys, "evaluate", *files, "--json", report)
        assert not report.exists()

    def test_comparisons_and_coverage(self, tmp_path, capsys):
        """Of ten words this one has 8 right, the other 3; the first five are certain."""
        lines = {
            "source": ["lang=x +V a"] * 5 + ["lang=y +V a"] * 5,
            "reference": ["a"] * 10,
            "predictions": ["a"] * 8 + ["b"] * 2,
            "against": ["a"] * 2 + ["b"] * 7 + ["a"],
        }
        for name, texts in lines.items():
            (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
        found = [("exhaustive", 1.0)] * 5 + [("optimal", 0.6)] * 5
        report = [
            record(source, level, (text, prob)) + "\n"
            for source, text, (level, prob) in zip(
                lines["source"], lines["predictions"], found, strict=True
            )
        ]
        (tmp_path / "report").write_text("".join(report))
        files = [word for name in lines for word in (f"--{name}", tmp_path / name)]
        words = [*files, "--report", tmp_path / "report", "--json", tmp_path / "json"]
        assert call("evaluate", *words) == 0
        capsys.readouterr()
        content = json.loads((tmp_path / "json").read_text())
        # Only this right: 6; only the other: 1. p = 2 (1 + 7) / 2 ** 7.
        assert content["against"]["all"] == {"won": 6, "lost": 1, "p": 0.125}
        assert content["against"]["x"] == {"won": 3, "lost": 0, "p": 0.25}
        kept = {each["rule"]: (each["share"], each["quality"]) for each in content["coverage"]}
        assert kept["all"] == kept["p >= 0.5"] == kept["optimal or more"] == (1.0, 80.0)
        assert kept["p >= 0.7"] == kept["exhaustive"] == kept["only one possible"] == (0.5, 100.0)
        # A word left out is not kept: the two wrong ones.
        records = json_lines(tmp_path / "report")
        for each in records[8:]:
            each["abstained"] = True
        (tmp_path / "report").write_text("".join(json.dumps(each) + "\n" for each in records))
        assert "report: not of " in refused(capsys, "evaluate", *words)
        (tmp_path / "predictions").write_text("a\n" * 8 + "\n" * 2)
        assert call("evaluate", *words) == 0
        capsys.readouterr()
        first = json.loads((tmp_path / "json").read_text())["coverage"][0]
        assert first == {"rule": "all", "share": 0.8, "quality": 100.0}
        (tmp_path / "report").write_text("".join(report[::-1]))
        assert "report: not of " in refused(capsys, "evaluate", *words)
        (tmp_path / "report").write_text("")
        assert "the report is empty" in refused(capsys, "evaluate", *words)


def test_all_languages_of_medium(conll2018, tmp_path, capsys):
    arguments = ["--data", str(conll2018), "--setting", "medium", "--out", str(tmp_path)]
    assert call("prepare", *arguments) == 0
    assert "left out, no dev or no train-medium: telugu" in capsys.readouterr().out
    for split, count in (("train", 95323), ("dev", 65200)):
        sources = (tmp_path / f"{split}.src").read_bytes().split(b"\n")[:-1]
        assert len(sources) == count
        assert len({line.split(b" ", 1)[0] for line in sources}) == 102
        targets = (tmp_path / f"{split}.tgt").read_text(encoding="utf-8").split("\n")[:-1]
        assert all(targets)
        assert len(targets) == count
