"""Run a matrix of trainings, show its progress, and print its table beside the paper's.

    python -m tools.papers.tables run matrix.yaml --jobs 2 --cores 0,1
    python -m tools.papers.tables status matrix.yaml
    python -m tools.papers.tables table matrix.yaml --curves curves
    python -m tools.papers.tables test matrix.yaml

`run` trains each cell of the matrix with each seed, decodes the development set and evaluates it,
also for the ensemble of the seeds. It skips runs that are done and continues those that stopped, so
after a crash or a signal the same command continues. <run>/<cell>/seed-<number> holds everything
about a run: config.yaml, model/ with metrics.jsonl and checkpoints, log.txt, dev.pred,
dev.report.jsonl and its summary, figures.json. A run that was trained with other options than the
matrix now has is refused.

`test` decodes the test set once, when all runs are done: test/test.* or test.* beside the source,
where `prepare` writes it. <run>/test.json records figures, date and checksums. Called again, it
prints them. It refuses other weights, texts or options; with --again it measures anew and keeps
both records.

A matrix file is YAML:

    base: pilot.yaml               # the configuration of all runs, beside this file or in the
                                   # current folder, to which all other paths are relative
    run: run/matrix-pilot          # the folder of the runs
    seeds: [1, 2, 3]
    options: {train_steps: 3000}   # changes to the base, the same for all cells
    cells:                         # or the name of a file of cells
      softmax: {generator_function: softmax}
      smoothed: {label_smoothing: 0.1, translate: {beam_size: 10}}
      longer: {begin_with: smoothed, learning_rate: 0.0005}  # starts from its weights
    translate: {beam_size: 5}      # options of `onmt-entmax translate`
    source: run/pilot/data/dev.src
    reference: run/pilot/data/dev.tgt
    evaluate: sigmorphon           # or bleu
    ensemble: true                 # also decode with all seeds of a cell (default)
    paper: medium                  # compare with a published Table 1; optional: high or medium
                                   # (inflection), de-en, ja-en, ro-en, en-de (Transformers), or
                                   # table2 (pairs)

A table of several pairs of languages has, instead of base, source and reference,

    pairs:                         # each has the cells, and a folder below `run`
      de-en: {base: de-en.yaml, source: iwslt/val.de, reference: iwslt/val.en}
      en-de: {base: en-de.yaml, source: iwslt/val.en, reference: iwslt/val.de}
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import lru_cache
from math import sqrt
from pathlib import Path
from queue import SimpleQueue
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import yaml
from sacrebleu.metrics import BLEU

from onmt_entmax.checkpoint import checkpoint_steps, find_model, read_best, read_config
from onmt_entmax.cli import ending
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.errors import UserError, nearest
from onmt_entmax.files import json_text, read_aligned, read_object, write_files
from onmt_entmax.options.reader import changed_batch_size, read_yaml, without_rivals
from onmt_entmax.options.train import training_setup
from onmt_entmax.options.translate import translation_setup
from onmt_entmax.report.bleu import compare
from onmt_entmax.report.measures import score_by_language
from onmt_entmax.report.tables import aligned_table
from onmt_entmax.rules import whole
from onmt_entmax.strings.task import language_of
from onmt_entmax.systems import ending_signals
from tools.papers.figures import draw_curves, read_metrics
from tools.papers.markdown import markdown_table
from tools.papers.pictures import prepare, write
from tools.papers.published import Alphas, published, spread

REQUIRED = ("base", "run", "seeds", "cells", "source", "reference", "evaluate")
KEYS = (*REQUIRED, "options", "translate", "ensemble", "paper")
OF_A_PAIR = ("base", "source", "reference")  # keys that each of several pairs has of its own
CHOSEN = ("save_model", "train_from", "reset_optim", "overwrite", "seed", "config")  # for each run
CHOSEN_TO_DECODE = ("model", "src", "output", "exactness_report", "config", "n_best")
# Names in figures.json of values in the summary of the exactness report, and their headings.
REPORT_FIGURES = {
    "exhaustive": ("exhaustive_percent", "exhaustive %"),
    "exhaustive_strict": ("strict_exhaustive_percent", "strict %"),
    "optimal": ("argmax_proven_percent", "proven %"),
    "one_string": ("single_hypothesis_percent", "unique %"),
    "output_support": ("mean_output_support", "output nonzeros"),
    "attention_support": ("mean_attention_support", "attention nonzeros"),
    "decoder_rows": ("decoder_rows_per_sentence", ""),
    "decoding_seconds": ("seconds", ""),
}
# Peters, Niculae and Martins (2019), section 4.1, validation set, best configuration: percent of
# the words for which every possible form was found, and of those with a single form; and the best
# submitted system.
CERTIFICATES = {"high": (87, 81, "96.00"), "medium": (79, 66, "86.64")}

# --- the matrix ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """A variant: options of its training and decoding, and the cell that it starts from."""

    name: str
    training: Mapping[str, Any]
    translation: Mapping[str, Any]
    begin_with: Cell | None = None


@dataclass(frozen=True)
class Matrix:
    """The content of a matrix file, or what it says of one of several pairs of languages."""

    path: Path
    pair: str  # empty if the file has no pairs
    run: Path
    seeds: tuple[int, ...]
    cells: tuple[Cell, ...]
    source: Path
    reference: Path
    evaluate: str
    ensemble: bool
    paper: str

    def trainings(self) -> list[Work]:
        """Return all trainings: every cell with the first seed, then with the second, ..."""
        return [self.training(cell, seed) for seed in self.seeds for cell in self.cells]

    def training(self, cell: Cell, seed: int) -> Work:
        """Return the training of a cell with a seed."""
        return Work(self, cell, seed, self.run / cell.name / f"seed-{seed}")

    def ensembles(self) -> list[Work]:
        """Return the ensemble of each cell; none if not wanted, or with one seed."""
        wanted = self.ensemble and len(self.seeds) > 1
        cells = self.cells if wanted else ()
        return [Work(self, cell, None, self.run / cell.name / "ensemble") for cell in cells]


@dataclass(frozen=True)
class Work:
    """One cell with one seed, or with all seeds: models to train, to decode with, to evaluate."""

    matrix: Matrix
    cell: Cell
    seed: int | None  # None: the ensemble of all seeds
    folder: Path
    part: str = "dev"

    @property
    def name(self) -> str:
        """Name for messages."""
        seed = "ensemble" if self.seed is None else f"seed {self.seed}"
        return f"{self.matrix.pair} {self.cell.name} {seed}".lstrip()

    @property
    def run(self) -> Path:
        """Run folder of the training command."""
        return self.folder / "model"

    @property
    def output(self) -> Path:
        """File of predictions."""
        folder = self.folder if self.part == "dev" else self.folder / self.part
        return folder / f"{self.part}.pred"

    def members(self) -> list[Work]:
        """Return the trainings of its models."""
        seeds = self.matrix.seeds if self.seed is None else [self.seed]
        return [self.matrix.training(self.cell, seed) for seed in seeds]

    def models(self) -> list[Path]:
        """Return the models of the members that have one."""
        return [find_model(each.run) for each in self.members() if checkpoint_steps(each.run)]

    def beginning(self) -> Work | None:
        """Return the training whose weights this one starts from; None for new weights."""
        if self.cell.begin_with is None or self.seed is None:
            return None
        return self.matrix.training(self.cell.begin_with, self.seed)

    def options(self) -> dict[str, Any]:
        """Return the options of the training command."""
        chosen: dict[str, Any] = {"seed": self.seed, "save_model": str(self.run)}
        if self.cell.training.get("tensorboard"):
            chosen["tensorboard_log_dir"] = str(self.folder / "tensorboard")
        if (beginning := self.beginning()) is not None:
            chosen |= {"train_from": str(beginning.run), "reset_optim": "all"}
        return {**self.cell.training, **chosen}

    def translation(self) -> dict[str, Any]:
        """Return the options of the translation command."""
        return {
            **self.cell.translation,
            "model": [str(model) for model in self.models()],
            "src": str(self.matrix.source),
            "output": str(self.output),
            "exactness_report": str(self.output.with_name(f"{self.part}.report.jsonl")),
        }

    def digests(self) -> dict[str, str | None]:
        """Return digests of the files that the figures depend on."""
        weights = [model / "model.safetensors" for model in self.models()]
        names = [f"{side}_subword_model" for side in ("src", "tgt", "both")]
        subwords = [Path(str(p)) for n in names if (p := self.cell.training.get(n))]
        paths = (self.matrix.source, self.matrix.reference, *weights, *subwords)
        return {str(path): digest(path) for path in paths}


def digest(path: Path) -> str | None:
    """Return a digest of the content of a file; None if there is no file."""
    if not path.is_file():
        return None
    return _digest(path, path.stat().st_mtime_ns, path.stat().st_size)


@lru_cache(maxsize=1000)  # the runs of a matrix share their files
def _digest(path: Path, time: int, size: int) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def read_matrices(path: Path) -> list[Matrix]:
    """Read a matrix file: one matrix, or one for each of its pairs.

    Raises:
        UserError: the file cannot be read, or a value is wrong.
    """
    content = read_yaml(str(path))
    pairs = content.pop("pairs", None)
    if pairs is None:
        return [_matrix(path, content, "")]
    if not pairs:
        raise UserError(f"{path}: pairs: there are none")
    matrices = []
    for pair, own in _mapping(path, "pairs", pairs).items():
        for key in _mapping(path, f"pairs: {pair}", own):
            if key not in OF_A_PAIR or key in content:
                raise UserError(f"{path}: pairs: {pair}: {key}: a pair has {', '.join(OF_A_PAIR)}")
        matrices.append(_matrix(path, {**content, **own}, _folder(path, pair)))
    return matrices


def _folder(path: Path, name: Any) -> str:
    """Return a name that can be that of a folder."""
    if not isinstance(name, str) or not re.fullmatch(r"(?!\.+$)[\w.+-]+", name):
        raise UserError(
            f"{path}: a cell or pair is a folder, so its name is a word of letters, digits and "
            f"- _ + . (in quotes where YAML would see a number), not {name!r}"
        )
    return name


def _mapping(path: Path, where: str, value: Any, chosen: Sequence[str] = ()) -> dict[str, Any]:
    """Return a mapping that has no option that the runner chooses."""
    if not isinstance(value, dict):
        raise UserError(f"{path}: {where}: expected options with their values, not {value!r}")
    for name in value:
        if name in chosen:
            raise UserError(f"{path}: {where}: {name} is chosen by the runner")
    return value


def _beside(path: Path, name: Any) -> dict[str, Any]:
    """Read a YAML file that a matrix names, from beside it or from the current folder."""
    beside = path.parent / str(name)
    return read_yaml(str(beside if beside.is_file() else name))


def _matrix(path: Path, content: Mapping[str, Any], pair: str) -> Matrix:
    for key in content:
        if key not in KEYS:
            elsewhere = "; options of training stand in the file of base, or under options"
            hint = nearest(str(key), (*KEYS, "pairs")) or elsewhere
            raise UserError(f"{path}: {key}: no such key{hint}")
    for key in REQUIRED:
        if content.get(key) is None:
            raise UserError(f"{path}: {key}: this key is required")
    paper, seeds, ensemble = content.get("paper"), content["seeds"], content.get("ensemble", True)
    known: dict[str, Any] = {"evaluate": list(EVALUATIONS), "ensemble": [True, False]}
    known["paper"] = [None, "table2"] if pair else [None, *CERTIFICATES, *TRANSFORMERS]
    for key, value in (("evaluate", content["evaluate"]), ("paper", paper), ("ensemble", ensemble)):
        if value not in known[key]:
            raise UserError(f"{path}: {key}: {value!r} is not one of {known[key]}")
    right = isinstance(seeds, list) and seeds and len(set(map(str, seeds))) == len(seeds)
    if not right or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise UserError(f"{path}: seeds: expected different whole numbers in a list, not {seeds!r}")
    return Matrix(
        path=path,
        pair=pair,
        run=Path(str(content["run"]), pair),
        seeds=tuple(seeds),
        cells=_cells(path, content),
        source=Path(str(content["source"])),
        reference=Path(str(content["reference"])),
        evaluate=content["evaluate"],
        ensemble=ensemble,
        paper=paper or "",
    )


def _cells(path: Path, content: Mapping[str, Any]) -> tuple[Cell, ...]:
    base = {n: v for n, v in _beside(path, content["base"]).items() if n not in CHOSEN}
    common = _mapping(path, "options", content.get("options", {}), CHOSEN)
    decoding = _mapping(path, "translate", content.get("translate", {}), CHOSEN_TO_DECODE)
    given, cells = content["cells"], dict[str, Cell]()
    for name, value in _mapping(
        path, "cells", _beside(path, given) if isinstance(given, str) else given
    ).items():
        changes = dict(_mapping(path, f"cells: {name}", value or {}, CHOSEN))
        own = _mapping(path, f"{name}: translate", changes.pop("translate", {}), CHOSEN_TO_DECODE)
        beginning = changes.pop("begin_with", None)
        if beginning not in (None, *cells):
            raise UserError(f"{path}: cells: {name}: begin_with: no cell {beginning!r} before it")
        training = base
        for later in (common, changes):
            if (message := changed_batch_size(training, later)) is not None:
                raise UserError(f"{path}: cells: {name}: {message}")
            training = {**without_rivals(training, later), **later}
        before = cells[beginning] if beginning is not None else None
        cells[name] = Cell(_folder(path, name), training, {**decoding, **own}, before)
    if not cells:
        raise UserError(f"{path}: cells: there are none")
    return tuple(cells.values())


# --- evaluation ------------------------------------------------------------------------------


def texts_of(work: Work) -> tuple[list[str], ...]:
    """Return the lines of source, reference and predictions.

    Raises:
        UserError: the files differ in length.
    """
    return tuple(read_aligned(work.matrix.source, work.matrix.reference, work.output))


def sigmorphon(work: Work) -> dict[str, Any]:
    """Return the official measures: accuracy in percent and edit distance, averaged over languages.

    Raises:
        UserError: the files differ in length.
    """
    sources, references, predictions = texts_of(work)
    scores = score_by_language(
        [language_of(work.matrix.source, number, line) for number, line in enumerate(sources, 1)],
        references,
        predictions,
    )
    languages = {n: round(100 * each.accuracy, 4) for n, each in scores.languages.items()}
    return {
        "accuracy": round(100 * scores.average.accuracy, 4),
        "edit_distance": round(scores.average.edit_distance, 4),
        "languages": languages,
    }


def tokenizer_of(cell: Cell) -> str:
    """Return the tokeniser of BLEU, that of validation in training."""
    return str(cell.training.get("valid_bleu_tokenize", "13a"))


def bleu(work: Work) -> dict[str, Any]:
    """Return sacrebleu's BLEU and signature.

    Raises:
        UserError: the files differ in length.
    """
    _, references, predictions = texts_of(work)
    metric = BLEU(tokenize=tokenizer_of(work.cell), force=True)
    value = metric.corpus_score(predictions, [references]).score
    return {"bleu": round(value, 4), "signature": str(metric.get_signature())}


# By their names in matrix files; tables compare by the first figure.
EVALUATIONS: Mapping[str, Callable[[Work], dict[str, Any]]] = {
    "sigmorphon": sigmorphon,
    "bleu": bleu,
}
TRANSFORMERS = ("de-en", "ja-en", "ro-en", "en-de")  # papers with Transformers


def measurements(run: Path) -> list[dict[str, Any]]:
    """Return the measurements of a training so far."""
    return read_metrics(run) if (run / "metrics.jsonl").is_file() else []


def measure(work: Work) -> dict[str, Any]:
    """Evaluate the decoded development set of a training or ensemble; write figures.json."""
    summary = read_object(work.folder / "dev.report.jsonl.summary.json")
    figures = EVALUATIONS[work.matrix.evaluate](work)
    figures |= {n: summary[key] for n, (key, _) in REPORT_FIGURES.items() if key in summary}
    model = work.models()[0]
    config = read_config(model)[0]
    figures |= {
        "output_alpha": config.generator_alpha,
        "attention_alpha": config.source_attention_alpha,
        "evaluate": work.matrix.evaluate,
        "translation": work.translation(),
        "files": work.digests(),
    }
    if work.seed is not None:
        rows = [row for row in measurements(work.run) if row["kind"] == "valid"]
        figures["step"] = int(model.name.removeprefix("step_"))
        best = [row for row in rows if row["step"] == figures["step"]]
        for name, key, chosen in (
            ("training_seconds", "seconds", rows),
            ("token_accuracy", "token_accuracy", best),
        ):
            if chosen and key in chosen[-1]:
                figures[name] = chosen[-1][key]
    write_files({work.folder / "figures.json": json_text(figures)})
    return figures


def figures_of(work: Work) -> dict[str, Any] | None:
    """Return the figures of a training or ensemble, or None if they are missing or out of date.

    They are out of date if the weights, the source, the reference, or the options of decoding or
    evaluation have changed.

    Raises:
        UserError: a training has other options than the matrix, or a file is damaged.
    """
    path = work.folder / "figures.json"
    if not path.is_file() or not work.models():
        return None
    for training in work.members():
        check_unchanged(training)
    figures = read_object(path)
    recorded = [figures.get(name) for name in ("evaluate", "translation", "files")]
    now = [work.matrix.evaluate, work.translation(), work.digests()]
    return figures if recorded == now else None


# --- running ---------------------------------------------------------------------------------


def dumped(content: Mapping[str, Any]) -> str:
    """Return YAML."""
    return str(yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True))


def check_unchanged(training: Work) -> None:
    """Refuse a training whose checkpoints are of other options than the matrix now has.

    Raises:
        UserError: names the first of them.
    """
    path, options = training.folder / "config.yaml", training.options()
    if not path.is_file() or not checkpoint_steps(training.run):
        return
    # Compare as text first: YAML reads a string of digits as a number.
    same = path.read_text(encoding="utf-8") == dumped(options)
    before = options if same else read_yaml(str(path))
    for name in (*options, *before):
        was, now = (repr(o[name]) if name in o else "unset" for o in (before, options))
        if was != now:
            raise UserError(
                f"{training.folder}: was trained with {name} {was}, the matrix now says {now}; "
                "delete that folder or choose another run folder"
            )


def check(matrix: Matrix, trainings: Sequence[Work]) -> None:
    """Check the files and options of trainings before anything is written.

    Raises:
        UserError: a file is missing, a configuration is wrong, or a run was trained with another.
    """
    for path in (matrix.source, matrix.reference):
        if not path.is_file():
            raise UserError(f"{matrix.path}: no such file: {path} (searched in {Path.cwd()})")
    for training in trainings:
        check_unchanged(training)
        decoding = {**training.translation(), "model": [str(training.run)]}
        for read, options in ((training_setup, training.options()), (translation_setup, decoding)):
            with TemporaryDirectory() as folder:
                path = Path(folder, "options.yaml")
                path.write_text(dumped(options), encoding="utf-8")
                try:
                    read(["-config", str(path)])
                except UserError as error:
                    message = str(error).removeprefix(f"{path}: ")
                    where = f"{matrix.path}: {training.cell.name}"
                    raise UserError(f"{where}: {message}") from None


class Stopped(Exception):
    """A signal has stopped this program."""


class Runner:
    """Runs commands, to which signals to this program are passed on.

    Args:
        cores: the processor of each job that runs at a time, or None for any.
    """

    def __init__(self, cores: Sequence[int | None]) -> None:
        self.received = 0
        self._running: set[subprocess.Popen[bytes]] = set()
        self._changing = threading.RLock()
        self._jobs, self._cores = len(cores), SimpleQueue[int | None]()
        for core in cores:
            self._cores.put(core)

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Pass signals on while the block runs, except for those ignored (by nohup, for one)."""

        def pass_on(number: int, _: object) -> None:
            with self._changing:
                self.received = number
                for process in self._running:
                    process.send_signal(number)  # training saves its state and ends

        heard = [
            number for number in ending_signals() if signal.getsignal(number) != signal.SIG_IGN
        ]
        before = {number: signal.signal(number, pass_on) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def execute(self, command: Sequence[str], log: Path, core: int | None = None) -> None:
        """Run a command of `onmt-entmax` to its end; append its output to a log.

        Raises:
            Stopped: a signal came.
            UserError: the command failed.
        """
        with open(log, "ab") as output:
            start = output.seek(0, os.SEEK_END)
            with self._changing:
                if self.received:
                    raise Stopped
                process = subprocess.Popen(
                    [*ending.CONSOLE, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                    start_new_session=True,  # else a terminal would signal it too
                )
                self._running.add(process)
            if core is not None:
                os.sched_setaffinity(process.pid, {core})
            status = process.wait()
            with self._changing:
                self._running.remove(process)
        if self.received:
            raise Stopped
        if status:
            lines = log.read_bytes()[start:].decode(errors="replace").strip().splitlines()
            errors = [line for line in lines if ": error: " in line] or lines or ["no message"]
            raise UserError(f"{command[0]} ended with status {status}: {errors[-1]} ({log})")

    def decode(self, work: Work, core: int | None = None) -> None:
        """Decode the source with a training or ensemble."""
        path = work.output.with_name("translate.yaml")
        write_files({path: dumped(work.translation())})
        self.execute(["translate", "-config", str(path)], work.output.with_name("log.txt"), core)

    def _train(self, training: Work, core: int | None) -> None:
        """Train, or continue a training; one that is done ends at once."""
        path = training.folder / "config.yaml"
        command = ["train", "-config", str(path)]
        beginning = training.beginning()
        if checkpoint_steps(training.run):
            command += ["-train_from", str(training.run)]
            command += ["-reset_optim", "none"] if beginning is not None else []
        elif beginning is not None and figures_of(beginning) is None:
            raise UserError(f"begins with {beginning.name}, which is not done; run that first")
        write_files({path: dumped(training.options())})
        self.execute(command, training.folder / "log.txt", core)

    def work(self, work: Work) -> None:
        """Train, decode and measure, unless that is done."""
        started, core = time.monotonic(), self._cores.get()
        try:
            if figures_of(work) is not None:
                say(f"{work.name}: done before")
                return
            if work.seed is not None:
                say(f"{work.name}: training, see {work.folder / 'log.txt'}")
                self._train(work, core)
            say(f"{work.name}: decoding")
            self.decode(work, core)
            name, value = next(iter(measure(work).items()))
            say(f"{work.name}: {name} {value:.2f}, {(time.monotonic() - started) / 60:.1f} minutes")
        except Stopped:
            pass
        except (UserError, OSError) as error:
            say(f"{work.name}: failed: {error}")
        finally:
            self._cores.put(core)

    def all(self, works: Sequence[Work]) -> None:
        """Do trainings or ensembles, several at a time."""
        with ThreadPoolExecutor(self._jobs) as pool:
            for done in [pool.submit(self.work, work) for work in works]:
                done.result()


def say(message: str) -> None:
    """Print a line about progress to stderr."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


def depth(cell: Cell) -> int:
    """Return how many cells must be trained before this one."""
    return 0 if cell.begin_with is None else 1 + depth(cell.begin_with)


def processors(named: str, jobs: int) -> list[int | None]:
    """Return the processor of each job; None leaves the choice to the system.

    Args:
        named: such as `0,1`; empty: none.
        jobs: their number.

    Raises:
        UserError: the processors are too few or not there, or the system binds no process to one.
    """
    if not named:
        return [None] * jobs
    if not hasattr(os, "sched_getaffinity"):
        raise UserError("--cores: this system binds no process to a processor; leave it out")
    try:
        cores = [int(number) for number in named.split(",")]
    except ValueError:
        raise UserError(f"--cores: expected numbers such as 0,1 not {named}") from None
    available = sorted(os.sched_getaffinity(0))
    if len(cores) < jobs or not set(cores) <= set(available):
        raise UserError(f"--cores: name {jobs} of the processors {available}")
    return [*cores[:jobs]]


def run(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Train and measure all unfinished cells, pair by pair; return the exit status."""
    cores = processors(options.cores, options.jobs)
    chosen = [(matrix, chosen_trainings(matrix, options)) for matrix in matrices]
    for matrix, trainings in chosen:  # all, before hours are spent on the first
        check(matrix, trainings)
    runner, undone = Runner(cores), []
    with runner.hearing():
        for matrix, trainings in chosen:
            for level in sorted({depth(training.cell) for training in trainings}):
                runner.all([each for each in trainings if depth(each.cell) == level])
            cells = {training.cell.name for training in trainings}
            ensembles = [
                ensemble
                for ensemble in matrix.ensembles()
                if ensemble.cell.name in cells and all(map(figures_of, ensemble.members()))
            ]
            runner.all(ensembles)
            undone += [w.name for w in (*trainings, *ensembles) if figures_of(w) is None]
    if runner.received:
        say("stopped; the same command continues")
        return 128 + runner.received
    if undone:
        say(f"not done: {', '.join(undone)}; the same command tries again")
    return 1 if undone else 0


def chosen_trainings(matrix: Matrix, options: argparse.Namespace) -> list[Work]:
    """Return the trainings that --only and --seeds name; all by default.

    Raises:
        UserError: the matrix has no such cell or seed.
    """
    cells = [cell.name for cell in matrix.cells]
    for name in options.only:
        if name not in cells:
            raise UserError(f"{matrix.path}: no cell {name!r}{nearest(name, cells)}")
    for seed in options.seeds:
        if seed not in matrix.seeds:
            raise UserError(f"{matrix.path}: seed {seed} is not among {list(matrix.seeds)}")
    names, seeds = options.only or cells, options.seeds or matrix.seeds
    return [t for t in matrix.trainings() if t.cell.name in names and t.seed in seeds]


# --- the test set ----------------------------------------------------------------------------


def test(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Measure the test set, unless that was done, and print all measurements.

    Raises:
        UserError: a run is not done, there is no test set, or one was measured before with other
            weights, texts or options. Then nothing is measured.
    """
    due = [(matrix, each) for matrix in matrices for each in _due(matrix, options.again)]
    runner = Runner([None])
    with runner.hearing():
        for matrix, work in due:
            work.output.parent.mkdir(exist_ok=True)
            try:
                runner.decode(work)
            except Stopped:
                raise UserError("stopped; the same command continues") from None
            date = datetime.now(timezone.utc).isoformat(timespec="seconds")
            figures = EVALUATIONS[matrix.evaluate](work)
            entry = {"name": work.name, "date": date, **figures, "measured": _measured(work)}
            content = {"measurements": [*tested(matrix), entry]}
            write_files({matrix.run / "test.json": json_text(content)})
    for matrix in matrices:
        rows = []
        for entry in tested(matrix):
            figure = next(key for key in entry if key not in ("name", "date"))
            rows.append((entry["name"], f"{figure} {entry[figure]:.2f}", entry["date"]))
        print(f"{aligned_table(rows, left=3)}\nrecorded in {matrix.run / 'test.json'}")
    return 0


def _measured(work: Work) -> dict[str, Any]:
    """Return what a measurement depends on: checksums by file, and the options of decoding."""
    return {"files": work.digests(), "translate": work.translation()}


def _due(matrix: Matrix, again: bool) -> list[Work]:
    """Return what is to be measured on the test set."""
    works = [*matrix.trainings(), *matrix.ensembles()]
    if undone := [work.name for work in works if figures_of(work) is None]:
        raise UserError(
            f"{matrix.path}: not done: {', '.join(undone)}; the test set is measured when all runs "
            "are done"
        )
    dev = (matrix.source, matrix.reference)
    for folder in ("test", "."):
        source, reference = (path.parent / folder / f"test{path.suffix}" for path in dev)
        if source.is_file() and reference.is_file():
            break
    else:
        raise UserError(
            f"{matrix.path}: no test set: {source} and {reference} are not there, nor in a folder "
            "test beside; `prepare` writes them, if the corpus has a test set"
        )
    on_test = replace(matrix, source=source, reference=reference)
    works = [replace(work, matrix=on_test, part="test") for work in works]
    before = {entry["name"]: entry for entry in tested(matrix)}
    for work in works:
        entry = before.get(work.name)
        if entry and not again and entry["measured"] != _measured(work):
            raise UserError(
                f"{matrix.path}: {work.name} was measured on {entry['date']} with other weights, "
                "texts or options; --again measures once more, and the record keeps both"
            )
    return [work for work in works if again or work.name not in before]


def tested(matrix: Matrix) -> list[dict[str, Any]]:
    """Return the recorded measurements of the test set of a matrix."""
    path = matrix.run / "test.json"
    entries: list[dict[str, Any]] = read_object(path)["measurements"] if path.is_file() else []
    return entries


# --- tables ----------------------------------------------------------------------------------


class Row(NamedTuple):
    """The figures of a cell: of each run that is done, and of its ensemble, if done."""

    cell: Cell
    singles: list[dict[str, Any]]
    ensemble: dict[str, Any] | None

    @property
    def alphas(self) -> Alphas | None:
        """Alphas of the output and of the attention to the source; None before a run is done."""
        if not self.singles:
            return None
        return self.singles[0]["output_alpha"], self.singles[0]["attention_alpha"]

    def values(self, name: str) -> list[float]:
        """Return a figure of the runs that have it."""
        return [figures[name] for figures in self.singles if name in figures]


Table = tuple[list[str], list[list[str]]]  # headings, rows


def rows_of(matrix: Matrix) -> list[Row]:
    """Return the figures of every cell."""
    together = {ensemble.cell.name: figures_of(ensemble) for ensemble in matrix.ensembles()}
    rows = []
    for cell in matrix.cells:
        singles = [figures_of(matrix.training(cell, seed)) for seed in matrix.seeds]
        rows.append(Row(cell, [each for each in singles if each], together.get(cell.name)))
    return rows


def main_figure(matrix: Matrix) -> tuple[str, str]:
    """Return name and heading of the figure by which cells are compared."""
    if matrix.evaluate == "bleu":
        return "bleu", f"BLEU ({tokenizer_of(matrix.cells[0])})"
    return "accuracy", "accuracy"


def one_matrix(matrix: Matrix) -> list[Table]:
    """Return the tables of one matrix: results, and comparisons with the first cell.

    All runs are apart if those of one cell are better than all of the other, which has a
    probability of 1 in 10 by chance with 3 runs each.
    """
    rows, (figure, title) = rows_of(matrix), main_figure(matrix)
    shown = {n: heading for n, (_, heading) in REPORT_FIGURES.items() if heading}
    shown = {n: heading for n, heading in shown.items() if any(r.values(n) for r in rows)}
    paper = published(matrix.paper)
    columns = len(next(iter(paper.values()), ()))
    tokenised = "paper, tokenised" if matrix.paper in TRANSFORMERS else "paper"
    head = ["cell", "output α", "attention α", *[tokenised, "paper, ens."][:columns], title, "runs"]
    head += [f"{title}, ens."] if matrix.ensembles() else []
    lines, compared, first = [], [], rows[0].values(figure)
    for row in rows:
        alphas = [a if isinstance(a, str) else f"{a:g}" for a in row.alphas or ()] or ["-", "-"]
        known = [f"{value:.2f}" for value in paper.get(row.alphas or ("", ""), ())]
        values = row.values(figure)
        line = [row.cell.name, *alphas, *(known or ["-"] * columns), spread(values)]
        line.append(str(len(values)))
        if matrix.ensembles():
            line.append(f"{row.ensemble[figure]:.2f}" if row.ensemble else "-")
        lines.append([*line, *(spread(row.values(name)) for name in shown)])
        if row is not rows[0] and len(values) > 1 and len(first) > 1:
            error = sqrt(stdev(values) ** 2 / len(values) + stdev(first) ** 2 / len(first))
            apart = min(values) > max(first) or max(values) < min(first)
            difference = f"{mean(values) - mean(first):+.2f}"
            compared.append([row.cell.name, difference, f"{error:.2f}", "yes" if apart else "no"])
    against = [f"against {rows[0].cell.name}", "difference", "standard error", "all runs apart"]
    tables = [([*head, *shown.values()], lines)]
    return tables + ([(against, compared)] if compared else [])


def several_pairs(matrices: Sequence[Matrix]) -> list[Table]:
    """Return the tables of several pairs of languages, which have the same cells.

    They are: results by cell and pair, below each cell its ensemble, test sets and paper; tests of
    each run against that of the first cell with the same seed; nonzeros of attention and output.
    """
    figure, _ = main_figure(matrices[0])
    rows = [rows_of(matrix) for matrix in matrices]
    test_sets = [{e["name"]: e[figure] for e in tested(m) if figure in e} for m in matrices]
    results, nonzeros = [], []
    for number, cell in enumerate(matrices[0].cells):
        of_cell = [each[number] for each in rows]
        alphas = next((row.alphas for row in of_cell if row.alphas), None)
        lines: dict[str, list[list[float]]] = {
            cell.name: [row.values(figure) for row in of_cell],
            f"{cell.name}, test": [],
            f"{cell.name}, ensemble": [
                [row.ensemble[figure]] if row.ensemble else [] for row in of_cell
            ],
            f"{cell.name}, ensemble, test": [],
        }
        for matrix, values in zip(matrices, test_sets, strict=True):
            own = matrix.cells[number]
            works = [matrix.training(own, seed) for seed in matrix.seeds]
            ensembles = matrix.ensembles()[number : number + 1]
            for name, some in (("test", works), ("ensemble, test", ensembles)):
                known = [values[work.name] for work in some if work.name in values]
                lines[f"{cell.name}, {name}"].append(known)
        for name, line in lines.items():
            if name == cell.name or any(line):
                results.append([name, *map(spread, line)])
        kinds = ("attention_support", "output_support")
        means = [spread(row.values(kind)) for row in of_cell for kind in kinds]
        nonzeros.append([cell.name, *means])
        if matrices[0].paper and alphas and alphas[0] == alphas[1]:
            known = [published(f"table2 {matrix.pair}").get(alphas) for matrix in matrices]
            texts = [f"{each[0]:.2f} ± {each[1]:.2f}" if each else "-" for each in known]
            results.append([f"{cell.name}, paper, tokenised", *texts])
            nonzero = published("table3").get(alphas)
            texts = [
                f"{value:g}" if nonzero and matrix.pair == "de-en" else "-"
                for matrix in matrices
                for value in nonzero or (0, 0)
            ]
            nonzeros.append([f"{cell.name}, paper", *texts])
    counts = [sorted({len(row.singles) for row in each}) for each in rows]
    runs = [" to ".join(map(str, dict.fromkeys((each[0], each[-1])))) for each in counts]
    heads = [
        f"{matrix.pair}, {main_figure(matrix)[1]}, runs {n}"
        for matrix, n in zip(matrices, runs, strict=True)
    ]
    sides = [f"{m.pair}, {side}" for m in matrices for side in ("attention", "output")]
    tables = [(["cell", *heads], results), *_bootstrap(matrices), (["nonzeros", *sides], nonzeros)]
    return tables


def _bootstrap(matrices: Sequence[Matrix]) -> list[Table]:
    """Compare the translations of each cell with those of the first, seed by seed (Koehn 2004)."""
    first, *others = (cell.name for cell in matrices[0].cells)
    lines = []
    for matrix in matrices:
        for seed in matrix.seeds if matrix.evaluate == "bleu" else ():
            trainings = [matrix.training(cell, seed) for cell in matrix.cells]
            done = [training for training in trainings if figures_of(training)]
            if len(done) < 2 or done[0] is not trainings[0]:
                continue
            texts = [texts_of(training) for training in done]
            metric = BLEU(tokenize=tokenizer_of(done[0].cell), force=True)
            systems = [(str(i), predictions) for i, (_, _, predictions) in enumerate(texts)]
            (measured,) = compare(systems, [texts[0][1]], [("BLEU", metric)], resamples=1000)
            base = measured.scores[0].value
            cells = {
                training.cell.name: f"{score.value - base:+.2f} (p {score.p_value:.3f})"
                for training, score in zip(done, measured.scores, strict=True)
                if score.p_value is not None
            }
            lines.append([matrix.pair, str(seed), *(cells.get(name, "-") for name in others)])
    return [([f"against {first}", "seed", *others], lines)] if lines else []


def notes(matrices: Sequence[Matrix]) -> list[str]:
    """Return what to know of the paper's figures and of these."""
    matrix = matrices[0]
    if matrix.pair:
        text = (
            "Means ± standard deviations over runs, on the validation sets except in rows of "
            "`test`. p is of a paired bootstrap test with 1,000 samples (Koehn 2004)."
        )
        if matrix.paper:
            text += (
                "\nThe paper's figures are tokenised BLEU of test sets, which is not the BLEU of "
                "the other rows, and nonzeros of the validation set of de-en (Peters, Niculae and "
                "Martins 2019, Tables 2 and 3). Nonzeros here are of all prefixes that were "
                "searched."
            )
        return [text]
    if matrix.paper in TRANSFORMERS:
        return [
            f"The paper's figures are tokenised BLEU of the test set {matrix.paper}, one run each "
            f"(Correia, Niculae and Martins 2019, Table 1); those here are of {matrix.source}, "
            f"with the tokeniser {tokenizer_of(matrix.cells[0])}."
        ]
    text = f"Means ± standard deviations over runs, on {matrix.source}."
    if not matrix.paper:
        return [text]
    exhaustive, single, submitted = CERTIFICATES[matrix.paper]
    return [
        f"{text} The paper's accuracies are of the test set, {matrix.paper} setting, all its "
        f"languages. Its best model, on the validation set: every possible form found (strict) for "
        f"{exhaustive} % of the words, one form for {single} %. UZH (2018): {submitted}."
    ]


def latex_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a LaTeX tabular, which needs the package booktabs."""

    def line(cells: Sequence[str]) -> str:
        text = " & ".join(cells).replace("%", r"\%").replace("_", r"\_")
        return text.replace("±", r"$\pm$").replace("α", r"$\alpha$") + r" \\"

    body = [r"\toprule", line(head), r"\midrule", *map(line, lines), r"\bottomrule"]
    columns = "l" + "r" * (len(head) - 1)
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", *body, r"\end{tabular}"])


def table(options: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Print the results, and draw the curves of each cell's first run if asked to.

    Raises:
        UserError: there is nothing to draw.
    """
    if options.curves:
        runs: dict[str, Path] = {}
        for matrix in matrices:
            for training in matrix.trainings():
                if measurements(training.run):
                    runs.setdefault(f"{matrix.pair} {training.cell.name}".lstrip(), training.run)
        if not runs:
            raise UserError(f"{matrices[0].run}: nothing has been measured yet")
        prepare(runs)
        write(draw_curves(list(runs.values()), list(runs)), options.curves)
    tables = several_pairs(matrices) if matrices[0].pair else one_matrix(matrices[0])
    form = latex_table if options.latex else markdown_table
    texts = [form(head, lines) for head, lines in tables]
    print("\n\n".join(texts if options.latex else [*texts, *notes(matrices)]))
    return 0


def status(_: argparse.Namespace, matrices: Sequence[Matrix]) -> int:
    """Print the progress of every run and ensemble."""
    lines = [["run", "state", "step", "best", "at", "result"]]
    for matrix in matrices:
        for work in (*matrix.trainings(), *matrix.ensembles()):
            figures, best = figures_of(work), read_best(work.run)
            rows = measurements(work.run)
            state = "done" if figures else "begun" if rows else "waiting"
            line = [work.name, state, str(rows[-1]["step"]) if rows else ""]
            line += (
                [f"{best['metric']} {best['value']:.4g}", str(best["step"])] if best else ["", ""]
            )
            lines.append([*line, f"{next(iter(figures.values())):.2f}" if figures else ""])
    print(aligned_table(lines, left=2))
    return 0


def main(arguments: Sequence[str]) -> int:
    """Run, or print the progress or results; return the exit status."""
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    for command, purpose in (
        (run, "train and measure all unfinished cells"),
        (status, "print the progress of every run"),
        (table, "print the results beside the paper's"),
        (test, "measure the test set once, and record that"),
    ):
        add: Any = commands.add_parser(command.__name__, help=purpose).add_argument
        commands.choices[command.__name__].set_defaults(do=command)
        add("matrix", type=Path, help="matrix file")
        add("--pairs", nargs="+", default=[], help="only these pairs of the file")
        if command is run:
            add("--only", nargs="+", default=[], metavar="CELL", help="run only these cells")
            add("--seeds", nargs="+", type=int, default=[], help="run only these seeds")
            jobs = whole(1, 1000)
            add("--jobs", type=jobs, default=1, metavar="N", help="runs at a time (default 1)")
            add("--cores", help="processors to run on, such as 0,1")
        elif command is table:
            add("--latex", action="store_true", help="print LaTeX, not Markdown")
            add("--curves", type=Path, help="draw curves: .pdf and .png")
        elif command is test:
            add("--again", action="store_true", help="measure what has been measured")
    options = parser.parse_args(arguments)
    matrices = read_matrices(options.matrix)
    pairs = [matrix.pair for matrix in matrices]
    for name in options.pairs:
        if name not in pairs:
            raise UserError(f"{options.matrix}: no pair {name!r}{nearest(name, pairs)}")
    chosen = [matrix for matrix in matrices if not options.pairs or matrix.pair in options.pairs]
    done: int = options.do(options, chosen)
    return done


if __name__ == "__main__":
    run_script(main)
