"""The commands of `onmt-entmax` that `prepare files` proposes next."""

import shlex

from onmt_entmax.cli.parallel_configuration import DEFAULT_TOKENIZER, bleu_tokenizer
from onmt_entmax.cli.parallel_folder import ParallelFolder


def translation_commands(folder: ParallelFolder) -> list[str]:
    """Return the commands that train, translate the development set, and measure BLEU."""
    source, target = folder.languages
    model = shlex.quote(str(folder.run))
    sources = shlex.quote(str(folder.text("val", source)))
    references = shlex.quote(str(folder.text("val", target)))
    output = shlex.quote(str(folder.out / "val.out"))
    tokenizer = bleu_tokenizer(folder)
    tokenize = "" if tokenizer == DEFAULT_TOKENIZER else f" --tokenize {tokenizer}"
    return [
        f"train -config {shlex.quote(str(folder.configuration))}",
        f"translate -model {model} -src {sources} -output {output}",
        f"bleu {output} --reference {references}{tokenize}",
    ]
