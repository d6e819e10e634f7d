"""Parallel text for translation: read, normalise, hold out a development set, learn subwords."""

import gzip
import io
import lzma
import random
import re
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from onmt_entmax.errors import UserError, counted
from onmt_entmax.files import check_aligned, text_lines
from onmt_entmax.libraries import pyonmttok

Pairs = list[tuple[str, str]]

# How to read a file by its ending, which a file may have besides the name that the user gives.
_READERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".xz": lzma.decompress,
    ".gz": gzip.decompress,
}
# Escapes of Moses' tokeniser; `&` must come last.
_MOSES = {
    "&quot;": '"',
    "&apos;": "'",
    "&lt;": "<",
    "&gt;": ">",
    "&#124;": "|",
    "&#91;": "[",
    "&#93;": "]",
    "&amp;": "&",
}
# Removes all diacritics, comma and cedilla forms alike, as Sennrich et al. 2016 ("Edinburgh Neural
# Machine Translation Systems for WMT 16"), section 3.1.
_ROMANIAN = str.maketrans("ŞşŢţȘșȚțĂăÂâÎî", "SsTtSsTtAaAaIi")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u200b\ufeff]")
# Marks of pyonmttok and sentencepiece, and the characters that replace them in a text.
_MARKS = str.maketrans("￭￨▁｟｠", "■│_⦅⦆")


def read_lines(path: Path) -> list[str]:
    """Return the lines of a UTF-8 text file, or of the file of this name with .xz or .gz.

    Raises:
        UserError: there is no such file, or it cannot be read.
    """
    for ending in _READERS:
        file = Path(f"{path}{ending}")
        if file.is_file():
            try:
                content = _READERS.get(file.suffix, bytes)(file.read_bytes())
                return list(text_lines(io.BytesIO(content), str(file)))
            except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                raise UserError(f"{file}: cannot read: {error}") from None
    raise UserError(f"{path}: no such file, nor with .xz or .gz")


def read_pairs(source: Path, target: Path) -> Pairs:
    """Return the pairs of lines of two files.

    Raises:
        UserError: a file cannot be read, or they differ in length.
    """
    sides = read_lines(source), read_lines(target)
    check_aligned({source: len(sides[0]), target: len(sides[1])})
    return list(zip(*sides, strict=True))


def unescape_moses(line: str) -> str:
    """Undo the escapes of Moses' tokeniser."""
    for escaped, plain in _MOSES.items():
        line = line.replace(escaped, plain)
    return line


def normalise(line: str, language: str, tokens: bool) -> str:
    """Normalise a line: NFC, single spaces, Romanian without diacritics.

    Marks of subwords are replaced by similar characters. In tokenised text, escapes of Moses'
    tokeniser are undone.
    """
    line = unicodedata.normalize("NFC", _CONTROL.sub(" ", line)).translate(_MARKS)
    line = unescape_moses(line) if tokens else line
    return " ".join((line.translate(_ROMANIAN) if language == "ro" else line).split())


def hold_out(pairs: Pairs, size: int, seed: int) -> tuple[Pairs, Pairs]:
    """Return the training pairs, and a random development set of `size` pairs.

    The training part keeps no sentence of the development set, on either side.

    Raises:
        UserError: there are too few pairs.
    """
    distinct = sorted({pair for pair in pairs if all(pair)})
    if size >= len(distinct):
        raise UserError(
            f"cannot hold out {size:,} of {counted(len(distinct), 'distinct pair')}; "
            "lower --val_size, or name dev files with --val"
        )
    chosen = random.Random(seed).sample(distinct, size)
    sources, targets = ({pair[side] for pair in chosen} for side in range(2))
    return [pair for pair in pairs if pair[0] not in sources and pair[1] not in targets], chosen


class Segmenter(NamedTuple):
    """Subwords of a line, and the line of subwords, as the transforms make them."""

    divide: Callable[[str], list[str]]
    join: Callable[[list[str]], str]


def bpe_library() -> Any:
    """Return pyonmttok.

    Raises:
        MissingLibraryError: it is not installed.
    """
    return pyonmttok("use --subword_type sentencepiece")


class Subwords(NamedTuple):
    """Settings of the subwords to learn.

    Attributes:
        kind: `bpe` or `sentencepiece`.
        symbols: merges of BPE or pieces of SentencePiece, for each model.
        joint: whether both languages share one model.
        tokens: whether the text is tokenised.
    """

    kind: str
    symbols: int
    joint: bool
    tokens: bool

    @property
    def settings(self) -> dict[str, Any]:
        """Options of pyonmttok for `bpe`: `src_onmttok_kwargs` and `tgt_onmttok_kwargs`.

        Tokenised text is split at spaces, other text also at punctuation and changes of script. A
        substitution (`%` for a full-width one) could not be undone.
        """
        mode = "space" if self.tokens else "aggressive"
        return {"mode": mode, "joiner_annotate": True, "no_substitution": True}

    @property
    def version(self) -> dict[str, str]:
        """Name and version of the library that learns the subwords."""
        if self.kind == "bpe":
            return {"pyonmttok": bpe_library().__version__}
        import sentencepiece

        return {"sentencepiece": sentencepiece.__version__}

    def learn(self, texts: Iterable[Sequence[str]], model: Path) -> "Segmenter":
        """Learn subwords, deterministically.

        Args:
            texts: lines of one language, or of both.
            model: the file to write.

        Raises:
            UserError: the text is too small for so many symbols.
        """
        learn = self._learn_bpe if self.kind == "bpe" else self._learn_sentencepiece
        try:
            return learn((line for lines in texts for line in lines), model)
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise UserError(f"cannot learn {counted(self.symbols, 'subword')}: {reason}") from None

    def _learn_bpe(self, lines: Iterable[str], model: Path) -> "Segmenter":
        """Learn merges of pyonmttok's BPE, and write them to `model`."""
        library = bpe_library()
        words = library.Tokenizer(**self.settings)
        learner = library.BPELearner(tokenizer=words, symbols=self.symbols)
        for line in lines:
            learner.ingest(line)
        learner.learn(str(model))
        tokenizer = library.Tokenizer(**self.settings, bpe_model_path=str(model))
        return Segmenter(tokenizer, tokenizer.detokenize)

    def _learn_sentencepiece(self, lines: Iterable[str], model: Path) -> "Segmenter":
        """Learn pieces of sentencepiece, and write them to `model`."""
        from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

        content = io.BytesIO()
        SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=content,
            vocab_size=self.symbols,
            hard_vocab_limit=False,  # a small text has fewer
            model_type="bpe",
            character_coverage=0.9995,
            normalization_rule_name="identity",  # keep the text, full-width forms included
            num_threads=1,
            minloglevel=2,
        )
        model.write_bytes(content.getvalue())
        processor = SentencePieceProcessor(model_proto=content.getvalue())
        return Segmenter(lambda line: processor.encode(line, out_type=str), processor.decode)
