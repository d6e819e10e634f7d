"""Print the whole paradigm of a lemma: every cell with all the forms that the model admits.

    onmt-entmax paradigm turkish kitap --pos N
    onmt-entmax paradigm finnish --lemmas nouns.txt --pos N --format hunspell --output words

The cells of a language and part of speech are the tags that its training data has; training keeps
them in the model folder (`cells.tsv`), and --cells names others. A cell shows its form alone if the
model can produce no other, else every form of positive probability: `...` means that there are
more, or may be, `?` a warning, as of `inflect`: such as a letter that training never saw in this
language, or a form that mixes scripts. Warnings go to the standard error too. Tables follow
UniMorph's dimensions: nouns have cases below each other and numbers side by side, finite verbs
persons and tenses; in a terminal, forms for which a table is too wide stand below each other.

--least P shows only forms of probability P or more. How many others there are is said; `...` marks
their cells, and CSV and JSON have their number.

--format csv, json and html have the same content. The other formats are word lists:

    hunspell  OUTPUT.dic and OUTPUT.aff, a spelling dictionary. Hunspell checks single words:
              forms with spaces stand apart, in OUTPUT.phrases.txt
    keyman    word, weight and lemma as Keyman's TSV; the weight is 1,000 times the expected number
              of cells with this form
    att       an automaton of lemma and tags to form in AT&T's format, weights -log(probability),
              as HFST and OpenFst read it

The last line that is printed says whether the list is complete: nothing else is possible. It is
not if a cell has a warning, since the model read another word or may have failed.
"""

import argparse
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from onmt_entmax.checkpoint import read_cells
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.messages import note, warn
from onmt_entmax.cli.model_options import add_models, add_target_symbols, inflector_of
from onmt_entmax.data.unknown import named
from onmt_entmax.errors import UserError, printable
from onmt_entmax.files import (
    is_stream,
    json_line,
    read_lines,
    refuse_overwriting,
    replaced_when_done,
    write_files,
)
from onmt_entmax.inflector import Inflection, Inflector, Question
from onmt_entmax.paradigm import (
    COLUMN_OR_LINE_END,
    CSV_HEAD,
    WORD_LISTS,
    LeftOut,
    WarningCounts,
    WordList,
    as_csv,
    as_html,
    as_record,
    as_text,
    cells_of,
)
from onmt_entmax.rules import positive, shown, whole
from onmt_entmax.strings.cells import Cells, parse_cells
from onmt_entmax.strings.languages import known_as

FORMATS = ("table", "csv", "json", "html")
_BATCH = 256  # cells that are searched together


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("language", help="as the model names it")
    add("lemma", nargs="?", help="the word; or --lemmas")
    add("--lemmas", type=Path, metavar="FILE", help="a lemma a line, or lemma<TAB>part of speech")
    add("--pos", help="part of speech, such as N or V; needed if the language has several")
    add_models(parser)
    add(
        "--cells",
        type=Path,
        metavar="FILE",
        help="other cells: language, tags and number, between tabs",
    )
    add("--format", choices=(*FORMATS, *WORD_LISTS), default="table", help="default: table")
    add("--least", type=positive(1), default=0.0, metavar="P",
        help="least probability of a form (default: all above 0)")  # fmt: skip
    add("--beam_size", type=whole(1, 10_000), default=10, help="default 10")
    add("--budget", type=whole(0, 10**7), default=0, metavar="N",
        help="decoder steps that enumerate a cell of which the beam does not find all (default 0)",
    )  # fmt: skip
    add_target_symbols(parser)
    add("--output", type=Path, help="file to write (default: standard output)")
    options = parser.parse_args(arguments)
    if (options.lemma is None) == (options.lemmas is None):
        raise UserError("name one lemma, or a file of them with --lemmas")
    if options.format in WORD_LISTS and not (options.output and options.output.name):
        raise UserError(f"--format {options.format} needs --output, a file")
    if options.format == "hunspell" and is_stream(options.output):
        raise UserError(
            f"--output {options.output}: --format hunspell writes two files, OUTPUT.dic and "
            "OUTPUT.aff; name a file"
        )
    return options


def read_lemmas(options: argparse.Namespace) -> list[tuple[str, str | None]]:
    """Return lemmas, each with a part of speech if one is given.

    Raises:
        UserError: the file has no lemma, or a line more than two columns.
    """
    if options.lemma is not None:
        return [(options.lemma, options.pos)]
    lemmas: list[tuple[str, str | None]] = []
    for number, line in enumerate(read_lines(options.lemmas), 1):
        lemma, *pos = line.rstrip().split("\t")
        if len(pos) > 1 or (pos and not lemma):
            raise UserError(
                f"{options.lemmas}:{number}: expected lemma, or lemma<TAB>part of speech"
            )
        if lemma:
            lemmas.append((lemma, pos[0] if pos else options.pos))
    if not lemmas:
        raise UserError(f"{options.lemmas}: no lemmas")
    return lemmas


def cells_to_show(options: argparse.Namespace, inflector: Inflector, lemma: str) -> Cells:
    """Return the cells of --cells, else those that the first model was trained on.

    Args:
        options: of the command.
        inflector: of the models.
        lemma: the first one, for the error.

    Raises:
        UserError: there are none, or the training data of the language has no tags.
    """
    folder = inflector.folders[0]
    if options.cells:
        cells = parse_cells(read_lines(options.cells), str(options.cells))
        if not cells:
            raise UserError(
                f"{options.cells}: has no cells; its lines are language, tags and their number, "
                "between tabs"
            )
    else:
        cells = read_cells(folder)
    language = known_as(options.language, {*inflector.languages, *cells})
    if language in inflector.untagged and not cells.get(language):
        query = shlex.join(["--model", str(folder), language, lemma, ""])
        raise UserError(
            f"{folder}: its training data for {language} has no tags, hence no paradigms; "
            f"onmt-entmax inflect {query} prints the form of a lemma"
        )
    if not cells:
        raise UserError(
            f"{folder}: trained by a version that kept no cells.tsv; name one with --cells: lines "
            "of language, tags and their number, between tabs"
        )
    return cells


def questions_of(
    lemmas: Iterable[tuple[str, str | None]], cells: Cells, language: str
) -> list[list[Question]]:
    """Return a query for each cell of each lemma.

    Args:
        lemmas: each with its part of speech, if one is named.
        cells: of all languages.
        language: as the cells name it.

    Raises:
        UserError: the language has no cells, or no such part of speech.
    """
    return [
        [Question(language, lemma, tags) for tags in cells_of(cells, language, pos)]
        for lemma, pos in lemmas
    ]


def main(arguments: Sequence[str]) -> int:
    """Print the paradigms; return the exit status."""
    options = parse_arguments(arguments)
    words = WORD_LISTS[options.format]() if options.format in WORD_LISTS else None
    # A list that is empty yet has the names of its files.
    paths = [options.output] if words is None else [*words.files(options.output)]
    refuse_overwriting([options.lemmas, options.cells], paths)
    lemmas = read_lemmas(options)
    if options.format == "keyman":
        _refuse_divided_lemmas(lemma for lemma, _ in lemmas)
    inflector = inflector_of(options, 0, budget=options.budget)
    cells = cells_to_show(options, inflector, lemmas[0][0])
    language = known_as(options.language, {*inflector.languages, *cells})
    paradigms = questions_of(lemmas, cells, language)
    # The cells of all lemmas are decoded in common batches.
    questions = [question for paradigm in paradigms for question in paradigm]
    answers = (answer.at_least(options.least) for answer in inflector.answers(questions, _BATCH))
    if words is None:
        _write_paradigms(answers, [len(paradigm) for paradigm in paradigms], options)
    else:
        _write_list(words, answers, options)
    return 0


def _refuse_divided_lemmas(lemmas: Iterable[str]) -> None:
    """Refuse lemmas that would not stay in their column of Keyman's list.

    Raises:
        UserError: names the first.
    """
    for lemma in lemmas:
        if COLUMN_OR_LINE_END.search(lemma):
            raise UserError(f"{shown(lemma)}: a tab or line end, which a column cannot have")


def _write_list(
    words: WordList, answers: Iterable[Inflection], options: argparse.Namespace
) -> None:
    """Write a word list of all cells; print whether it is complete."""
    for cell in answers:
        words.add(cell)
    write_files(words.files(options.output))
    print(words.completeness())
    warn(*words.warnings.lines())
    left_out = [form for form in words.others() if form]
    if left_out and options.format == "keyman":
        warn(f"left out, as no line of the list can hold them: {named(Counter(left_out))}")


def _write_paradigms(
    answers: Iterator[Inflection], sizes: Iterable[int], options: argparse.Namespace
) -> None:
    """Write the paradigm of each lemma, and warn of what may be wrong.

    Args:
        answers: the cells of all lemmas.
        sizes: how many cells each lemma has.
        options: of the command.
    """
    warnings, left_out = WarningCounts(), LeftOut()
    paradigms = _paradigms(answers, sizes, warnings, left_out)
    if options.output is None:
        width = shutil.get_terminal_size((sys.maxsize, 0)).columns
        sys.stdout.write(_joined(paradigms, options.format, width))
    else:
        with replaced_when_done([options.output]) as (file,):
            file.write(_joined(paradigms, options.format))
    # A table that was printed has said it.
    if left_out.forms and (options.output is not None or options.format != "table"):
        note(left_out.text())
    warn(*warnings.lines())


def _paradigms(
    answers: Iterator[Inflection], sizes: Iterable[int], warnings: WarningCounts, left_out: LeftOut
) -> Iterator[list[Inflection]]:
    """Yield the cells of each lemma, and count them.

    Args:
        answers: the cells of all lemmas.
        sizes: how many cells each lemma has.
        warnings: receives each cell.
        left_out: receives each cell.
    """
    for size in sizes:
        cells = list(islice(answers, size))
        for cell in cells:
            warnings.add(cell)
            left_out.add(cell)
        yield cells


def _joined(paradigms: Iterable[Sequence[Inflection]], kind: str, width: int = sys.maxsize) -> str:
    """Return all paradigms in one text; tables for a terminal of a width."""
    if kind == "html":
        return as_html(paradigms)
    if kind == "csv":
        return CSV_HEAD + "".join(map(as_csv, paradigms))
    if kind == "json":
        return "".join(json_line(as_record(cells)) for cells in paradigms)
    tables = [(printable(cells[0].question.lemma), as_text(cells, width)) for cells in paradigms]
    if len(tables) == 1:
        ((_, text),) = tables
        return f"{text}\n"
    return "\n\n".join(f"{lemma}\n\n{text}" for lemma, text in tables) + "\n"
