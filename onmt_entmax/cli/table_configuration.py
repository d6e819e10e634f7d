"""The configuration that `prepare` writes for tables: corpora, task, and a training of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from onmt_entmax.cli.pair_files import pair_paths
from onmt_entmax.cli.table_training import Training
from onmt_entmax.cli.training_file import CorpusFiles, training_file
from onmt_entmax.cli.yaml_lines import with_comment

HALLUCINATED = "hallucinated"  # corpus of hallucinated pairs, and its files
_LARGEST_WORDS_WEIGHT = 20  # beside hallucinated pairs, which may be many times more


@dataclass(frozen=True, kw_only=True)
class TableConfiguration:
    """A configuration without its training.

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
            training: what `planned_training` or `training_by_rows` returns.
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
        """Return the corpora by name, with the weights of those to train on."""
        files = {"words": "train"}
        weights: dict[str, int] = {}
        if hallucinated:
            files[HALLUCINATED] = HALLUCINATED
            # Else the smaller corpus would be read several times while the larger is read once.
            weights = corpus_weights(self.rows, hallucinated)
        files["valid"] = "dev"
        return {
            name: CorpusFiles(*pair_paths(self.out / split), weights.get(name))
            for name, split in files.items()
        }


def corpus_weights(rows: int, hallucinated: int) -> dict[str, int]:
    """Return weights with which both corpora are read once in about the same updates.

    With 300 rows and 100 hallucinated pairs, three rows are read, then one pair, then three rows,
    and so on. Equal weights are left out.

    Args:
        rows: number of training rows.
        hallucinated: number of pairs of the other corpus.
    """
    least = Fraction(1, _LARGEST_WORDS_WEIGHT)
    ratio = Fraction(hallucinated, rows).limit_denominator(_LARGEST_WORDS_WEIGHT) or least
    if ratio == 1:
        return {}
    return {"words": ratio.denominator, HALLUCINATED: ratio.numerator}
