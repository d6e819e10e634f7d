"""The development set: what a model reads, what it should write, and the texts of both."""

from dataclasses import dataclass

from onmt_entmax.config import TARGET_SYMBOLS, CorpusConfig, DataConfig
from onmt_entmax.data.corpus import build_pipe, pair_of, read_lines
from onmt_entmax.data.language_symbols import LanguageSymbols
from onmt_entmax.data.reader import EncodedSource, Reader
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.strings.codec import Codec


@dataclass(frozen=True)
class Development:
    """The pairs of a development set that the filters keep, in the order of the files.

    Attributes:
        sources: as the network reads them; `example.index` is the place in these lists.
        targets: tokens that the network should write.
        texts: of each target: the line of its file, behind the `tgt_prefix` if there is one.
        reader: returns the text of outputs, as `translate` writes it.
    """

    sources: list[EncodedSource]
    targets: list[list[str]]
    texts: list[str]
    reader: Reader


def read_development(
    corpus: CorpusConfig, data: DataConfig, vocabularies: Vocabularies
) -> Development:
    """Read the development set.

    Args:
        corpus: files and transforms.
        data: the task, and options of all corpora.
        vocabularies: of the model.

    Raises:
        CorpusError: a line is empty on one side, with `skip_empty_level: error`.
        FileError: a file cannot be read.
    """
    pipe = build_pipe(corpus, data, vocabularies)
    prefix = f"{corpus.tgt_prefix or ''} " if "prefix" in corpus.transforms else ""
    codec = Codec.of_vocabulary(data.task, vocabularies.source)
    seen = vocabularies.target.seen if TARGET_SYMBOLS == "language" else {}
    symbols = LanguageSymbols(seen) if seen else None  # as `translate` decodes
    reader = Reader(vocabularies, pipe, codec, symbols)
    development = Development(sources=[], targets=[], texts=[], reader=reader)
    for line in read_lines(corpus):
        pair = pair_of(line, pipe, data, is_train=False)
        if pair is not None:
            source, target = pair
            development.sources.append(reader.encode(source, len(development.sources)))
            development.targets.append(reader.target_of(source, target))
            development.texts.append(prefix + line.target)
    return development
