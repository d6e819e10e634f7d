"""The command that a training ends with: how to use the model.

| data | command |
|---|---|
| a language and tags, and characters to characters | `inflect` a word of the data |
| other strings | `predict` the target of a row |
| text | `translate` the development set, or the training data |
"""

import shlex
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from onmt_entmax.config import CorpusConfig
from onmt_entmax.data.training import TrainingData
from onmt_entmax.strings.task import LANGUAGE_COLUMN, SOURCE, TAGS, Query, StringTask
from onmt_entmax.strings.units import CHARACTERS

# Lines of the data among which an example is chosen.
_EXAMPLES = 100


def next_command(folder: Path, data: TrainingData) -> str:
    """Return a command that uses the model of a run, to paste into a shell.

    Args:
        folder: the run folder.
        data: the data of its training, which has examples.
    """
    task = data.config.task
    lines = list(islice(data.sample_lines(), _EXAMPLES))
    queries = [task.decode_source(line.source.split()) for line in lines]
    inflects = task.languages and task.has_tags and task.source == task.target == CHARACTERS
    if queries and task.source.kind != "text" and not inflects:
        return _predict(folder, task, queries)
    if queries and all(query.language for query in queries):
        return _inflect(folder, queries)
    return _translate(folder, lines[0].corpus)


def _predict(folder: Path, task: StringTask, queries: Sequence[Query]) -> str:
    """Return a command that prints a row and predicts its target."""
    query = next((query for query in queries if query.source), queries[0])
    row = {
        SOURCE: query.source,
        LANGUAGE_COLUMN: query.language,
        TAGS: task.tag_separator.join(query.tags),
    }
    cells = [row[column] for column in task.columns if column in row]
    predict = ["onmt-entmax", "predict", str(folder), "-"]
    if task.languages and LANGUAGE_COLUMN not in task.columns:
        predict += ["--language", query.language]
    if len(cells) == 1:
        print_row = ["echo", *cells]
    else:
        print_row = ["printf", "\\t".join(["%s"] * len(cells)) + "\\n", *cells]
    return f"{shlex.join(print_row)} | {shlex.join(predict)}"


def _inflect(folder: Path, queries: Sequence[Query]) -> str:
    """Return a command that inflects a word."""
    # The first query with a word and with tags. Some languages have no tags; then one with a word.
    query = max(queries, key=lambda query: (query.source != "", len(query.tags) > 0))
    words = [query.language, query.source, ";".join(query.tags)]
    return shlex.join(["onmt-entmax", "inflect", "--model", str(folder), *words])


def _translate(folder: Path, corpus: CorpusConfig) -> str:
    """Return a command that translates the sources of a corpus to a file beside the run."""
    # `prepare` proposes the same place. But the output must not replace the reference.
    output = folder.parent / f"{Path(corpus.path_src).stem}.out"
    if output.absolute() == Path(corpus.path_tgt).absolute():
        output = folder / output.name
    files = ["-src", corpus.path_src, "-output", str(output)]
    return shlex.join(["onmt-entmax", "translate", "-model", str(folder), *files])
