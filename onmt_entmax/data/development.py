"""Read the development set, and warn if it seems to be prepared unlike the training data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onmt_entmax.config import TARGET_SYMBOLS, CorpusConfig, DataConfig
from onmt_entmax.data.corpus import build_pipe, corpus_lines, text_pair
from onmt_entmax.data.language_symbols import LanguageSymbols
from onmt_entmax.data.reader import EncodedSource, Reader
from onmt_entmax.data.unknown import UnknownTokens
from onmt_entmax.data.unknown_warnings import unknown_warnings
from onmt_entmax.data.vocabulary import Vocabularies
from onmt_entmax.errors import counted
from onmt_entmax.rules import shown
from onmt_entmax.strings.codec import Codec

# Percent of the tokens of one side that may be unknown without a warning. If there are more, the
# files were probably prepared in another way than the training data.
_FEW_UNKNOWN = 10


@dataclass(frozen=True)
class Development:
    """The pairs of a development set that the filters keep, in the order of the files.

    Attributes:
        sources: the sources as the network reads them; `example.index` is the place in these lists.
        targets: tokens that the network should write.
        texts: the text of each target: the `tgt_prefix` if there is one, and the line of its file.
        reader: returns the text of outputs, as `translate` writes it.
    """

    sources: list[EncodedSource]
    targets: list[list[str]]
    texts: list[str]
    reader: Reader

    def text(self, index: int, tokens: Sequence[str]) -> str:
        """Return the text of an output for the source of a pair; `tokens` are the network's."""
        return self.reader.postprocess(tokens, self.sources[index].copies)


def read_development(
    corpus: CorpusConfig, data: DataConfig, vocabularies: Vocabularies
) -> Development:
    """Read the development set.

    Args:
        corpus: files and transforms.
        data: the task, and options of all corpora.
        vocabularies: the vocabularies of the model.

    Raises:
        CorpusError: a line is empty on one side, with `skip_empty_level: error`.
        FileError: a file cannot be read.
    """
    pipe = build_pipe(corpus, data, vocabularies)
    prefix = f"{corpus.tgt_prefix or ''} " if "prefix" in corpus.transforms else ""
    codec = Codec.of_vocabulary(data.task, vocabularies.source)
    # Outputs may have the symbols that `translate` allows by default.
    seen = vocabularies.target.seen if TARGET_SYMBOLS == "language" else {}
    symbols = LanguageSymbols(seen) if seen else None
    reader = Reader(vocabularies, pipe, codec, symbols)
    sources: list[EncodedSource] = []
    targets: list[list[str]] = []
    texts: list[str] = []
    for line in corpus_lines(corpus):
        pair = text_pair(line, pipe, data, is_train=False)
        if pair is not None:
            source, target = pair
            sources.append(reader.encode(source, index=len(sources)))
            targets.append(reader.target_of(source, target))
            texts.append(prefix + line.target)
    return Development(sources, targets, texts, reader)


def unknown_token_warnings(development: Development, vocabularies: Vocabularies) -> Iterator[str]:
    """Yield a warning for each side of a development set that has many unknown tokens."""
    sources, targets = UnknownTokens(), UnknownTokens()
    for source, target in zip(development.sources, development.targets, strict=True):
        sources.add(len(source.words), source.unknown)
        lacking = [token for token in target if token not in vocabularies.target]
        targets.add(len(target), lacking)
    if sources.percent > _FEW_UNKNOWN:
        yield from unknown_warnings(sources, "source")
    if targets.percent > _FEW_UNKNOWN:
        yield from unknown_warnings(targets, "target")


def changed_text_warnings(development: Development) -> Iterator[str]:
    """Yield a warning if transforms change some targets for good.

    Outputs are compared with the texts of the file. If undoing the transforms does not restore such
    a text, even an output with the right tokens counts as an error.
    """
    targets, texts = development.targets, development.texts
    restored = [development.text(index, target) for index, target in enumerate(targets)]
    changed = [
        (after, before)
        for after, before in zip(restored, texts, strict=True)
        if after.split() != before.split()
    ]
    if changed:
        after, before = (shown(text) for text in changed[0])
        yield (
            f"{len(changed):,} of {counted(len(texts), 'target')} come back from transforms and "
            f"truncation as other texts, such as {before} as {after}, which count as errors"
        )
