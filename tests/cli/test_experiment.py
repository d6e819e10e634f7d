"""`onmt-entmax experiment`: a small matrix from start to table, and every way it can go wrong."""

import json
import os
import shutil
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from sacrebleu.metrics import BLEU

from onmt_entmax.cli import experiment
from onmt_entmax.errors import UserError
from onmt_entmax.experiment import runner
from onmt_entmax.experiment import table as experiment_table
from onmt_entmax.experiment.matrix import check_configuration, data_digests, digest
from onmt_entmax.experiment.measures import EVALUATIONS, _files, figures_of, last_measurement
from onmt_entmax.experiment.runner import ExperimentError, Processes, Stopped
from onmt_entmax.locks import is_locked, locked
from tests.ended import ended, refused
from tests.matrices import read, write_matrix


class TestRun:
    def test_every_run_has_its_folder(self, finished):
        for name in ("seed-1", "seed-2", "ensemble"):
            folder = finished.parent / "runs" / "one" / name
            names = {path.name for path in folder.iterdir()}
            assert {"log.txt", "dev.pred", "dev.report.jsonl", "figures.json"} <= names
            figures = json.loads((folder / "figures.json").read_text())
            assert next(iter(figures)) == "accuracy"
            assert set(figures["languages"]) == {"a", "b"}
            assert figures["output_alpha"] == 2
            assert len((folder / "dev.pred").read_text().splitlines()) == 40
        config = yaml.safe_load((folder.parent / "seed-2" / "config.yaml").read_text())
        assert (config["seed"], config["learning_rate"]) == (2, 0.01)
        assert config["save_model"] == str(folder.parent / "seed-2" / "model")
        assert last_measurement(folder.parent / "seed-1" / "model", "valid")["step"] == 4
        models = yaml.safe_load((folder / "translate.yaml").read_text())["model"]
        assert [Path(model).parts[-3] for model in models] == ["seed-1", "seed-2"]

    def test_what_is_done_is_skipped(self, finished, monkeypatch, capfd):
        def never(*_: object) -> None:
            raise AssertionError("nothing is left to do")

        monkeypatch.setattr(Processes, "run", never)
        assert ended(experiment.main, ["run", str(finished), "--jobs", "1000"]) == 0
        assert capfd.readouterr().err.count("done before") == 2

    def test_another_decoding_is_done_again_without_training(self, copied, monkeypatch):
        commands = []
        path = copied.with_name("wider.yaml")
        path.write_text(copied.read_text().replace("beam_size: 3", "beam_size: 4"))
        matrix = read(path)
        left = matrix.trainings()[1].folder / ".config.yaml.0123456789abcdef.tmp"
        left.touch()  # by a killed call
        assert figures_of(matrix.trainings()[0]) is None
        monkeypatch.setattr(Processes, "run", lambda self, words, *_: commands.append(words))
        assert ended(experiment.main, ["run", str(path), "--seeds", "2"]) == 0
        assert not left.exists()
        run = copied.parent / "runs" / "one" / "seed-2"
        assert [words[0] for words in commands] == ["train", "translate"]
        assert commands[0][-2:] == ["-train_from", str(run / "model")]
        assert yaml.safe_load((run / "translate.yaml").read_text())["beam_size"] == 4
        assert figures_of(matrix.trainings()[1]) is not None

    @pytest.mark.parametrize("words", ["run", "table"])
    def test_a_changed_configuration_is_refused(self, finished, words):
        path = finished.with_name("changed.yaml")
        path.write_text(finished.read_text().replace("0.01", "0.02"))
        line = refused(experiment.main, [words, path])
        assert "seed-1: was trained with learning_rate 0.01, the matrix now says 0.02" in line

    def test_null_is_not_unset(self, finished):
        path = finished.with_name("null.yaml")
        path.write_text(finished.read_text().replace("options:", "options:\n  max_seconds: null"))
        assert "with max_seconds unset, the matrix now says None" in refused(
            experiment.main, ["run", path]
        )

    def test_figures_of_other_weights_or_references_are_made_again(self, copied):
        matrix = read(copied)
        (ensemble,) = matrix.ensembles()
        assert figures_of(ensemble) is not None
        first, second = matrix.trainings()
        weights = [each.models()[0] / "model.safetensors" for each in (first, second)]
        shutil.copy(weights[1], weights[0])
        assert figures_of(first) is None
        assert figures_of(second) is not None
        assert figures_of(ensemble) is None
        text = matrix.reference.read_text()
        matrix.reference.write_text(text + "a\n")
        assert figures_of(second) is None
        matrix.reference.write_text(text)

    def test_other_training_data_is_refused(self, copied):
        matrix = read(copied)
        source = Path(matrix.cells[0].training["data"]["corpus_1"]["path_src"])
        text = source.read_text()
        source.write_text(text.replace("a", "b"))
        try:
            with pytest.raises(UserError, match=r"was trained with another .*\.src"):
                figures_of(matrix.trainings()[0])
        finally:
            source.write_text(text)

    def test_other_subwords_are_refused_and_figures_of_others_made_again(self, copied, tmp_path):
        """Where the text files are the same, byte for byte."""
        matrix, model = read(copied), tmp_path / "bpe.model"
        options = {**matrix.cells[0].training, "src_subword_model": str(model)}
        model.write_text("a b\n")
        cell = replace(matrix.cells[0], training=options)
        training = replace(matrix.trainings()[0], cell=cell)
        assert data_digests(training)[str(model)] == digest(model)
        (training.folder / "data.json").write_text(json.dumps(data_digests(training)))
        before = _files(training)
        model.write_text("a b\nab c\n")
        assert _files(training) != before
        with pytest.raises(UserError, match=r"was trained with another .*bpe\.model"):
            check_configuration(training)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("data.json", "damaged"),
            ("model/best.json", "damaged"),
            ("model/metrics.jsonl", "not JSON"),  # two lines in one, after a full disk
        ],
    )
    def test_a_damaged_file_is_one_line(self, copied, capsys, name, message):
        path = read(copied).trainings()[0].folder / name
        before = path.read_text()
        path.write_text(before[:5] + before * path.name.startswith("metrics"))
        try:
            assert ended(experiment.main, ["status", str(copied)]) == 2
        finally:
            path.write_text(before)
        (line,) = capsys.readouterr().err.splitlines()
        assert str(path) in line
        assert message in line

    def test_an_ensemble_that_fails_is_tried_once(self, copied, monkeypatch, capfd):
        (copied.parent / "runs" / "one" / "ensemble" / "figures.json").unlink()
        tried = []

        def run(self: Processes, words: list[str], *_: object) -> None:
            tried.append(words)
            raise ExperimentError("no memory")

        monkeypatch.setattr(Processes, "run", run)
        assert ended(experiment.main, ["run", str(copied)]) == 1
        assert len(tried) == 1
        assert capfd.readouterr().err.count("failed: no memory") == 1

    def test_a_run_that_fails_is_told_and_the_others_go_on(self, copied, monkeypatch, capfd):
        for seed in (1, 2):
            (copied.parent / "runs" / "one" / f"seed-{seed}" / "figures.json").unlink()
        fails = iter([True, False, False])

        def run(self: Processes, words: list[str], log: Path, *_: object) -> None:
            if next(fails):
                raise ExperimentError(f"{words[0]} ended with status 2: no memory ({log})")

        monkeypatch.setattr(Processes, "run", run)
        assert ended(experiment.main, ["run", str(copied)]) == 1
        said = capfd.readouterr().err
        assert "one seed 1: failed: train ended with status 2: no memory" in said
        assert "one seed 2: accuracy" in said

    def test_a_folder_that_someone_works_in_is_left_alone(self, copied, capfd):
        folder = copied.parent / "runs" / "one" / "seed-1"
        (folder / "figures.json").unlink()
        with locked(folder):
            assert is_locked(folder)
            assert "running" in experiment_table.status([read(copied)])
            assert ended(experiment.main, ["run", str(copied), "--seeds", "1"]) == 1
        said = capfd.readouterr().err
        assert f"one seed 1: left to another process: {folder}: process {os.getpid()} on " in said
        assert "not done: one seed 1; the same command tries again" in said
        assert not is_locked(folder)


class TestEvaluations:
    @pytest.fixture
    def training(self, tmp_path):
        changes = {"valid_bleu_tokenize": "char"}
        matrix = read(write_matrix(tmp_path, evaluate="bleu", options=changes))
        (training,) = (t for t in matrix.trainings() if t.seed == 1)
        training.folder.mkdir(parents=True)
        return training

    def test_bleu_counts_what_validation_counts(self, training):
        references = training.matrix.reference.read_text().splitlines()
        predictions = [line[:-2] or line for line in references]
        (training.folder / "dev.pred").write_text("\n".join(predictions) + "\n")
        figures = EVALUATIONS["bleu"](training)
        expected = BLEU(tokenize="char").corpus_score(predictions, [references]).score
        assert figures["bleu"] == pytest.approx(expected, abs=1e-4)
        assert 0 < figures["bleu"] < 100
        assert "tok:char" in figures["signature"]

    @pytest.mark.parametrize("name", EVALUATIONS)
    def test_files_of_different_length(self, training, name):
        (training.folder / "dev.pred").write_text("a\n")
        with pytest.raises(UserError, match=r"dev.pred: 1 line, but .* has 40; they"):
            EVALUATIONS[name](training)


class TestWatch:
    TRAINING = "10:00:00  epoch 1     step   50/4000     5:00 left  loss 0.5786\n"
    VALIDATION = "10:00:30  validation  step  100/4000     4:40 left  exact match 61.96 %\n"

    @pytest.fixture
    def clock(self, monkeypatch):
        """A clock that stands still until a test moves it."""
        now = [100.0]
        monkeypatch.setattr(runner.time, "monotonic", lambda: now[0])
        return now

    @pytest.fixture
    def shown(self):
        """What stands at the bottom of a terminal."""
        texts: list[str] = []
        return texts, SimpleNamespace(set_description_str=texts.append)

    def test_a_line_a_minute_and_the_newest_at_the_bottom(self, tmp_path, clock, shown):
        log, said, (texts, bar) = tmp_path / "log.txt", [], shown
        log.write_text(f"of another attempt\n{self.TRAINING}")
        start = log.stat().st_size
        watch = runner.Watch("one seed 1 (1 of 2)", log, said.append, bar)
        watch(start)
        assert (said, texts) == ([], [])
        with open(log, "a") as file:
            file.write(f"1,234 weights\n{self.VALIDATION}{self.TRAINING}10:00:40  epoch")
        watch(start)
        assert said == []
        assert texts == ["one seed 1 (1 of 2): epoch 1 step 50/4000 5:00 left loss 0.5786"]
        clock[0] += 60
        watch(start)
        expected = "validation  step  100/4000     4:40 left  exact match 61.96 %"
        assert said == [f"one seed 1 (1 of 2): {expected}"]
        clock[0] += 60
        watch(start)
        assert len(said) == 1  # nothing new
        with open(log, "a") as file:
            file.write(" 2     step  200/4000\n")
        watch(start)
        assert said[1:] == ["one seed 1 (1 of 2): epoch 2     step  200/4000"]

    def test_a_training_writes_lines_that_it_finds(self, finished):
        log = finished.parent / "runs" / "one" / "seed-1" / "log.txt"
        lines = [line.decode().split()[:3] for line in runner._MEASURED.findall(log.read_bytes())]
        assert lines == [["validation", "step", "2/4"], ["validation", "step", "4/4"]]

    def test_it_looks_while_a_command_runs(self, tmp_path, monkeypatch):
        script, seen = tmp_path / "script.py", tmp_path / "seen"
        script.write_text(
            "import pathlib, time\n"
            f"while not pathlib.Path({str(seen)!r}).exists(): time.sleep(0.01)\n"
        )
        monkeypatch.setattr(runner, "CONSOLE", (sys.executable, str(script)))
        monkeypatch.setattr(runner, "_GLANCE", 0.01)
        log, starts = tmp_path / "log.txt", []
        log.write_text("before\n")

        def watch(start: int) -> None:
            starts.append(start)
            seen.touch()

        with locked(tmp_path) as lock:
            Processes().run(["train"], log, None, lock, watch)
        assert set(starts) == {7}

    def test_the_training_is_numbered(self, copied, monkeypatch, capfd):
        for seed in (1, 2):
            (copied.parent / "runs" / "one" / f"seed-{seed}" / "figures.json").unlink()
        monkeypatch.setattr(Processes, "run", lambda *_: None)
        assert ended(experiment.main, ["run", str(copied)]) == 0
        assert "one seed 2: training (2 of 2)" in capfd.readouterr().err


class TestProcesses:
    def script(self, folder: Path, monkeypatch, text: str) -> None:
        (folder / "script.py").write_text(text)
        monkeypatch.setattr(runner, "CONSOLE", (sys.executable, str(folder / "script.py")))

    def test_a_failure_carries_the_last_error_of_the_log(self, tmp_path, monkeypatch):
        text = "import sys; print('train.py: error: no data'); print('goodbye'); sys.exit(2)"
        self.script(tmp_path, monkeypatch, text)
        with locked(tmp_path) as lock, pytest.raises(ExperimentError) as raised:
            Processes().run(["train"], tmp_path / "log.txt", None, lock)
        assert "status 2: train.py: error: no data" in str(raised.value)
        self.script(tmp_path, monkeypatch, "import sys; print('killed'); sys.exit(3)")
        with locked(tmp_path) as lock, pytest.raises(ExperimentError) as raised:
            Processes().run(["train"], tmp_path / "log.txt", None, lock)
        assert "status 3: killed" in str(raised.value)  # the error before is of another attempt

    def test_a_folder_that_is_renamed_meanwhile(self, tmp_path, monkeypatch):
        """What was written may be elsewhere, or beside the files of another run."""
        folder = tmp_path / "cell"
        self.script(tmp_path, monkeypatch, f"import os; os.rename({str(folder)!r}, 'later')")
        monkeypatch.chdir(tmp_path)
        with locked(folder) as lock, pytest.raises(ExperimentError, match="cell: was renamed"):
            Processes().run(["train"], folder / "log.txt", None, lock)

    def test_a_signal_is_passed_on_and_nothing_starts_after_it(self, tmp_path, monkeypatch):
        self.script(
            tmp_path,
            monkeypatch,
            "import signal, sys, time\n"
            "def save(*_): print('saved'); sys.exit(143)\n"
            "signal.signal(signal.SIGTERM, save)\nprint('ready', flush=True)\ntime.sleep(60)\n",
        )
        processes, log, raised = Processes(), tmp_path / "log.txt", []

        def work() -> None:
            with locked(tmp_path) as lock:
                for _ in range(2):
                    try:
                        processes.run(["train"], log, min(os.sched_getaffinity(0)), lock)
                    except Stopped as stopped:
                        raised.append(stopped)

        thread = threading.Thread(target=work)
        thread.start()
        until = time.monotonic() + 30
        while not (log.is_file() and "ready" in log.read_text()) and time.monotonic() < until:
            time.sleep(0.05)
        assert is_locked(tmp_path)
        processes.pass_on(signal.SIGTERM)
        thread.join(30)
        assert len(raised) == 2
        assert log.read_text().split() == ["ready", "saved"]

    def test_a_signal_that_is_ignored_stays_ignored(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            processes = Processes()
            with processes.passing_on():
                assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
                assert signal.getsignal(signal.SIGTERM) == processes.pass_on
        finally:
            signal.signal(signal.SIGHUP, before)


class TestTable:
    def fake(self, accuracies: dict[tuple[str, int], float], ensembles: dict[str, float]) -> None:
        """Figures without runs, as the table reads them."""
        self.figures = {}
        for (cell, seed), accuracy in accuracies.items():
            alpha = 1.0 if cell == "soft" else 1.5
            self.figures[f"{cell} seed {seed}"] = {
                "accuracy": accuracy,
                "exhaustive": 80.0 + seed,
                "output_support": 1.25,
                "output_alpha": alpha,
                "attention_alpha": 1.5,
            }
        for cell, accuracy in ensembles.items():
            self.figures[f"{cell} ensemble"] = {"accuracy": accuracy}

    @pytest.fixture
    def matrix(self, tmp_path, monkeypatch):
        cells = {"soft": {"generator_function": "softmax"}, "sparse": None, "none": None}
        path = write_matrix(tmp_path, cells=cells, seeds=[1, 2, 3])
        self.fake(
            {
                ("soft", 1): 70.0,
                ("soft", 2): 71.0,
                ("soft", 3): 72.0,
                ("sparse", 1): 74.0,
                ("sparse", 2): 73.0,
            },
            {"soft": 75.5},
        )
        monkeypatch.setattr(experiment_table, "figures_of", lambda w: self.figures.get(w.name))
        return read(path)

    def test_markdown(self, matrix):
        lines = experiment_table.markdown([matrix]).splitlines()
        assert lines[0].split(" | ")[3:6] == ["paper", "paper, ens.", "accuracy"]
        soft = "| soft | 1 | 1.5 | 83.20 | 85.63 | 71.00 ± 1.00 | 3 | 75.50 | 82.00 ± 1.00 |"
        assert soft in lines[2]
        assert "| sparse | 1.5 | 1.5 | 84.93 | 86.55 | 73.50 ± 0.71 | 2 | - |" in lines[3]
        assert lines[4].startswith("| none | - | - | - | - | - | 0 | - | - |")
        # sqrt(1 / 3 + 0.5 / 2) = 0.76; 74 and 73 are both above 72
        assert "| sparse | +2.50 | 0.76 | yes |" in lines
        assert "79 % of the words" in lines[-1]

    def test_latex(self, matrix):
        text = experiment_table.latex([matrix])
        assert r"soft & 1 & 1.5 & 83.20 & 85.63 & 71.00 $\pm$ 1.00 & 3 & 75.50" in text
        assert text.startswith(r"\begin{tabular}{l")
        body = text.splitlines()[1:-1]
        columns = len(text.split("{")[2].split("}")[0])
        assert {line.count("&") for line in body if "&" in line} == {columns - 1}
        assert "_" not in text.replace(r"\_", "")

    def test_the_papers_table_is_whole(self):
        for setting in ("high", "medium"):
            table = experiment_table.PAPER[setting]
            assert set(table) == {(a, b) for a in (1, 1.5, 2) for b in (1, 1.5, 2)}
            assert all(ensemble > single for single, ensemble in table.values())

    def test_commands_of_a_matrix_that_was_run(self, finished, capsys, tmp_path):
        assert ended(experiment.main, ["status", str(finished)]) == 0
        rows = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert rows[1][:5] == ["one", "seed", "1", "done", "4"]
        assert rows[3][:3] == ["one", "ensemble", "done"]
        curves = tmp_path / "curves.png"
        assert (
            ended(experiment.main, ["table", str(finished), "--latex", "--curves", str(curves)])
            == 0
        )
        assert r"\toprule" in capsys.readouterr().out
        assert curves.stat().st_size > 1000

    def test_nothing_to_draw(self, tmp_path, capsys):
        path = write_matrix(tmp_path)
        assert "nothing has been measured yet" in refused(
            experiment.main, ["table", path, "--curves", "x.png"]
        )
        assert ended(experiment.main, ["status", str(path)]) == 0
        assert capsys.readouterr().out.count("waiting") == 3
        run = read(path).trainings()[0].run
        run.mkdir(parents=True)
        (run / "metrics.jsonl").touch()  # a training that has just begun
        assert "nothing has been measured yet" in refused(
            experiment.main, ["table", path, "--curves", "x.png"]
        )
