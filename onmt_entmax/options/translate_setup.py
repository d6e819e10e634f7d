"""The setup of a translation: its files, its search, its texts and the form of its outputs.

`translate.py` makes a `TranslationSetup` of the options; `cli/translate.py` carries it out.
"""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from onmt_entmax.files import is_stream
from onmt_entmax.report.writers import OutputForm, summary_path
from onmt_entmax.search import SearchTask


@dataclass(frozen=True)
class InputFiles:
    """The files that are read line by line; line N of each belongs to line N of the sources.

    Attributes:
        sources: the lines to translate.
        prefixes: what the output of each line must start with; None: no output has a prefix.
        constraints: what the output of each line must contain, or must not; None: no constraints.
    """

    sources: Path
    prefixes: Path | None
    constraints: Path | None


@dataclass(frozen=True)
class OutputFiles:
    """The files that are written; None stands for a file that is not written.

    Attributes:
        translations: the outputs, `n_best` lines for each source.
        is_default: whether `translations` is the default file, since the user named none.
        report: the exactness report, with the certificate of each source.
        alignments: attended source positions, a line for each line of `translations`.
    """

    translations: Path
    is_default: bool
    report: Path | None
    alignments: Path | None

    @property
    def summary(self) -> Path | None:
        """The file that sums up the report."""
        return summary_path(self.report)

    @property
    def optional(self) -> list[Path | None]:
        """The other files than the translations: report, summary and alignments, in this order."""
        return [self.report, self.summary, self.alignments]

    def missing_folders(self) -> list[Path]:
        """Return the folders of these files that do not exist."""
        written = (self.translations, *self.optional)
        files = [path for path in written if path is not None and not is_stream(path)]
        folders = dict.fromkeys(path.parent for path in files)
        return [folder for folder in folders if not folder.exists()]


@dataclass(frozen=True)
class TextSettings:
    """The settings by which lines become tokens, and tokens of outputs become text.

    Attributes:
        transforms: transforms of the sources; None: the subword transforms of the training.
        transform_options: options of the transforms that the user set; the training's options fill
            in the rest.
        phrase_table: target words for source words, which replace `<unk>` in outputs; source words
            that it lacks are copied. None: `<unk>` stays.
    """

    transforms: tuple[str, ...] | None
    transform_options: Namespace
    phrase_table: Mapping[str, str] | None


@dataclass(frozen=True)
class TranslationSetup:
    """A translation, as the options of `translate` describe it.

    Attributes:
        models: run folders or checkpoints.
        inputs: the files to read.
        outputs: the files to write.
        texts: how texts become tokens, and back.
        task: the search, or the random sampling.
        form: what the file of translations has for each source.
        batch_size: sentences searched together.
        gpu: number of the GPU; None: the CPU.
        notes: notes for the user, on options that are ignored or read as something else, and on
            folders that are created.
        warnings: warnings for the user, on options that others overrule.
    """

    models: tuple[Path, ...]
    inputs: InputFiles
    outputs: OutputFiles
    texts: TextSettings
    task: SearchTask
    form: OutputForm
    batch_size: int
    gpu: int | None
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
