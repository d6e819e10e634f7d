"""Print the whole paradigm of a lemma: every cell with all the forms that the model admits.

    onmt-entmax paradigm turkish kitap --pos N
    onmt-entmax paradigm finnish --lemmas nouns.txt --pos N --format hunspell --output words

The cells of a language and part of speech are the tags that its training data has; training keeps
them in the model folder (`cells.tsv`), and --cells names others. A cell shows its form alone if the
model can produce no other, else every form of positive probability, and marks:

    ...  there are more forms, or may be
    ?    a warning, as of `inflect`, such as a letter that training never saw in this language, or a
         form that mixes scripts; warnings go to the standard error too

Tables follow UniMorph's dimensions: nouns have cases below each other and numbers side by side,
finite verbs persons and tenses; in a terminal, forms for which a table is too wide stand below each
other.

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
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.messages import note, warn
from onmt_entmax.cli.model_options import add_models, add_target_symbols, inflector_of
from onmt_entmax.cli.paradigm_queries import cells_to_show, questions_of, read_lemmas
from onmt_entmax.data.unknown import named
from onmt_entmax.errors import UserError, printable
from onmt_entmax.files import (
    is_stream,
    json_line,
    refuse_overwriting,
    replaced_when_done,
    write_files,
)
from onmt_entmax.inflector import Inflection
from onmt_entmax.paradigm import (
    CSV_HEAD,
    WORD_LISTS,
    LeftOut,
    WarningCounts,
    WordList,
    as_csv,
    as_html,
    as_record,
    as_text,
)
from onmt_entmax.rules import positive, whole
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
            f"--output {options.output}: --format hunspell writes several files, such as "
            "OUTPUT.dic and OUTPUT.aff; name a file"
        )
    return options


def main(arguments: Sequence[str]) -> int:
    """Print the paradigms; return the exit status."""
    options = parse_arguments(arguments)
    words = WORD_LISTS[options.format]() if options.format in WORD_LISTS else None
    # A list that is empty yet has the names of its files.
    paths = [options.output] if words is None else [*words.files(options.output)]
    refuse_overwriting([options.lemmas, options.cells], paths)
    lemmas = read_lemmas(options)
    inflector = inflector_of(options, n_best=0, budget=options.budget)
    cells = cells_to_show(options, inflector, lemmas[0].text)
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

    def paradigms() -> Iterator[list[Inflection]]:
        """Yield the cells of each lemma, and count them; only those of one lemma are in memory."""
        for size in sizes:
            cells = list(islice(answers, size))
            for cell in cells:
                warnings.add(cell)
                left_out.add(cell)
            yield cells

    if options.output is None:
        width = shutil.get_terminal_size((sys.maxsize, 0)).columns
        sys.stdout.write(_joined(paradigms(), options.format, width))
    else:
        with replaced_when_done([options.output]) as (file,):
            file.write(_joined(paradigms(), options.format))
    # A table on the standard output has said it in a line of its own.
    if left_out.forms and (options.output is not None or options.format != "table"):
        note(left_out.text())
    warn(*warnings.lines())


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
