"""The cells of inflection that a run records in its checkpoints."""

from collections.abc import Callable

from onmt_entmax.checkpoint import read_cells
from onmt_entmax.data.training import TrainingData
from onmt_entmax.errors import UserError
from onmt_entmax.strings.cells import Cells
from onmt_entmax.train.resumed import Resumed


def trained_cells(
    data: TrainingData, resumed: Resumed | None, tell: Callable[[str], None]
) -> Cells:
    """Return the cells of inflection that were trained, of each language; {} for other tasks.

    Args:
        data: the data of this training, whose counts replace earlier ones.
        resumed: the checkpoint whose model is trained further, with the cells of its training.
        tell: receives a warning if those cannot be read.
    """
    cells = data.cells()
    if not cells:
        return {}
    earlier: Cells = {}
    if resumed is not None:
        try:
            earlier = read_cells(resumed.loaded.folder)
        except UserError as error:
            tell(f"warning: {error}; only the cells of this data are kept")
    both = {language: {**earlier.get(language, {}), **cells[language]} for language in cells}
    return {**earlier, **both}
