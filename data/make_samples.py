"""Make the sample data in `data/samples` from the rules and word lists of `data/sample_rules/`.

    python -m data.make_samples            write the files
    python -m data.make_samples --check    compare the committed files with what would be written

Four small pieces of real morphology: English verbs and nouns, Spanish verbs, Turkish nouns and
German nouns. Each language has two TSV files in the format of the CoNLL-SIGMORPHON 2018 shared
task, `lemma<TAB>form<TAB>tag;tag`:

- `<language>-train`: some cells of each lemma's paradigm. If two forms are correct (`dreamed`,
  `dreamt`), both have a row, so that a sparse model can learn to give both.
- `<language>-dev`: other cells, mostly of the same lemmas; one form a cell.

Rows are chosen by checksums of their text, so every machine makes the same files.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from data.sample_rules import english, german, spanish, turkish
from data.sample_rules.paradigm import Cell
from onmt_entmax.cli.ending import argument_parser, run_script
from onmt_entmax.files import write_files

FOLDER = Path(__file__).resolve().parents[1] / "data" / "samples"


@dataclass(frozen=True)
class Language:
    """A language and the size of its samples.

    Attributes:
        cells: every cell of every paradigm.
        train: number of cells in the training file; a cell with two forms has two rows there.
        dev: number of rows in the development file.
        dev_variants: how many of these rows have another correct form. Only one form counts as
            correct, so about half of these rows cost accuracy; a few percent at most.
        new_lemmas: number of lemmas without a training row.
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
    """Return the key that rows are ordered by: arbitrary, but the same everywhere."""
    return hashlib.sha256("\t".join(words).encode("utf-8")).hexdigest()


def checksum_of_row(row: tuple[str, str, str]) -> str:
    """Return the key of a row: lemma, form and tags."""
    return checksum(*row)


def split(language: Language) -> tuple[list[Cell], list[Cell]]:
    """Divide the cells of a language into training and development cells.

    Only `predictable` cells are held out: nobody can guess `went`. Development begins with a cell
    of each new lemma, and with cells of several forms; the others have one form.
    """
    cells = sorted(language.cells, key=lambda cell: checksum(cell.lemma, cell.tags))
    new_lemmas = choose_new_lemmas(cells, language.new_lemmas)
    known = [cell for cell in cells if cell.lemma not in new_lemmas]
    known.sort(key=lambda cell: cell.predictable)  # what cannot be guessed is in training
    train = known[: language.train]
    trained_lemmas = {cell.lemma for cell in train}
    rest = [cell for cell in known[language.train :] if cell.lemma in trained_lemmas]

    # By lemma, so that each has one cell; the last one counts.
    new = {cell.lemma: cell for cell in cells if cell.lemma in new_lemmas and len(cell.forms) == 1}
    variants = {cell.lemma: cell for cell in rest if len(cell.forms) > 1}
    dev = [*new.values(), *list(variants.values())[: language.dev_variants]]
    dev += [cell for cell in rest if len(cell.forms) == 1]
    return train, dev[: language.dev]


def choose_new_lemmas(cells: Sequence[Cell], count: int) -> set[str]:
    """Return lemmas for development alone, whose paradigms follow from their spelling."""
    irregular = {cell.lemma for cell in cells if not cell.productive}
    regular = {cell.lemma for cell in cells} - irregular
    return set(sorted(regular, key=checksum)[:count])


def render(language: Language) -> dict[str, str]:
    """Return the text of the files by the part of their name after the language."""
    train, dev = split(language)
    train_rows = [(cell.lemma, form, cell.tags) for cell in train for form in cell.forms]
    dev_rows = [(cell.lemma, cell.forms[0], cell.tags) for cell in dev]
    return {
        part: "".join("\t".join(row) + "\n" for row in sorted(rows, key=checksum_of_row))
        for part, rows in (("train", train_rows), ("dev", dev_rows))
    }


def sample_files() -> dict[str, str]:
    """Return the text of every sample file by its name."""
    return {
        f"{name}-{part}": text
        for name, language in LANGUAGES.items()
        for part, text in render(language).items()
    }


def differences(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Return the names of files that are missing in a folder, too many, or have another text."""
    present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    changed = [
        name
        for name in sorted(present & set(files))
        if (folder / name).read_bytes() != files[name].encode("utf-8")
    ]
    return sorted(present ^ set(files)) + changed


def main(arguments: Sequence[str]) -> int:
    """Write or check the files; return the exit status."""
    parser = argument_parser(__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder (default: data/samples)")
    parser.add_argument(
        "--check", action="store_true", help="compare with the files, write nothing"
    )
    options = parser.parse_args(arguments)
    files = sample_files()
    if options.check:
        wrong = differences(options.out, files)
        if wrong:
            print(f"not what make_samples.py makes: {', '.join(wrong)}", file=sys.stderr)
            return 1
        print(f"{len(files)} files in {options.out} are what make_samples.py makes")
        return 0
    write_files({options.out / name: text for name, text in files.items()})
    for name, text in files.items():
        print(f"{name}: {len(text.splitlines())} rows")
    return 0


if __name__ == "__main__":
    run_script(main)
