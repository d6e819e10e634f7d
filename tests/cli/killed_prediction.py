"""A `predict` that kills itself: after the heading, two windows of two rows, and half a line."""

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from onmt_entmax.cli import predict, predict_tables
from onmt_entmax.files.continued import Continued

PARTS = 3  # of the output that are written whole: the heading, and two windows


class Killed(Continued):
    """An output whose process ends within a line."""

    parts = 0

    def write(self, text: str, progress: Mapping[str, Any]) -> None:
        super().write(text, progress)
        self.parts += 1
        if self.parts == PARTS:
            with open(self.partial, "ab") as file:
                file.write(b"half a li")
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    predict_tables.WINDOW = 2
    predict_tables.Continued = Killed
    predict.main(sys.argv[1:])
