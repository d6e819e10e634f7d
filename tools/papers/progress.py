"""Lines about the progress of long commands."""

from __future__ import annotations

import sys
import time


def say(message: str) -> None:
    """Print a line about progress, with the time of day, to stderr."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)
