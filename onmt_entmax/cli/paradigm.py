"""Print the whole paradigm of a lemma: every cell, with all the forms that the model admits.

    onmt-entmax paradigm turkish kitap --pos N
    onmt-entmax paradigm finnish --lemmas nouns.txt --pos N --format hunspell --output words

The cells of a language and part of speech are the tags that its training data has. Training writes
them to the model folder (`cells.tsv`), and --cells names others. With several models, the cells of
the first one count. A cell of a table reads:

    drew                          the model can produce no other form
    dreamed 64% / dreamt 36%      it can produce these forms, and no others
    dreamed 64% / dreamt 30% ...  there are more forms, or may be
    drewx ?                       there is a warning, such as of a letter that training never saw in
                                  this language, or of mixed scripts; it is printed to the standard
                                  error, too
    (none)                        no form was found

Tables follow UniMorph's dimensions: nouns have cases below each other and numbers side by side,
finite verbs have persons and tenses. If a terminal is too narrow for a table, forms stand below
each other.

--least P shows only forms of probability P or more. The number of the others is printed, and `...`
marks their cells; CSV and JSON have their number for each cell.

--format csv, json and html have the same content. The other formats are word lists, which
docs/guide-paradigms.md describes:

    hunspell  spelling dictionary: OUTPUT.dic, OUTPUT.aff and, for forms with spaces,
              OUTPUT.phrases.txt
    keyman    word, weight and lemma, for Keyman's keyboards
    att       automaton from lemma and tags to form, for HFST and OpenFst

After a word list, the command prints whether it is complete. If it is, the model can produce no
other form. A list with a warning is not complete, since the model read another word, or may have
failed.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from onmt_entmax.checkpoint import read_cells
from onmt_entmax.cli.arguments import argument_parser
from onmt_entmax.cli.messages import warn
from onmt_entmax.cli.model_options import add_models, add_target_symbols, inflector_of
from onmt_entmax.cli.paradigm_queries import (
    Lemma,
    check_cells,
    questions_of,
    read_cells_file,
    read_lemmas,
)
from onmt_entmax.cli.written_paradigms import FORMATS, write_paradigms
from onmt_entmax.data.token_names import most_frequent
from onmt_entmax.errors import UserError
from onmt_entmax.files import is_stream, refuse_overwriting, write_files
from onmt_entmax.inflector import Inflection, Inflector, Question
from onmt_entmax.paradigm import WORD_LISTS, WordList
from onmt_entmax.rules import positive, shown, whole
from onmt_entmax.strings.languages import known_as

_ALL_FORMS = 0  # the `n_best` of an inflector that lists all forms of a cell
# Cells that are searched together. The cells of a lemma have sources of about the same length, so a
# batch needs little padding.
_BATCH = 256


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argument_parser(__doc__)
    add = parser.add_argument
    add("language", help="the language, as the model names it")
    add("lemma", nargs="?", help="the word; --lemmas names several")
    add(
        "--lemmas",
        type=Path,
        metavar="FILE",
        help="file of words; a line is lemma, or lemma<TAB>part of speech",
    )
    add("--pos", help="part of speech, such as N or V; needed if the language has several")
    add_models(parser)
    add(
        "--cells",
        type=Path,
        metavar="FILE",
        help="file of cells, instead of the model's; a line is language<TAB>tags<TAB>number of "
        "training sources",
    )
    add(
        "--format",
        choices=(*FORMATS, *WORD_LISTS),
        default="table",
        help="format of the output, see above (default table)",
    )
    add(
        "--least",
        type=positive(1),
        default=0.0,
        metavar="P",
        help="least probability of a form (default: all above 0)",
    )
    add("--beam_size", type=whole(1, 10_000), default=10, help="beam size (default 10)")
    add(
        "--budget",
        type=whole(0, 10**7),
        default=0,
        metavar="N",
        help="decoder steps to enumerate the forms of a cell, if the beam does not find all "
        "(default 0: no enumeration)",
    )
    add_target_symbols(parser)
    add("--output", type=Path, help="file to write (default: standard output)")
    options = parser.parse_args(arguments)
    if (options.lemma is None) == (options.lemmas is None):
        raise UserError("name one lemma, or a file of them with --lemmas")
    if options.lemma is not None and not options.lemma.strip():
        raise UserError("the lemma is empty")
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
    if options.format in WORD_LISTS:
        _write_word_list(options)
    else:
        _write_paradigms(options)
    return 0


def _write_paradigms(options: argparse.Namespace) -> None:
    """Write the paradigm of each lemma."""
    refuse_overwriting([options.lemmas, options.cells], [options.output])
    lemmas = _lemmas(options)
    inflector = inflector_of(options, n_best=_ALL_FORMS, budget=options.budget)
    paradigms = _paradigms(options, inflector, lemmas)
    sizes = list(map(len, paradigms))
    answers = _answers(inflector, paradigms, options.least)
    write_paradigms(answers, sizes, kind=options.format, least=options.least, output=options.output)


def _write_word_list(options: argparse.Namespace) -> None:
    """Write the forms of all lemmas as a word list; print whether it is complete."""
    words = WORD_LISTS[options.format]()
    refuse_overwriting([options.lemmas, options.cells], words.names(options.output))
    lemmas = _lemmas(options)
    _check_lemmas(words, lemmas)
    inflector = inflector_of(options, n_best=_ALL_FORMS, budget=options.budget)
    paradigms = _paradigms(options, inflector, lemmas)
    for answer in _answers(inflector, paradigms, options.least):
        words.add(answer)
    write_files(words.files(options.output))
    print(words.completeness())
    warn(*words.warnings.lines())
    left_out = [form for form in words.left_out() if form]  # a warning cannot name an empty form
    if left_out:
        warn(f"left out, as no line of the list can hold them: {most_frequent(Counter(left_out))}")


def _lemmas(options: argparse.Namespace) -> list[Lemma]:
    """Return the lemma that the user names, or those of a file.

    Args:
        options: `lemma`, `lemmas` and `pos`.

    Raises:
        UserError: the file cannot be read.
    """
    if options.lemmas is None:
        return [Lemma(options.lemma, options.pos)]
    return read_lemmas(options.lemmas, options.pos)


def _paradigms(
    options: argparse.Namespace, inflector: Inflector, lemmas: Sequence[Lemma]
) -> list[list[Question]]:
    """Return the paradigm of each lemma: a query for each of its cells.

    Args:
        options: `language` and `cells`.
        inflector: the models; the cells of the first count.
        lemmas: the lemmas; at least one.

    Raises:
        UserError: the models do not know the language, or the cells of a lemma.
    """
    known_cells = (
        read_cells_file(options.cells) if options.cells else read_cells(inflector.folders[0])
    )
    language = known_as(options.language, {*inflector.languages, *known_cells})
    check_cells(known_cells, inflector, language, example=lemmas[0].text)
    return questions_of(lemmas, known_cells, language)


def _answers(
    inflector: Inflector, paradigms: Iterable[Iterable[Question]], least: float
) -> Iterator[Inflection]:
    """Return an iterator over the cells with their forms, paradigm by paradigm.

    A cell is searched when the iterator reaches it. A batch may have cells of several lemmas.

    Args:
        inflector: the models.
        paradigms: a query for each cell.
        least: least probability of a form.
    """
    questions = [question for paradigm in paradigms for question in paradigm]
    return (answer.at_least(least) for answer in inflector.answers(questions, _BATCH))


def _check_lemmas(words: WordList, lemmas: Iterable[Lemma]) -> None:
    """Check that a word list can hold the lemmas.

    Raises:
        UserError: a lemma has a tab or a line end, which the format cannot hold.
    """
    for lemma in lemmas:
        if not words.holds_lemma(lemma.text):
            raise UserError(f"{shown(lemma.text)}: a tab or line end, which a column cannot have")
