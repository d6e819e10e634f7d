"""The configuration that `prepare` writes for tables: corpora, task, network and training."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from onmt_entmax.cli.pair_files import pair_paths
from onmt_entmax.cli.table_training import Training
from onmt_entmax.cli.training_file import CorpusFiles, training_file
from onmt_entmax.cli.yaml_lines import with_comment

HALLUCINATED = "hallucinated"
"""Name of the corpus of hallucinated pairs, and of its files"""
# Most rows that are read before hallucinated pairs have their turn: fewer than a batch of 32. There
# may be many more hallucinated pairs than rows, so their weight may be larger.
_LARGEST_WORDS_WEIGHT = 20


@dataclass(frozen=True, kw_only=True)
class TableConfiguration:
    """A configuration whose network and schedule are not chosen yet.

    Attributes:
        out: folder of the data and of the configuration.
        rows: number of training rows.
        languages: number of languages.
        task: lines of YAML that say what the model reads and writes.
        commands: next commands, for the comment at its head.
    """

    out: Path
    rows: int
    languages: int
    task: Sequence[str]
    commands: Sequence[str] = ()

    def text(self, training: Training, hallucinated: int = 0) -> str:
        """Return the text of the file.

        Args:
            training: network and schedule, from `planned_training` or `training_by_rows`.
            hallucinated: number of hallucinated pairs in the training data.
        """
        selection = "exact_match" if self.languages == 1 else "macro_accuracy"
        settings = [
            *self.task,
            "",
            *training.network,
            "",
            *training.schedule,
            with_comment("keep_checkpoint: 1", "beside the best"),
            with_comment(f"selection: {selection}", "measure of the best checkpoint"),
            "seed: 1",
            "",
        ]
        corpora = self._corpora(hallucinated)
        return training_file(corpora, self.out / "model", settings, self.commands, training.plan)

    def _corpora(self, hallucinated: int) -> dict[str, CorpusFiles]:
        """Return the corpora by their names in the configuration."""
        files = {"words": "train"}
        weights: dict[str, int] = {}
        if hallucinated:
            files[HALLUCINATED] = HALLUCINATED
            # With equal weights, the smaller corpus would be read several times while the larger
            # one is read once.
            weights = corpus_weights(self.rows, hallucinated)
        files["valid"] = "dev"
        return {
            name: CorpusFiles(*pair_paths(self.out / split), weights.get(name))
            for name, split in files.items()
        }


def corpus_weights(rows: int, hallucinated: int) -> dict[str, int]:
    """Return weights with which training reads both corpora in about the same time.

    With 300 rows and 100 hallucinated pairs, training reads three rows, then one pair, then three
    rows, and so on.

    Args:
        rows: number of training rows.
        hallucinated: number of hallucinated pairs.

    Returns:
        The weights of both corpora by name; empty if they are equal.
    """
    least = Fraction(1, _LARGEST_WORDS_WEIGHT)
    ratio = Fraction(hallucinated, rows).limit_denominator(_LARGEST_WORDS_WEIGHT) or least
    if ratio == 1:
        return {}
    return {"words": ratio.denominator, HALLUCINATED: ratio.numerator}
