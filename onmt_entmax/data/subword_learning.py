"""Learn subwords of texts, with pyonmttok or sentencepiece.

`data/subwords.py` has the transforms that use what is learned.
"""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onmt_entmax.errors import UserError, counted
from onmt_entmax.libraries import import_pyonmttok

# Share of the characters of a text that pieces can write; the rarest ones become <unk>. This is
# sentencepiece's default, and its advice for languages of many characters, such as Japanese.
_COVERAGE = 0.9995


@dataclass(frozen=True)
class Segmenter:
    """A learned model of subwords, applied as the transforms apply it.

    Attributes:
        divide: divides a line into subwords.
        join: joins subwords to a line again.
    """

    divide: Callable[[str], list[str]]
    join: Callable[[list[str]], str]


def bpe_library() -> Any:
    """Return pyonmttok.

    Raises:
        MissingLibraryError: it is not installed.
        BrokenLibraryError: it is installed, but cannot be imported.
    """
    return import_pyonmttok("use --subword_type sentencepiece")


@dataclass(frozen=True)
class Subwords:
    """Settings of the subwords to learn.

    Attributes:
        kind: `bpe` (pyonmttok) or `sentencepiece`.
        symbols: merges of BPE or pieces of SentencePiece, for each model.
        joint: whether both languages share one model.
        is_tokenised: whether the text is tokenised.
    """

    kind: str
    symbols: int
    joint: bool
    is_tokenised: bool

    @property
    def onmttok_kwargs(self) -> dict[str, Any]:
        """Options of pyonmttok's tokeniser for `bpe`: the value of `src_onmttok_kwargs`.

        Tokenised text is split at spaces, other text also at punctuation and changes of script.
        Characters are not substituted, such as a full-width percent sign by %: this could not be
        undone.
        """
        mode = "space" if self.is_tokenised else "aggressive"
        return {"mode": mode, "joiner_annotate": True, "no_substitution": True}

    @property
    def version(self) -> dict[str, str]:
        """The version of the library that learns the subwords, by its name."""
        if self.kind == "bpe":
            return {"pyonmttok": bpe_library().__version__}
        import sentencepiece

        return {"sentencepiece": sentencepiece.__version__}

    def learn(self, texts: Iterable[Sequence[str]], model: Path) -> Segmenter:
        """Learn subwords, and write their model; equal texts give equal models.

        Args:
            texts: the lines of each language that shares the model.
            model: path of the model, which is written.

        Raises:
            UserError: the text is too small for so many symbols.
        """
        learn = self._learn_bpe if self.kind == "bpe" else self._learn_sentencepiece
        try:
            return learn((line for lines in texts for line in lines), model)
        except RuntimeError as error:
            reason = " ".join(str(error).split())
            raise UserError(f"cannot learn {counted(self.symbols, 'subword')}: {reason}") from None

    def _learn_bpe(self, lines: Iterable[str], model: Path) -> Segmenter:
        """Learn merges of pyonmttok's BPE, and write them to `model`."""
        library = bpe_library()
        words = library.Tokenizer(**self.onmttok_kwargs)
        learner = library.BPELearner(tokenizer=words, symbols=self.symbols)
        for line in lines:
            learner.ingest(line)
        learner.learn(str(model))
        tokenizer = library.Tokenizer(**self.onmttok_kwargs, bpe_model_path=str(model))
        return Segmenter(tokenizer, tokenizer.detokenize)

    def _learn_sentencepiece(self, lines: Iterable[str], model: Path) -> Segmenter:
        """Learn pieces of sentencepiece, and write them to `model`."""
        from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

        content = io.BytesIO()
        SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=content,
            vocab_size=self.symbols,
            hard_vocab_limit=False,  # a small text has fewer
            model_type="bpe",
            character_coverage=_COVERAGE,
            normalization_rule_name="identity",  # keep the text, full-width forms included
            num_threads=1,
            minloglevel=2,  # errors alone
        )
        model.write_bytes(content.getvalue())
        processor = SentencePieceProcessor(model_proto=content.getvalue())
        return Segmenter(lambda line: processor.encode(line, out_type=str), processor.decode)
