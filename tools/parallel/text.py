"""From raw lines to what a translation model is trained on: normalising, subwords, filtering."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from onmt_entmax.errors import UserError
from parallel.corpora import Pairs

# What Moses' tokeniser writes for characters with a meaning to Moses; `&` must come last.
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
# As Sennrich et al. 2016 (Edinburgh Neural Machine Translation Systems for WMT 16), section 3.1:
# the forms with a cedilla count as those with a comma, and all diacritics go.
_ROMANIAN = str.maketrans("ŞşŢţȘșȚțĂăÂâÎî", "SsTtSsTtAaAaIi")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\u200b\ufeff]")
# What pyonmttok marks tokens and passages to protect with, and what stands in a text for it.
_MARKS = str.maketrans("￭￨▁｟｠", "■│_⦅⦆")

# How text becomes words, as pyonmttok calls it: tokens are divided at the spaces they come with;
# other text also at punctuation and changes of script; SentencePiece needs no words. Without
# substitution, as pyonmttok would write `%` for a full-width one, and so on, for good.
_MODES: dict[str, dict[str, Any]] = {
    "tokens": {"mode": "space", "joiner_annotate": True, "no_substitution": True},
    "text": {"mode": "aggressive", "joiner_annotate": True, "no_substitution": True},
    "sentencepiece": {"mode": "none"},
}


@dataclass(frozen=True)
class SubwordPlan:
    """What subwords are learned.

    Attributes:
        kind: `bpe` or `sentencepiece`.
        symbols: merges of BPE, or pieces of SentencePiece, of each model.
        joint: whether one model is learned from both languages.
        tokens: whether the corpus comes as tokens between spaces.
    """

    kind: str
    symbols: int
    joint: bool
    tokens: bool

    @property
    def settings(self) -> dict[str, Any]:
        """The words of `src_onmttok_kwargs` and `tgt_onmttok_kwargs`."""
        return dict(_MODES[self.kind if self.kind != "bpe" else self._words])

    @property
    def _words(self) -> str:
        return "tokens" if self.tokens else "text"


def normalise(line: str, language: str, tokens: bool) -> str:
    """A line in Unicode's composed form with single spaces; Romanian without its diacritics.

    Characters that mark tokens elsewhere become others that look like them. In a tokenised
    corpus, what Moses' tokeniser has escaped is itself again.
    """
    line = unicodedata.normalize("NFC", _CONTROL.sub(" ", line)).translate(_MARKS)
    if tokens:
        for escaped, plain in _MOSES.items():
            line = line.replace(escaped, plain)
    if language == "ro":
        line = line.translate(_ROMANIAN)
    return " ".join(line.split())


def normalise_pairs(pairs: Pairs, languages: tuple[str, str], tokens: bool) -> Pairs:
    """Normalised pairs."""
    first, second = languages
    return [(normalise(s, first, tokens), normalise(t, second, tokens)) for s, t in pairs]


def hold_out(pairs: Pairs, size: int, seed: int) -> dict[str, Pairs]:
    """Split off a development set of pairs drawn by a seed.

    No sentence of it, on either side, is left in the training part.

    Raises:
        UserError: there are too few pairs.
    """
    distinct = sorted({pair for pair in pairs if all(pair)})
    if size >= len(distinct):
        raise UserError(f"cannot hold out {size} of {len(distinct)} distinct pairs")
    chosen = random.Random(seed).sample(distinct, size)
    sources, targets = {pair[0] for pair in chosen}, {pair[1] for pair in chosen}
    train = [pair for pair in pairs if pair[0] not in sources and pair[1] not in targets]
    return {"train": train, "val": chosen}


def filter_pairs(
    pairs: Pairs, lengths: Iterable[tuple[int, int]], limit: int, ratio: float
) -> Pairs:
    """Pairs of which neither side is empty, longer than `limit`, or `ratio` times the other."""
    return [
        pair
        for pair, (first, second) in zip(pairs, lengths, strict=True)
        if 0 < first <= limit
        and 0 < second <= limit
        and max(first, second) <= ratio * min(first, second)
    ]


def pyonmttok() -> ModuleType:
    """OpenNMT's tokeniser, which OpenNMT-py depends on.

    Raises:
        UserError: it is not installed here.
    """
    try:
        import pyonmttok as module
    except ImportError as error:
        raise UserError(f"pyonmttok is needed ({error}): pip install pyonmttok") from None
    return module


def tokeniser(plan: SubwordPlan, model: Path) -> Any:
    """The tokeniser that OpenNMT-py's transform `onmt_tokenize` makes of the same options."""
    key = "bpe_model_path" if plan.kind == "bpe" else "sp_model_path"
    return pyonmttok().Tokenizer(**plan.settings, **{key: str(model)})


def learn(plan: SubwordPlan, texts: Iterable[Iterable[str]], model: Path) -> Any:
    """Learn subwords from lines, of one language or of both in turn; returns the tokeniser.

    The same lines give the same model: nothing is drawn at random.

    Raises:
        UserError: there is too little text for so many symbols.
    """
    module = pyonmttok()
    if plan.kind == "bpe":
        words = module.Tokenizer(**plan.settings)
        learner = module.BPELearner(tokenizer=words, symbols=plan.symbols)
    else:
        learner = module.SentencePieceLearner(
            vocab_size=plan.symbols,
            model_type="bpe",
            character_coverage=0.9995,
            normalization_rule_name="identity",  # the text is what it is, full-width forms too
            num_threads=1,
            minloglevel=2,
        )
    for lines in texts:
        for line in lines:
            learner.ingest(line)
    try:
        learner.learn(str(model))
    except RuntimeError as error:
        raise UserError(f"cannot learn {plan.symbols} subwords: {error}") from None
    return tokeniser(plan, model)
