"""Paradigms: the cells of a lemma as tables and records, and word lists of many lemmas."""

from onmt_entmax.paradigm.cells import cells_of, parts_of_speech
from onmt_entmax.paradigm.counts import LeftOut, WarningCounts
from onmt_entmax.paradigm.page import as_html, html_page
from onmt_entmax.paradigm.paradigm import Paradigm
from onmt_entmax.paradigm.records import CSV_HEAD, as_csv, as_record
from onmt_entmax.paradigm.sections import Section, sections
from onmt_entmax.paradigm.texts import as_text, cell_text
from onmt_entmax.paradigm.word_formats import WORD_LISTS
from onmt_entmax.paradigm.words import WordList

__all__ = [
    "CSV_HEAD",
    "WORD_LISTS",
    "LeftOut",
    "Paradigm",
    "Section",
    "WarningCounts",
    "WordList",
    "as_csv",
    "as_html",
    "as_record",
    "as_text",
    "cell_text",
    "cells_of",
    "html_page",
    "parts_of_speech",
    "sections",
]
