"""The files of a folder that `prepare files` fills."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.cli.training_file import CONFIGURATION
from onmt_entmax.data.parallel import Pairs
from onmt_entmax.data.subword_learning import Subwords

PARTS = ("train", "val", "test")


@dataclass(frozen=True)
class ParallelFolder:
    """The paths of a folder of parallel text.

    Attributes:
        out: the folder.
        languages: languages of sources and targets, with which the names of text files end.
        subwords: type of the subwords, with which the names of their models begin.
    """

    out: Path
    languages: Sequence[str]
    subwords: Subwords

    def text(self, part: str, language: str) -> Path:
        """Return the path of one side of a part; the test set lies in a folder of its own."""
        folder = self.out / part if part == "test" else self.out
        return folder / f"{part}.{language}"

    def texts(self, part: str) -> list[Path]:
        """Return the paths of both sides of a part."""
        return [self.text(part, language) for language in self.languages]

    @property
    def subword_models(self) -> list[Path]:
        """The subword model of each side; a joint model stands for both."""
        kind = "bpe" if self.subwords.kind == "bpe" else "sp"
        if self.subwords.joint:
            return [self.out / f"{kind}.model"] * 2
        return [self.out / f"{kind}.{language}.model" for language in self.languages]

    @property
    def configuration(self) -> Path:
        """The configuration of the training."""
        return self.out / CONFIGURATION

    @property
    def run(self) -> Path:
        """The run folder of the training."""
        return self.out / "-".join(self.languages)

    @property
    def record(self) -> Path:
        """How the files were made."""
        return self.out / "prepare.json"

    def files(self) -> list[Path]:
        """Return every file that `prepare files` writes."""
        texts = [path for part in PARTS for path in self.texts(part)]
        return [*texts, *self.subword_models, self.configuration, self.record]

    def contents_of_texts(self, parts: Mapping[str, Pairs]) -> dict[Path, bytes]:
        """Return the contents of the text files for the pairs of each part."""
        return {
            path: "".join(f"{pair[side]}\n" for pair in pairs).encode()
            for part, pairs in parts.items()
            for side, path in enumerate(self.texts(part))
        }
