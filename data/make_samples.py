"""Makes the sample data in `data/samples` from rules and word lists (`data/sample_rules/`).

Four small pieces of real morphology, written out by hand: English verbs and nouns, Spanish verbs,
Turkish nouns and German nouns. Each language becomes two TSV files in the format of the
CoNLL-SIGMORPHON 2018 shared task, `lemma<TAB>form<TAB>tag;tag`:

- `<language>-train`: some cells of each lemma's paradigm. Where two forms are both correct
  (`dreamed`, `dreamt`), both have a row, so a trained sparse model has reason to give two answers.
- `<language>-dev`: cells that training has not shown, mostly of lemmas it has; one form per cell.

The choice of rows depends on checksums of their text only: the same files on every machine.

    python -m data.make_samples            writes the files
    python -m data.make_samples --check    says whether the committed files are what it would write
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path

from data.sample_rules import english, german, spanish, turkish
from data.sample_rules.paradigm import Cell
from onmt_entmax.cli.ending import command

FOLDER = Path(__file__).resolve().parents[1] / "data" / "samples"


@dataclass(frozen=True)
class Language:
    """A language and how much of it the samples show.

    Attributes:
        cells: every cell of every paradigm.
        train: number of cells in the training file (a cell with two forms has two rows there).
        dev: number of rows in the development file.
        dev_variants: how many of these are cells with two correct forms. Only one of the forms
            counts there, so about half of them cost accuracy; kept to a few per cent.
        new_lemmas: number of lemmas that training never shows.
    """

    cells: tuple[Cell, ...]
    train: int
    dev: int
    dev_variants: int
    new_lemmas: int


LANGUAGES = {
    "english": Language(english.cells(), train=1050, dev=120, dev_variants=5, new_lemmas=4),
    "german": Language(german.cells(), train=850, dev=100, dev_variants=3, new_lemmas=4),
    "spanish": Language(spanish.cells(), train=1100, dev=120, dev_variants=3, new_lemmas=4),
    "turkish": Language(turkish.cells(), train=950, dev=120, dev_variants=0, new_lemmas=4),
}


def checksum(*words: str) -> str:
    """The order in which rows are drawn: arbitrary, and the same everywhere."""
    return hashlib.sha256("\t".join(words).encode("utf-8")).hexdigest()


def split(language: Language) -> tuple[list[Cell], list[Cell]]:
    """Divides the cells of a language into training and development cells.

    Only cells marked `predictable` may be held out: nobody can know `went` without having seen it.
    """
    drawn = sorted(language.cells, key=lambda cell: checksum(cell.lemma, cell.tags))
    regular = {cell.lemma for cell in drawn} - {c.lemma for c in drawn if not c.productive}
    new_lemmas = set(sorted(regular, key=checksum)[: language.new_lemmas])

    known = [cell for cell in drawn if cell.lemma not in new_lemmas]
    known.sort(key=lambda cell: cell.predictable)  # what cannot be guessed is always shown
    train, rest = known[: language.train], known[language.train :]
    shown = {cell.lemma for cell in train}
    rest = [cell for cell in rest if cell.lemma in shown]

    new = {cell.lemma: cell for cell in drawn if cell.lemma in new_lemmas and len(cell.forms) == 1}
    several = {cell.lemma: cell for cell in rest if len(cell.forms) > 1}
    dev = [*new.values(), *list(several.values())[: language.dev_variants]]
    dev += [cell for cell in rest if len(cell.forms) == 1]
    return train, dev[: language.dev]


def render(language: Language) -> dict[str, str]:
    """The text of the language's files, by the part of the file name after the language."""
    train, dev = split(language)
    train_rows = [(c.lemma, form, c.tags) for c in train for form in c.forms]
    dev_rows = [(c.lemma, c.forms[0], c.tags) for c in dev]
    return {
        part: "".join("\t".join(row) + "\n" for row in sorted(rows, key=lambda r: checksum(*r)))
        for part, rows in (("train", train_rows), ("dev", dev_rows))
    }


def sample_files() -> dict[str, str]:
    """Every sample file: name to text."""
    return {
        f"{name}-{part}": text
        for name, language in LANGUAGES.items()
        for part, text in render(language).items()
    }


@command
def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder (default: data/samples)")
    parser.add_argument(
        "--check", action="store_true", help="compare with the files, write nothing"
    )
    options = parser.parse_args()

    files = sample_files()
    if options.check:
        present = {path.name for path in options.out.iterdir()} if options.out.is_dir() else set()
        wrong = sorted(present ^ set(files))
        for name in sorted(present & set(files)):
            if (options.out / name).read_bytes() != files[name].encode("utf-8"):
                wrong.append(name)
        if wrong:
            print(f"not what make_samples.py makes: {', '.join(wrong)}", file=sys.stderr)
            return 1
        print(f"{len(files)} files in {options.out} are what make_samples.py makes")
        return 0

    options.out.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (options.out / name).write_bytes(text.encode("utf-8"))
        print(f"{name}: {text.count(chr(10))} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
